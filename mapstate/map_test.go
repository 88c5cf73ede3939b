package mapstate_test

import (
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tine/mapstate"
	"tine/mapstate/mapstatetest"
	"tine/nontx"
	"tine/opaque"
	"tine/transactional"
)

func TestMapKeepsItsPromisesInMemory(t *testing.T) {
	for _, kind := range []mapstate.Kind{nontx.Kind{}, transactional.Kind{}, opaque.Kind{}} {
		t.Run(kind.Name(), func(t *testing.T) {
			mapstatetest.TestMap(t, kind, func(testing.TB) mapstatetest.Harness {
				m := mapstate.NewMemory()
				return mapstatetest.Harness{Backing: m, Reopen: func() mapstate.BackingMap { return m }}
			})
		})
	}
}

func TestCommitsLeaveNothingBehindInMemory(t *testing.T) {
	m, err := mapstate.Open(t.Context(), opaque.Kind{}, mapstate.NewMemory(), mapstate.Options{})
	require.NoError(t, err)
	defer m.Close(mapstate.ErrShuttingDown)
	objects := func(commits int) uint64 {
		for range commits {
			x := m.Stats().Commits + 1
			_, err := m.Update(t.Context(), mapstate.Envelope{TxID: mapstate.TxID(x)},
				mapstatetest.Keys("a", "b"), mapstatetest.Updates("sum", 1, 1))
			require.NoError(t, err)
		}
		runtime.GC()
		runtime.GC()
		var stats runtime.MemStats
		runtime.ReadMemStats(&stats)
		return stats.HeapObjects
	}
	before := objects(1_000)
	after := objects(5_000)
	require.Less(t, after, before+1_000, "5,000 commits left objects behind")
}

func TestAnOpenBatchIsBounded(t *testing.T) {
	m, err := mapstate.Open(t.Context(), nontx.Kind{}, mapstate.NewMemory(), mapstate.Options{MaxBatchKeys: 3, MaxBatchBytes: 100})
	require.NoError(t, err)
	defer m.Close(mapstate.ErrShuttingDown)
	env := mapstate.Envelope{TxID: 1}
	_, err = m.Begin(t.Context(), env)
	require.NoError(t, err)
	put := func(values ...any) error {
		_, err := m.Put(t.Context(), env, mapstatetest.Keys("a", "b", "c", "d")[:len(values)], mapstatetest.Vals(values...))
		return err
	}
	var limit *mapstate.LimitError
	require.ErrorAs(t, put(1, 2, 3, 4), &limit)
	require.EqualValues(t, 3, limit.Limit)
	require.ErrorAs(t, put(strings.Repeat("x", 100)), &limit)
	require.EqualValues(t, 100, limit.Limit)
	require.NoError(t, put(strings.Repeat("x", 50), 1))
	require.ErrorIs(t, put(strings.Repeat("x", 50)), mapstate.ErrTooLarge)
	require.ErrorIs(t, put(1, 2), mapstate.ErrTooLarge)
	require.NoError(t, put(1))
	res, err := m.Commit(t.Context(), env)
	require.NoError(t, err)
	require.Equal(t, 3, res.Applied)
}
