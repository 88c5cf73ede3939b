package test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"tine/api"
	"tine/mapstate"
	"tine/verify/oracle"
)

// TestHistories sends random histories of one or two writers to a state of this
// process and to the oracle, which must answer the same at every step.
func TestHistories(t *testing.T) {
	for _, entries := range []int64{0, 2, 1_000_000} {
		for name, open := range map[string]func(*testing.T, int64) openTarget{"memory": onMemory, "pebble": onPebble} {
			t.Run(fmt.Sprintf("%s/cache-%d", name, entries), func(t *testing.T) {
				t.Parallel()
				checkHistories(t, open(t, entries))
			})
		}
	}
}

// TestHistoriesOnMemcached does it to a state whose records are on memcached.
func TestHistoriesOnMemcached(t *testing.T) {
	for _, entries := range []int64{0, 2, 1_000_000} {
		t.Run(fmt.Sprintf("cache-%d", entries), func(t *testing.T) {
			t.Parallel()
			checkHistories(t, onMemcached(t, entries))
		})
	}
}

// TestHistoriesOverHTTP does the same through the client and a whole server.
func TestHistoriesOverHTTP(t *testing.T) {
	for _, entries := range []int64{0, 2} {
		t.Run(fmt.Sprintf("cache-%d", entries), func(t *testing.T) {
			t.Parallel()
			checkHistories(t, onServer(t, api.StateSpec{Cache: &api.CacheSpec{Entries: entries}}))
		})
	}
}

func checkHistories(t *testing.T, open openTarget) {
	rapid.Check(t, func(t *rapid.T) {
		kind := rapid.SampledFrom(kindNames).Draw(t, "kind")
		h := &history{target: open(kind), oracle: oracle.New(kind), writers: drawWriters(t)}
		defer h.target.close()
		t.Repeat(map[string]func(*rapid.T){
			"update": h.update, "put": h.put, "remove": h.remove, "refused": h.refused,
			"snapshot": h.snapshot, "read": h.read,
			"begin": h.begin, "commit": h.commit, "abort": h.abort,
			"restart": h.restart, "": h.compare,
		})
	})
}

// history is a history under way: the state it happens to, what that must hold,
// and where its writers are.
type history struct {
	target  target
	oracle  *oracle.Map
	writers []*writer
}

// draw draws a writer and the envelope of an operation: of its open batch, a
// replay, the next batch, a stale one or none.
func (h *history) draw(t *rapid.T) (*writer, mapstate.Envelope) {
	w := rapid.SampledFrom(h.writers).Draw(t, "writer")
	if w.open != nil && rapid.IntRange(0, 3).Draw(t, "another batch") > 0 {
		env := *w.open
		env.Offsets = drawOffsets(t)
		return w, env
	}
	env := mapstate.Envelope{
		TxID:      w.drawTxID(t),
		Partition: w.progress.Partition,
		Epoch:     w.progress.Epoch,
		Offsets:   drawOffsets(t),
		Whole:     rapid.Bool().Draw(t, "whole"),
	}
	switch rapid.IntRange(0, 19).Draw(t, "epoch") {
	case 0:
		env.Epoch += 2
	case 1:
		env.Epoch = max(0, env.Epoch-1)
	}
	if w.isOpen(env.TxID) {
		env = *w.open
	}
	return w, env
}

// drawOperation draws for what is not a begin, commit or abort. A batch that was
// disturbed is left to its commit.
func (h *history) drawOperation(t *rapid.T) (*writer, mapstate.Envelope) {
	w, env := h.draw(t)
	if w.isOpen(env.TxID) && w.disturbed {
		t.Skip("what the batch has read is no longer there")
	}
	return w, env
}

// wrote notes that an operation of env was committed or staged.
func (h *history) wrote(w *writer, env mapstate.Envelope, keys []mapstate.Key) {
	if !w.isOpen(env.TxID) {
		h.committed(w, env, keys)
		return
	}
	for _, k := range keys {
		w.staged[k] = true
	}
	if env.Offsets != nil {
		w.open.Offsets = env.Offsets
	}
}

