package mapstatetest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"tine/mapstate"
)

// The checks of TestMap that every kind has.

func oneRequestSeesItself(t *testing.T, s *state) {
	res := s.mustSum(at(1), "a", 1, "b", 10, "a", 2, "a", 4)
	require.Equal(t, Vals(1, 10, 3, 7), res.Values)
	require.Equal(t, 4, res.Applied)
	s.value(at(0), "a", "7")
	s.value(at(0), "b", "10")
}

func refusedChangesNothing(t *testing.T, s *state) {
	s.mustSum(at(1), "a", 1, "b", 2)
	s.put(at(1), "text", "no number")
	for position := range 3 {
		pairs := []any{"a", 5, "b", 5, "new", 5}
		pairs[2*position] = "text"
		_, err := s.sum(at(2), pairs...)
		require.ErrorIs(t, err, mapstate.ErrUpdaterType)
		var at *mapstate.KeyError
		require.ErrorAs(t, err, &at)
		require.Equal(t, position, at.Index)
		require.Equal(t, Key("text"), at.Key)
	}
	s.put(at(1), "full", math.MaxInt64)
	_, err := s.sum(at(2), "a", 5, "full", 1)
	require.ErrorIs(t, err, mapstate.ErrUpdaterOverflow)
	s.value(at(0), "a", "1")
	s.value(at(0), "b", "2")
	s.value(at(0), "new", "absent")
	require.EqualValues(t, 1, s.Progress()[0].TxID)
	require.Zero(t, s.mustSum(at(2), "a", 5).Replayed, "txid 2 has never been applied")
	s.value(at(0), "a", "6")
}

func unnumberedKeepsTxID(t *testing.T, s *state) {
	s.mustSum(at(0), "fresh", 1)
	s.holds("fresh", "1")
	s.mustSum(at(4), "a", 10)
	s.mustSum(at(5), "a", 1)
	s.mustSum(at(0), "a", 100)
	s.value(at(0), "a", "111")
	switch s.kind.Replays() {
	case mapstate.ReplaySkips:
		s.holds("a", "111 @5")
		s.mustSum(at(5), "a", 1)
		s.holds("a", "111 @5")
	case mapstate.ReplayRestarts:
		s.holds("a", "111 prev 10 @5")
		s.mustSum(at(5), "a", 1)
		s.holds("a", "11 prev 10 @5")
	}
	s.mustSum(at(6), "a", 1, "fresh", 1)
	s.value(at(0), "fresh", "2")
	if !s.guarded() {
		return
	}
	s.remove(at(0), "a")
	s.holds("a", "absent")
	_, err := s.sum(at(5), "a", 1)
	require.ErrorIs(t, err, mapstate.ErrStaleTx)
	s.mustSum(at(7), "other", 1)
	require.False(t, s.stored("a"), "the tombstone is gone once a later batch has committed")
	s.remove(at(0), "fresh")
	s.mustSum(at(8), "other", 1)
	require.False(t, s.stored("fresh"))
}

func nullIsPresent(t *testing.T, s *state) {
	s.put(at(1), "null", nil)
	s.value(at(0), "null", "null")
	s.value(at(0), "never", "absent")
	s.remove(at(2), "null")
	s.value(at(0), "null", "absent")
	s.scansNothing()
	s.put(at(3), "null", nil)
	require.Equal(t, Vals(5), s.mustSum(at(4), "null", 5).Values, "an updater takes null for nothing")
}

func putAndRemoveInOrder(t *testing.T, s *state) {
	s.begin(at(1))
	s.put(at(1), "removed", 1)
	s.remove(at(1), "removed")
	s.remove(at(1), "put")
	s.put(at(1), "put", 2)
	s.put(at(1), "sum", 1)
	s.mustSum(at(1), "sum", 2)
	s.commit(at(1))
	for range 2 { // as it is, and again after a replay
		s.value(at(0), "removed", "absent")
		s.value(at(0), "put", "2")
		s.value(at(0), "sum", "3")
		s.begin(at(1))
		s.put(at(1), "sum", 1)
		s.mustSum(at(1), "sum", 2)
		s.put(at(1), "removed", 1)
		s.remove(at(1), "removed")
		s.remove(at(1), "put")
		s.put(at(1), "put", 2)
		s.commit(at(1))
	}
	s.mustSum(at(2), "other", 1)
	require.Equal(t, !s.guarded(), s.commitTwice("removed"))
}

// commitTwice reports whether a replay of batch 2 sums twice.
func (s *state) commitTwice(key string) bool {
	s.t.Helper()
	require.Equal(s.t, Vals(1), s.mustSum(at(3), key, 1).Values, "a removed key starts again")
	s.mustSum(at(3), key, 1)
	return s.entry(at(0), Key(key)) == "2"
}

