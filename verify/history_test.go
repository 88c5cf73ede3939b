package verify

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tine/api"
	"tine/mapstate"
	"tine/verify/oracle"
)

// generated returns the first steps of a history.
func generated(kind string, seed uint64, n int) []Step {
	g := newGenerator(rand.New(rand.NewPCG(seed, 0)), History{Spec: api.StateSpec{Kind: kind}}, 3)
	steps := make([]Step, n)
	for i := range steps {
		steps[i] = g.next()
		if i%500 == 499 {
			g.restarted()
		}
	}
	return steps
}

func TestASeedAlwaysMakesTheSameSteps(t *testing.T) {
	require.Equal(t, generated("opaque", 7, 2000), generated("opaque", 7, 2000))
	require.NotEqual(t, generated("opaque", 7, 2000), generated("opaque", 8, 2000))
}

func TestAHistoryHasEveryVerbFaultAndRole(t *testing.T) {
	steps := generated("opaque", 1, 5000)
	has := func(what any, is func(Step) bool) { require.True(t, slices.ContainsFunc(steps, is), "%v", what) }
	for _, v := range []Verb{MultiUpdate, MultiPut, MultiRemove, MultiGet, BeginCommit, Commit, Abort, Idle, Check} {
		has(v, func(s Step) bool { return s.Verb == v })
	}
	for _, f := range []Fault{Lost, Cut} {
		has(f, func(s Step) bool { return s.Fault == f })
	}
	for _, r := range []Role{FirstTry, Replay, Changed, Unnumbered, Stale, Zombie, Takeover} {
		has(r, func(s Step) bool { return s.Role == r })
	}
	has("whole", func(s Step) bool { return s.Env.Whole })
	has("the snapshot", func(s Step) bool { return s.isSnapshot() })
	has("no keys", func(s Step) bool { return s.Verb == MultiUpdate && len(s.Keys) == 0 })
	has("several partitions under one txid", func(s Step) bool {
		return slices.ContainsFunc(steps, func(other Step) bool {
			return s.Env.TxID != 0 && s.Env.TxID == other.Env.TxID && s.Env.Partition != other.Env.Partition
		})
	})
}

func TestAReplayOnATransactionalStateHasTheSameContents(t *testing.T) {
	for _, s := range generated("transactional", 1, 5000) {
		require.NotEqual(t, Changed, s.Role)
	}
}

func TestEveryWriteHasOffsetsOfItsOwn(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range generated("opaque", 1, 5000) {
		if s.Env.Offsets != nil {
			require.False(t, seen[string(s.Env.Offsets)], "%s", s.Env.Offsets)
			seen[string(s.Env.Offsets)] = true
		}
		require.Equal(t, !s.Verb.writes() || s.Verb == BeginCommit || s.Verb == Abort, s.Env.Offsets == nil)
	}
}

// put is a write of one key, as the n-th batch.
func put(n int64) Step {
	return Step{
		Verb: MultiPut, Keys: []mapstate.Key{tuple(mapstate.String("k"))}, Values: []mapstate.Value{mapstate.Int(n)},
		Env: mapstate.Envelope{TxID: mapstate.TxID(n), Offsets: strconv.AppendInt(nil, n, 10)},
	}
}

func TestShrinkingLeavesWhatIsNeeded(t *testing.T) {
	var h History
	for n := range int64(200) {
		s := put(n + 1)
		for len(s.Keys) < 4 {
			s.Keys, s.Values = append(s.Keys, tuple(mapstate.Int(int64(len(s.Keys))))), append(s.Values, mapstate.Null)
		}
		s.Fault = Lost
		h.Steps = append(h.Steps, s)
	}
	wanted := tuple(mapstate.Int(2))
	tries := 0
	s := &shrinker{best: h, until: time.Now().Add(time.Hour), try: func(_ context.Context, h History) (History, *Difference) {
		tries++
		at := func(x mapstate.TxID) int {
			return slices.IndexFunc(h.Steps, func(s Step) bool { return s.Env.TxID == x && slices.Contains(s.Keys, wanted) })
		}
		if i := at(150); i < 0 || at(42) < 0 || h.Steps[i].Fault != Lost {
			return h, nil
		}
		return h, &Difference{}
	}}
	s.shrink(t.Context())
	require.Len(t, s.best.Steps, 2)
	for i, x := range []mapstate.TxID{42, 150} {
		require.Equal(t, x, s.best.Steps[i].Env.TxID)
		require.Equal(t, []mapstate.Key{wanted}, s.best.Steps[i].Keys)
		require.Equal(t, []mapstate.Value{mapstate.Null}, s.best.Steps[i].Values)
	}
	require.Equal(t, []Fault{NoFault, Lost}, []Fault{s.best.Steps[0].Fault, s.best.Steps[1].Fault})
	require.Less(t, tries, 300)
}

func TestShrinkingEndsWhenTheTimeIsUp(t *testing.T) {
	h := History{Steps: []Step{put(1), put(2)}}
	s := &shrinker{best: h, until: time.Now().Add(-time.Hour), try: func(context.Context, History) (History, *Difference) {
		require.Fail(t, "tried")
		return h, nil
	}}
	s.shrink(t.Context())
	require.Equal(t, h, s.best)
}