// committed notes a commit, and which open batches it disturbs.
func (h *history) committed(w *writer, env mapstate.Envelope, keys []mapstate.Key) {
	restores := env.Whole && env.TxID != mapstate.NoTxID && env.TxID == w.progress.TxID
	for _, other := range h.writers {
		overlaps := slices.ContainsFunc(keys, func(k mapstate.Key) bool { return other.staged[k] })
		other.disturbed = other.disturbed || overlaps || restores && len(other.staged) > 0
	}
	w.progress.Epoch = env.Epoch
	if env.TxID != mapstate.NoTxID {
		w.progress.TxID = env.TxID
	}
	if env.Offsets != nil {
		w.progress.Offsets = env.Offsets
	}
}

func (h *history) update(t *rapid.T) {
	w, env := h.drawOperation(t)
	keys := drawKeys(t)
	ops := make([]api.Op, len(keys))
	for i := range ops {
		ops[i] = drawOp(t)
	}
	h.updateKeys(t, w, env, keys, ops)
}

func (h *history) updateKeys(t *rapid.T, w *writer, env mapstate.Envelope, keys []mapstate.Key, ops []api.Op) {
	want, wantErr := h.oracle.Update(env, keys, bind(ops))
	got, gotErr := h.target.update(env, keys, ops)
	if h.same(t, want, got, wantErr, gotErr) {
		h.wrote(w, env, keys)
	}
}

// refused sends an update whose argument does not fit. It names one key: of two
// reasons to refuse a request either may be told.
func (h *history) refused(t *rapid.T) {
	w, env := h.drawOperation(t)
	keys := []mapstate.Key{rapid.SampledFrom(keyPool()).Draw(t, "key")}
	h.updateKeys(t, w, env, keys, []api.Op{{Name: "sum", Arg: mapstate.String("text")}})
}

func (h *history) put(t *rapid.T) {
	w, env := h.drawOperation(t)
	keys := drawKeys(t)
	values := make([]mapstate.Value, len(keys))
	for i := range values {
		values[i] = drawValue(t)
	}
	h.putKeys(t, w, env, keys, values)
}

func (h *history) putKeys(t *rapid.T, w *writer, env mapstate.Envelope, keys []mapstate.Key, values []mapstate.Value) {
	want, wantErr := h.oracle.Put(env, keys, values)
	got, gotErr := h.target.put(env, keys, values)
	if h.same(t, want, got, wantErr, gotErr) {
		h.wrote(w, env, keys)
	}
}

// snapshot updates or sets the value outside the map.
func (h *history) snapshot(t *rapid.T) {
	w, env := h.drawOperation(t)
	keys := []mapstate.Key{mapstate.SnapshotKey}
	if rapid.Bool().Draw(t, "set") {
		h.putKeys(t, w, env, keys, []mapstate.Value{drawValue(t)})
		return
	}
	h.updateKeys(t, w, env, keys, []api.Op{drawOp(t)})
}

func (h *history) remove(t *rapid.T) {
	w, env := h.drawOperation(t)
	keys := drawKeys(t)
	want, wantErr := h.oracle.Remove(env, keys)
	got, gotErr := h.target.remove(env, keys)
	if h.same(t, want, got, wantErr, gotErr) {
		h.wrote(w, env, keys)
	}
}

func (h *history) read(t *rapid.T) {
	w, env := h.drawOperation(t)
	if w.isOpen(env.TxID) && (env.TxID < w.progress.TxID || env.Epoch < w.progress.Epoch) {
		t.Skip("what a batch sees that was overtaken is open")
	}
	keys := drawKeys(t)
	want, wantErr := h.oracle.Read(env, keys)
	entries, gotErr := h.target.read(env, keys)
	if wantErr != nil || gotErr != nil {
		require.Equal(t, reason(wantErr), reason(gotErr))
		return
	}
	require.Equal(t, want, valuesOf(entries))
}

func valuesOf(entries []mapstate.Entry) []mapstate.Value {
	values := make([]mapstate.Value, len(entries))
	for i, e := range entries {
		values[i] = e.Value
	}
	return values
}

