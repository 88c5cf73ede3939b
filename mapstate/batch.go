package mapstate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// batch is an open batch: the operations of an attempt, and the overlay they
// leave, staged until commit. Nobody else sees them.
//
// The overlay is computed while other partitions may commit. If none did since
// its first read, it is what the commit writes; else the operations are applied
// again under the turn, to what the others left, so that no update is lost.
type batch struct {
	m     *Map
	first bool // see attempt

	mu      sync.Mutex // guards the following; held during a request
	env     Envelope
	log     []ops
	size    int // operations in log
	overlay attempt
	res     Result // of the log, without values
	version uint64 // of the Map, when the overlay was first read into
	broken  bool   // a request failed half way: the overlay is to be computed again
	ended   bool
	idle    *time.Timer
}

// Begin opens a batch for the partition of env, dropping one that is open.
func (m *Map) Begin(ctx context.Context, env Envelope) (Begun, error) {
	if env.TxID == NoTxID {
		return Begun{}, fmt.Errorf("%w: an open batch needs one", ErrInvalidTxID)
	}
	last, err := m.settled(ctx, env.Partition)
	if err != nil {
		return Begun{}, err
	}
	if err := m.admit(env, last); err != nil {
		return Begun{}, m.counted(err)
	}
	env.Whole = true
	b := &batch{m: m, env: env, first: env.TxID > last.TxID}
	b.overlay.reset(m.kind, env.TxID, b.first)
	b.idle = time.AfterFunc(m.opts.BatchIdle, func() { m.drop(b) })

	m.mu.Lock()
	if m.closed != nil {
		m.mu.Unlock()
		b.end()
		return Begun{}, m.closed
	}
	replaced := m.open[env.Partition]
	m.open[env.Partition] = b
	delete(m.dropped, env.Partition)
	if replaced != nil && replaced.env.TxID != env.TxID {
		m.dropped[env.Partition] = replaced.env.TxID
	}
	m.mu.Unlock()
	if replaced != nil {
		replaced.end()
	}
	return Begun{Committed: last.TxID, Replay: env.TxID == last.TxID}, nil
}

// Commit commits the open batch of env. env.Offsets, if given, are kept with it.
// To commit again what was committed last does nothing, as long as no other batch is open.
func (m *Map) Commit(ctx context.Context, env Envelope) (Result, error) {
	b, err := m.batchOf(env)
	if err != nil {
		return Result{}, err
	}
	if b != nil {
		// A batch that has ended meanwhile may have been committed by the call before this one.
		if res, err := b.commit(ctx, env); !errors.Is(err, ErrNoOpenBatch) {
			return res, err
		}
	}
	last, err := m.settled(ctx, env.Partition)
	if err != nil {
		return Result{}, err
	}
	if env.TxID != NoTxID && last.TxID == env.TxID && last.whole && !m.hasOpen(env.Partition) {
		return Result{AlreadyCommitted: true}, nil
	}
	return Result{}, m.noOpenBatch(env)
}

// Abort drops the open batch of env.
func (m *Map) Abort(_ context.Context, env Envelope) error {
	b, err := m.batchOf(env)
	if err != nil {
		return err
	}
	if b == nil {
		return m.noOpenBatch(env)
	}
	m.drop(b)
	return nil
}

func (m *Map) noOpenBatch(env Envelope) error {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if b := m.open[env.Partition]; b != nil {
		return fmt.Errorf("%w with txid %d for partition %q: the open one has txid %d", ErrNoOpenBatch, env.TxID, env.Partition, b.env.TxID)
	}
	return fmt.Errorf("%w with txid %d for partition %q: begin it (again); an open batch is dropped whole when it is aborted, when another begins, and when it is idle for %v",
		ErrNoOpenBatch, env.TxID, env.Partition, m.opts.BatchIdle)
}

// batchOf returns the open batch that env belongs to, nil if there is none.
func (m *Map) batchOf(env Envelope) (*batch, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if m.closed != nil {
		return nil, m.closed
	}
	if env.TxID == NoTxID {
		return nil, nil
	}
	if b := m.open[env.Partition]; b != nil && b.env.TxID == env.TxID {
		return b, nil
	}
	return nil, nil
}

// hasOpen reports whether a batch of the partition is open.
func (m *Map) hasOpen(partition string) bool {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.open[partition] != nil
}

// wasDropped reports whether the batch of env was open once and dropped.
func (m *Map) wasDropped(env Envelope) bool {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return env.TxID != NoTxID && m.dropped[env.Partition] == env.TxID
}

// drop ends b without a commit.
func (m *Map) drop(b *batch) {
	m.mu.Lock()
	if m.open[b.env.Partition] == b {
		delete(m.open, b.env.Partition)
		m.dropped[b.env.Partition] = b.env.TxID
	}
	m.mu.Unlock()
	b.end()
}

// end drops what is staged. It waits for a request under way.
func (b *batch) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ended = true
	b.log, b.overlay = nil, attempt{}
	b.idle.Stop()
}

