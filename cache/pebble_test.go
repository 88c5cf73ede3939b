package cache_test

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"tine/backing"
	"tine/cache"
	"tine/mapstate"
	"tine/mapstate/mapstatetest"
)

func TestMapOverPebbleIsABackingMap(t *testing.T) {
	for name, opts := range sizes {
		t.Run(name+"/in memory", func(t *testing.T) {
			mapstatetest.TestBacking(t, func(t testing.TB) mapstatetest.Harness { return overPebble(t, vfs.NewMem(), "data", opts) })
		})
		t.Run(name+"/on disk", func(t *testing.T) {
			mapstatetest.TestBacking(t, func(t testing.TB) mapstatetest.Harness { return overPebble(t, nil, t.TempDir(), opts) })
		})
	}
}

// overPebble returns a Map over a state of a new database.
func overPebble(t testing.TB, fs vfs.FS, dir string, opts cache.Options) mapstatetest.Harness {
	t.Helper()
	open := func() *backing.Database {
		d, err := backing.Open(dir, backing.Options{FS: fs, CacheBytes: 8 << 20, MemTableBytes: 1 << 20})
		require.NoError(t, err)
		t.Cleanup(func() { _ = d.Close() })
		return d
	}
	d := open()
	p, err := d.Create("s", nil)
	require.NoError(t, err)
	return mapstatetest.Harness{Backing: cache.New(p, opts), Reopen: func() mapstate.BackingMap {
		require.NoError(t, d.Close())
		p, err := open().State("s")
		require.NoError(t, err)
		return cache.New(p, opts)
	}}
}

// BenchmarkWhatDoesAWarmCacheSave reads and writes batches of 1,000 out of
// 1,000,000 keys of a state on disk.
func BenchmarkWhatDoesAWarmCacheSave(b *testing.B) {
	const all, batch = 1_000_000, 1_000
	d, err := backing.Open(b.TempDir(), backing.Options{})
	require.NoError(b, err)
	defer func() { require.NoError(b, d.Close()) }()
	p, err := d.Create("bench", nil)
	require.NoError(b, err)
	cached := cache.New(p, cache.Options{Entries: all})
	key := func(i int) mapstate.Key {
		k := binary.BigEndian.AppendUint64(make([]byte, 0, 16), uint64(i)*0x9E3779B97F4A7C15)
		return mapstate.Key(binary.BigEndian.AppendUint64(k, uint64(i)))
	}
	for first := 0; first < all; first += batch {
		var w mapstate.Writes
		for i := range batch {
			w.Records = append(w.Records, mapstate.Write{Key: key(first + i), Record: make([]byte, 24)})
		}
		_, err := cached.Commit(b.Context(), w)
		require.NoError(b, err)
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	for name, m := range map[string]mapstate.BackingMap{"bare": p, "warm": cached} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				keys := make([]mapstate.Key, batch)
				w := mapstate.Writes{Records: make([]mapstate.Write, batch)}
				for i, n := range rnd.Perm(all / batch) { // distinct
					keys[i] = key(n*batch + rnd.IntN(batch))
				}
				records, err := m.MultiGet(b.Context(), keys)
				require.NoError(b, err)
				for i, k := range keys {
					w.Records[i] = mapstate.Write{Key: k, Record: records[i]}
				}
				_, err = m.Commit(b.Context(), w)
				require.NoError(b, err)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*batch), "ns/key")
		})
	}
}
