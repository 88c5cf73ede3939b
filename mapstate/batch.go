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
	txid  TxID
	epoch int64

	mu      sync.Mutex // guards the following; held during a request
	env     Envelope
	log     []ops
	size    int   // operations in log
	bytes   int64 // of their keys, values and arguments
	overlay attempt
	res     Result // of the log, without values
	version uint64 // of the Map, when the overlay was first read into
	broken  bool   // a request failed half way: the overlay is to be computed again
	ended   bool
	idle    *time.Timer
}

// Begin opens a batch for the partition of env, dropping one that is open. That it
// is open is kept with the partition's progress: after a restart of the server, which
// loses what was staged, an operation of the batch is refused and not taken for a
// batch of its own.
func (m *Map) Begin(ctx context.Context, env Envelope) (Begun, error) {
	if env.TxID == NoTxID {
		return Begun{}, fmt.Errorf("%w: an open batch needs one", ErrInvalidTxID)
	}
	env.Whole = true
	b := &batch{m: m, txid: env.TxID, epoch: env.Epoch, env: env}
	begun, replaced, next, durable, err := m.beginInTurn(ctx, b)
	if err != nil {
		return Begun{}, m.counted(err)
	}
	if replaced != nil {
		replaced.end()
	}
	if err := durable.Wait(); err != nil {
		m.notSynced(err)
		m.drop(b)
		return Begun{}, fmt.Errorf("begin: %w", err)
	}
	m.acknowledge(&next)
	return begun, nil
}

// beginInTurn does all of Begin but the wait for the disk.
func (m *Map) beginInTurn(ctx context.Context, b *batch) (begun Begun, replaced *batch, next partition, durable Durable, err error) {
	if err := m.turn.take(ctx); err != nil {
		return Begun{}, nil, partition{}, nil, err
	}
	defer m.turn.pass()
	if err := m.repair(ctx); err != nil {
		return Begun{}, nil, partition{}, nil, err
	}
	last := m.partition(b.env.Partition)
	if err := m.admit(b.env, last); err != nil {
		return Begun{}, nil, partition{}, nil, err
	}
	if next, durable, err = m.markOpen(ctx, b.env, last); err != nil {
		return Begun{}, nil, partition{}, nil, err
	}
	b.overlay.reset(m.kind, b.env.TxID, m.partition(b.env.Partition).id)
	b.overlay.most = m.opts.MaxBatchBytes
	b.idle = time.AfterFunc(m.opts.BatchIdle, func() { m.drop(b) })
	m.mu.Lock()
	defer m.mu.Unlock()
	replaced = m.open[b.env.Partition]
	m.open[b.env.Partition] = b
	return Begun{Committed: last.TxID, Replay: b.env.TxID == last.TxID}, replaced, next, durable, nil
}

// markOpen keeps with the partition's progress that the batch of env is open, and its
// epoch, which fences from now on.
func (m *Map) markOpen(ctx context.Context, env Envelope, last *partition) (partition, Durable, error) {
	next := *last
	next.id, next.open, next.Epoch = m.idOf(last, env), env.TxID, env.Epoch
	if err := ctx.Err(); err != nil {
		return partition{}, nil, err
	}
	durable, err := m.backing.Commit(context.WithoutCancel(ctx), Writes{
		Meta: []MetaWrite{{Name: progressName(env.Partition), Value: next.encode()}},
		Sync: true, // also where commits are not: what is sent after a crash must find it
	})
	if err != nil {
		m.wrote(err)
		return partition{}, nil, fmt.Errorf("begin: %w", err)
	}
	next.seq = m.sequence.Add(1)
	m.publish(next)
	return next, durable, nil
}

// Commit commits the open batch of env. env.Offsets, if given, are kept with it.
// To commit again what was committed last does nothing, as long as no other batch is open.
// A writer with a lower epoch is fenced off; epoch 0 is not compared.
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
	if err := m.unsynced.Load(); err != nil {
		return Result{}, *err // what was committed last may not be on disk
	}
	if err := m.fence(env); err != nil {
		return Result{}, err
	}
	if env.TxID != NoTxID && last.TxID == env.TxID && last.whole && last.open != env.TxID && m.openBatch(env.Partition) == nil {
		if !m.isAcknowledged(env) {
			return Result{}, fmt.Errorf("%w: the commit of txid %d is on its way to disk; ask again", ErrUnavailable, env.TxID)
		}
		return Result{AlreadyCommitted: true}, nil
	}
	return Result{}, m.noOpenBatch(env)
}

// isAcknowledged reports whether the last commit of env's partition is on disk: all
// that was read from there is, and what has been waited for.
func (m *Map) isAcknowledged(env Envelope) bool {
	m.mu.RLock()
	defer m.mu.RUnlock()
	known, last := m.acknowledged[env.Partition], m.partitions.byName[env.Partition]
	return last.seq == 0 || known != nil && last.seq <= known.seq
}

// Abort drops the open batch of env, for the epochs that Commit accepts.
func (m *Map) Abort(_ context.Context, env Envelope) error {
	b, err := m.batchOf(env)
	if err != nil {
		return err
	}
	if err := m.fence(env); err != nil {
		return err
	}
	if b == nil || !m.drop(b) { // or it was committed meanwhile
		return m.noOpenBatch(env)
	}
	return nil
}