func snapshotIsApart(t *testing.T, s *state) {
	ctx := context.Background()
	w := s.Writer("", 0)
	require.NoError(t, w.BeginCommit(ctx, 1))
	v, err := w.Update(ctx, Update("count", mapstate.Value{}))
	require.NoError(t, err)
	require.Equal(t, Val(1), v)
	require.NoError(t, w.Commit(ctx, 1))
	require.NoError(t, w.Set(ctx, Val("text")))
	v, err = w.Get(ctx)
	require.NoError(t, err)
	require.Equal(t, Val("text"), v)
	s.scansNothing()
	s.holds("", "absent", "$GLOBAL$", "absent")
}

func lowerTxID(t *testing.T, s *state) {
	s.mustSum(at(5), "a", 1)
	if !s.guarded() {
		s.mustSum(at(4), "a", 1)
		s.value(at(0), "a", "2")
		require.EqualValues(t, 4, s.Progress()[0].TxID)
		return
	}
	_, err := s.sum(at(4), "fresh", 1)
	require.ErrorIs(t, err, mapstate.ErrStaleTx, "the watermark holds for every key")
	var stale *mapstate.StaleTxError
	require.ErrorAs(t, err, &stale)
	require.Equal(t, mapstate.StaleTxError{Stored: 5, Got: 4}, *stale)
	_, err = s.Begin(context.Background(), at(4))
	require.ErrorIs(t, err, mapstate.ErrStaleTx)

	other := mapstate.Envelope{TxID: 4, Partition: "other"}
	_, err = s.sum(other, "fresh", 1, "a", 1)
	require.ErrorIs(t, err, mapstate.ErrStaleTx, "a key refuses a lower txid from any partition")
	var key *mapstate.KeyError
	require.ErrorAs(t, err, &key)
	require.Equal(t, 1, key.Index)
	s.value(at(0), "fresh", "absent")
	require.EqualValues(t, 2, s.Stats().Stale-1, "three refusals are counted")
	s.mustSum(other, "fresh", 1)
}

func txidsReachTheEnd(t *testing.T, s *state) {
	for i, x := range []mapstate.TxID{1, 1 << 31, 1<<53 + 1, math.MaxInt64} {
		s.mustSum(at(x), "a", 1)
		s.value(at(0), "a", fmt.Sprint(i+1))
		s.restart()
		if s.guarded() {
			s.mustSum(at(x), "a", 1)
			s.value(at(0), "a", fmt.Sprint(i+1))
			require.Equal(t, x, s.Progress()[0].TxID)
		}
	}
}

func lowerEpochIsFenced(t *testing.T, s *state) {
	s.begin(mapstate.Envelope{TxID: 1, Epoch: 1})
	s.mustSum(mapstate.Envelope{TxID: 1, Epoch: 1}, "a", 1)
	s.mustSum(mapstate.Envelope{TxID: 2, Epoch: 2}, "a", 10)
	_, err := s.Commit(context.Background(), at(1))
	require.ErrorIs(t, err, mapstate.ErrFenced, "a zombie between begin and commit")
	s.restart()
	for _, env := range []mapstate.Envelope{{TxID: 3, Epoch: 1}, {TxID: 3}, {Epoch: 1}} {
		_, err := s.sum(env, "a", 1)
		require.ErrorIs(t, err, mapstate.ErrFenced)
	}
	s.value(at(0), "a", "10")
	s.mustSum(mapstate.Envelope{TxID: 3, Epoch: 2}, "a", 1)
	s.mustSum(mapstate.Envelope{TxID: 3, Partition: "other"}, "b", 1)
}

// zombieInBatch is fenced off from the successor's begin on, whatever it sends.
func zombieInBatch(t *testing.T, s *state) {
	s.begin(mapstate.Envelope{TxID: 1, Epoch: 5})
	require.Empty(t, s.Progress(), "nothing is committed")
	s.mustSum(mapstate.Envelope{TxID: 1, Epoch: 5}, "a", 1)
	for _, epoch := range []int64{0, 4} {
		for x := range mapstate.TxID(4) {
			_, err := s.sum(mapstate.Envelope{TxID: x, Epoch: epoch, Whole: true}, "a", 100)
			require.ErrorIs(t, err, mapstate.ErrFenced)
		}
		_, err := s.Begin(t.Context(), mapstate.Envelope{TxID: 1, Epoch: epoch})
		require.ErrorIs(t, err, mapstate.ErrFenced)
	}
	zombie := mapstate.Envelope{TxID: 1, Epoch: 4}
	_, err := s.Commit(t.Context(), zombie)
	require.ErrorIs(t, err, mapstate.ErrFenced)
	require.ErrorIs(t, s.Abort(t.Context(), zombie), mapstate.ErrFenced)
	s.commit(at(1))
	s.value(at(0), "a", "1")
	require.EqualValues(t, 5, s.Progress()[0].Epoch)
	_, err = s.Commit(t.Context(), zombie)
	require.ErrorIs(t, err, mapstate.ErrFenced, "it was not this one's batch that was committed")
}

