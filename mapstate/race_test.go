package mapstate_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"tine/mapstate"
	. "tine/mapstate/mapstatetest"
	"tine/opaque"
	"tine/transactional"
)

// slowStore is a store whose next commit can be held, in the write or in the wait
// for the disk.
type slowStore struct {
	mapstate.BackingMap
	commit, wait *hold
}

// hold keeps one call back: arrived is closed when it comes, it goes on when release is.
type hold struct{ arrived, release chan struct{} }

func newHold() *hold { return &hold{make(chan struct{}), make(chan struct{})} }

func (h *hold) pass() {
	if h != nil {
		close(h.arrived)
		<-h.release
	}
}

func (s *slowStore) Commit(ctx context.Context, w mapstate.Writes) (mapstate.Durable, error) {
	commit, wait := s.commit, s.wait
	s.commit, s.wait = nil, nil
	commit.pass()
	d, err := s.BackingMap.Commit(ctx, w)
	if wait == nil || err != nil {
		return d, err
	}
	return heldWait{d, wait}, nil
}

type heldWait struct {
	mapstate.Durable
	hold *hold
}

func (d heldWait) Wait() error {
	d.hold.pass()
	return d.Durable.Wait()
}

func open(t *testing.T, kind mapstate.Kind, opts mapstate.Options) (*mapstate.Map, *slowStore) {
	store := &slowStore{BackingMap: mapstate.NewMemory()}
	m, err := mapstate.Open(t.Context(), kind, store, opts)
	require.NoError(t, err)
	t.Cleanup(func() { m.Close(mapstate.ErrShuttingDown) })
	return m, store
}

func add(t *testing.T, m *mapstate.Map, env mapstate.Envelope, n int) error {
	_, err := m.Update(t.Context(), env, Keys("a"), Updates("sum", n))
	return err
}

func requireValue(t *testing.T, m *mapstate.Map, want int) {
	t.Helper()
	got, err := m.Read(t.Context(), mapstate.Envelope{}, Keys("a"))
	require.NoError(t, err)
	require.Equal(t, Val(want), got[0].Value)
}

func TestABatchBegunAgainDuringItsCommitIsAReplay(t *testing.T) {
	for _, kind := range []mapstate.Kind{opaque.Kind{}, transactional.Kind{}} {
		m, store := open(t, kind, mapstate.Options{})
		env := mapstate.Envelope{TxID: 5}
		_, err := m.Begin(t.Context(), env)
		require.NoError(t, err)
		require.NoError(t, add(t, m, env, 1))
		held := newHold()
		store.commit = held
		committed := make(chan error, 1)
		go func() {
			_, err := m.Commit(t.Context(), env)
			committed <- err
		}()
		<-held.arrived
		begun := make(chan mapstate.Begun, 1)
		go func() {
			b, err := m.Begin(t.Context(), env)
			require.NoError(t, err)
			begun <- b
		}()
		close(held.release)
		require.NoError(t, <-committed)
		require.Equal(t, mapstate.Begun{Committed: 5, Replay: true}, <-begun)
		require.NoError(t, add(t, m, env, 1))
		_, err = m.Commit(t.Context(), env)
		require.NoError(t, err)
		requireValue(t, m, 1)
	}
}

func TestABatchWhoseTxIDIsCommittedMeanwhileIsAReplay(t *testing.T) {
	m, _ := open(t, opaque.Kind{}, mapstate.Options{})
	env := mapstate.Envelope{TxID: 5}
	other := mapstate.Envelope{TxID: 5, Partition: "other"}
	for _, e := range []mapstate.Envelope{env, other} {
		_, err := m.Begin(t.Context(), e)
		require.NoError(t, err)
	}
	require.NoError(t, add(t, m, env, 1))
	_, err := m.Commit(t.Context(), env)
	require.NoError(t, err)
	_, err = m.Begin(t.Context(), env)
	require.NoError(t, err)
	require.NoError(t, add(t, m, env, 1))
	_, err = m.Update(t.Context(), env, Keys("a"), Updates("concat", "text"))
	require.ErrorIs(t, err, mapstate.ErrUpdaterType) // what is staged has to be computed again
	_, err = m.Commit(t.Context(), env)
	require.NoError(t, err)
	requireValue(t, m, 1)
}

