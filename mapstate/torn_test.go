package mapstate_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"tine/cache"
	"tine/mapstate"
	. "tine/mapstate/mapstatetest"
	"tine/opaque"
	"tine/transactional"
	"tine/verify/oracle"
)

// errTorn is what a store says that has written half.
var errTorn = errors.New("the store broke down half way")

// tornState is a state over a store that tears commits, with the oracle of one that
// does not.
type tornState struct {
	*mapstate.Map
	kind   mapstate.Kind
	store  *Fault
	oracle *oracle.Map
}

func newTornState(t require.TestingT, kind mapstate.Kind) *tornState {
	s := &tornState{kind: kind, store: NewFault(mapstate.NewMemory()), oracle: oracle.New(kind.Name())}
	s.reopen(t)
	return s
}

// reopen opens the state as the next start of a server would.
func (s *tornState) reopen(t require.TestingT) {
	if s.Map != nil {
		s.Close(mapstate.ErrShuttingDown)
	}
	var err error
	s.Map, err = mapstate.Open(context.Background(), s.kind, cache.New(s.store, cache.Options{Entries: 100}), mapstate.Options{Torn: true})
	require.NoError(t, err)
}

// request is one request of a partition's batch.
type request struct {
	keys     []mapstate.Key
	updaters []mapstate.ValueUpdater
}

func drawRequest(t *rapid.T) request {
	var r request
	for _, k := range rapid.SliceOfN(rapid.IntRange(0, 5), 0, 5).Draw(t, "keys") {
		r.keys = append(r.keys, Key(k))
		r.updaters = append(r.updaters, Update("sum", rapid.IntRange(1, 100).Draw(t, "arg")))
	}
	return r
}

// send sends a partition's batch until it is committed. Attempts before that are torn;
// where the kind allows it, each has other contents. Others may come in between.
func (s *tornState) send(t *rapid.T, env mapstate.Envelope, between func()) {
	r := drawRequest(t)
	for range rapid.IntRange(0, 3).Draw(t, "torn attempts") {
		s.store.FailCommit(rapid.IntRange(1, 2).Draw(t, "commit"), HalfWay, errTorn)
		if _, err := s.Update(context.Background(), env, r.keys, r.updaters); err == nil {
			s.store.FailCommit(0, HalfWay, nil)
			_, err = s.oracle.Update(env, r.keys, r.updaters)
			require.NoError(t, err)
		}
		if rapid.Bool().Draw(t, "restart") {
			s.reopen(t)
		}
		between()
		if s.kind.Replays() == mapstate.ReplayRestarts {
			r = drawRequest(t)
		}
	}
	_, err := s.Update(context.Background(), env, r.keys, r.updaters)
	require.NoError(t, err)
	_, err = s.oracle.Update(env, r.keys, r.updaters)
	require.NoError(t, err)
}

func (s *tornState) compare(t *rapid.T, at string) {
	keys := Keys(0, 1, 2, 3, 4, 5)
	entries, err := s.Read(context.Background(), mapstate.Envelope{}, keys)
	require.NoError(t, err)
	want, err := s.oracle.Read(mapstate.Envelope{}, keys)
	require.NoError(t, err)
	for i := range keys {
		require.Equal(t, want[i], entries[i].Value, "key %d %s", i, at)
	}
}

// A batch that was torn, once or more often, ends as if it had been attempted once:
// also where the attempt that is committed has other keys than the torn ones, and where
// other partitions have built upon what was torn.
func TestTornCommitsAreRepairedByTheReplay(t *testing.T) {
	for _, kind := range []mapstate.Kind{transactional.Kind{}, opaque.Kind{}} {
		t.Run(kind.Name(), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				s := newTornState(t, kind)
				defer func() { s.Close(mapstate.ErrShuttingDown) }()
				for x := range mapstate.TxID(5) {
					for _, p := range []string{"p", "q"} {
						env := mapstate.Envelope{TxID: x + 1, Partition: p, Whole: true}
						s.send(t, env, func() {
							if rapid.Bool().Draw(t, "another partition") {
								s.send(t, mapstate.Envelope{TxID: x + 1, Partition: "r", Whole: true}, func() {})
							}
						})
					}
					s.compare(t, fmt.Sprintf("after batch %d", x+1))
				}
			})
		})
	}
}

// What torn attempts noted is gone when the batch is over.
func TestTornCommitsLeaveNothingBehind(t *testing.T) {
	s := newTornState(t, opaque.Kind{})
	env := mapstate.Envelope{TxID: 1, Whole: true}
	for i := range 3 {
		s.store.FailCommit(2, HalfWay, errTorn)
		_, err := s.Update(t.Context(), env, Keys(i, i+1), Updates("sum", 1, 1))
		require.ErrorIs(t, err, errTorn)
	}
	count := func() int {
		meta, err := s.store.Meta(t.Context(), "")
		require.NoError(t, err)
		return len(meta)
	}
	require.Equal(t, 4, count(), "the progress and three notes")
	_, err := s.Update(t.Context(), env, Keys(9), Updates("sum", 1))
	require.NoError(t, err)
	require.Equal(t, 2, count(), "the progress and the keys of the batch")
	values, err := s.Read(t.Context(), mapstate.Envelope{}, Keys(0, 1, 2, 3, 9))
	require.NoError(t, err)
	for _, e := range values[:4] {
		require.True(t, e.Value.IsNone())
	}
	require.Equal(t, mapstate.Int(1), values[4].Value)
}
