package mapstatetest

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"tine/mapstate"
)

// The checks of TestMap that are about keys that several partitions touch under one
// txid.

// of is the envelope of a partition's whole batch, part that of a part of it.
func of(partition string, x mapstate.TxID) mapstate.Envelope {
	return mapstate.Envelope{TxID: x, Partition: partition, Whole: true}
}

func part(partition string, x mapstate.TxID) mapstate.Envelope {
	return mapstate.Envelope{TxID: x, Partition: partition}
}

func (s *state) appends(env mapstate.Envelope, key string, args ...any) {
	s.t.Helper()
	for i, u := range Updates("append", args...) {
		_, err := s.Update(context.Background(), env, Keys(key), []mapstate.ValueUpdater{u})
		require.NoError(s.t, err, "argument %d", i)
	}
}

// partsBuildOnOthers: a later part of a partition's batch finds a key that another
// partition has written meanwhile, and neither skips it nor starts it over.
func partsBuildOnOthers(t *testing.T, s *state) {
	s.mustSum(part("p", 1), "own", 1)
	s.mustSum(part("q", 1), "a", 10)
	res := s.mustSum(part("p", 1), "a", 1)
	require.Equal(t, mapstate.Result{Values: Vals(11), Applied: 1}, res)
	s.restart()
	s.mustSum(part("r", 1), "a", 100)
	s.value(at(0), "a", "111")
}

// sharedSkips: each partition's replay is skipped, whoever wrote last.
func sharedSkips(t *testing.T, s *state) {
	for _, p := range []string{"p", "q", "r", "q", "p"} {
		s.mustSum(of(p, 1), "a", 1)
	}
	s.restart()
	for _, p := range []string{"r", "p", "q"} {
		require.Equal(t, mapstate.Result{Values: Vals(3), Replayed: 1}, s.mustSum(of(p, 1), "a", 1))
	}
	s.mustSum(of("q", 2), "a", 1)
	s.mustSum(of("q", 2), "a", 1)
	s.mustSum(of("p", 2), "a", 1)
	s.holds("a", "5 @2")
}

// sharedReplay: a replay replaces its own partition's work, in whatever order the
// partitions came and come again, alone or not.
func sharedReplay(t *testing.T, s *state) {
	s.put(at(1), "a", 1000)
	s.mustSum(of("p", 2), "a", 1)
	s.mustSum(of("q", 2), "a", 10)
	s.mustSum(of("r", 2), "a", 100)
	for _, step := range []struct {
		partition string
		sum       int
		want      string
	}{
		{"p", 2, "1112 prev 1000 @2"}, {"p", 3, "1113 prev 1000 @2"}, {"q", 20, "1123 prev 1000 @2"},
		{"r", 200, "1223 prev 1000 @2"}, {"p", 4, "1224 prev 1000 @2"}, {"r", 100, "1124 prev 1000 @2"},
	} {
		s.restart()
		res := s.mustSum(of(step.partition, 2), "a", step.sum)
		require.Equal(t, 1, res.Replayed)
		s.holds("a", step.want)
	}
	s.mustSum(at(3), "a", 1)
	s.holds("a", "1125 prev 1124 @3")
	s.mustSum(at(3), "a", 2)
	s.holds("a", "1126 prev 1124 @3")
}

// sharedOrder: who replays does so in the place that it had.
func sharedOrder(_ *testing.T, s *state) {
	for _, p := range []string{"p", "q", "r"} {
		s.begin(part(p, 1))
		s.appends(part(p, 1), "a", p+"1", p+"2")
		s.commit(part(p, 1))
	}
	s.holds("a", `["p1","p2","q1","q2","r1","r2"] @1`)
	s.begin(part("p", 1))
	s.appends(part("p", 1), "a", "P")
	s.commit(part("p", 1))
	s.holds("a", `["P","q1","q2","r1","r2"] @1`)
	s.begin(part("r", 1))
	s.commit(part("r", 1))
	s.holds("a", `["P","q1","q2"] @1`)
}

// sharedSame: a replay with the same contents changes nothing, whatever others have
// made of them, and is never refused for that.
func sharedSame(t *testing.T, s *state) {
	put := func(p string, v any) {
		_, err := s.Put(t.Context(), of(p, 2), Keys("a"), Vals(v))
		require.NoError(t, err)
	}
	s.put(at(1), "a", "text")
	put("p", 5)
	s.mustSum(of("q", 2), "a", 1)
	put("p", 5)
	s.value(at(0), "a", "6")
	s.mustSum(of("q", 2), "a", 1)
	s.value(at(0), "a", "6")
	if s.kind.Replays() == mapstate.ReplayRestarts {
		require.Zero(t, s.mustSum(of("p", 2)).Restored, "q's sum needs p's number")
		s.value(at(0), "a", "6")
	}
	// What comes without a txid goes with the replay, and doubles nothing.
	s.put(at(3), "b", 1000)
	for range 2 {
		s.mustSum(of("p", 4), "b", 1)
		s.mustSum(of("q", 4), "b", 10)
		s.mustSum(at(0), "b", 100)
	}
	s.mustSum(of("p", 4), "b", 1)
	if s.kind.Replays() == mapstate.ReplayRestarts {
		s.value(at(0), "b", "1011")
		require.Equal(t, 1, s.mustSum(of("p", 4)).Restored)
		s.value(at(0), "b", "1010")
	}
}