func TestAbortDuringTheCommitDoesNotDenyIt(t *testing.T) {
	m, store := open(t, opaque.Kind{}, mapstate.Options{})
	env := mapstate.Envelope{TxID: 1}
	_, err := m.Begin(t.Context(), env)
	require.NoError(t, err)
	require.NoError(t, add(t, m, env, 1))
	held := newHold()
	store.wait = held
	committed := make(chan error, 1)
	go func() {
		_, err := m.Commit(t.Context(), env)
		committed <- err
	}()
	<-held.arrived
	aborted := make(chan error, 1)
	go func() { aborted <- m.Abort(t.Context(), env) }()
	close(held.release)
	require.NoError(t, <-committed)
	require.ErrorIs(t, <-aborted, mapstate.ErrNoOpenBatch, "it was committed")
	requireValue(t, m, 1)
}

func TestProgressIsToldOnceItIsOnDisk(t *testing.T) {
	m, store := open(t, opaque.Kind{}, mapstate.Options{})
	held := newHold()
	store.wait = held
	done := make(chan error, 1)
	go func() { done <- add(t, m, mapstate.Envelope{TxID: 1}, 1) }()
	<-held.arrived
	requireValue(t, m, 1) // readers see it before
	require.Empty(t, m.Progress(), "a writer must not resume from what a crash may take away")
	close(held.release)
	require.NoError(t, <-done)
	require.EqualValues(t, 1, m.Progress()[0].TxID)
}

func TestACommitThatIsNotOnDiskIsNotAlreadyCommitted(t *testing.T) {
	fault := NewFault(mapstate.NewMemory())
	m, err := mapstate.Open(t.Context(), opaque.Kind{}, fault, mapstate.Options{})
	require.NoError(t, err)
	defer m.Close(mapstate.ErrShuttingDown)
	env := mapstate.Envelope{TxID: 5}
	_, err = m.Begin(t.Context(), env)
	require.NoError(t, err)
	require.NoError(t, add(t, m, env, 1))
	boom := errors.New("boom")
	fault.FailCommit(1, InWait, boom)
	for range 2 {
		_, err = m.Commit(t.Context(), env)
		require.ErrorIs(t, err, boom)
		require.Empty(t, m.Progress())
	}
}

func TestAReplayThatWasDroppedIsNotAlreadyCommitted(t *testing.T) {
	m, _ := open(t, opaque.Kind{}, mapstate.Options{})
	env := mapstate.Envelope{TxID: 5}
	for range 2 {
		_, err := m.Begin(t.Context(), env)
		require.NoError(t, err)
		require.NoError(t, add(t, m, env, 1))
		_, err = m.Commit(t.Context(), env)
		require.NoError(t, err)
	}
	_, err := m.Begin(t.Context(), env)
	require.NoError(t, err)
	require.NoError(t, add(t, m, env, 2))
	require.NoError(t, m.Abort(t.Context(), env))
	_, err = m.Commit(t.Context(), env)
	require.ErrorIs(t, err, mapstate.ErrNoOpenBatch, "its other contents were thrown away")
}

func TestALowerEpochCannotTakeAnOpenBatchAway(t *testing.T) {
	m, _ := open(t, opaque.Kind{}, mapstate.Options{})
	leader := mapstate.Envelope{TxID: 1, Epoch: 2}
	_, err := m.Begin(t.Context(), leader)
	require.NoError(t, err)
	require.NoError(t, add(t, m, leader, 1))
	_, err = m.Begin(t.Context(), mapstate.Envelope{TxID: 1, Epoch: 1})
	require.ErrorIs(t, err, mapstate.ErrFenced)
	_, err = m.Commit(t.Context(), leader)
	require.NoError(t, err)
	requireValue(t, m, 1)
}

