package test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"tine/api"
	"tine/mapstate"
	"tine/mapstate/mapstatetest"
	"tine/verify/oracle"
)

// registers is a state as a history of actions needs it: a served one, or the oracle.
type registers interface {
	target
	// entries returns all that is there, as one consistent view, as text.
	entries() (string, error)
}

// served is a state of a server.
type served struct{ *httpTarget }

func (s served) entries() (string, error) {
	page, err := s.house.client.Entries(background, s.name, api.Listing{}, 0, "")
	var text strings.Builder
	for i, k := range page.Keys {
		fmt.Fprintf(&text, "%s=%s ", k, page.Entries[i].Value)
	}
	return text.String(), err
}

// specified is the state that the oracle specifies. It has no server to stop.
type specified struct{ *oracle.Map }

func (s *specified) update(env mapstate.Envelope, keys []mapstate.Key, ops []api.Op) (mapstate.Result, error) {
	return s.Update(env, keys, bind(ops))
}

func (s *specified) put(env mapstate.Envelope, keys []mapstate.Key, values []mapstate.Value) (mapstate.Result, error) {
	return s.Put(env, keys, values)
}

func (s *specified) remove(env mapstate.Envelope, keys []mapstate.Key) (mapstate.Result, error) {
	return s.Remove(env, keys)
}

func (s *specified) read(env mapstate.Envelope, keys []mapstate.Key) ([]mapstate.Entry, error) {
	values, err := s.Read(env, keys)
	entries := make([]mapstate.Entry, len(values))
	for i, v := range values {
		entries[i].Value = v
	}
	return entries, err
}

func (s *specified) begin(env mapstate.Envelope) (mapstate.Begun, error)   { return s.Begin(env) }
func (s *specified) commit(env mapstate.Envelope) (mapstate.Result, error) { return s.Commit(env) }
func (s *specified) abort(env mapstate.Envelope) error                     { return s.Abort(env) }
func (s *specified) progress() ([]mapstate.Progress, error)                { return s.Progress(), nil }
func (s *specified) restart()                                              {}
func (s *specified) close()                                                {}

func (s *specified) entries() (string, error) {
	held := s.Held()
	var text strings.Builder
	for _, k := range sortedKeys(held) {
		if v := held[k].V; !v.IsNone() {
			fmt.Fprintf(&text, "%s=%s ", k, v)
		}
	}
	return text.String(), nil
}

// text tells the state apart from others that the same actions can lead to. Where the
// partitions are follows from the actions, and what each did to a key, but not in which order
// they came to a key that they share: what a replay finds there depends on it.
func (s *specified) text() []byte {
	held := s.Held()
	var text []byte
	for _, k := range sortedKeys(held) {
		h := held[k]
		text = fmt.Appendf(text, "%s=%s (%s) @%d%v ", k, h.V, h.P, h.T, h.Sharers())
	}
	return text
}

// sortedKeys returns the keys of a map in the order of scans.
func sortedKeys[V any](m map[mapstate.Key]V) []mapstate.Key {
	keys := make([]mapstate.Key, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, cmp.Compare[mapstate.Key])
	return keys
}

// verb says what an action does.
type verb string

const (
	verbGet    verb = "get"
	verbScan   verb = "scan"
	verbUpdate verb = "update"
	verbPut    verb = "put"
	verbRemove verb = "remove"
	verbBatch  verb = "batch"   // an open batch, from begin to commit
	verbPart   verb = "refused" // a part of an open batch that was not taken
)

// action is what a client does at one moment.
type action struct {
	verb   verb
	env    mapstate.Envelope
	keys   []mapstate.Key
	ops    []api.Op         // update: one per key
	values []mapstate.Value // put: one per key
	parts  []action         // batch: what was staged
}

func (a action) String() string {
	var text strings.Builder
	fmt.Fprintf(&text, "%s %s@%d", a.verb, a.env.Partition, a.env.TxID)
	for i, k := range a.keys {
		fmt.Fprintf(&text, " %s", k)
		switch a.verb {
		case verbUpdate:
			fmt.Fprintf(&text, ":%s %s", a.ops[i].Name, a.ops[i].Arg)
		case verbPut:
			fmt.Fprintf(&text, ":%s", a.values[i])
		}
	}
	for _, part := range a.parts {
		fmt.Fprintf(&text, " [%s]", part)
	}
	return text.String()
}

// outcome is what came of an action.
type outcome struct {
	values  []mapstate.Value // get
	entries string           // scan
	result  mapstate.Result  // of a write
	reason  string           // why it was refused
}

func (o outcome) String() string {
	if o.reason != reason(nil) {
		return o.reason
	}
	r := o.result
	return fmt.Sprintf("%s%v %v +%d =%d -%d", o.entries, o.values, r.Values, r.Applied, r.Replayed, r.Restored)
}

// on carries a out on a state.
func (a action) on(s registers) (out outcome) {
	var err error
	switch a.verb {
	case verbGet:
		var entries []mapstate.Entry
		entries, err = s.read(a.env, a.keys)
		out.values = valuesOf(entries)
	case verbScan:
		out.entries, err = s.entries()
	case verbUpdate:
		out.result, err = s.update(a.env, a.keys, a.ops)
	case verbPut:
		out.result, err = s.put(a.env, a.keys, a.values)
	case verbRemove:
		out.result, err = s.remove(a.env, a.keys)
		out.result.Values = nil
	case verbBatch, verbPart:
		return a.open(s)
	}
	out.reason = reason(err)
	return out
}

