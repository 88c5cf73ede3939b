package oracle_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"tine/mapstate"
	. "tine/mapstate/mapstatetest"
	"tine/verify/oracle"
)

// script drives an oracle through an example.
type script struct {
	*testing.T
	*oracle.Map
}

func at(x mapstate.TxID) mapstate.Envelope { return mapstate.Envelope{TxID: x} }

func whole(x mapstate.TxID) mapstate.Envelope { return mapstate.Envelope{TxID: x, Whole: true} }

func (s script) put(x mapstate.TxID, key string, value any) {
	_, err := s.Put(at(x), Keys(key), Vals(value))
	require.NoError(s, err)
}

func (s script) sum(env mapstate.Envelope, key string, args ...any) {
	keys := make([]mapstate.Key, len(args))
	for i := range keys {
		keys[i] = Key(key)
	}
	_, err := s.Update(env, keys, Updates("sum", args...))
	require.NoError(s, err)
}

func (s script) reads(env mapstate.Envelope, key string, want any) {
	got, err := s.Read(env, Keys(key))
	require.NoError(s, err)
	require.Equal(s, Vals(want), got)
}

// holds checks a key's value, previous value and txid; no key of a record is held twice.
func (s script) holds(key string, v, p any, x mapstate.TxID) {
	h := s.Held()[Key(key)]
	require.Equal(s, fmt.Sprint(Val(v), Val(p), x), fmt.Sprint(h.V, h.P, h.T), key)
}

var none = mapstate.Value{}

func TestOracleKnowsTheExamples(t *testing.T) {
	for name, example := range map[string]struct {
		kind string
		run  func(s script)
	}{
		"ManManDog": {"transactional", func(s script) {
			s.put(1, "man", 3)
			s.put(2, "apple", 10)
			s.put(3, "dog", 4)
			res, err := s.Update(at(3), Keys("man", "man", "dog"), Updates("count", none, none, none))
			require.NoError(s, err)
			require.Equal(s, mapstate.Result{Values: Vals(4, 5, 4), Applied: 2, Replayed: 1}, res)
			s.holds("man", 5, none, 3)
			s.holds("dog", 4, none, 3)
			s.holds("apple", 10, none, 2)
		}},
		"AnOpaqueBatchMovesTheValueToPrev": {"opaque", func(s script) {
			s.put(1, "k", 1)
			s.put(2, "k", 4)
			s.sum(at(3), "k", 2)
			s.holds("k", 6, 4, 3)
		}},
		"AnOpaqueReplayStartsFromPrev": {"opaque", func(s script) {
			s.put(1, "k", 1)
			s.put(2, "k", 4)
			s.sum(at(2), "k", 2)
			s.holds("k", 3, 1, 2)
			s.reads(at(2), "k", 1)
			s.reads(at(3), "k", 3)
			_, err := s.Read(at(1), Keys("k"))
			require.ErrorIs(s, err, mapstate.ErrStaleTx)
		}},
		"TransactionalOpenBatches": {"transactional", func(s script) {
			for range 2 {
				s.open(1, func() { s.sum(at(1), "k", 1); s.sum(at(1), "k", 2) })
				s.holds("k", 3, none, 1)
			}
			s.open(2, func() { s.sum(at(2), "k", 3, 1) })
			s.holds("k", 7, none, 2)
		}},
		"OpaqueOpenBatches": {"opaque", func(s script) {
			s.open(1, func() {
				s.sum(at(1), "k", 1)
				s.reads(at(1), "k", 1)
				s.reads(at(0), "k", none)
				s.sum(at(1), "k", 2)
				s.reads(at(1), "k", 3)
			})
			s.holds("k", 3, none, 1)
			s.open(1, func() { s.reads(at(1), "k", none); s.sum(at(1), "k", 2) })
			s.holds("k", 2, none, 1)
			s.open(2, func() { s.reads(at(2), "k", 2); s.sum(at(2), "k", 3, 1) })
			s.holds("k", 6, 2, 2)
		}},
		"AReplayOfARemovalStartsFromPrev": {"opaque", func(s script) {
			s.put(1, "k", 10)
			s.open(2, func() { _, err := s.Remove(at(2), Keys("k")); require.NoError(s, err) })
			s.reads(at(0), "k", none)
			s.holds("k", none, 10, 2)
			s.open(2, func() { s.sum(at(2), "k", 1) })
			s.holds("k", 11, 10, 2)
		}},
		"AWholeReplayRestoresWhatItOmits": {"opaque", func(s script) {
			s.put(4, "a", 10)
			_, err := s.Update(whole(5), Keys("a", "b"), Updates("sum", 1, 1))
			require.NoError(s, err)
			res, err := s.Update(whole(5), Keys("a", "c"), Updates("sum", 3, 1))
			require.NoError(s, err)
			require.Equal(s, mapstate.Result{Values: Vals(13, 1), Applied: 1, Replayed: 1, Restored: 1}, res)
			s.reads(at(0), "a", 13)
			s.reads(at(0), "b", none)
			s.reads(at(0), "c", 1)
		}},
		"APutInAReplayIsBuiltUpon": {"transactional", func(s script) {
			for range 2 {
				s.open(1, func() { s.sum(at(1), "k", 1); s.put(1, "k", 5); s.sum(at(1), "k", 1) })
				s.holds("k", 6, none, 1)
			}
		}},
		"AnUnnumberedWriteLeavesTxIDAndPrev": {"opaque", func(s script) {
			s.put(1, "k", 1)
			s.put(2, "k", 2)
			s.sum(at(0), "k", 5)
			s.holds("k", 7, 1, 2)
			s.sum(at(2), "k", 1)
			s.holds("k", 2, 1, 2)
		}},
		"ARefusedRequestChangesNothing": {"transactional", func(s script) {
			s.put(2, "k", "text")
			before := s.Held()
			_, err := s.Update(at(3), Keys("l", "k"), Updates("sum", 1, 1))
			require.ErrorIs(s, err, mapstate.ErrUpdaterType)
			var at1 *mapstate.KeyError
			require.ErrorAs(s, err, &at1)
			require.Equal(s, 1, at1.Index)
			_, err = s.Put(at(1), nil, nil)
			require.ErrorIs(s, err, mapstate.ErrStaleTx)
			require.Equal(s, before, s.Held())
		}},
		"ALabelIsNeverStale": {"nontx", func(s script) {
			s.sum(at(2), "k", 1)
			s.sum(at(1), "k", 1)
			s.sum(at(2), "k", 1)
			s.holds("k", 3, none, 0)
		}},
		"ATombstoneGoesWithALaterBatch": {"transactional", func(s script) {
			s.put(1, "k", 1)
			_, err := s.Remove(at(2), Keys("k"))
			require.NoError(s, err)
			require.Contains(s, s.Held(), Key("k"))
			s.put(3, "l", 1)
			require.NotContains(s, s.Held(), Key("k"))
		}},
		"ACommitAgainIsCommittedAlready": {"opaque", func(s script) {
			s.open(1, func() { s.sum(at(1), "k", 1) })
			res, err := s.Commit(at(1))
			require.NoError(s, err)
			require.True(s, res.AlreadyCommitted)
			_, err = s.Commit(at(2))
			require.ErrorIs(s, err, mapstate.ErrNoOpenBatch)
		}},
		"ALowerEpochIsFenced": {"opaque", func(s script) {
			_, err := s.Put(mapstate.Envelope{TxID: 1, Epoch: 2}, Keys("k"), Vals(1))
			require.NoError(s, err)
			_, err = s.Put(mapstate.Envelope{TxID: 2, Epoch: 1}, Keys("k"), Vals(2))
			require.ErrorIs(s, err, mapstate.ErrFenced)
		}},
	} {
		t.Run(name, func(t *testing.T) { example.run(script{t, oracle.New(example.kind)}) })
	}
}

