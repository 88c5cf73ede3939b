package mapstate

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Options of a Map. The zero value works.
type Options struct {
	// Interval leaves writes to the backing's sync interval; otherwise a commit
	// returns when it is on disk.
	Interval bool
	// Torn says that the backing cannot commit atomically: of a Commit that fails, or that
	// a crash cuts short, some records may be written; the meta entries come after all
	// of them. Progress is synced then, whatever Interval says: it must not fall behind the
	// records.
	Torn bool
	// Evicts says that the backing may forget records by itself. What the batch before has
	// written and is gone is counted in Stats.Forgotten.
	Evicts bool
	// MaxWaiting bounds the requests that wait for the owner; more fail with
	// ErrOverloaded. 0 is 1024.
	MaxWaiting int
	// MaxBatchKeys bounds the operations staged in one open batch. 0 is 1,000,000.
	MaxBatchKeys int
	// MaxBatchBytes bounds their keys, values and arguments, and also the records that
	// they have read and what those have grown by. 0 is 256 MiB.
	MaxBatchBytes int64
	// BatchIdle is how long an open batch may be idle before it is dropped. 0 is 60 s.
	BatchIdle time.Duration
	// Now is the clock of Progress.CommittedAt; nil is time.Now.
	Now func() time.Time
}

func (o Options) withDefaults() Options {
	o.MaxWaiting = cmp.Or(o.MaxWaiting, 1024)
	o.MaxBatchKeys = cmp.Or(o.MaxBatchKeys, 1_000_000)
	o.MaxBatchBytes = cmp.Or(o.MaxBatchBytes, 256<<20)
	o.BatchIdle = cmp.Or(o.BatchIdle, 60*time.Second)
	o.Interval = o.Interval && !o.Torn
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}

// Envelope says which attempt at which batch an operation belongs to.
type Envelope struct {
	TxID      TxID // NoTxID: un-numbered
	Partition string
	Epoch     int64
	Offsets   []byte // canonical JSON; nil: none given
	Whole     bool   // this request is the whole batch of its partition
}

// Result is what an operation or a commit did.
type Result struct {
	Values           []Value // what each position of an update left
	Applied          int     // positions that the batch had not written before
	Replayed         int     // positions that an earlier attempt at the batch had written
	Restored         int     // keys of an earlier attempt put back to what they were before it
	AlreadyCommitted bool    // the commit was a repetition, nothing was written
}

// Entry is a key as a reader sees it.
type Entry struct {
	Value Value // no value: absent
	Prev  Value // opaque only
	TxID  TxID
}

// Begun is the answer to Begin.
type Begun struct {
	Committed TxID // the partition's last committed txid
	Replay    bool // the batch has been committed before
}

// Stats are counts since the Map was opened.
type Stats struct {
	Commits  int64 // attempts committed
	Keys     int64 // keys they wrote
	Replayed int64
	Restored int64
	Stale    int64 // operations refused with ErrStaleTx
	// Forgotten are keys that a partition's batch found absent, and that its batch before
	// had written: the backing has lost them. Of others nobody knows; see Options.Evicts.
	Forgotten int64
	Open      int64 // open batches now
	Waiting   int64 // requests that wait for the owner now
}

// Map is one state: a kind's rules over a backing, its open batches and its
// progress. All methods may be called concurrently.
//
// An attempt commits under the turn, which makes it the state's one writer; the
// wait for the disk comes after the turn has been passed on, so that concurrent
// commits share one sync. What a commit wrote is visible to readers before it is
// on disk: a crash in between takes both away, and no answer to its writer has
// been given.
type Map struct {
	kind    Kind
	backing BackingMap
	opts    Options

	turn     *turn
	attempts sync.Pool             // of *attempt
	version  atomic.Uint64         // counts commits; see batch
	sequence atomic.Uint64         // of what was published, so that it is acknowledged in order
	damaged  atomic.Bool           // a write failed: progress must be read again
	unsynced atomic.Pointer[error] // why a visible write is not on disk, if one is not

	mu           sync.RWMutex          // guards the following
	partitions   partitions            // as the next attempt finds them
	acknowledged map[string]*partition // as they are on disk
	open         map[string]*batch     // by partition
	closed       error

	commits, keys, replayed, restored, stale, forgotten atomic.Int64
}

