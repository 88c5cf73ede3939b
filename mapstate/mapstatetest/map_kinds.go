package mapstatetest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"tine/mapstate"
)

// kindChecks are the checks of TestMap that only one kind has.
func kindChecks(kind mapstate.Kind) map[string]func(*testing.T, *state) {
	switch kind.Replays() {
	case mapstate.ReplaySkips:
		return map[string]func(*testing.T, *state){
			"ManManDog":                     manManDog,
			"StormsTransactionalSequence":   stormTransactional,
			"APutAtTheStoredTxIDWrites":     putWritesAgain,
			"TwoUpdatesOfOneKeyAreOneUnit":  twoUpdatesAreOneUnit,
			"PartsBuildOnOtherPartitions":   partsBuildOnOthers,
			"TheSameAgainChangesNoShare":    sharedSame,
			"EachPartitionsReplayIsSkipped": sharedSkips,
			"UpdatersOfOnesOwnMayShareKeys": unnamedUpdaters,
		}
	case mapstate.ReplayRestarts:
		return map[string]func(*testing.T, *state){
			"StormsOpaqueValues":                    stormOpaqueValues,
			"StormsOpaqueSequence":                  stormOpaqueSequence,
			"StormsMemoryMapRemove":                 stormRemove,
			"AReplayAfterARemovalStartsFromPrev":    replayAfterRemoval,
			"AWholeReplayRestoresWhatItOmits":       wholeReplayRestores,
			"TombstonesLastUntilALaterBatch":        tombstonesLast,
			"ARestoredKeyIsRestoredByEveryReplay":   restoredAgain,
			"AnUnnumberedRemovalIsSweptInTheEnd":    unnumberedRemoval,
			"PartsBuildOnOtherPartitions":           partsBuildOnOthers,
			"AReplayReplacesItsOwnShare":            sharedReplay,
			"TheSameAgainChangesNoShare":            sharedSame,
			"SharesStayInTheOrderOfCommits":         sharedOrder,
			"ARestoreTakesItsOwnShare":              sharedRestore,
			"TwoKeysSwapPartitions":                 swappedKeys,
			"SharesHoldRemovalsAndUnnumberedWrites": sharedRemoval,
			"UnnamedUpdatersCannotBeShared":         unnamedUpdaters,
			"SharesAreBounded":                      boundedShare,
		}
	}
	return map[string]func(*testing.T, *state){"AReplayIsAppliedAgain": replayApplies}
}

// manManDog is the example of the Trident state document.
func manManDog(t *testing.T, s *state) {
	s.put(at(1), "man", 3)
	s.put(at(2), "apple", 10)
	s.put(at(3), "dog", 4)
	s.holds("man", "3 @1", "dog", "4 @3", "apple", "10 @2")
	one := mapstate.Value{}
	res, err := s.Update(t.Context(), at(3), Keys("man", "man", "dog"), Updates("count", one, one, one))
	require.NoError(t, err)
	require.Equal(t, mapstate.Result{Values: Vals(4, 5, 4), Applied: 2, Replayed: 1}, res)
	s.holds("man", "5 @3", "dog", "4 @3", "apple", "10 @2")
}

func stormTransactional(t *testing.T, s *state) {
	for range 2 {
		s.begin(at(1))
		first, second := s.mustSum(at(1), "a", 1), s.mustSum(at(1), "a", 2)
		s.commit(at(1))
		s.value(at(0), "a", "3")
		require.Equal(t, first.Replayed, second.Replayed)
	}
	s.begin(at(2))
	s.value(at(2), "a", "3")
	require.Equal(t, Vals(6), s.mustSum(at(2), "a", 3).Values)
	require.Equal(t, Vals(7), s.mustSum(at(2), "a", 1).Values)
	s.commit(at(2))
	s.holds("a", "7 @2")
}

func putWritesAgain(t *testing.T, s *state) {
	s.put(at(1), "a", 1)
	s.put(at(1), "a", 2)
	s.holds("a", "2 @1")
	s.begin(at(1))
	s.put(at(1), "a", 5)
	require.Equal(t, Vals(6), s.mustSum(at(1), "a", 1).Values, "the put is this attempt's, the update sees it")
	require.Equal(t, mapstate.Result{Replayed: 2}, s.commit(at(1)))
	s.holds("a", "6 @1")
}

