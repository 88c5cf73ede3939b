package test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"

	"tine/api"
	"tine/mapstate"
	"tine/verify/oracle"
)

// TestConcurrentHistoriesAreLinearizable lets clients work on one state over HTTP, and
// requires that there is an order of what they did, each within the time it took,
// in which the oracle answers the same. An open batch happens with its commit.
//
// What a commit wrote is visible before it is on disk; that must not show.
func TestConcurrentHistoriesAreLinearizable(t *testing.T) {
	n := *rounds
	if testing.Short() {
		n = len(kindNames)
	}
	for _, entries := range []int64{0, 2, 1_000_000} {
		t.Run(fmt.Sprintf("cache-%d", entries), func(t *testing.T) {
			house := newHouse(t)
			for round := range n {
				spec := api.StateSpec{
					Kind:       kindNames[round%len(kindNames)],
					Durability: []string{"sync", "interval"}[round/len(kindNames)%2],
					Cache:      &api.CacheSpec{Entries: entries},
				}
				seed := rand.Uint64()
				h := recordHistory(t, house, spec, seed)
				requireLinearizable(t, spec.Kind, h, fmt.Sprintf("%s-%s-%d", spec.Kind, spec.Durability, seed))
			}
		})
	}
}

// recordHistory lets clients work on a new state of a house.
func recordHistory(t *testing.T, house *house, spec api.StateSpec, seed uint64) []porcupine.Operation {
	const clients, actions = 8, 11
	house.states++
	name := fmt.Sprint("linear-", house.states)
	_, _, err := house.client.CreateState(t.Context(), name, spec)
	require.NoError(t, err)
	r := &recording{state: served{&httpTarget{house: house, name: name}}, start: time.Now()}
	var all sync.WaitGroup
	for id := range clients {
		c := newActor(r, id, rand.New(rand.NewPCG(seed, uint64(id))))
		all.Go(func() {
			for range actions {
				c.act(t)
			}
		})
	}
	all.Wait()
	return r.history
}

// recording is a history on its way.
type recording struct {
	state registers
	start time.Time

	mu      sync.Mutex
	history []porcupine.Operation
}

// now is the time since the start.
func (r *recording) now() time.Duration { return time.Since(r.start) }

// add records that an action, which was called at a time, has ended.
func (r *recording) add(client int, a action, call time.Duration, out outcome) {
	op := porcupine.Operation{ClientId: client, Input: a, Call: int64(call), Output: out, Return: int64(r.now())}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.history = append(r.history, op)
}

// requireLinearizable requires that a history can be put in order within the
// oracle's law. Of one that cannot, it keeps the picture and shows how far it gets.
func requireLinearizable(t *testing.T, kind string, history []porcupine.Operation, name string) {
	t.Helper()
	model := oracleModel(kind)
	result := porcupine.CheckOperationsTimeout(model, history, patience)
	if result == porcupine.Ok {
		return
	}
	_, info := porcupine.CheckOperationsVerbose(model, history, patience)
	path := filepath.Join(t.ArtifactDir(), name+".html")
	require.NoError(t, porcupine.VisualizePath(model, info, path))
	require.Fail(t, fmt.Sprintf("the history is %s", result), "%s: see %s (with -artifacts); as far as it goes:\n%s",
		name, path, longestOrder(model, history, info))
}

// longestOrder tells the longest order that was found, and what is left of the history.
func longestOrder(model porcupine.Model, history []porcupine.Operation, info porcupine.LinearizationInfo) string {
	var longest []porcupine.Operation
	for _, orders := range info.PartialLinearizationsOperations() {
		for _, order := range orders {
			if len(order) > len(longest) {
				longest = order
			}
		}
	}
	var text strings.Builder
	tell := func(what string, op porcupine.Operation) {
		fmt.Fprintf(&text, "%s %d..%d client %d: %s\n", what, op.Call, op.Return, op.ClientId, model.DescribeOperation(op.Input, op.Output))
	}
	for _, op := range longest {
		tell("  ", op)
	}
	slices.SortFunc(history, func(a, b porcupine.Operation) int { return int(a.Call - b.Call) })
	for _, op := range history {
		if !slices.ContainsFunc(longest, func(o porcupine.Operation) bool { return o.ClientId == op.ClientId && o.Call == op.Call }) {
			tell("??", op)
		}
	}
	return text.String()
}

