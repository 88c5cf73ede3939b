package mapstate

import "context"

// State takes part in the commit of micro-batches. It is one writer's view: one
// goroutine uses it at a time.
type State interface {
	// BeginCommit opens an attempt at batch x. An attempt that was open is dropped
	// whole. After NoTxID each operation is an un-numbered batch of its own.
	BeginCommit(ctx context.Context, x TxID) error
	// Commit makes all operations since BeginCommit visible and durable at once.
	Commit(ctx context.Context, x TxID) error
}

// MapState is a state of many keys. Between BeginCommit and Commit its
// operations are staged, and MultiGet sees them; outside, each is an un-numbered
// batch of its own. The law of the numbered kinds: for one txid, an attempt that is committed
// again with the same operations changes nothing.
type MapState interface {
	State
	// MultiGet returns one value per key, no value (Value.IsNone) where there is none.
	MultiGet(ctx context.Context, keys []Key) ([]Value, error)
	// MultiUpdate applies updaters[i] to the value of keys[i], in order, each seeing
	// the ones before it, also on the same key, and returns what each left. On an
	// error nothing is applied.
	MultiUpdate(ctx context.Context, keys []Key, updaters []ValueUpdater) ([]Value, error)
	// MultiPut stores values[i] under keys[i], in order.
	MultiPut(ctx context.Context, keys []Key, values []Value) error
	// MultiRemove removes the keys.
	MultiRemove(ctx context.Context, keys []Key) error
}

// Snapshottable is a state's single value outside its map, under the same rules.
type Snapshottable interface {
	// Get returns the value, no value if there is none.
	Get(ctx context.Context) (Value, error)
	// Update applies u and returns what it left.
	Update(ctx context.Context, u ValueUpdater) (Value, error)
	// Set stores v.
	Set(ctx context.Context, v Value) error
}