func TestThoseWhoWaitForAStateAreBounded(t *testing.T) {
	m, store := open(t, opaque.Kind{}, mapstate.Options{MaxWaiting: 1})
	held := newHold()
	store.commit = held
	done := make(chan error, 2)
	for range 2 { // one at work, one waiting
		go func() { done <- add(t, m, mapstate.Envelope{}, 1) }()
	}
	<-held.arrived
	require.Eventually(t, func() bool { return m.Stats().Waiting == 1 }, time.Minute, time.Millisecond)
	require.ErrorIs(t, add(t, m, mapstate.Envelope{}, 1), mapstate.ErrOverloaded)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	close(held.release)
	require.NoError(t, <-done)
	require.NoError(t, <-done)
	_, err := m.Update(ctx, mapstate.Envelope{}, Keys("a"), Updates("sum", 1))
	require.ErrorIs(t, err, context.Canceled)
	requireValue(t, m, 2)
}

func TestAnIdleBatchIsDroppedAndABusyOneIsNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, _ := open(t, opaque.Kind{}, mapstate.Options{BatchIdle: time.Minute})
		env := mapstate.Envelope{TxID: 1}
		_, err := m.Begin(t.Context(), env)
		require.NoError(t, err)
		for range 5 {
			time.Sleep(59 * time.Second)
			require.NoError(t, add(t, m, env, 1), "it is in use")
		}
		time.Sleep(61 * time.Second)
		require.Zero(t, m.Stats().Open)
		require.ErrorIs(t, add(t, m, env, 1), mapstate.ErrNoOpenBatch)
	})
}

func TestAWriterWithoutABatchWritesNothing(t *testing.T) {
	m, _ := open(t, opaque.Kind{}, mapstate.Options{})
	require.NoError(t, add(t, m, mapstate.Envelope{TxID: 5}, 1))
	w := m.Writer("", 0)
	require.ErrorIs(t, w.BeginCommit(t.Context(), 4), mapstate.ErrStaleTx)
	require.ErrorIs(t, w.MultiPut(t.Context(), Keys("a"), Vals(100)), mapstate.ErrStaleTx)
	_, err := w.MultiUpdate(t.Context(), Keys("a"), Updates("sum", 100))
	require.ErrorIs(t, err, mapstate.ErrStaleTx)
	require.NoError(t, w.BeginCommit(t.Context(), 6))
	_, err = w.Update(t.Context(), Update("sum", 1))
	require.NoError(t, err)
	require.NoError(t, w.Commit(t.Context(), 6))
	requireValue(t, m, 1)
}

// syncs notes what each Commit was asked for.
type syncs struct {
	mapstate.BackingMap
	asked []bool
}

func (s *syncs) Commit(ctx context.Context, w mapstate.Writes) (mapstate.Durable, error) {
	s.asked = append(s.asked, w.Sync)
	return s.BackingMap.Commit(ctx, w)
}

// After a crash, an operation of a batch that was begun must not pass for a batch of
// its own, nor an overtaken writer for the last: also where commits may be lost.
func TestABeginIsOnDiskWhateverTheDurability(t *testing.T) {
	store := &syncs{BackingMap: mapstate.NewMemory()}
	m, err := mapstate.Open(t.Context(), transactional.Kind{}, store, mapstate.Options{Interval: true})
	require.NoError(t, err)
	defer m.Close(mapstate.ErrShuttingDown)
	env := mapstate.Envelope{TxID: 1, Epoch: 1}
	_, err = m.Begin(t.Context(), env)
	require.NoError(t, err)
	require.NoError(t, add(t, m, env, 1))
	_, err = m.Commit(t.Context(), env)
	require.NoError(t, err)
	require.Equal(t, []bool{true, false}, store.asked)
}
