package mapstate

import (
	"context"
	"errors"
	"time"
)

// commit makes one attempt at the batch of env: it applies the operations in
// order, unless the open batch b, if there is one, has their outcome, and writes
// what they left together with the partition's progress, in one atomic step.
func (m *Map) commit(ctx context.Context, env Envelope, all []ops, b *batch) (Result, error) {
	res, next, durable, err := m.commitInTurn(ctx, env, all, b)
	if err != nil {
		return Result{}, m.counted(err)
	}
	if err := durable.Wait(); err != nil {
		m.notSynced(err)
		return Result{}, err
	}
	m.acknowledge(next)
	m.commits.Add(1)
	m.replayed.Add(int64(res.Replayed))
	m.restored.Add(int64(res.Restored))
	return res, nil
}

// commitInTurn does all of a commit but the wait for the disk.
func (m *Map) commitInTurn(ctx context.Context, env Envelope, all []ops, b *batch) (Result, *partition, Durable, error) {
	if err := m.turn.take(ctx); err != nil {
		return Result{}, nil, nil, err
	}
	defer m.turn.pass()
	if err := m.repair(ctx); err != nil {
		return Result{}, nil, nil, err
	}
	last := m.partition(env.Partition)
	if err := m.admit(env, last); err != nil {
		return Result{}, nil, nil, err
	}
	if b == nil && m.unfinished(env, last) || b != nil && m.openBatch(env.Partition) != b {
		return Result{}, nil, nil, m.noOpenBatch(env)
	}

	a, res, ok := b.staged()
	if !ok {
		a = m.attempts.Get().(*attempt)
		defer m.keep(a)
		a.reset(m.kind, env.TxID, m.idOf(last, env))
		for _, o := range all {
			if err := a.run(ctx, m.backing, o, &res); err != nil {
				return Result{}, nil, nil, err
			}
		}
	}
	w := commitWriter{m: m, a: a, env: env, last: last, touched: a.touched[:0]}
	durable, err := w.write(ctx, &res)
	a.touched = w.touched
	next := w.next // not the writer: it holds on to the one before it
	return res, &next, durable, err
}

// keep keeps the memory of an attempt for the next one, unless it is very much.
func (m *Map) keep(a *attempt) {
	const maxSlots = 1 << 16
	if cap(a.slots) <= maxSlots {
		m.attempts.Put(a)
	}
}

// settled returns the progress of a partition; after a write whose outcome is not
// known it reads it again first.
func (m *Map) settled(ctx context.Context, name string) (*partition, error) {
	if m.damaged.Load() {
		if err := m.turn.take(ctx); err != nil {
			return nil, err
		}
		defer m.turn.pass()
		if err := m.repair(ctx); err != nil {
			return nil, err
		}
	}
	return m.partition(name), nil
}

// repair reads the progress again after a write whose outcome is not known. The
// turn is held.
func (m *Map) repair(ctx context.Context) error {
	if err := m.closedErr(); err != nil {
		return err
	}
	if !m.damaged.Load() {
		return nil
	}
	known, err := loadProgress(ctx, m.backing)
	if err != nil {
		return err
	}
	m.mu.Lock()
	m.partitions = known
	m.mu.Unlock()
	m.version.Add(1)
	m.damaged.Store(false)
	return nil
}

// commitWriter turns an attempt into one Commit of the backing. It lives for one call,
// under the turn.
type commitWriter struct {
	m    *Map
	a    *attempt
	env  Envelope
	last *partition // before this attempt

	out     Writes
	next    partition         // after it
	touched []byte            // the chunk of this attempt
	from    int               // the first chunk that this attempt writes
	graves  map[string]*grave // by partition
}

// write writes the attempt.
func (w *commitWriter) write(ctx context.Context, res *Result) (Durable, error) {
	m := w.m
	w.next = *w.last
	w.next.id = max(w.last.id, w.a.partition)
	guarded := m.kind.Replays() != ReplayApplies
	newBatch := w.env.TxID > w.last.TxID
	// A kind that skips replays restores nothing, and goes on knowing the keys of the attempts before.
	whole := m.kind.Replays() == ReplayRestarts && w.env.Whole && w.env.TxID != NoTxID && (!newBatch || w.resumes())
	w.from = w.last.chunks
	if guarded && (newBatch || whole) {
		w.from, w.next.tombstones = 0, 0
	}
	if whole {
		if err := w.restore(ctx, res); err != nil {
			return nil, err
		}
	}
	if m.opts.Evicts && guarded && newBatch {
		if err := w.countForgotten(ctx); err != nil {
			return nil, err
		}
	}
	if guarded {
		if err := w.touch(ctx, whole); err != nil {
			return nil, err
		}
	}
	w.out.Records = w.a.writes()
	if guarded && newBatch && w.last.tombstones > 0 {
		if err := w.sweep(ctx); err != nil {
			return nil, err
		}
	}
	if m.opts.Torn && guarded && w.env.TxID != NoTxID && len(w.out.Records) > 0 {
		if err := w.intend(ctx); err != nil {
			return nil, err
		}
	}
	w.list()
	w.progress()
	if len(w.out.Records) == 0 && len(w.out.Meta) == 0 {
		w.next.seq = 0 // it says nothing of what came before
		return NoWait, nil
	}
	w.out.Sync = !m.opts.Interval
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	// From here on a client that goes away leaves nothing in doubt.
	durable, err := m.backing.Commit(context.WithoutCancel(ctx), w.out)
	if err != nil {
		m.wrote(err)
		return nil, err
	}
	m.keys.Add(int64(len(w.out.Records)))
	m.version.Add(1)
	w.next.seq = m.sequence.Add(1)
	m.publish(w.next)
	for _, g := range w.graves {
		m.publish(g.next)
	}
	return durable, nil
}