// open runs operations in an open batch and commits it.
func (s script) open(x mapstate.TxID, operations func()) {
	_, err := s.Begin(at(x))
	require.NoError(s, err)
	operations()
	_, err = s.Commit(at(x))
	require.NoError(s, err)
}

// A Map over memory and the oracle go through one random history of one writer,
// with replays, whole replays, refusals and open batches, and answer the same.
func TestMapAnswersAsTheOracle(t *testing.T) {
	for _, kind := range kinds() {
		t.Run(kind.Name(), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				m, err := mapstate.Open(context.Background(), kind, mapstate.NewMemory(), mapstate.Options{})
				require.NoError(t, err)
				defer m.Close(mapstate.ErrShuttingDown)
				h := history{T: t, m: m, oracle: oracle.New(kind.Name()), last: 1}
				t.Repeat(map[string]func(*rapid.T){
					"update": h.update, "put": h.put, "remove": h.remove, "batch": h.batch, "": h.compare,
				})
			})
		})
	}
}

type history struct {
	*rapid.T
	m      *mapstate.Map
	oracle *oracle.Map
	last   mapstate.TxID
}

// envelope draws a txid that is mostly that of the last batch or the next.
func (h *history) envelope(t *rapid.T) mapstate.Envelope {
	x := h.last + mapstate.TxID(rapid.SampledFrom([]int{0, 0, 0, 1, 1, -1}).Draw(t, "step"))
	if rapid.IntRange(0, 5).Draw(t, "unnumbered") == 0 {
		x = mapstate.NoTxID
	}
	h.last = max(h.last, x)
	return mapstate.Envelope{TxID: x, Whole: rapid.Bool().Draw(t, "whole")}
}