// twoUpdatesAreOneUnit is a fault of Storm's: killed between two updates of one
// key, its transactional map loses the second. Here both commit or none does.
func twoUpdatesAreOneUnit(t *testing.T, s *state) {
	s.begin(at(1))
	s.mustSum(at(1), "a", 1)
	if !s.restart() {
		s.begin(at(1))
	}
	s.value(at(0), "a", "absent")
	s.begin(at(1))
	s.mustSum(at(1), "a", 1)
	s.mustSum(at(1), "a", 2)
	s.commit(at(1))
	s.holds("a", "3 @1")
}

func stormOpaqueValues(t *testing.T, s *state) {
	s.put(at(7), "a", "v0")
	s.put(at(8), "a", "v1")
	for x, want := range map[mapstate.TxID]string{0: `"v1"`, 100: `"v1"`, 9: `"v1"`, 8: `"v0"`} {
		s.value(at(x), "a", want)
	}
	_, err := s.Read(t.Context(), at(7), Keys("a"))
	require.ErrorIs(t, err, mapstate.ErrStaleTx)
	s.put(at(8), "a", "v2")
	s.holds("a", `"v2" prev "v0" @8`)
	s.put(at(9), "a", "v2")
	s.holds("a", `"v2" prev "v2" @9`)

	// The partial counts of the Trident state document.
	s.put(at(10), "b", 1)
	s.mustSum(at(11), "b", 3)
	s.holds("b", "4 prev 1 @11")
	s.mustSum(at(11), "b", 2)
	s.holds("b", "3 prev 1 @11")
	s.mustSum(at(11), "b", 3)
	s.mustSum(at(12), "b", 2)
	s.holds("b", "6 prev 4 @12")
	s.put(at(13), "c", 3)
	s.mustSum(at(14), "c", 2)
	s.holds("c", "5 prev 3 @14")
	s.mustSum(at(14), "c", 3)
	s.holds("c", "6 prev 3 @14")
	s.mustSum(at(14), "c", 2)
	s.mustSum(at(15), "c", 3)
	s.holds("c", "8 prev 5 @15")
}

func stormOpaqueSequence(t *testing.T, s *state) {
	s.begin(at(1))
	s.value(at(1), "a", "absent")
	s.mustSum(at(1), "a", 1)
	s.value(at(1), "a", "1")
	s.mustSum(at(1), "a", 2)
	s.value(at(1), "a", "3")
	s.commit(at(1))
	s.value(at(0), "a", "3")
	require.True(t, s.begin(at(1)).Replay)
	s.value(at(1), "a", "absent")
	s.mustSum(at(1), "a", 2)
	s.commit(at(1))
	s.value(at(0), "a", "2")
	s.begin(at(2))
	s.value(at(2), "a", "2")
	s.mustSum(at(2), "a", 3)
	s.mustSum(at(2), "a", 1)
	s.commit(at(2))
	s.value(at(0), "a", "6")
}

// stormRemove is Storm's testMemoryMapStateRemove.
func stormRemove(t *testing.T, s *state) {
	s.begin(at(1))
	s.put(at(1), "a", 1)
	s.put(at(1), "b", 2)
	s.commit(at(1))
	s.begin(at(2))
	s.remove(at(2), "a")
	s.commit(at(2))
	s.holds("a", "absent", "b", "2 @1")
	s.begin(at(2))
	s.value(at(2), "a", "1")
	s.remove(at(2), "a")
	s.commit(at(2))
	s.holds("a", "absent", "b", "2 @1")
	s.begin(at(3))
	s.commit(at(3))
	s.holds("a", "absent", "b", "2 @1")
	require.False(t, s.stored("a"))
}

