package backing

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/stretchr/testify/require"

	"tine/mapstate"
)

const (
	benchKeys  = 1_000_000
	benchBatch = 1_000
)

// benchKey is the i-th of the keys that benchmarks use: 16 bytes, scattered.
func benchKey(i int) mapstate.Key {
	k := binary.BigEndian.AppendUint64(make([]byte, 0, 16), uint64(i)*0x9E3779B97F4A7C15)
	return mapstate.Key(binary.BigEndian.AppendUint64(k, uint64(i)))
}

// benchState returns a state on disk that holds all keys, with records of 24 bytes.
func benchState(b *testing.B) (*Database, *Pebble) {
	opts := quiet(nil)
	opts.CacheBytes, opts.MemTableBytes = 0, 0
	d := open(b, b.TempDir(), opts)
	p, err := d.Create("bench", nil)
	require.NoError(b, err)
	for first := 0; first < benchKeys; first += 10 * benchBatch {
		var w mapstate.Writes
		for i := range 10 * benchBatch {
			w.Records = append(w.Records, mapstate.Write{Key: benchKey(first + i), Record: make([]byte, 24)})
		}
		_, err := p.Commit(b.Context(), w)
		require.NoError(b, err)
	}
	require.NoError(b, d.engine.Flush())
	return d, p
}

// benchBatches returns a function that deals out batches made beforehand.
func benchBatches() func() ([]mapstate.Key, mapstate.Writes) {
	rnd := rand.New(rand.NewPCG(1, 2))
	var keys [64][]mapstate.Key
	var writes [64]mapstate.Writes
	for i := range keys {
		keys[i], writes[i] = benchBatchOf(rnd)
	}
	next := 0
	return func() ([]mapstate.Key, mapstate.Writes) {
		next = (next + 1) % len(keys)
		return keys[next], writes[next]
	}
}

// benchBatchOf returns a batch of distinct random keys.
func benchBatchOf(rnd *rand.Rand) ([]mapstate.Key, mapstate.Writes) {
	var w mapstate.Writes
	keys := make([]mapstate.Key, 0, benchBatch)
	seen := make(map[int]bool, benchBatch)
	for len(keys) < benchBatch {
		i := rnd.IntN(benchKeys)
		if !seen[i] {
			seen[i] = true
			keys = append(keys, benchKey(i))
			w.Records = append(w.Records, mapstate.Write{Key: benchKey(i), Record: make([]byte, 24)})
		}
	}
	return keys, w
}

// BenchmarkWhatDoesPebbleCostOverTheBareEngine writes and reads batches of 1,000
// out of 1,000,000 keys.
func BenchmarkWhatDoesPebbleCostOverTheBareEngine(b *testing.B) {
	d, p := benchState(b)
	batch := benchBatches()
	perKey := func(b *testing.B) {
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*benchBatch), "ns/key")
	}
	for _, sync := range []bool{false, true} {
		b.Run(fmt.Sprintf("sets/sync=%t/bare", sync), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, w := batch()
				eb := d.engine.NewBatch()
				for _, r := range w.Records {
					require.NoError(b, eb.Set(append(p.space(spaceRecords), r.Key...), r.Record, nil))
				}
				require.NoError(b, eb.Commit(&pebble.WriteOptions{Sync: sync}))
				require.NoError(b, eb.Close())
			}
			perKey(b)
		})
		b.Run(fmt.Sprintf("sets/sync=%t/state", sync), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, w := batch()
				w.Sync = sync
				durable, err := p.Commit(b.Context(), w)
				require.NoError(b, err)
				require.NoError(b, durable.Wait())
			}
			perKey(b)
		})
	}
	b.Run("gets/bare", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			keys, _ := batch()
			for _, k := range keys {
				value, closer, err := d.engine.Get(append(p.space(spaceRecords), k...))
				require.NoError(b, err)
				_ = slices.Clone(value)
				require.NoError(b, closer.Close())
			}
		}
		perKey(b)
	})
	b.Run("gets/state", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			keys, _ := batch()
			_, err := p.MultiGet(b.Context(), keys)
			require.NoError(b, err)
		}
		perKey(b)
	})
}