// publish makes a partition's new progress known to the next attempts.
func (m *Map) publish(p partition) {
	m.mu.Lock()
	m.partitions.put(&p)
	m.mu.Unlock()
}

// acknowledge makes progress that is on disk known to readers, who may resume from
// it. Commits may come to disk in any order.
func (m *Map) acknowledge(p *partition) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if known := m.acknowledged[p.Partition]; p.seq > 0 && (known == nil || known.seq < p.seq) {
		m.acknowledged[p.Partition] = p
	}
}

// notSynced notes that a write is visible, but not on disk.
func (m *Map) notSynced(err error) {
	m.damaged.Store(true)
	m.unsynced.CompareAndSwap(nil, &err)
}

// wrote notes a failed write of the backing, unless it is known that nothing was written.
func (m *Map) wrote(err error) {
	if !errors.Is(err, ErrDiskFull) && !errors.Is(err, ErrTooLarge) {
		m.damaged.Store(true)
	}
}

// restore takes back what earlier attempts at this batch did to keys that this one
// does not touch.
func (w *commitWriter) restore(ctx context.Context, res *Result) error {
	touches, err := w.earlier(ctx)
	if err != nil {
		return err
	}
	var left []Key
	seen := make(map[Key]bool)
	for _, t := range touches {
		if _, again := w.a.index[t.key]; !again && !seen[t.key] {
			seen[t.key] = true
			left = append(left, t.key)
		}
	}
	return eachRecord(ctx, w.m.backing, left, func(k Key, stored []byte) error {
		changed, err := w.a.restore(k, stored)
		if changed {
			res.Restored++
		}
		return err
	})
}

// eachRecord calls do for the stored record of each key, nil where there is none. It
// reads as many at once as may be read.
func eachRecord(ctx context.Context, from Getter, keys []Key, do func(Key, []byte) error) error {
	for most := 1 << 16; len(keys) > 0; {
		n := min(most, len(keys))
		records, err := from.MultiGet(ctx, keys[:n])
		if errors.Is(err, ErrTooLarge) && n > 1 {
			most = n / 2
			continue
		}
		if err != nil {
			return err
		}
		for i, stored := range records {
			if err := do(keys[i], stored); err != nil {
				return &KeyError{Key: keys[i], Err: err}
			}
		}
		keys = keys[n:]
	}
	return nil
}

// countForgotten counts the keys of the batch before that this one has found absent.
func (w *commitWriter) countForgotten(ctx context.Context) error {
	absent := make(map[Key]bool)
	for i := range w.a.slots {
		if s := &w.a.slots[i]; s.absent {
			absent[s.key] = true
		}
	}
	if len(absent) == 0 {
		return nil
	}
	touches, err := loadTouches(ctx, w.m.backing, chunkPrefix(w.env.Partition))
	if err != nil {
		return err
	}
	for _, t := range touches {
		if absent[t.key] && !t.tombstone {
			delete(absent, t.key)
			w.m.forgotten.Add(1)
		}
	}
	return nil
}

// touch lists the keys of this attempt: of a whole batch all of them, of a part
// those that earlier parts have not listed. A tombstone that nobody needs is a
// removal.
func (w *commitWriter) touch(ctx context.Context, whole bool) error {
	// A kind that skips replays needs its tombstones only, unless it is to miss what is gone.
	lists := w.env.TxID != NoTxID && (w.m.kind.Replays() == ReplayRestarts || w.m.opts.Evicts)
	resumes := w.resumes()
	for i := range w.a.slots {
		s := &w.a.slots[i]
		dead := s.tombstone() && (s.written || whole)
		if dead && w.env.TxID == NoTxID && s.dead {
			s.written = false // it is there and listed
			continue
		}
		if dead && w.env.TxID == NoTxID {
			buried, err := w.bury(s.key, s.next)
			if err != nil {
				return &KeyError{Key: s.key, Err: err}
			}
			if !buried {
				s.next = Record{}
			}
			continue
		}
		if dead || whole || lists && s.written && (resumes || !s.replay) {
			w.touched = appendTouch(w.touched, touch{key: s.key, tombstone: dead})
		}
		if dead {
			w.next.tombstones++
		}
	}
	if resumes && !whole {
		return w.carry(ctx)
	}
	return nil
}

// progress adds the partition's progress record and chunk, if anything of them changed.
func (w *commitWriter) progress() {
	env, last, next := w.env, w.last, &w.next
	if env.TxID == NoTxID && env.Offsets == nil && env.Epoch == last.Epoch && len(w.touched) == 0 {
		return
	}
	if env.TxID != NoTxID {
		next.TxID, next.whole = env.TxID, env.Whole
		if env.TxID >= next.open {
			next.open = NoTxID
		}
		next.pending, next.intents = last.pending, last.intents
		if env.TxID >= last.pending {
			w.out.Meta = w.dropIntents(w.out.Meta, 0)
			next.pending, next.intents = NoTxID, 0
		}
	}
	next.Epoch = env.Epoch
	if env.Offsets != nil {
		next.Offsets = env.Offsets
	}
	next.CommittedAt = w.m.opts.Now().UTC().Truncate(time.Millisecond) // as it is stored
	next.chunks = w.from
	if len(w.touched) > 0 {
		w.out.Meta = append(w.out.Meta, MetaWrite{Name: chunkName(env.Partition, w.from), Value: w.touched})
		next.chunks++
	}
	for n := next.chunks; n < last.chunks; n++ {
		w.out.Meta = append(w.out.Meta, MetaWrite{Name: chunkName(env.Partition, n)})
	}
	w.out.Meta = append(w.out.Meta, MetaWrite{Name: progressName(env.Partition), Value: next.encode()})
}

func isStale(err error) bool { return errors.Is(err, ErrStaleTx) }
