package backing

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"tine/mapstate"
	"tine/mapstate/mapstatetest"
)

func TestPebbleInMemoryIsABackingMap(t *testing.T) {
	mapstatetest.TestBacking(t, func(t testing.TB) mapstatetest.Harness {
		fs := vfs.NewCrashableMem()
		_, p := create(t, fs)
		return mapstatetest.Harness{Backing: p, Reopen: func() mapstate.BackingMap { return afterCrash(t, fs) }}
	})
}

func TestPebbleOnDiskIsABackingMap(t *testing.T) {
	mapstatetest.TestBacking(t, func(t testing.TB) mapstatetest.Harness {
		dir := t.TempDir()
		d := open(t, dir, quiet(nil))
		p, err := d.Create("s", nil)
		require.NoError(t, err)
		return mapstatetest.Harness{Backing: p, Reopen: func() mapstate.BackingMap {
			require.NoError(t, d.Close())
			p, err := open(t, dir, quiet(nil)).State("s")
			require.NoError(t, err)
			return p
		}}
	})
}

// afterCrash opens state s from what a crash of the machine leaves of fs.
func afterCrash(t testing.TB, fs *vfs.MemFS) *Pebble {
	t.Helper()
	p, err := open(t, "data", quiet(fs.CrashClone(vfs.CrashCloneCfg{}))).State("s")
	require.NoError(t, err)
	return p
}

func TestCommitIsOnDiskWhenWaitReturnsAndNotOnlyWhenItIsClosed(t *testing.T) {
	fs := vfs.NewCrashableMem()
	_, p := create(t, fs)
	for i := range 20 {
		w := record("k", fmt.Sprint(i))
		w.Sync = true
		mapstatetest.Commit(t, p, w)
		require.Equal(t, []string{fmt.Sprint(i)}, mapstatetest.Get(t, afterCrash(t, fs), "k"))
	}
}

func TestCommitLargerThanAMemTableIsWholeAfterACrash(t *testing.T) {
	fs := vfs.NewCrashableMem()
	_, p := create(t, fs)
	w := mapstate.Writes{Sync: true}
	for i := range 40_000 {
		w.Records = append(w.Records, mapstate.Write{Key: mapstate.Key(fmt.Sprint(i)), Record: make([]byte, 100)})
	}
	mapstatetest.Commit(t, p, w)
	found := 0
	require.NoError(t, afterCrash(t, fs).Scan(t.Context(), mapstate.Range{}, func(mapstate.Key, []byte) error {
		found++
		return nil
	}))
	require.Equal(t, len(w.Records), found)
}

func TestStatesOfOneDatabaseDoNotSeeEachOther(t *testing.T) {
	d, a := create(t, vfs.NewMem())
	b, err := d.Create("b", nil)
	require.NoError(t, err)
	w := record("k", "of a")
	w.Meta = []mapstate.MetaWrite{{Name: "m", Value: []byte("of a")}}
	mapstatetest.Commit(t, a, w)
	mapstatetest.Put(t, b, "l", "of b")
	require.Equal(t, []string{"", "of b"}, mapstatetest.Get(t, b, "k", "l"))
	entries, err := b.Meta(t.Context(), "")
	require.NoError(t, err)
	require.Empty(t, entries)
	for p, want := range map[*Pebble]mapstate.Key{a: "k", b: "l"} {
		require.NoError(t, p.Scan(t.Context(), mapstate.Range{}, func(k mapstate.Key, _ []byte) error {
			require.Equal(t, want, k)
			return nil
		}))
	}
}

func TestOperationsAfterCloseAreRefused(t *testing.T) {
	d, p := create(t, vfs.NewMem())
	require.NoError(t, d.Close())
	require.NoError(t, d.Close(), "a second Close")
	requireRefused(t, p, mapstate.ErrShuttingDown)
	_, err := d.State("s")
	require.ErrorIs(t, err, mapstate.ErrShuttingDown)
	_, err = d.Create("t", nil)
	require.ErrorIs(t, err, mapstate.ErrShuttingDown)
	_, err = d.States()
	require.ErrorIs(t, err, mapstate.ErrShuttingDown)
	require.ErrorIs(t, d.Delete("s"), mapstate.ErrShuttingDown)
	require.Zero(t, d.Metrics())
}