// Open returns the Map over a backing, with the progress that is stored there.
func Open(ctx context.Context, kind Kind, backing BackingMap, opts Options) (*Map, error) {
	m := &Map{
		kind: kind, backing: backing, opts: opts.withDefaults(),
		open: make(map[string]*batch),
	}
	m.turn = newTurn(m.opts.MaxWaiting)
	m.attempts.New = func() any { return new(attempt) }
	var err error
	if m.partitions, err = loadProgress(ctx, backing); err != nil {
		return nil, err
	}
	m.acknowledged = maps.Clone(m.partitions.byName)
	return m, nil
}

// Kind returns the kind of the state.
func (m *Map) Kind() Kind { return m.kind }

// Read returns the entry of each key as the attempt at env sees it: staged values
// where its batch is open, else what a reader under env.TxID sees.
func (m *Map) Read(ctx context.Context, env Envelope, keys []Key) ([]Entry, error) {
	b, err := m.batchOf(env)
	if err != nil {
		return nil, err
	}
	if b != nil {
		return b.read(ctx, env, keys)
	}
	records, err := m.backing.MultiGet(ctx, keys)
	if err != nil {
		return nil, located(err, keys)
	}
	entries := make([]Entry, len(keys))
	for i, stored := range records {
		if entries[i], err = m.view(stored, env.TxID); err != nil {
			return nil, m.counted(&KeyError{Index: i, Key: keys[i], Err: err})
		}
	}
	return entries, nil
}

// view returns a stored record as a reader under x sees it.
func (m *Map) view(stored []byte, x TxID) (Entry, error) {
	r, err := decodeStored(m.kind, stored)
	if err != nil {
		return Entry{}, err
	}
	v, err := m.kind.View(r, x)
	return Entry{Value: v, Prev: r.Prev, TxID: r.TxID}, err
}

// Update applies updaters[i] to keys[i]: staged where the batch of env is open,
// else as an attempt of its own.
func (m *Map) Update(ctx context.Context, env Envelope, keys []Key, updaters []ValueUpdater) (Result, error) {
	if len(updaters) != len(keys) {
		return Result{}, fmt.Errorf("%w: %d updaters for %d keys", ErrInvalidValue, len(updaters), len(keys))
	}
	return m.do(ctx, env, ops{code: opUpdate, keys: keys, updaters: updaters})
}

// Put stores values[i] under keys[i], as Update does.
func (m *Map) Put(ctx context.Context, env Envelope, keys []Key, values []Value) (Result, error) {
	if len(values) != len(keys) {
		return Result{}, fmt.Errorf("%w: %d values for %d keys", ErrInvalidValue, len(values), len(keys))
	}
	for i, v := range values {
		if v.IsNone() {
			return Result{}, &KeyError{Index: i, Key: keys[i], Err: fmt.Errorf("%w: no value to put", ErrInvalidValue)}
		}
		if err := v.CheckSize(); err != nil {
			return Result{}, &KeyError{Index: i, Key: keys[i], Err: err}
		}
	}
	return m.do(ctx, env, ops{code: opPut, keys: keys, values: values})
}

// Remove removes keys, as Update does.
func (m *Map) Remove(ctx context.Context, env Envelope, keys []Key) (Result, error) {
	return m.do(ctx, env, ops{code: opRemove, keys: keys})
}

// do stages o in the open batch of env, or commits it as an attempt of its own.
func (m *Map) do(ctx context.Context, env Envelope, o ops) (Result, error) {
	b, err := m.batchOf(env)
	if err != nil {
		return Result{}, err
	}
	if b != nil {
		return b.stage(ctx, env, o)
	}
	return m.commit(ctx, env, []ops{o}, nil)
}

