package mapstate_test

import (
	"context"
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

// The values of an open batch count as well, not only what is sent.
func TestAnOpenBatchIsBoundedInWhatItsValuesGrowTo(t *testing.T) {
	m, err := mapstate.Open(t.Context(), opaque.Kind{}, mapstate.NewMemory(), mapstate.Options{MaxBatchBytes: 10_000})
	require.NoError(t, err)
	defer m.Close(mapstate.ErrShuttingDown)
	for i := range 20 {
		_, err := m.Put(t.Context(), mapstate.Envelope{}, mapstatetest.Keys(i), mapstatetest.Vals(strings.Repeat("x", 1000)))
		require.NoError(t, err)
	}
	env := mapstate.Envelope{TxID: 1}
	_, err = m.Begin(t.Context(), env)
	require.NoError(t, err)
	touched := 0
	for ; touched < 20; touched++ {
		if _, err = m.Update(t.Context(), env, mapstatetest.Keys(touched), mapstatetest.Updates("concat", "y")); err != nil {
			break
		}
	}
	var limit *mapstate.LimitError
	require.ErrorAs(t, err, &limit)
	require.EqualValues(t, 10_000, limit.Limit)
	res, err := m.Commit(t.Context(), env)
	require.NoError(t, err)
	require.Equal(t, touched, res.Applied, "what was staged before is committed")
}

// fewAtOnce is a store that reads few keys at once.
type fewAtOnce struct{ mapstate.BackingMap }

func (s fewAtOnce) MultiGet(ctx context.Context, keys []mapstate.Key) ([][]byte, error) {
	if len(keys) > 3 {
		return nil, mapstate.TooMuchToRead()
	}
	return s.BackingMap.MultiGet(ctx, keys)
}

// A replay takes back as many keys as there are, in as many reads as it takes.
func TestAReplayMayTakeBackMoreThanOneReadHolds(t *testing.T) {
	m, err := mapstate.Open(t.Context(), opaque.Kind{}, fewAtOnce{mapstate.NewMemory()}, mapstate.Options{})
	require.NoError(t, err)
	defer m.Close(mapstate.ErrShuttingDown)
	env := mapstate.Envelope{TxID: 1}
	for i := range 20 {
		_, err := m.Put(t.Context(), env, mapstatetest.Keys(i), mapstatetest.Vals(i))
		require.NoError(t, err)
	}
	env.Whole = true
	res, err := m.Put(t.Context(), env, nil, nil)
	require.NoError(t, err)
	require.Equal(t, 20, res.Restored)
	env.TxID = 2 // and their tombstones are swept
	_, err = m.Put(t.Context(), env, nil, nil)
	require.NoError(t, err)
}
