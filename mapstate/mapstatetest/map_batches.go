package mapstatetest

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"tine/mapstate"
)

// The checks of TestMap that are about open batches.

func openBatchIsPrivate(t *testing.T, s *state) {
	s.mustSum(at(1), "a", 1)
	require.Equal(t, mapstate.Begun{Committed: 1}, s.begin(at(2)))
	require.Equal(t, Vals(2), s.mustSum(at(2), "a", 1).Values)
	s.value(at(0), "a", "1")
	s.value(at(2), "a", "2")
	s.mustSum(at(2), "b", 5, "b", 5)
	s.value(at(2), "b", "10")
	s.value(at(2), "never", "absent")
	s.value(at(0), "b", "absent")
	require.EqualValues(t, 1, s.Stats().Open)
	s.commit(mapstate.Envelope{TxID: 2, Offsets: []byte(`7`)})
	s.value(at(0), "a", "2")
	s.value(at(0), "b", "10")
	require.Equal(t, "7", string(s.Progress()[0].Offsets))
	require.Zero(t, s.Stats().Open)

	s.begin(at(3))
	s.mustSum(at(3), "a", 100)
	require.Equal(t, mapstate.Begun{Committed: 2}, s.begin(at(3)), "begun again it is dropped")
	s.mustSum(at(3), "a", 1)
	s.commit(at(3))
	s.value(at(0), "a", "3")
}

func droppedBatchRefuses(t *testing.T, s *state) {
	ctx := context.Background()
	s.begin(at(1))
	s.mustSum(at(1), "a", 1)
	require.NoError(t, s.Abort(ctx, at(1)))
	_, err := s.sum(at(1), "a", 1)
	require.ErrorIs(t, err, mapstate.ErrNoOpenBatch, "alone it would be half a batch")
	_, err = s.Commit(ctx, at(1))
	require.ErrorIs(t, err, mapstate.ErrNoOpenBatch)
	require.ErrorIs(t, s.Abort(ctx, at(1)), mapstate.ErrNoOpenBatch)
	s.value(at(1), "a", "absent")
	s.mustSum(whole(1), "a", 1) // all of it, in one request
	s.value(at(0), "a", "1")
	s.begin(at(5))
	s.mustSum(at(5), "a", 1)
	s.begin(at(6))
	require.NoError(t, s.Abort(ctx, at(6)))
	_, err = s.sum(at(5), "a", 1)
	if s.guarded() {
		require.ErrorIs(t, err, mapstate.ErrNoOpenBatch)
	}
	_, err = s.Begin(ctx, at(0))
	require.ErrorIs(t, err, mapstate.ErrInvalidTxID)
}

// lostBatch is a batch that a restart has taken away. What its writer still sends
// of it must not be taken for a batch of its own: its replay would skip it.
func lostBatch(t *testing.T, s *state) {
	s.begin(at(5))
	s.mustSum(at(5), "a", 1)
	if !s.restart() {
		return
	}
	_, err := s.sum(at(5), "a", 1)
	require.ErrorIs(t, err, mapstate.ErrNoOpenBatch)
	_, err = s.Commit(t.Context(), at(5))
	require.ErrorIs(t, err, mapstate.ErrNoOpenBatch)
	s.value(at(0), "a", "absent")
	s.mustSum(at(0), "other", 1)
	s.begin(at(5))
	s.mustSum(at(5), "a", 1)
	s.mustSum(at(5), "a", 1)
	s.commit(at(5))
	s.value(at(0), "a", "2")
	s.begin(at(6))
	s.restart()
	s.mustSum(at(7), "a", 1) // a writer that goes on with the next batch may
	s.value(at(0), "a", "3")

	// The epoch that the batch brought does not make its writer a new one.
	env := mapstate.Envelope{TxID: 8, Epoch: 3}
	s.begin(env)
	s.mustSum(env, "a", 1)
	s.restart()
	_, err = s.sum(env, "a", 10)
	require.ErrorIs(t, err, mapstate.ErrNoOpenBatch)
	s.begin(env)
	require.NoError(t, s.Abort(t.Context(), env))
	_, err = s.sum(env, "a", 10)
	require.ErrorIs(t, err, mapstate.ErrNoOpenBatch)
	env.Epoch = 4
	s.mustSum(env, "a", 10) // a new one may
	s.value(at(0), "a", "13")
}

