package mapstate

import (
	"context"
	"time"
)

// Options of a Map. The zero value works.
type Options struct {
	// Interval leaves writes to the backing's sync interval; otherwise a commit
	// returns when it is on disk.
	Interval bool
	// MaxWaiting bounds the requests that wait for the owner; more fail with
	// ErrOverloaded. 0 is 1024.
	MaxWaiting int
	// Now is the clock of Progress.CommittedAt; nil is time.Now.
	Now func() time.Time
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
	Values           []Value // what each position left; nil for a commit
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
	Commits, Keys, Replayed, Restored, Stale int64
	OpenBatches, Waiting                     int
}

// Map is one state: a kind's rules over a backing, its open batches and its
// progress. All methods may be called concurrently.
type Map struct {
	kind    Kind
	backing BackingMap
	opts    Options
}

// Open returns the Map over a backing, with the progress that is stored there.
func Open(ctx context.Context, kind Kind, backing BackingMap, opts Options) (*Map, error) {
	return &Map{kind: kind, backing: backing, opts: opts}, nil
}

// Read returns the entry of each key as the attempt at env sees it: staged values
// where its batch is open, else what a reader under env.TxID sees.
func (m *Map) Read(ctx context.Context, env Envelope, keys []Key) ([]Entry, error) {
	return nil, ErrUnsupported
}

// Update applies updaters[i] to keys[i]: staged where the batch of env is open,
// else as an attempt of its own.
func (m *Map) Update(ctx context.Context, env Envelope, keys []Key, updaters []ValueUpdater) (Result, error) {
	return Result{}, ErrUnsupported
}

// Put stores values[i] under keys[i], as Update does.
func (m *Map) Put(ctx context.Context, env Envelope, keys []Key, values []Value) (Result, error) {
	return Result{}, ErrUnsupported
}

// Remove removes keys, as Update does.
func (m *Map) Remove(ctx context.Context, env Envelope, keys []Key) (Result, error) {
	return Result{}, ErrUnsupported
}

// Begin opens a batch for the partition of env, dropping one that is open.
func (m *Map) Begin(ctx context.Context, env Envelope) (Begun, error) {
	return Begun{}, ErrUnsupported
}

// Commit commits the open batch of env. env.Offsets, if given, are kept with it.
func (m *Map) Commit(ctx context.Context, env Envelope) (Result, error) {
	return Result{}, ErrUnsupported
}

// Abort drops the open batch of env.
func (m *Map) Abort(ctx context.Context, env Envelope) error { return ErrUnsupported }

// Progress returns the progress of every partition, ordered by name. It never
// waits for a batch.
func (m *Map) Progress() []Progress { return nil }

// Scan calls yield for each entry in r, in key order, as one consistent view,
// until yield returns an error, which it passes on. Absent keys are left out.
func (m *Map) Scan(ctx context.Context, r Range, yield func(Key, Entry) error) error {
	return ErrUnsupported
}

// Stats returns counts.
func (m *Map) Stats() Stats { return Stats{} }

// Close drops open batches and refuses further operations with err. It waits for
// those under way.
func (m *Map) Close(err error) {}
