package bench

import (
	"context"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"tine/mapstate"
)

// BenchmarkIsAnOpaqueUpdateAsFastAsRawPebble: in process, one writer.
func BenchmarkIsAnOpaqueUpdateAsFastAsRawPebble(b *testing.B) {
	chosen := picks(1, 256)
	raw := newRawPebble(b, 1)
	m := newOpaque(b)
	keys := stateKeys(b, 0, tableKeys)
	updaters := sums(b)
	batch := make([]mapstate.Key, batchKeys)
	compare(b,
		&contender{name: "raw-pebble", workers: 1, do: func(_, n int) int {
			return raw.update(b, 0, int64(n+2), chosen[n%len(chosen)])
		}},
		&contender{name: "tine", workers: 1, do: func(_, n int) int {
			for i, k := range chosen[n%len(chosen)] {
				batch[i] = keys[k]
			}
			res, err := m.Update(context.Background(), mapstate.Envelope{TxID: mapstate.TxID(n + 2)}, batch, updaters)
			if err != nil || len(res.Values) != batchKeys {
				b.Error(err)
			}
			return batchKeys
		}},
	)
}

// BenchmarkHowMuchHeapDoAMillionCachedCountersTake: opaque int64 counters, all in
// the LRU.
func BenchmarkHowMuchHeapDoAMillionCachedCountersTake(b *testing.B) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	m := newOpaque(b)
	for x := range 2 { // overwritten, as counters are
		for from := 0; from < tableKeys; from += batchKeys {
			_, err := m.Put(context.Background(), mapstate.Envelope{TxID: mapstate.TxID(x + 2)}, stateKeys(b, from, batchKeys), intValues(batchKeys))
			require.NoError(b, err)
		}
	}
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&after)
	b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/(1<<20), "MiB")
	b.ReportMetric(0, "ns/op")
	runtime.KeepAlive(m)
}

func intValues(n int) []mapstate.Value {
	values := make([]mapstate.Value, n)
	for i := range values {
		values[i] = mapstate.Int(int64(i) * 1_000_003)
	}
	return values
}
