package test

import (
	"fmt"
	"log/slog"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"tine/backing"
	"tine/backing/memcachedtest"
	"tine/cache"
	"tine/mapstate"
	"tine/mapstate/mapstatetest"
)

// openStore makes an empty store. Its clean-up is registered with t.
type openStore func(t testing.TB) mapstatetest.Harness

// stores are the stores that states can stand on, by name.
func stores() map[string]openStore {
	bare := map[string]openStore{
		"memory":        openMemory,
		"pebble-memory": openPebbleInMemory,
		"pebble-disk":   openPebbleOnDisk,
		"memcached":     openMemcached,
	}
	all := make(map[string]openStore)
	for name, open := range bare {
		all[name+"/bare"] = open
		for _, entries := range []int64{2, 1_000_000} {
			all[fmt.Sprintf("%s/cache-%d", name, entries)] = behindCache(open, entries)
		}
	}
	return all
}

func openMemory(testing.TB) mapstatetest.Harness {
	m := mapstate.NewMemory()
	return mapstatetest.Harness{Backing: m, Reopen: func() mapstate.BackingMap { return m }}
}

// openPebbleInMemory makes a store that is reopened from what a crash of the
// machine leaves.
func openPebbleInMemory(t testing.TB) mapstatetest.Harness {
	fs := vfs.NewCrashableMem()
	return mapstatetest.Harness{
		Backing: createState(t, openDatabase(t, "data", fs)),
		Reopen: func() mapstate.BackingMap {
			fs = fs.CrashClone(vfs.CrashCloneCfg{})
			return reopenState(t, openDatabase(t, "data", fs))
		},
	}
}

// openPebbleOnDisk makes a store that is reopened after an orderly stop.
func openPebbleOnDisk(t testing.TB) mapstatetest.Harness {
	dir := t.TempDir()
	db := openDatabase(t, dir, nil)
	return mapstatetest.Harness{
		Backing: createState(t, db),
		Reopen: func() mapstate.BackingMap {
			require.NoError(t, db.Close())
			db = openDatabase(t, dir, nil)
			return reopenState(t, db)
		},
	}
}

// openMemcached makes a store on a memcached of its own, whose meta space is in
// memory. The memcached goes on when the store is reopened.
func openMemcached(t testing.TB) mapstatetest.Harness {
	server := memcachedtest.Start(t, "-I", "8m", "-m", "100")
	meta := mapstate.NewMemory()
	var last *backing.Memcached
	open := func() mapstate.BackingMap {
		if last != nil {
			require.NoError(t, last.Close())
		}
		m, err := backing.NewMemcached(meta, backing.MemcachedOptions{
			Servers: []string{server.Addr}, Owner: "test", Timeout: patience, DialTimeout: patience,
		})
		require.NoError(t, err)
		last = m
		return m
	}
	t.Cleanup(func() { require.NoError(t, last.Close()) })
	return mapstatetest.Harness{Backing: open(), Reopen: open, NoScan: true, Torn: true}
}

// behindCache puts an LRU in front of a store, an empty one after a restart.
func behindCache(open openStore, entries int64) openStore {
	return func(t testing.TB) mapstatetest.Harness {
		cached := func(b mapstate.BackingMap) mapstate.BackingMap {
			return cache.New(b, cache.Options{Entries: entries, Bytes: 1 << 20})
		}
		h := open(t)
		behind := h
		behind.Backing = cached(h.Backing)
		behind.Reopen = func() mapstate.BackingMap { return cached(h.Reopen()) }
		return behind
	}
}

// openDatabase opens a small database until the end of the test; a nil fs is the
// disk.
func openDatabase(t testing.TB, dir string, fs vfs.FS) *backing.Database {
	t.Helper()
	db, err := openSmall(dir, fs)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

func openSmall(dir string, fs vfs.FS) (*backing.Database, error) {
	return backing.Open(dir, backing.Options{
		FS: fs, CacheBytes: 1 << 20, MemTableBytes: 1 << 20, Logger: slog.New(slog.DiscardHandler),
	})
}

func createState(t testing.TB, db *backing.Database) mapstate.BackingMap {
	t.Helper()
	p, err := db.Create("s", nil)
	require.NoError(t, err)
	return p
}

func reopenState(t testing.TB, db *backing.Database) mapstate.BackingMap {
	t.Helper()
	p, err := db.State("s")
	require.NoError(t, err)
	return p
}

// TestMatrix holds every store to the contract of stores, and every kind over
// every store to the contract of states. Most of its time is waiting for disks,
// which is better done together.
func TestMatrix(t *testing.T) {
	for name, open := range stores() {
		t.Run("store/"+name, func(t *testing.T) {
			t.Parallel()
			mapstatetest.TestBacking(t, open)
		})
		for _, kind := range kindNames {
			t.Run(kind+"/"+name, func(t *testing.T) {
				t.Parallel()
				mapstatetest.TestMap(t, kindNamed(kind), open)
			})
		}
	}
}
