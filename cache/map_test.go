package cache_test

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"tine/cache"
	"tine/mapstate"
	"tine/mapstate/mapstatetest"
)

// sizes are the caches that every backing is tested behind: none, one that evicts
// all the time, one that holds everything, one bounded by bytes.
var sizes = map[string]cache.Options{
	"none":  {},
	"tiny":  {Entries: 2},
	"large": {Entries: 1 << 20},
	"bytes": {Entries: math.MaxInt64, Bytes: 4 << 10},
}

func TestMapIsABackingMap(t *testing.T) {
	for name, opts := range sizes {
		t.Run(name, func(t *testing.T) {
			mapstatetest.TestBacking(t, func(testing.TB) mapstatetest.Harness {
				return mapstatetest.Harness{Backing: cache.New(mapstate.NewMemory(), opts)}
			})
		})
	}
}

func TestMapAnswersFromTheCacheAndAsksOnlyForTheRest(t *testing.T) {
	fault := mapstatetest.NewFault(mapstate.NewMemory())
	mapstatetest.Put(t, fault, "a", "1", "b", "2")
	m := cache.New(fault, cache.Options{Entries: 10})
	broken := errors.New("asked the backing")
	require.Equal(t, []string{"1", ""}, mapstatetest.Get(t, m, "a", "absent"))
	fault.FailGet(1, broken)
	require.Equal(t, []string{"1", "1"}, mapstatetest.Get(t, m, "a", "a"), "read before")
	mapstatetest.Put(t, m, "c", "3")
	require.Equal(t, []string{"3"}, mapstatetest.Get(t, m, "c"), "written before")
	_, err := m.MultiGet(t.Context(), []mapstate.Key{"a", "b"})
	require.ErrorIs(t, err, broken, "an error is not an absence")
	require.Equal(t, []string{"1", "2"}, mapstatetest.Get(t, m, "a", "b"))
	stats := m.Stats()
	require.EqualValues(t, 3, stats.Entries)
	require.EqualValues(t, 0+2+1+1+1, stats.Hits)
	require.EqualValues(t, 2+0+0+1+1, stats.Misses)
	require.Positive(t, stats.Bytes)
}

func TestMapWithoutEntriesPassesEverythingOn(t *testing.T) {
	fault := mapstatetest.NewFault(mapstate.NewMemory())
	m := cache.New(fault, cache.Options{Bytes: 1 << 20})
	mapstatetest.Put(t, m, "a", "1")
	for range 3 {
		broken := errors.New("asked the backing")
		fault.FailGet(1, broken)
		_, err := m.MultiGet(t.Context(), []mapstate.Key{"a"})
		require.ErrorIs(t, err, broken)
	}
	require.Zero(t, m.Stats())
}

func TestMapAnswersWhatTheBackingHasAfterAFailedCommit(t *testing.T) {
	for _, at := range []mapstatetest.Moment{mapstatetest.BeforeWrite, mapstatetest.AfterWrite, mapstatetest.InWait} {
		for name, opts := range sizes {
			t.Run(fmt.Sprintf("%d/%s", at, name), func(t *testing.T) {
				fault := mapstatetest.NewFault(mapstate.NewMemory())
				m := cache.New(fault, opts)
				mapstatetest.Put(t, m, "a", "old", "deleted", "old", "other", "kept")
				fault.FailCommit(1, at, mapstate.ErrUnavailable)
				d, err := m.Commit(t.Context(), mapstate.Writes{Records: []mapstate.Write{
					{Key: "a", Record: []byte("new")}, {Key: "deleted"}, {Key: "added", Record: []byte("new")},
				}})
				if at == mapstatetest.InWait {
					require.NoError(t, err)
					err = d.Wait()
					require.Zero(t, m.Stats().Entries, "nothing is kept of a write that is not durable")
				}
				require.ErrorIs(t, err, mapstate.ErrUnavailable)
				keys := []mapstate.Key{"a", "deleted", "added", "other"}
				want := mapstatetest.Get(t, fault, keys...)
				require.Equal(t, want, mapstatetest.Get(t, m, keys...))
				require.Equal(t, want, mapstatetest.Get(t, m, keys...), "read again")
			})
		}
	}
}