func replayAfterRemoval(t *testing.T, s *state) {
	s.put(at(1), "a", 10)
	s.begin(at(2))
	s.remove(at(2), "a")
	s.commit(at(2))
	s.restart()
	s.begin(at(2))
	s.mustSum(at(2), "a", 1)
	s.commit(at(2))
	s.holds("a", "11 prev 10 @2")
	s.mustSum(at(3), "other", 1)
	s.holds("a", "11 prev 10 @2")
}

func wholeReplayRestores(t *testing.T, s *state) {
	s.put(at(4), "a", 10)
	s.mustSum(whole(5), "a", 1, "b", 1)
	s.restart()
	res := s.mustSum(whole(5), "a", 3, "c", 1)
	require.Equal(t, mapstate.Result{Values: Vals(13, 1), Applied: 1, Replayed: 1, Restored: 1}, res)
	s.holds("a", "13 prev 10 @5", "b", "absent", "c", "1 @5")
	// Back to the first contents: c goes, b comes.
	res = s.mustSum(whole(5), "a", 1, "b", 1)
	require.Equal(t, 1, res.Restored)
	s.holds("a", "11 prev 10 @5", "b", "1 @5", "c", "absent")
	// A batch of nothing restores all.
	require.Equal(t, 2, s.mustSum(whole(5)).Restored)
	s.holds("a", "10 prev 10 @5", "b", "absent", "c", "absent")
	s.mustSum(at(6), "d", 1)
	require.False(t, s.stored("b"))
	require.False(t, s.stored("c"))
	// The parts of a batch are an earlier attempt as well.
	s.mustSum(at(7), "a", 1)
	s.mustSum(at(7), "d", 1)
	require.Equal(t, 1, s.mustSum(whole(7), "a", 2).Restored)
	s.holds("a", "12 prev 10 @7", "d", "1 prev 1 @7")
}

func tombstonesLast(t *testing.T, s *state) {
	s.put(at(1), "a", 10)
	s.put(at(1), "back", 10)
	s.remove(at(2), "a")
	s.remove(at(2), "back")
	require.True(t, s.stored("a"))
	s.restart()
	s.mustSum(at(2), "other", 1)
	require.True(t, s.stored("a"), "batch 2 may be replayed still")
	s.mustSum(mapstate.Envelope{TxID: 3, Partition: "q"}, "other", 1)
	require.True(t, s.stored("a"), "partition q cannot say that batch 2 is over for this one")
	s.mustSum(at(3), "back", 1)
	require.False(t, s.stored("a"))
	s.holds("back", "1 @3")
	s.mustSum(at(4), "z", 1)
	s.holds("back", "1 @3")
}

// unnumberedRemoval leaves a tombstone only as long as a partition may replay the
// batch that wrote the key, whoever removes it.
func unnumberedRemoval(t *testing.T, s *state) {
	s.put(at(1), "old", 10)
	s.mustSum(whole(2), "a", 1, "b", 1)
	s.remove(at(0), "old")
	require.False(t, s.stored("old"), "batch 1 cannot be replayed")
	s.remove(mapstate.Envelope{Partition: "another"}, "a")
	s.remove(at(0), "b")
	require.True(t, s.stored("a"))
	s.restart()
	s.mustSum(whole(2), "b", 2)
	require.True(t, s.stored("a"))
	s.mustSum(at(3), "c", 1)
	require.False(t, s.stored("a"))
	s.value(at(0), "b", "2")
}

func restoredAgain(t *testing.T, s *state) {
	s.put(at(1), "a", 10)
	s.mustSum(whole(2), "a", 1, "b", 1)
	s.mustSum(whole(2), "b", 1)
	s.holds("a", "10 prev 10 @2")
	s.mustSum(at(2), "a", 5)
	s.holds("a", "15 prev 10 @2")
	require.Equal(t, 1, s.mustSum(whole(2), "b", 1).Restored)
	s.holds("a", "10 prev 10 @2", "b", "1 @2")
}

func replayApplies(t *testing.T, s *state) {
	s.mustSum(at(1), "a", 1)
	res := s.mustSum(at(1), "a", 1)
	require.Equal(t, mapstate.Result{Values: Vals(2), Applied: 1}, res)
	s.remove(at(1), "a")
	require.False(t, s.stored("a"), "there is nothing to replay from, so no tombstone")
}