// sharedRestore: what a whole replay leaves out goes, and only that.
func sharedRestore(t *testing.T, s *state) {
	s.mustSum(of("p", 1), "a", 1, "own", 1)
	s.mustSum(of("q", 1), "a", 10)
	require.Equal(t, 2, s.mustSum(of("p", 1), "b", 1).Restored)
	s.value(at(0), "own", "absent")
	s.value(at(0), "a", "10")
	require.Equal(t, 1, s.mustSum(of("q", 1)).Restored)
	s.value(at(0), "a", "absent")
	require.Equal(t, 1, s.mustSum(of("p", 1), "a", 5).Restored, "b")
	s.mustSum(of("q", 1), "a", 10)
	s.holds("a", "15 @1")
	// Neither replays batch 1 any more once both have moved on.
	s.remove(part("q", 1), "a")
	s.mustSum(of("p", 2), "c", 1)
	require.True(t, s.stored("a"), "q may replay")
	s.mustSum(of("q", 2), "d", 1)
	require.False(t, s.stored("a"))
	require.False(t, s.stored("b"))
}

// swappedKeys is a replay in which two keys change partitions, in both orders.
func swappedKeys(_ *testing.T, s *state) {
	for x, order := range [][]string{{"p", "q"}, {"q", "p"}} {
		x := mapstate.TxID(x + 1)
		before, after := map[string]string{"p": "a", "q": "b"}, map[string]string{"p": "b", "q": "a"}
		for _, p := range order {
			s.mustSum(of(p, x), before[p], 1)
		}
		for _, p := range order {
			s.mustSum(of(p, x), after[p], 10)
		}
	}
	s.holds("a", "20 prev 10 @2", "b", "20 prev 10 @2")
}

// sharedRemoval: removals and un-numbered writes are shares as well.
func sharedRemoval(t *testing.T, s *state) {
	s.put(at(1), "a", 10)
	s.mustSum(of("p", 2), "a", 1)
	s.remove(of("q", 2), "a")
	s.value(at(0), "a", "absent")
	s.mustSum(of("r", 2), "a", 5)
	s.holds("a", "5 prev 10 @2")
	s.mustSum(of("q", 2), "a", 100)
	s.holds("a", "116 prev 10 @2")
	s.put(at(0), "a", 7)
	s.holds("a", "7 prev 10 @2")
	s.mustSum(of("p", 2), "a", 2)
	s.holds("a", "117 prev 10 @2")
	s.mustSum(of("q", 2), "a", 100)
	s.holds("a", "117 prev 10 @2")
	require.Equal(t, 1, s.mustSum(of("p", 2)).Restored)
	s.holds("a", "115 prev 10 @2")
}

// add is an updater of the caller's own, which has no name.
type add int64

func (n add) Update(stored mapstate.Value) (mapstate.Value, error) {
	v, _ := stored.AsInt()
	return mapstate.Int(v + int64(n)), nil
}

func unnamedUpdaters(t *testing.T, s *state) {
	update := func(p string) error {
		_, err := s.Update(t.Context(), part(p, 1), Keys("a"), []mapstate.ValueUpdater{add(1)})
		return err
	}
	require.NoError(t, update("p"))
	require.NoError(t, update("p"))
	err := update("q")
	if s.kind.Replays() == mapstate.ReplayRestarts {
		require.ErrorIs(t, err, mapstate.ErrInvalidValue, "a replay of p could not apply it again")
		s.value(at(0), "a", "1")
		return
	}
	require.NoError(t, err)
	s.value(at(0), "a", "2")
}

// boundedShare: a share is bounded, as values are.
func boundedShare(t *testing.T, s *state) {
	s.put(part("p", 1), "a", "")
	text := make([]byte, mapstate.MaxValueBytes/2)
	for i := range text {
		text[i] = 'x'
	}
	set := Update("set", string(text))
	_, err := s.Update(t.Context(), part("q", 1), Keys("a", "a", "a"), []mapstate.ValueUpdater{set, set, set})
	var limit *mapstate.LimitError
	require.ErrorAs(t, err, &limit)
	require.EqualValues(t, mapstate.MaxValueBytes, limit.Limit)
	s.value(at(0), "a", `""`)
}