func (m *Map) noOpenBatch(env Envelope) error {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if b := m.open[env.Partition]; b != nil {
		return fmt.Errorf("%w with txid %d and epoch %d for partition %q: the open one has txid %d and epoch %d; begin another, abort it, or send the batch as one request with whole",
			ErrNoOpenBatch, env.TxID, env.Epoch, env.Partition, b.txid, b.epoch)
	}
	return fmt.Errorf("%w with txid %d for partition %q: begin it and send all of it, or send it as one request with whole; an open batch is dropped whole by abort, by another begin, by a restart of the server, and when it is idle for %v",
		ErrNoOpenBatch, env.TxID, env.Partition, m.opts.BatchIdle)
}

// batchOf returns the open batch that env belongs to, nil if there is none. What a
// later writer sends, with a higher epoch, does not belong to it.
func (m *Map) batchOf(env Envelope) (*batch, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if m.closed != nil {
		return nil, m.closed
	}
	if env.TxID == NoTxID {
		return nil, nil
	}
	if b := m.open[env.Partition]; b != nil && b.txid == env.TxID && b.epoch >= env.Epoch {
		return b, nil
	}
	return nil, nil
}

// openBatch returns the open batch of a partition, nil if there is none.
func (m *Map) openBatch(partition string) *batch {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.open[partition]
}

// drop ends b without a commit, and reports whether it did: it is too late for a
// batch whose commit is under way.
func (m *Map) drop(b *batch) bool {
	m.mu.Lock()
	if m.open[b.env.Partition] == b {
		delete(m.open, b.env.Partition)
	}
	m.mu.Unlock()
	return b.end()
}

// end drops what is staged, and reports whether it was there still. It waits for a
// request under way.
func (b *batch) end() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ended {
		return false
	}
	b.ended = true
	b.log, b.overlay = nil, attempt{}
	b.idle.Stop()
	return true
}

// enter locks b for a request of env. Whoever enters leaves.
func (b *batch) enter(env Envelope) error {
	b.mu.Lock()
	if b.ended {
		b.mu.Unlock()
		return fmt.Errorf("%w with txid %d for partition %q: it was committed or dropped meanwhile", ErrNoOpenBatch, env.TxID, env.Partition)
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
	if err := b.admit(env, o); err != nil {
		return Result{}, b.m.counted(err)
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
	if len(o.keys) > 0 {
		b.log = append(b.log, ops{
			code: o.code, keys: slices.Clone(o.keys),
			updaters: slices.Clone(o.updaters), values: slices.Clone(o.values),
		})
	}
	b.size += len(o.keys)
	b.bytes += o.bytes()
	b.res.Applied += res.Applied
	b.res.Replayed += res.Replayed
	if env.Offsets != nil {
		b.env.Offsets = env.Offsets
	}
	return res, nil
}

// admit refuses an operation of a writer that has been overtaken, by another in
// this batch or by a later one, and what would make the batch too large.
func (b *batch) admit(env Envelope, o ops) error {
	if env.Epoch < b.epoch {
		return &FencedError{Partition: env.Partition, Stored: b.epoch, Got: env.Epoch}
	}
	if err := b.m.admit(b.env, b.m.partition(b.env.Partition)); err != nil {
		return err
	}
	if n, limit := b.size+len(o.keys), b.m.opts.MaxBatchKeys; n > limit {
		return &LimitError{What: "open batch (in operations)", Got: int64(n), Limit: int64(limit)}
	}
	if n, limit := b.bytes+o.bytes(), b.m.opts.MaxBatchBytes; n > limit {
		return &LimitError{What: "open batch (in bytes)", Got: n, Limit: limit}
	}
	return nil
}

// mend computes a broken overlay again.
func (b *batch) mend(ctx context.Context) error {
	if !b.broken {
		return nil
	}
	b.overlay.reset(b.m.kind, b.env.TxID, b.overlay.partition)
	b.overlay.most = b.m.opts.MaxBatchBytes
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
		return nil, located(err, keys)
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

// commit commits the batch and ends it. A batch that was refused for an operation
// of its own stays open; one that was overtaken cannot be committed any more, and of
// one whose write failed it is not known whether it was.
func (b *batch) commit(ctx context.Context, env Envelope) (Result, error) {
	if err := b.enter(env); err != nil {
		return Result{}, err
	}
	defer b.leave()
	if env.Epoch != 0 && env.Epoch < b.epoch {
		return Result{}, &FencedError{Partition: env.Partition, Stored: b.epoch, Got: env.Epoch}
	}
	if env.Offsets != nil {
		b.env.Offsets = env.Offsets
	}
	res, err := b.m.commit(ctx, b.env, b.log, b)
	res.Values = nil // those of operations that had to be applied again
	overtaken := errors.Is(err, ErrStaleTx) || errors.Is(err, ErrFenced) || errors.Is(err, ErrNoOpenBatch)
	if err != nil && !overtaken && !b.m.damaged.Load() {
		b.broken = true
		return Result{}, err
	}
	b.ended = true
	b.log, b.overlay = nil, attempt{}
	b.m.mu.Lock()
	if b.m.open[b.env.Partition] == b {
		delete(b.m.open, b.env.Partition)
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