// replacedBatch is begun again while its commit is on its way: only what was
// begun last may commit.
func replacedBatch(t *testing.T, s *state) {
	s.begin(at(1))
	s.mustSum(at(1), "a", 1)
	boom := errors.New("boom")
	s.fault.FailCommit(1, BeforeWrite, boom)
	_, err := s.Begin(t.Context(), at(2))
	require.ErrorIs(t, err, boom, "the mark could not be kept")
	_, err = s.Commit(t.Context(), at(1))
	require.NoError(t, err)
	s.begin(at(2))
	s.mustSum(at(2), "a", 10)
	s.begin(at(2))
	s.commit(at(2))
	s.value(at(0), "a", "1")
}

func commitAgain(t *testing.T, s *state) {
	ctx := context.Background()
	_, err := s.Commit(ctx, at(1))
	require.ErrorIs(t, err, mapstate.ErrNoOpenBatch)
	s.begin(at(1))
	s.mustSum(at(1), "a", 1)
	require.Equal(t, mapstate.Result{Applied: 1}, s.commit(at(1)))
	for range 2 {
		require.Equal(t, mapstate.Result{AlreadyCommitted: true}, s.commit(at(1)))
		s.value(at(0), "a", "1")
		s.restart()
	}
	s.mustSum(at(2), "a", 1)
	_, err = s.Commit(ctx, at(2))
	require.ErrorIs(t, err, mapstate.ErrNoOpenBatch, "a part of a batch is not the whole of it")
}

func failedRequestInBatch(t *testing.T, s *state) {
	s.put(at(1), "text", "no number")
	s.begin(at(2))
	s.mustSum(at(2), "a", 1)
	_, err := s.sum(at(2), "a", 10, "text", 1)
	require.ErrorIs(t, err, mapstate.ErrUpdaterType)
	s.value(at(2), "a", "1")
	s.mustSum(at(2), "a", 2)
	require.Equal(t, mapstate.Result{Applied: 2}, s.commit(at(2)))
	s.value(at(0), "a", "3")
}

func partitionsBuildOnEachOther(t *testing.T, s *state) {
	p, q := mapstate.Envelope{TxID: 1, Partition: "p"}, mapstate.Envelope{TxID: 1, Partition: "q"}
	s.begin(p)
	s.begin(q)
	s.mustSum(p, "a", 1)
	s.mustSum(q, "a", 10)
	s.commit(q)
	s.commit(p)
	s.value(at(0), "a", "11")
	s.mustSum(mapstate.Envelope{TxID: 1, Partition: "r"}, "a", 100)
	s.value(at(0), "a", "111")
}

// failedNeighbour is a commit that fails, but is there: a batch that has read before it
// builds upon it.
func failedNeighbour(t *testing.T, s *state) {
	env := mapstate.Envelope{TxID: 1, Partition: "p"}
	s.begin(env)
	s.mustSum(env, "a", 1)
	boom := errors.New("boom")
	s.fault.FailCommit(1, AfterWrite, boom)
	_, err := s.sum(at(0), "a", 10)
	require.ErrorIs(t, err, boom)
	s.commit(env)
	s.value(at(0), "a", "11")
}

func closedMapRefuses(t *testing.T, s *state) {
	ctx := context.Background()
	s.begin(at(1))
	s.Close(mapstate.ErrUnknownState)
	_, err := s.sum(at(1), "a", 1)
	require.ErrorIs(t, err, mapstate.ErrUnknownState)
	_, err = s.Read(ctx, at(0), Keys("a"))
	require.ErrorIs(t, err, mapstate.ErrUnknownState)
	_, err = s.Begin(ctx, at(2))
	require.ErrorIs(t, err, mapstate.ErrUnknownState)
	_, err = s.Commit(ctx, at(1))
	require.ErrorIs(t, err, mapstate.ErrUnknownState)
	require.ErrorIs(t, s.Abort(ctx, at(1)), mapstate.ErrUnknownState)
	require.ErrorIs(t, s.Scan(ctx, mapstate.Range{}, nil), mapstate.ErrUnknownState)
}