// oracleModel is the oracle as the checker's specification.
func oracleModel(kind string) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return &specified{Map: oracle.New(kind)} },
		Step: func(state, input, output any) (bool, any) {
			next := &specified{Map: state.(*specified).Clone()}
			got := input.(action).on(next)
			return got.String() == output.(outcome).String(), next
		},
		Equal: func(a, b any) bool { return bytes.Equal(a.(*specified).text(), b.(*specified).text()) },
		DescribeOperation: func(input, output any) string {
			return fmt.Sprintf("%s -> %s", input.(action), output.(outcome))
		},
		DescribeState: func(state any) string { return string(state.(*specified).text()) },
	}
}

// The checker must tell a history that is in order from one that is not.
func TestTheCheckerOfHistoriesCanFail(t *testing.T) {
	a, b := plainKeys()[:1], plainKeys()[:2]
	one, two := []mapstate.Value{mapstate.Int(1)}, []mapstate.Value{mapstate.Int(2)}
	count := func(n mapstate.TxID, keys []mapstate.Key) action {
		env := mapstate.Envelope{TxID: n, Partition: "p", Whole: n != mapstate.NoTxID}
		return action{verb: verbUpdate, env: env, keys: keys, ops: slices.Repeat([]api.Op{{Name: "count"}}, len(keys))}
	}
	get := func(keys []mapstate.Key) action { return action{verb: verbGet, keys: keys} }
	left := func(values []mapstate.Value) outcome {
		return outcome{result: mapstate.Result{Values: values, Applied: len(values)}, reason: reason(nil)}
	}
	saw := func(values ...mapstate.Value) outcome { return outcome{values: values, reason: reason(nil)} }
	op := func(client int, call, end int64, a action, out outcome) porcupine.Operation {
		return porcupine.Operation{ClientId: client, Input: a, Call: call, Output: out, Return: end}
	}
	var none mapstate.Value
	open := action{verb: verbBatch, env: mapstate.Envelope{TxID: 1, Partition: "p"}, parts: []action{count(1, a)}}
	committed := outcome{result: mapstate.Result{Applied: 1}, reason: reason(nil)}
	for name, c := range map[string]struct {
		history []porcupine.Operation
		want    porcupine.CheckResult
	}{
		"reads during a write, old and then new": {[]porcupine.Operation{
			op(0, 1, 10, count(0, a), left(one)), op(1, 2, 3, get(a), saw(none)), op(1, 4, 5, get(a), saw(one...)),
		}, porcupine.Ok},
		"reads during a write, new and then old": {[]porcupine.Operation{
			op(0, 1, 10, count(0, a), left(one)), op(1, 2, 3, get(a), saw(one...)), op(2, 4, 5, get(a), saw(none)),
		}, porcupine.Illegal},
		"a stale read": {[]porcupine.Operation{
			op(0, 1, 2, count(0, a), left(one)), op(1, 3, 4, get(a), saw(none)),
		}, porcupine.Illegal},
		"a lost update": {[]porcupine.Operation{
			op(0, 1, 4, count(0, a), left(one)), op(1, 2, 3, count(0, a), left(one)),
		}, porcupine.Illegal},
		"half of an update": {[]porcupine.Operation{
			op(0, 1, 4, count(0, b), left(append(one, one...))), op(1, 2, 3, get(b), saw(one[0], none)),
		}, porcupine.Illegal},
		"a batch once": {[]porcupine.Operation{
			op(0, 1, 4, count(1, a), left(one)), op(1, 5, 6, count(0, a), left(two)),
		}, porcupine.Ok},
		"a batch seen before its commit": {[]porcupine.Operation{
			op(1, 1, 2, get(a), saw(one...)), op(0, 3, 4, open, committed),
		}, porcupine.Illegal},
		"a batch seen with its commit": {[]porcupine.Operation{
			op(1, 1, 4, get(a), saw(one...)), op(0, 3, 5, open, committed),
		}, porcupine.Ok},
	} {
		require.Equal(t, c.want, porcupine.CheckOperationsTimeout(oracleModel("opaque"), c.history, patience), name)
	}
}