func (h *history) begin(t *rapid.T) {
	w, env := h.draw(t)
	if env.TxID == mapstate.NoTxID {
		t.Skip("an open batch has a txid")
	}
	env.Offsets, env.Whole = nil, true
	want, wantErr := h.oracle.Begin(env)
	got, gotErr := h.target.begin(env)
	require.Equal(t, reason(wantErr), reason(gotErr))
	require.Equal(t, want, got)
	if wantErr != nil {
		return
	}
	w.end(&env)
	w.progress.Epoch = env.Epoch
}

func (h *history) commit(t *rapid.T) {
	w, env := h.draw(t)
	if env.TxID == mapstate.NoTxID {
		t.Skip("an open batch has a txid")
	}
	zombie := drawZombie(t, &env)
	want, wantErr := h.oracle.Commit(env)
	got, gotErr := h.target.commit(env)
	open := w.isOpen(env.TxID) && !zombie
	if open && env.Offsets != nil {
		w.open.Offsets = env.Offsets
	}
	if !h.same(t, want, got, wantErr, gotErr) || !open {
		if open && (errors.Is(wantErr, mapstate.ErrStaleTx) || errors.Is(wantErr, mapstate.ErrFenced)) {
			w.end(nil) // overtaken
		}
		return
	}
	env, staged := *w.open, w.staged
	w.end(nil)
	h.committed(w, env, slices.Collect(maps.Keys(staged)))
}

func (h *history) abort(t *rapid.T) {
	w, env := h.draw(t)
	if env.TxID == mapstate.NoTxID {
		t.Skip("an open batch has a txid")
	}
	drawZombie(t, &env)
	wantErr := h.oracle.Abort(env)
	require.Equal(t, reason(wantErr), reason(h.target.abort(env)))
	if wantErr == nil {
		w.end(nil)
	}
}

// restart drops the open batches, but not that they were.
func (h *history) restart(t *rapid.T) {
	if rapid.IntRange(0, 3).Draw(t, "really") > 0 {
		t.Skip("restarts take long")
	}
	h.oracle.Restart()
	for _, w := range h.writers {
		w.end(nil)
	}
	h.target.restart()
}

// compare compares all that is there: values, previous values and txids, of
// tombstones too, and the progress of the writers.
func (h *history) compare(t *rapid.T) {
	held := h.oracle.Held()
	for _, keys := range [][]mapstate.Key{keyPool(), {mapstate.SnapshotKey}} {
		got, err := h.target.read(mapstate.Envelope{}, keys)
		require.NoError(t, err)
		want := make([]mapstate.Entry, len(keys))
		for i, k := range keys {
			want[i] = mapstate.Entry{Value: held[k].V, Prev: held[k].P, TxID: held[k].T}
		}
		require.Equal(t, want, got)
	}
	got, err := h.target.progress()
	require.NoError(t, err)
	want := h.oracle.Progress()
	require.Len(t, got, len(want))
	for i := range got {
		require.False(t, got[i].CommittedAt.IsZero())
		want[i].CommittedAt = got[i].CommittedAt
	}
	require.Equal(t, want, got)
}

// same compares answers, and reports whether the operation was carried out. In
// an answer that was sent, a removed key's value is a null.
func (h *history) same(t *rapid.T, want, got mapstate.Result, wantErr, gotErr error) bool {
	require.Equal(t, reason(wantErr), reason(gotErr))
	for _, res := range []*mapstate.Result{&want, &got} {
		for i, v := range res.Values {
			if v.IsNone() {
				res.Values[i] = mapstate.Null
			}
		}
		if len(res.Values) == 0 {
			res.Values = nil
		}
	}
	require.Equal(t, want, got)
	return wantErr == nil
}

// reason says why an operation was refused: the sentinel, and the key if it was one.
func reason(err error) string {
	if err == nil {
		return "none"
	}
	text := "unforeseen: " + err.Error()
	for _, sentinel := range []error{
		mapstate.ErrStaleTx, mapstate.ErrFenced, mapstate.ErrNoOpenBatch, mapstate.ErrUpdaterType,
	} {
		if errors.Is(err, sentinel) {
			text = sentinel.Error()
		}
	}
	var at *mapstate.KeyError
	if errors.As(err, &at) && at.Key != mapstate.SnapshotKey {
		text += fmt.Sprintf(" for %s at %d", at.Key, at.Index)
	}
	return text
}