// laterWriter is one with a higher epoch, to whom a batch that is open does not belong.
func laterWriter(t *testing.T, s *state) {
	s.begin(mapstate.Envelope{TxID: 1, Epoch: 5})
	s.mustSum(mapstate.Envelope{TxID: 1, Epoch: 5}, "a", 1)
	later := mapstate.Envelope{TxID: 1, Epoch: 6}
	_, err := s.sum(later, "a", 10)
	require.ErrorIs(t, err, mapstate.ErrNoOpenBatch)
	_, err = s.Commit(t.Context(), later)
	require.ErrorIs(t, err, mapstate.ErrNoOpenBatch)
	s.begin(later)
	s.mustSum(later, "a", 10)
	s.commit(later)
	s.value(at(0), "a", "10")
}

// anotherBatch comes while one is open: it was replaced, or its writer has lost count.
func anotherBatch(t *testing.T, s *state) {
	s.begin(at(7))
	s.mustSum(at(7), "a", 1)
	s.begin(at(6))
	s.mustSum(at(6), "a", 10)
	_, err := s.sum(at(7), "a", 1)
	if !s.guarded() {
		require.NoError(t, err, "a txid is a label here")
		return
	}
	require.ErrorIs(t, err, mapstate.ErrNoOpenBatch)
	s.commit(at(6))
	s.value(at(0), "a", "10")
	s.begin(at(8))
	s.mustSum(whole(9), "a", 100)
	_, err = s.Commit(t.Context(), at(8))
	require.ErrorIs(t, err, mapstate.ErrStaleTx)
	s.value(at(0), "a", "110")
}

// fullDisk is a store that says that it has written nothing: the batch stays open
// and can be committed once there is space.
func fullDisk(t *testing.T, s *state) {
	s.begin(at(1))
	s.mustSum(at(1), "a", 1)
	s.fault.FailCommit(1, BeforeWrite, mapstate.ErrDiskFull)
	_, err := s.Commit(t.Context(), at(1))
	require.ErrorIs(t, err, mapstate.ErrDiskFull)
	s.value(at(1), "a", "1")
	s.value(at(0), "a", "absent")
	s.commit(at(1))
	s.value(at(0), "a", "1")
}

func noKeysMoveTheWatermark(t *testing.T, s *state) {
	res := s.mustSum(mapstate.Envelope{TxID: 7, Offsets: []byte(`{"p0":12}`)})
	require.Empty(t, res.Values)
	require.EqualValues(t, 7, s.Progress()[0].TxID)
	require.Equal(t, `{"p0":12}`, string(s.Progress()[0].Offsets))
	if s.guarded() {
		_, err := s.sum(at(6), "a", 1)
		require.ErrorIs(t, err, mapstate.ErrStaleTx)
	}
}

func progressSurvives(t *testing.T, s *state) {
	require.Empty(t, s.Progress())
	s.mustSum(mapstate.Envelope{TxID: 3, Partition: "p1", Epoch: 2, Offsets: []byte(`[1]`)}, "a", 1)
	s.mustSum(mapstate.Envelope{TxID: 4, Partition: "p0"}, "b", 1)
	s.mustSum(mapstate.Envelope{TxID: 5, Partition: "p1", Epoch: 2}, "a", 1)
	before := s.Progress()
	require.Len(t, before, 2)
	require.Equal(t, "p0", before[0].Partition)
	require.EqualValues(t, 5, before[1].TxID)
	require.EqualValues(t, 2, before[1].Epoch)
	require.Equal(t, `[1]`, string(before[1].Offsets), "offsets stay until others are given")
	require.False(t, before[1].CommittedAt.IsZero())
	if !s.restart() {
		return
	}
	after := s.Progress()
	for i := range after {
		require.WithinDuration(t, before[i].CommittedAt, after[i].CommittedAt, 2e6)
		before[i].CommittedAt = after[i].CommittedAt
	}
	require.Equal(t, before, after)
}

// failedStore is the fault of Storm's CachedMap: a write that fails must not be
// believed, and one that only seemed to fail must not be done twice.
func failedStore(t *testing.T, s *state) {
	boom := errors.New("boom")
	s.mustSum(at(1), "a", 1)
	total := 1
	for x, moment := range []Moment{BeforeWrite, AfterWrite, InWait} {
		env := at(mapstate.TxID(x + 2))
		s.fault.FailCommit(1, moment, boom)
		_, err := s.sum(env, "a", 10)
		require.ErrorIs(t, err, boom)
		s.mustSum(env, "a", 10)
		total += 10
		if !s.guarded() && moment != BeforeWrite {
			total += 10
		}
		s.value(at(0), "a", fmt.Sprint(total))
		s.restart()
		s.value(at(0), "a", fmt.Sprint(total))
	}
	s.fault.FailGet(1, boom)
	_, err := s.sum(at(9), "unread", 1)
	require.ErrorIs(t, err, boom, "a failed read is no absence")
	s.mustSum(at(9), "unread", 1)
}
