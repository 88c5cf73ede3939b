package mapstate

import "context"

// Writer is one writer's view of a Map: the batches of one partition, one after
// another. Between BeginCommit and Commit its operations are staged; outside
// they are un-numbered. One goroutine uses it at a time.
type Writer struct {
	m      *Map
	env    Envelope // TxID is that of the open batch
	failed error    // of the last BeginCommit or Commit: there is no batch to work in
}

var (
	_ MapState      = (*Writer)(nil)
	_ Snapshottable = (*Writer)(nil)
)

// Writer returns the view of a partition's writer. A writer that is taken over by
// another, of the same partition and a higher epoch, fails with ErrFenced.
func (m *Map) Writer(partition string, epoch int64) *Writer {
	return &Writer{m: m, env: Envelope{Partition: partition, Epoch: epoch}}
}

// BeginCommit implements State. After one that failed, and after a Commit that
// failed, operations fail with its error.
func (w *Writer) BeginCommit(ctx context.Context, x TxID) error {
	w.env.TxID, w.failed = x, nil
	if x != NoTxID {
		_, w.failed = w.m.Begin(ctx, w.env)
	}
	return w.failed
}

// Commit implements State.
func (w *Writer) Commit(ctx context.Context, x TxID) error {
	if x == NoTxID {
		return w.failed
	}
	env := w.env
	env.TxID = x
	w.env.TxID = NoTxID
	_, w.failed = w.m.Commit(ctx, env)
	return w.failed
}

// MultiGet implements MapState.
func (w *Writer) MultiGet(ctx context.Context, keys []Key) ([]Value, error) {
	if w.failed != nil {
		return nil, w.failed
	}
	entries, err := w.m.Read(ctx, w.env, keys)
	if err != nil {
		return nil, err
	}
	values := make([]Value, len(entries))
	for i, e := range entries {
		values[i] = e.Value
	}
	return values, nil
}

// MultiUpdate implements MapState.
func (w *Writer) MultiUpdate(ctx context.Context, keys []Key, updaters []ValueUpdater) ([]Value, error) {
	if w.failed != nil {
		return nil, w.failed
	}
	res, err := w.m.Update(ctx, w.env, keys, updaters)
	return res.Values, err
}

// MultiPut implements MapState.
func (w *Writer) MultiPut(ctx context.Context, keys []Key, values []Value) error {
	if w.failed != nil {
		return w.failed
	}
	_, err := w.m.Put(ctx, w.env, keys, values)
	return err
}

// MultiRemove implements MapState.
func (w *Writer) MultiRemove(ctx context.Context, keys []Key) error {
	if w.failed != nil {
		return w.failed
	}
	_, err := w.m.Remove(ctx, w.env, keys)
	return err
}

// Get implements Snapshottable.
func (w *Writer) Get(ctx context.Context) (Value, error) {
	values, err := w.MultiGet(ctx, []Key{SnapshotKey})
	if err != nil {
		return Value{}, err
	}
	return values[0], nil
}

// Update implements Snapshottable.
func (w *Writer) Update(ctx context.Context, u ValueUpdater) (Value, error) {
	values, err := w.MultiUpdate(ctx, []Key{SnapshotKey}, []ValueUpdater{u})
	if err != nil {
		return Value{}, err
	}
	return values[0], nil
}

// Set implements Snapshottable.
func (w *Writer) Set(ctx context.Context, v Value) error {
	return w.MultiPut(ctx, []Key{SnapshotKey}, []Value{v})
}