// enter locks b for a request of env. Whoever enters leaves.
func (b *batch) enter(env Envelope) error {
	b.mu.Lock()
	if b.ended {
		b.mu.Unlock()
		return fmt.Errorf("%w with txid %d for partition %q: it was committed or dropped meanwhile", ErrNoOpenBatch, env.TxID, env.Partition)
	}
	if env.Epoch != 0 && env.Epoch < b.env.Epoch {
		b.mu.Unlock()
		return &FencedError{Partition: env.Partition, Stored: b.env.Epoch, Got: env.Epoch}
	}
	b.idle.Stop()
	return nil
}

func (b *batch) leave() {
	if !b.ended {
		b.idle.Reset(b.m.opts.BatchIdle)
	}
	b.mu.Unlock()
}

// stage applies o to the overlay, unless the batch has been overtaken and could
// not be committed any more.
func (b *batch) stage(ctx context.Context, env Envelope, o ops) (Result, error) {
	if err := b.enter(env); err != nil {
		return Result{}, err
	}
	defer b.leave()
	if err := b.m.admit(b.env, b.m.partition(b.env.Partition)); err != nil {
		return Result{}, b.m.counted(err)
	}
	if n := b.size + len(o.keys); n > b.m.opts.MaxBatchKeys {
		return Result{}, &LimitError{What: "operations in one open batch", Got: int64(n), Limit: int64(b.m.opts.MaxBatchKeys)}
	}
	if err := b.mend(ctx); err != nil {
		return Result{}, err
	}
	if b.size == 0 {
		b.version = b.m.version.Load()
	}
	var res Result
	if err := b.overlay.run(ctx, b.m.backing, o, &res); err != nil {
		b.broken = true
		return Result{}, b.m.counted(err)
	}
	b.log = append(b.log, ops{
		code: o.code, keys: slices.Clone(o.keys),
		updaters: slices.Clone(o.updaters), values: slices.Clone(o.values),
	})
	b.size += len(o.keys)
	b.res.Applied += res.Applied
	b.res.Replayed += res.Replayed
	if env.Offsets != nil {
		b.env.Offsets = env.Offsets
	}
	return res, nil
}

// mend computes a broken overlay again.
func (b *batch) mend(ctx context.Context) error {
	if !b.broken {
		return nil
	}
	b.overlay.reset(b.m.kind, b.env.TxID, b.first)
	b.res, b.version = Result{}, b.m.version.Load()
	for _, o := range b.log {
		if err := b.overlay.run(ctx, b.m.backing, o, &b.res); err != nil {
			return err
		}
	}
	b.res.Values = nil
	b.broken = false
	return nil
}

// read answers what the next operation of the batch would find. Where that would
// be refused, it answers what any reader under the batch's txid sees.
func (b *batch) read(ctx context.Context, env Envelope, keys []Key) ([]Entry, error) {
	if err := b.enter(env); err != nil {
		return nil, err
	}
	defer b.leave()
	if err := b.mend(ctx); err != nil {
		return nil, err
	}
	records, err := b.m.backing.MultiGet(ctx, keys)
	if err != nil {
		return nil, err
	}
	entries := make([]Entry, len(keys))
	for i, k := range keys {
		s := slot{key: k}
		if n, ok := b.overlay.index[k]; ok {
			s = b.overlay.slots[n]
		} else if err := b.overlay.resolve(&s, records[i]); err != nil {
			if entries[i], err = b.m.view(records[i], b.env.TxID); err != nil {
				return nil, b.m.counted(&KeyError{Index: i, Key: k, Err: err})
			}
			continue
		}
		entries[i] = Entry{Value: s.next.Curr, Prev: s.next.Prev, TxID: s.next.TxID}
	}
	return entries, nil
}

// commit commits the batch and ends it. A batch that could not be committed for a
// reason that its writer can mend stays open.
func (b *batch) commit(ctx context.Context, env Envelope) (Result, error) {
	if err := b.enter(env); err != nil {
		return Result{}, err
	}
	defer b.leave()
	if env.Offsets != nil {
		b.env.Offsets = env.Offsets
	}
	res, err := b.m.commit(ctx, b.env, b.log, b)
	res.Values = nil // those of operations that had to be applied again
	if err != nil && !b.m.damaged.Load() {
		b.broken = true
		return Result{}, err
	}
	b.ended = true
	b.log, b.overlay = nil, attempt{}
	b.m.mu.Lock()
	if b.m.open[b.env.Partition] == b {
		delete(b.m.open, b.env.Partition)
		if err != nil {
			b.m.dropped[b.env.Partition] = b.env.TxID
		}
	}
	b.m.mu.Unlock()
	return res, err
}

// staged returns the overlay and what it did, if it still is what the batch
// amounts to. The turn and b are held.
func (b *batch) staged() (*attempt, Result, bool) {
	if b == nil || b.broken || b.size == 0 || b.version != b.m.version.Load() {
		return nil, Result{}, false
	}
	return &b.overlay, b.res, true
}
