package bench

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/stretchr/testify/require"

	"tine/backing"
	"tine/cache"
	"tine/mapstate"
	"tine/opaque"
)

// The work: batches of distinct keys out of a table that is loaded before, each
// key an int64 sum under a txid with the value before it.
const (
	tableKeys = 1_000_000
	batchKeys = 1_000
	turns     = 7
	turnTime  = time.Second
)

// keyText returns key i as a user would send it: 16 bytes.
func keyText(i int) string { return fmt.Sprintf("key-%012d", i) }

// pick chooses n distinct keys of the table at random.
func pick(r *rand.Rand, n int, chosen []int, seen map[int]bool) []int {
	chosen = chosen[:0]
	clear(seen)
	for len(chosen) < n {
		if i := r.IntN(tableKeys); !seen[i] {
			seen[i] = true
			chosen = append(chosen, i)
		}
	}
	return chosen
}

// picks are batches chosen before the clock starts.
func picks(seed uint64, batches int) [][]int {
	r, seen := rand.New(rand.NewPCG(seed, 1)), make(map[int]bool)
	all := make([][]int, batches)
	for i := range all {
		all[i] = pick(r, batchKeys, nil, seen)
	}
	return all
}

// contender is one of those that are compared: do makes one batch of worker w
// and returns the number of keys.
type contender struct {
	name    string
	workers int
	do      func(w, batch int) int
	rates   []float64
}

// turn lets c work for a while and notes its rate in keys per second.
func (c *contender) turn(from []int) {
	start := time.Now()
	keys := make([]int, c.workers)
	var wg sync.WaitGroup
	for w := range c.workers {
		wg.Go(func() {
			for time.Since(start) < turnTime {
				keys[w] += c.do(w, from[w])
				from[w]++
			}
		})
	}
	wg.Wait()
	sum := 0
	for _, n := range keys {
		sum += n
	}
	c.rates = append(c.rates, float64(sum)/time.Since(start).Seconds())
}

func median(xs []float64) float64 {
	xs = slices.Clone(xs)
	slices.SortFunc(xs, cmp.Compare[float64])
	return xs[len(xs)/2]
}

// compare runs the contenders in turns and reports their medians, and the ratio
// of each to the first.
func compare(b *testing.B, all ...*contender) {
	done := make([][]int, len(all))
	for i, c := range all {
		done[i] = make([]int, c.workers)
		c.turn(done[i]) // to warm up
		c.rates = nil
	}
	b.ResetTimer()
	for range turns {
		for i, c := range all {
			c.turn(done[i])
		}
	}
	b.StopTimer()
	base := median(all[0].rates)
	for i, c := range all {
		rate := median(c.rates)
		b.ReportMetric(rate, c.name+"-keys/s")
		b.Logf("%-28s %9.0f keys/s  (%.0f to %.0f)  ratio %.2f", c.name, rate, slices.Min(c.rates), slices.Max(c.rates), rate/base)
		if i > 0 {
			b.ReportMetric(rate/base, c.name+"/"+all[0].name)
		}
	}
	b.ReportMetric(0, "ns/op")
}

// rawPebble is what a user would write by hand: a map of the records in memory,
// and one Pebble batch per batch of keys, with the memtable, block cache and filters
// that Tine uses.
type rawPebble struct {
	db    *pebble.DB
	table []map[string]rawRecord // one per worker
	keys  [][]byte
}

// rawRecord is txid, current and previous value: 24 bytes.
type rawRecord struct{ txid, curr, prev int64 }

func (r rawRecord) append(dst []byte) []byte {
	dst = binary.BigEndian.AppendUint64(dst, uint64(r.txid))
	dst = binary.BigEndian.AppendUint64(dst, uint64(r.curr))
	return binary.BigEndian.AppendUint64(dst, uint64(r.prev))
}

func newRawPebble(b *testing.B, workers int) *rawPebble {
	opts := &pebble.Options{
		CacheSize: 256 << 20, MemTableSize: 16 << 20, MemTableStopWritesThreshold: 4,
		FormatMajorVersion: pebble.FormatNewest, Logger: quiet{},
	}
	for i := range opts.Levels {
		opts.Levels[i].FilterPolicy = bloom.FilterPolicy(10)
	}
	db, err := pebble.Open(b.TempDir(), opts)
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, db.Close()) })
	r := &rawPebble{db: db, keys: make([][]byte, tableKeys)}
	for range workers {
		r.table = append(r.table, make(map[string]rawRecord, tableKeys/workers))
	}
	load := db.NewBatch()
	for i := range r.keys {
		r.keys[i] = []byte(keyText(i))
		record := rawRecord{txid: 1}
		r.table[i%workers][keyText(i)] = record
		require.NoError(b, load.Set(r.keys[i], record.append(nil), nil))
		if load.Count() == 10_000 {
			require.NoError(b, load.Commit(pebble.NoSync))
			load = db.NewBatch()
		}
	}
	return r
}

// update adds one to each key for worker w.
func (r *rawPebble) update(b *testing.B, w int, txid int64, chosen []int) int {
	batch := r.db.NewBatchWithSize(64 * len(chosen))
	var value [24]byte
	for _, i := range chosen {
		key := r.keys[i]
		record := r.table[w][string(key)]
		if record.txid < txid {
			record.prev = record.curr
		}
		record.txid, record.curr = txid, record.prev+1
		r.table[w][string(key)] = record
		if err := batch.Set(key, record.append(value[:0]), nil); err != nil {
			b.Error(err)
		}
	}
	if err := batch.Commit(pebble.NoSync); err != nil {
		b.Error(err)
	}
	return len(chosen)
}

type quiet struct{}

func (quiet) Infof(string, ...any)  {}
func (quiet) Errorf(string, ...any) {}
func (quiet) Fatalf(format string, args ...any) {
	panic(fmt.Sprintf(format, args...))
}

// newOpaque returns an opaque state on disk, interval durability, its table
// loaded and all of it in the LRU.
func newOpaque(b *testing.B) *mapstate.Map {
	db, err := backing.Open(b.TempDir(), backing.Options{Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, db.Close()) })
	state, err := db.Create("bench", nil)
	require.NoError(b, err)
	m, err := mapstate.Open(context.Background(), opaque.Kind{}, cache.New(state, cache.Options{Entries: 2 * tableKeys, Bytes: 1 << 30}), mapstate.Options{Interval: true})
	require.NoError(b, err)
	b.Cleanup(func() { m.Close(mapstate.ErrShuttingDown) })
	loadTable(b, m)
	return m
}

func loadTable(b *testing.B, m *mapstate.Map) {
	const step = 10_000
	values := slices.Repeat([]mapstate.Value{mapstate.Int(0)}, step)
	for from := 0; from < tableKeys; from += step {
		_, err := m.Put(context.Background(), mapstate.Envelope{TxID: 1}, stateKeys(b, from, step), values)
		require.NoError(b, err)
	}
}

func stateKeys(b *testing.B, from, n int) []mapstate.Key {
	keys := make([]mapstate.Key, n)
	for i := range keys {
		k, err := mapstate.NewKey(mapstate.String(keyText(from + i)))
		require.NoError(b, err)
		keys[i] = k
	}
	return keys
}