// holds keeps what has committed so many batches, and reports whether there is any.
func (b *belief) holds(n int64) bool {
	return b.keep(func(o *oracle.Map) *Difference {
		if p := o.Progress(); n == 0 && len(p) == 0 || len(p) == 1 && p[0].TxID == mapstate.TxID(n) {
			return nil
		}
		return &Difference{}
	}) == nil
}

// believed returns a belief after five batches that were answered a second apart.
func believed(t *testing.T, durability string) (*belief, time.Time) {
	b := newBelief(History{Spec: api.StateSpec{Kind: "opaque", Durability: durability}})
	at := time.Now()
	for n := range int64(5) {
		at = at.Add(time.Second)
		_, ok := b.answered(put(n+1), answer{res: mapstate.Result{Applied: 1}}, at)
		require.True(t, ok)
	}
	return b, at
}

func TestAKillTakesNothingFromASyncState(t *testing.T) {
	b, at := believed(t, "sync")
	b.restarted(true, at)
	require.False(t, b.holds(4))
	require.True(t, b.holds(5))
}

func TestAKillMayTakeTheLastBatchesOfAnIntervalState(t *testing.T) {
	for n, want := range []bool{false, false, true, true, true, true} { // the older ones have long been on disk
		b, at := believed(t, "interval")
		b.restarted(true, at)
		require.Equal(t, want, b.holds(int64(n)), "%d batches are left", n)
	}
	b, at := believed(t, "interval")
	b.restarted(false, at)
	require.False(t, b.holds(4), "a stop takes nothing")
}

func TestALostAnswerIsInDoubtUntilSomethingIsSeen(t *testing.T) {
	for n := range int64(2) {
		b, at := believed(t, "sync")
		b.doubted(put(6), at)
		require.Len(t, b.now, 2)
		require.True(t, b.holds(5+n))
		require.Len(t, b.now, 1)
		want, ok := b.answered(put(6), answer{res: mapstate.Result{Replayed: int(n), Applied: 1 - int(n)}}, at)
		require.True(t, ok, "%s", want)
	}
}

func TestAnAnswerThatFitsNothingIsADifference(t *testing.T) {
	b, at := believed(t, "sync")
	want, ok := b.answered(put(6), answer{res: mapstate.Result{Replayed: 1}}, at)
	require.False(t, ok)
	require.Equal(t, "applied 1, replayed 0, restored 0", want.String())
	_, ok = b.answered(put(4), answer{err: mapstate.ErrFenced}, at)
	require.False(t, ok)
	_, ok = b.answered(put(4), answer{err: mapstate.ErrStaleTx}, at)
	require.True(t, ok)
}

func TestAReplayFileHasEveryCallAndItsStatus(t *testing.T) {
	cut := put(2)
	cut.Fault = Cut
	h := History{Spec: api.StateSpec{Kind: "opaque"}, Steps: []Step{put(1), {Verb: Kill}, cut, {Verb: Check}, put(1)}}
	file, err := h.replayFile("s")
	require.NoError(t, err)
	type line struct {
		Method, Path string
		Body         json.RawMessage
		ExpectStatus int
	}
	var lines []line
	for scan := bufio.NewScanner(bytes.NewReader(file)); scan.Scan(); {
		var l line
		require.NoError(t, json.Unmarshal(scan.Bytes(), &l))
		lines = append(lines, l)
	}
	statuses := []int{}
	for _, l := range lines {
		statuses = append(statuses, l.ExpectStatus)
	}
	// Created, put, put, the fence behind what was cut, the stale put, and three reads.
	require.Equal(t, []int{201, 200, 200, 200, 409, 200, 200, 200}, statuses)
	require.Equal(t, http.MethodPut, lines[0].Method)
	require.JSONEq(t, `{"kind":"opaque"}`, string(lines[0].Body))
	require.Equal(t, "/v1/states/s/multiPut", lines[1].Path)
	require.JSONEq(t, `{"txid":1,"keys":[["k"]],"values":[1],"offsets":1}`, string(lines[1].Body))
	require.JSONEq(t, `{"epoch":1,"keys":[],"updaters":[]}`, string(lines[3].Body))
	require.Contains(t, h.text(), "line 5: multiPut txid 1, offsets 1, key [\"k\"] = 1")
}

func TestWhatIsInDoubtIsSettledOneWayOrTheOther(t *testing.T) {
	with := func(n int64, f Fault) Step {
		s := put(n)
		s.Fault = f
		return s
	}
	steps := []Step{put(1), with(2, Cut), with(3, Killed), with(4, Stopped), with(5, Lost)}
	takeover, kill, stop := fence(put(2)), Step{Verb: Kill}, Step{Verb: Stop}
	require.Equal(t, []Step{put(1), takeover, kill, stop, with(5, Lost)}, settled(steps, func() bool { return false }))
	require.Equal(t, []Step{put(1), with(2, Lost), takeover, with(3, Lost), kill, with(4, Lost), stop, with(5, Lost)},
		settled(steps, func() bool { return true }))
}