func drawKeys(t *rapid.T) []mapstate.Key {
	return rapid.SliceOfN(rapid.SampledFrom(Keys("a", "b", "c", "d")), 0, 4).Draw(t, "keys")
}

func same(t *rapid.T, got, want any, gotErr, wantErr error) {
	for _, sentinel := range []error{mapstate.ErrStaleTx, mapstate.ErrUpdaterType, mapstate.ErrNoOpenBatch} {
		if wantErr != nil && errors.Is(wantErr, sentinel) {
			require.ErrorIs(t, gotErr, sentinel)
			return
		}
	}
	require.NoError(t, wantErr)
	require.NoError(t, gotErr)
	require.Equal(t, want, got)
}

func (h *history) update(t *rapid.T) { h.updateIn(t, h.envelope(t)) }

func (h *history) updateIn(t *rapid.T, env mapstate.Envelope) {
	keys := drawKeys(t)
	updaters := make([]mapstate.ValueUpdater, len(keys))
	for i := range updaters {
		arg := rapid.SampledFrom(Vals(1, 2, 3, 10, "not a number")).Draw(t, "arg")
		updaters[i] = Update("sum", arg)
	}
	want, wantErr := h.oracle.Update(env, keys, updaters)
	got, gotErr := h.m.Update(context.Background(), env, keys, updaters)
	same(t, got, want, gotErr, wantErr)
}

func (h *history) put(t *rapid.T) { h.putIn(t, h.envelope(t)) }

func (h *history) putIn(t *rapid.T, env mapstate.Envelope) {
	keys := drawKeys(t)
	values := make([]mapstate.Value, len(keys))
	for i := range values {
		values[i] = rapid.SampledFrom(Vals(0, 100, 0.5, nil)).Draw(t, "value")
	}
	want, wantErr := h.oracle.Put(env, keys, values)
	got, gotErr := h.m.Put(context.Background(), env, keys, values)
	same(t, got, want, gotErr, wantErr)
}

func (h *history) remove(t *rapid.T) { h.removeIn(t, h.envelope(t)) }

func (h *history) removeIn(t *rapid.T, env mapstate.Envelope) {
	keys := drawKeys(t)
	want, wantErr := h.oracle.Remove(env, keys)
	got, gotErr := h.m.Remove(context.Background(), env, keys)
	same(t, got, want, gotErr, wantErr)
}

// batch opens a batch, sometimes drops it for another attempt, and commits it
// twice, sometimes after an un-numbered write has come between.
func (h *history) batch(t *rapid.T) {
	env := h.envelope(t)
	if env.TxID == mapstate.NoTxID || !h.begin(t, env) {
		return
	}
	requests := []func(*rapid.T, mapstate.Envelope){h.updateIn, h.putIn, h.removeIn}
	for range rapid.IntRange(0, 5).Draw(t, "requests") {
		if rapid.IntRange(0, 9).Draw(t, "again") == 0 {
			h.begin(t, env)
		}
		requests[rapid.IntRange(0, 2).Draw(t, "request")](t, env)
		h.compareUnder(t, env)
		h.compareUnder(t, mapstate.Envelope{})
	}
	if rapid.Bool().Draw(t, "between") {
		requests[rapid.IntRange(0, 2).Draw(t, "request")](t, mapstate.Envelope{})
	}
	for range 2 {
		want, wantErr := h.oracle.Commit(env)
		got, gotErr := h.m.Commit(context.Background(), env)
		got.Values = nil // of requests, not of commits
		same(t, got, want, gotErr, wantErr)
		if wantErr != nil {
			h.last += 2 // the oracle does not say what comes after an abort
			require.NoError(t, h.oracle.Abort(env))
			require.NoError(t, h.m.Abort(context.Background(), env))
			return
		}
	}
}

func (h *history) begin(t *rapid.T, env mapstate.Envelope) bool {
	want, wantErr := h.oracle.Begin(env)
	got, gotErr := h.m.Begin(context.Background(), env)
	same(t, got, want, gotErr, wantErr)
	return wantErr == nil
}

func (h *history) compare(t *rapid.T) {
	h.compareUnder(t, mapstate.Envelope{})
	h.compareUnder(t, mapstate.Envelope{TxID: h.last})
}

func (h *history) compareUnder(t *rapid.T, env mapstate.Envelope) {
	keys := Keys("a", "b", "c", "d", "e")
	want, wantErr := h.oracle.Read(env, keys)
	entries, gotErr := h.m.Read(context.Background(), env, keys)
	got := make([]mapstate.Value, len(entries))
	for i, e := range entries {
		got[i] = e.Value
	}
	same(t, got, want, gotErr, wantErr)
}