// Progress returns the progress of every partition, ordered by name, as far as it is
// as durable as the state is: a writer may resume from it. It never waits for a batch.
func (m *Map) Progress() []Progress {
	m.mu.RLock()
	all := make([]Progress, 0, len(m.acknowledged))
	for _, p := range m.acknowledged {
		if !p.CommittedAt.IsZero() { // else it has begun, no more
			all = append(all, p.Progress)
		}
	}
	m.mu.RUnlock()
	slices.SortFunc(all, func(a, b Progress) int { return cmp.Compare(a.Partition, b.Partition) })
	return all
}

// partition returns what is known of a partition, which may be nothing yet. The
// answer must not be changed.
func (m *Map) partition(name string) *partition {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if p := m.partitions.byName[name]; p != nil {
		return p
	}
	return &partition{Progress: Progress{Partition: name}}
}

// replayer returns a partition, except some, that may still replay the batch that
// left a record, nil if there is none.
func (m *Map) replayer(r Record, except func(*partition) bool) (*partition, error) {
	shared, err := sharingOf(r, false)
	if err != nil {
		return nil, err
	}
	m.mu.RLock()
	defer m.mu.RUnlock()
	if !m.kind.Shares() { // it may be anybody's
		for _, p := range m.partitions.byName {
			if p.mayReplay(r.TxID) && !except(p) {
				return p, nil
			}
		}
		return nil, nil
	}
	for _, o := range append(shared.others, share{by: shared.first}) {
		if p := m.partitions.byID[o.by]; p != nil && p.mayReplay(r.TxID) && !except(p) {
			return p, nil
		}
	}
	return nil, nil
}

// idOf returns the id of a partition, which gets one for its first numbered attempt.
func (m *Map) idOf(p *partition, env Envelope) PartitionID {
	switch {
	case env.TxID == NoTxID || !m.kind.Shares():
		return 0
	case p.id != 0:
		return p.id
	}
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.partitions.last + 1
}

// Scan calls yield for each entry in r, in key order, as one consistent view,
// until yield returns an error, which it passes on. Absent keys are left out.
func (m *Map) Scan(ctx context.Context, r Range, yield func(Key, Entry) error) error {
	if err := m.closedErr(); err != nil {
		return err
	}
	return m.backing.Scan(ctx, r, func(k Key, stored []byte) error {
		e, err := m.view(stored, NoTxID)
		if err != nil {
			return &KeyError{Key: k, Err: err}
		}
		if e.Value.IsNone() {
			return nil
		}
		return yield(k, e)
	})
}

// Stats returns counts.
func (m *Map) Stats() Stats {
	m.mu.RLock()
	open := len(m.open)
	m.mu.RUnlock()
	return Stats{
		Commits: m.commits.Load(), Keys: m.keys.Load(),
		Replayed: m.replayed.Load(), Restored: m.restored.Load(), Stale: m.stale.Load(), Forgotten: m.forgotten.Load(),
		Open: int64(open), Waiting: m.turn.waiting.Load(),
	}
}

// counted counts an error that the statistics tell of, and returns it.
func (m *Map) counted(err error) error {
	if isStale(err) {
		m.stale.Add(1)
	}
	return err
}

func (m *Map) closedErr() error {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.closed
}

// Close drops open batches and refuses further operations with err. It waits for
// the commit under way. A second call does nothing.
func (m *Map) Close(err error) {
	m.mu.Lock()
	if m.closed != nil {
		m.mu.Unlock()
		return
	}
	m.closed = err
	open := m.open
	m.open = make(map[string]*batch)
	m.mu.Unlock()
	for _, b := range open {
		b.end()
	}
	// Those that still wait find the Map closed when their turn comes.
	<-m.turn.holder
	m.turn.pass()
}