// open opens a batch, stages its parts and commits it, up to what is refused.
func (a action) open(s registers) outcome {
	if _, err := s.begin(a.env); err != nil {
		return outcome{reason: reason(err)}
	}
	for _, part := range a.parts {
		if out := part.on(s); out.reason != reason(nil) {
			_ = s.abort(a.env) // which is open
			return out
		}
	}
	return a.commit(s)
}

// commit commits the open batch.
func (a action) commit(s registers) outcome {
	result, err := s.commit(a.env)
	return outcome{result: result, reason: reason(err)}
}

// plainKeys are the keys of un-numbered writes.
func plainKeys() []mapstate.Key { return mapstatetest.Keys("a", "b", "c") }

// addedKeys are the keys that the numbered batches of all partitions add to.
func addedKeys() []mapstate.Key { return mapstatetest.Keys("x", "y") }

// actor is a client, and a partition with keys of its own.
type actor struct {
	recording *recording
	id        int
	random    *rand.Rand
	partition string
	own       []mapstate.Key
	acted     int // how often
}

func newActor(r *recording, id int, random *rand.Rand) *actor {
	own := []mapstate.Key{mapstatetest.Key("own", id), mapstatetest.Key("own", id, "more")}
	return &actor{recording: r, id: id, random: random, partition: fmt.Sprint("p", id), own: own}
}

// act draws an action and carries it out.
func (c *actor) act(t *testing.T) {
	c.acted++
	switch c.random.IntN(10) {
	case 0, 1:
		c.do(action{verb: verbGet, keys: c.some(slices.Concat(plainKeys(), addedKeys(), c.own))})
	case 2:
		c.do(action{verb: verbScan})
	case 3, 4:
		c.do(c.write(mapstate.Envelope{}, plainKeys()))
	case 5, 6, 7:
		env := c.envelope()
		if c.random.IntN(2) == 0 {
			c.do(c.write(env, c.own))
		} else {
			c.do(c.add(env))
		}
	default:
		c.openBatch(t)
	}
}

// do carries out and records an action.
func (c *actor) do(a action) {
	call := c.recording.now()
	c.recording.add(c.id, a, call, a.on(c.recording.state))
}

// envelope draws the batch of a numbered action: the one that all partitions are at, and
// now and then one that is late or early. So they meet, replay and overtake each other.
func (c *actor) envelope() mapstate.Envelope {
	const actionsPerBatch = 3
	x := mapstate.TxID(1 + c.acted/actionsPerBatch)
	switch c.random.IntN(8) {
	case 0:
		x = max(1, x-1)
	case 1:
		x++
	}
	return mapstate.Envelope{TxID: x, Partition: c.partition, Whole: true}
}

// some draws some keys, of which one may come twice.
func (c *actor) some(keys []mapstate.Key) []mapstate.Key {
	drawn := make([]mapstate.Key, 1+c.random.IntN(3))
	for i := range drawn {
		drawn[i] = keys[c.random.IntN(len(keys))]
	}
	return drawn
}

// write draws an update, put or remove of some keys.
func (c *actor) write(env mapstate.Envelope, keys []mapstate.Key) action {
	a := action{verb: []verb{verbUpdate, verbUpdate, verbPut, verbRemove}[c.random.IntN(4)], env: env, keys: c.some(keys)}
	for range a.keys {
		n := mapstate.Int(c.random.Int64N(1000))
		a.ops = append(a.ops, []api.Op{{Name: "sum", Arg: n}, {Name: "max", Arg: n}}[c.random.IntN(2)])
		a.values = append(a.values, n)
	}
	return a
}

// add draws additions to the keys that all partitions share.
func (c *actor) add(env mapstate.Envelope) action {
	a := action{verb: verbUpdate, env: env, keys: c.some(addedKeys())}
	for range a.keys {
		a.ops = append(a.ops, api.Op{Name: "sum", Arg: mapstate.Int(1 + c.random.Int64N(1000))})
	}
	return a
}

// openBatch opens a batch, stages three requests in it and commits it. In between it
// must see what it staged. The batch happens when it is committed; a part that
// is refused, when that is.
func (c *actor) openBatch(t *testing.T) {
	state, env := c.recording.state, c.envelope()
	a := action{verb: verbBatch, env: env}
	if _, err := state.begin(env); err != nil {
		c.do(a) // it came late, and does again
		return
	}
	seen := mapstate.Int(c.random.Int64N(1000))
	mine := action{verb: verbPut, env: env, keys: c.own[:1], values: []mapstate.Value{seen}}
	for _, part := range []action{c.add(env), c.write(env, c.own[1:]), mine} {
		call := c.recording.now()
		if out := part.on(state); out.reason != reason(nil) {
			c.recording.add(c.id, action{verb: verbPart, env: env, parts: []action{part}}, call, out)
			_ = state.abort(env) // which is open
			return
		}
		a.parts = append(a.parts, part)
	}
	entries, err := state.read(env, c.own[:1])
	if err != nil || entries[0].Value != seen {
		t.Errorf("in its open batch %s finds %v (%v), it has put %s", env.Partition, entries, err, seen)
	}
	call := c.recording.now()
	c.recording.add(c.id, a, call, a.commit(state))
}
