package bench

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"tine/cache"
	"tine/mapstate"
	"tine/opaque"
)

// nowhere is a backing that stores nothing, so that what is measured is what
// comes before the store.
type nowhere struct{ mapstate.BackingMap }

func (nowhere) Commit(context.Context, mapstate.Writes) (mapstate.Durable, error) {
	return mapstate.NoWait, nil
}

// BenchmarkWhatDoesAnUpdateCostBeforeTheStore: per batch of 1,000 keys out of a
// million that the LRU holds.
func BenchmarkWhatDoesAnUpdateCostBeforeTheStore(b *testing.B) {
	m, err := mapstate.Open(context.Background(), opaque.Kind{},
		cache.New(nowhere{mapstate.NewMemory()}, cache.Options{Entries: 2 * tableKeys}), mapstate.Options{Interval: true})
	require.NoError(b, err)
	loadTable(b, m)
	chosen, keys := picks(1, 256), stateKeys(b, 0, tableKeys)
	batch, updaters := make([]mapstate.Key, batchKeys), sums(b)
	txid := mapstate.TxID(1)
	b.ReportAllocs()
	for b.Loop() {
		txid++
		for i, k := range chosen[int(txid)%len(chosen)] {
			batch[i] = keys[k]
		}
		if _, err := m.Update(context.Background(), mapstate.Envelope{TxID: txid}, batch, updaters); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/batchKeys, "ns/key")
}

// sums are updaters that add one to each key of a batch.
func sums(b *testing.B) []mapstate.ValueUpdater {
	op, err := mapstate.LookupOp("sum")
	require.NoError(b, err)
	update := &mapstate.Updater{Name: op.Name, Op: op.Op, Arg: mapstate.Int(1)}
	updaters := make([]mapstate.ValueUpdater, batchKeys)
	for i := range updaters {
		updaters[i] = update
	}
	return updaters
}