func TestOperationsAfterDeleteAreRefused(t *testing.T) {
	d, p := create(t, vfs.NewMem())
	mapstatetest.Put(t, p, "k", "v")
	require.NoError(t, d.Delete("s"))
	requireRefused(t, p, mapstate.ErrUnknownState)
	require.NoError(t, d.Close())
	requireRefused(t, p, mapstate.ErrUnknownState)
}

func requireRefused(t *testing.T, p *Pebble, want error) {
	t.Helper()
	_, err := p.MultiGet(t.Context(), []mapstate.Key{"k"})
	require.ErrorIs(t, err, want)
	_, err = p.Commit(t.Context(), record("k", "v"))
	require.ErrorIs(t, err, want)
	_, err = p.Meta(t.Context(), "")
	require.ErrorIs(t, err, want)
	require.ErrorIs(t, p.Scan(t.Context(), mapstate.Range{}, func(mapstate.Key, []byte) error { return nil }), want)
}

func TestAWaitOutlivesClose(t *testing.T) {
	d, p := create(t, vfs.NewMem())
	w := record("k", "v")
	w.Sync = true
	durable, err := p.Commit(t.Context(), w)
	require.NoError(t, err)
	require.NoError(t, d.Close())
	require.NoError(t, durable.Wait())
}

// TestCloseAndDeleteAreSafeUnderLoad has every operation run into Close or Delete;
// the engine panics where one gets past its gate.
func TestCloseAndDeleteAreSafeUnderLoad(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(*Database) error
		want error
	}{
		"close":  {(*Database).Close, mapstate.ErrShuttingDown},
		"delete": {func(d *Database) error { return d.Delete("s") }, mapstate.ErrUnknownState},
	} {
		t.Run(name, func(t *testing.T) {
			d, p := create(t, vfs.NewMem())
			var w mapstate.Writes
			keys := make([]mapstate.Key, 2000)
			for i := range keys {
				keys[i] = mapstate.Key(fmt.Sprint(i))
				w.Records = append(w.Records, mapstate.Write{Key: keys[i], Record: []byte("v")})
			}
			mapstatetest.Commit(t, p, w)
			began := make(chan struct{}, 4)
			ended := make(chan error, 4)
			for _, op := range underLoad(t.Context(), p, keys, w) {
				go func() { ended <- untilRefused(op, began) }()
			}
			for range cap(began) {
				<-began
			}
			require.NoError(t, c.end(d))
			for range cap(ended) {
				require.ErrorIs(t, <-ended, c.want)
			}
		})
	}
}

func underLoad(ctx context.Context, p *Pebble, keys []mapstate.Key, w mapstate.Writes) []func() error {
	commit := func(sync bool) error {
		w := w
		w.Sync = sync
		d, err := p.Commit(ctx, w)
		if err != nil {
			return err
		}
		return d.Wait()
	}
	return []func() error{
		func() error { _, err := p.MultiGet(ctx, keys); return err },
		func() error { return commit(true) },
		func() error { return commit(false) },
		func() error { return p.Scan(ctx, mapstate.Range{}, func(mapstate.Key, []byte) error { return nil }) },
	}
}

// untilRefused repeats op until it fails; it sends once op has succeeded.
func untilRefused(op func() error, began chan<- struct{}) error {
	var once sync.Once
	for {
		if err := op(); err != nil {
			return err
		}
		once.Do(func() { began <- struct{}{} })
	}
}

func TestCloseCutsAScanShort(t *testing.T) {
	d, p := create(t, vfs.NewMem())
	var w mapstate.Writes
	for i := range 4 * checkEvery {
		w.Records = append(w.Records, mapstate.Write{Key: mapstate.Key(fmt.Sprintf("%05d", i)), Record: []byte("v")})
	}
	mapstatetest.Commit(t, p, w)
	closed := make(chan error, 1)
	seen := 0
	err := p.Scan(t.Context(), mapstate.Range{}, func(mapstate.Key, []byte) error {
		if seen++; seen == 1 {
			go func() { closed <- d.Close() }()
			<-p.gate.shut
			_, err := p.MultiGet(t.Context(), []mapstate.Key{"k"})
			if !errors.Is(err, mapstate.ErrShuttingDown) {
				return fmt.Errorf("a read during Close: %w", err)
			}
		}
		return nil
	})
	require.ErrorIs(t, err, mapstate.ErrShuttingDown)
	require.Less(t, seen, len(w.Records))
	require.NoError(t, <-closed)
}
