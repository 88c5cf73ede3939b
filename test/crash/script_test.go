package crash

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tine/mapstate"
	"tine/mapstate/mapstatetest"
	"tine/verify/oracle"
)

// The deeds of a unit.
type deed int

const (
	create  deed = iota // the state
	remove              // the state
	request             // one request: a part, a whole or un-numbered
	open                // a batch, begun and committed
	abort               // a batch, begun and aborted
)

// unit is what a writer does again if it does not know whether it was done.
type unit struct {
	at       int // its number in its state, from 1
	deed     deed
	env      mapstate.Envelope // its offsets are its number
	requests []call
}

// call is one request's operations.
type call struct {
	keys     []mapstate.Key
	updaters []mapstate.ValueUpdater
	values   []mapstate.Value // no updaters: puts; a value that is none removes
}

// script is the work on one state, and what the state must hold after each unit.
type script struct {
	name     string
	kind     string
	interval bool
	units    []unit
	models   []*oracle.Map // after so many units; nil: there is no state
	epochs   map[string]int64
	last     map[string]mapstate.TxID
}

// writeScript writes a random script of so many units. Units that the oracle refuses are
// not in it.
func writeScript(t *testing.T, rnd *rand.Rand, name, kind string, units int) *script {
	s := &script{name: name, kind: kind, models: []*oracle.Map{nil}}
	s.lifecycle(create)
	for len(s.units) < units {
		if name == "deleted" && len(s.units) == units/2 {
			s.lifecycle(remove)
			s.lifecycle(create)
		}
		u := s.draw(t, rnd)
		model := s.model(len(s.units)).Clone()
		if err := perform(oracleTarget{model}, u); err != nil {
			continue // refused: of no use to a writer
		}
		s.units, s.models = append(s.units, u), append(s.models, model)
		s.epochs[u.env.Partition] = u.env.Epoch
		s.last[u.env.Partition] = max(s.last[u.env.Partition], u.env.TxID)
	}
	return s
}

// model returns the oracle after n units.
func (s *script) model(n int) *oracle.Map { return s.models[n] }

// begun returns what the state holds after n units and the begin of the next: a higher
// epoch fences from there on.
func (s *script) begun(n int) *content {
	u, model := s.units[n], s.models[n]
	if model == nil || u.deed != open && u.deed != abort {
		return contentOf(model)
	}
	begun := oracleTarget{model.Clone()}
	if err := begun.begin(u.beginEnvelope()); err != nil {
		return contentOf(model)
	}
	return contentOf(begun.Map)
}

func (s *script) lifecycle(d deed) {
	s.units = append(s.units, unit{at: len(s.units) + 1, deed: d})
	var model *oracle.Map
	if d == create {
		model = oracle.New(s.kind)
	}
	s.models = append(s.models, model)
	s.epochs, s.last = make(map[string]int64), make(map[string]mapstate.TxID)
}

// draw draws a unit: of the newest batch, of the next one or of none, by one of two writers.
func (s *script) draw(t *testing.T, rnd *rand.Rand) unit {
	u := unit{at: len(s.units) + 1}
	u.env = mapstate.Envelope{Partition: []string{"", "p"}[rnd.IntN(2)], Offsets: fmt.Append(nil, u.at)}
	u.env.Epoch = s.epochs[u.env.Partition]
	if rnd.IntN(8) == 0 {
		u.env.Epoch++
	}
	newest := max(s.last[""], s.last["p"])
	u.deed, u.env.TxID = request, newest+1
	switch roll := rnd.IntN(10); {
	case roll == 0:
		u.env.TxID = mapstate.NoTxID
	case roll < 4 && newest > 0:
		u.env.TxID = newest // a replay, a part, or the other writer's part
	}
	calls := 1
	if roll := rnd.IntN(10); u.env.TxID != mapstate.NoTxID && roll < 6 {
		u.env.Whole = roll < 3
		if roll > 2 {
			u.deed, calls = open, 1+rnd.IntN(3)
		}
		if roll == 5 {
			u.deed = abort
		}
	}
	for range calls {
		u.requests = append(u.requests, s.drawCall(t, rnd, u.env.TxID == mapstate.NoTxID))
	}
	return u
}

// drawCall draws operations. Those without a txid are puts: they may be done again.
func (s *script) drawCall(t *testing.T, rnd *rand.Rand, puts bool) call {
	var c call
	for range 1 + rnd.IntN(4) {
		c.keys = append(c.keys, allKeys[rnd.IntN(len(allKeys))])
	}
	if puts {
		c.keys = slices.Compact(slices.Sorted(slices.Values(c.keys)))
	}
	roll := rnd.IntN(4)
	for i := range c.keys {
		switch {
		case !puts && roll < 2:
			// Concatenation tells the order, and makes the records large enough to be flushed.
			text := fmt.Sprintf("%d.%d ", len(s.units), i) + strings.Repeat("x", rnd.IntN(900))
			c.updaters = append(c.updaters, mapstatetest.Update("concat", mapstate.String(text)))
		case !puts && roll == 2:
			c.values = append(c.values, mapstate.Value{})
		default:
			c.values = append(c.values, mapstate.String(fmt.Sprint("put ", len(s.units))))
		}
	}
	require.Len(t, c.keys, len(c.updaters)+len(c.values))
	return c
}

// allKeys are the keys that scripts write, the snapshot among them.
var allKeys = append(mapstatetest.Keys("a", "b", "c", 1, 2, 3), mapstate.SnapshotKey)

// target is a state, or what must become of one.
type target interface {
	update(env mapstate.Envelope, c call) error
	begin(env mapstate.Envelope) error
	commit(env mapstate.Envelope) error
	abort(env mapstate.Envelope) error
}

// beginEnvelope is that of the begin of a batch.
func (u unit) beginEnvelope() mapstate.Envelope {
	env := u.env
	env.Offsets, env.Whole = nil, false
	return env
}

// perform does what a unit does to a state that is there.
func perform(on target, u unit) error {
	if u.deed == request {
		return on.update(u.env, u.requests[0])
	}
	begin := u.beginEnvelope()
	if err := on.begin(begin); err != nil {
		return err
	}
	staged := u.env
	staged.Offsets, staged.Whole = nil, false
	for _, c := range u.requests {
		if err := on.update(staged, c); err != nil {
			_ = on.abort(begin) // it is not needed any more
			return err
		}
	}
	if u.deed == abort {
		return on.abort(begin)
	}
	return on.commit(u.env)
}

// oracleTarget is the oracle as a target.
type oracleTarget struct{ *oracle.Map }

func (o oracleTarget) update(env mapstate.Envelope, c call) error {
	var err error
	if c.updaters != nil {
		_, err = o.Update(env, c.keys, c.updaters)
	} else {
		_, err = o.Put(env, c.keys, c.values)
	}
	return err
}

func (o oracleTarget) begin(env mapstate.Envelope) error  { _, err := o.Begin(env); return err }
func (o oracleTarget) commit(env mapstate.Envelope) error { _, err := o.Commit(env); return err }
func (o oracleTarget) abort(env mapstate.Envelope) error  { return o.Abort(env) }

// content is all that a state holds: values, previous values and txids, of
// tombstones too, and where its writers are.
type content struct {
	entries  map[mapstate.Key]mapstate.Entry
	progress []mapstate.Progress
}

// contentOf returns what the oracle holds, nil for none.
func contentOf(model *oracle.Map) *content {
	if model == nil {
		return nil
	}
	c := &content{entries: make(map[mapstate.Key]mapstate.Entry), progress: withoutTimes(model.Progress())}
	for k, h := range model.Held() {
		c.entries[k] = mapstate.Entry{Value: h.V, Prev: h.P, TxID: h.T}
	}
	maps.DeleteFunc(c.entries, func(_ mapstate.Key, e mapstate.Entry) bool { return e == mapstate.Entry{} })
	return c
}

func withoutTimes(all []mapstate.Progress) []mapstate.Progress {
	plain := make([]mapstate.Progress, 0, len(all))
	for _, p := range all {
		plain = append(plain, mapstate.Progress{Partition: p.Partition, TxID: p.TxID, Epoch: p.Epoch, Offsets: p.Offsets})
	}
	return plain
}

// differences tells what other has that c has not, and the other way round.
func (c *content) differences(other *content) []string {
	if c == nil || other == nil {
		return []string{fmt.Sprintf("there: %t, want %t", other != nil, c != nil)}
	}
	var all []string
	for _, k := range allKeys {
		if want, got := c.entries[k], other.entries[k]; want != got {
			all = append(all, fmt.Sprintf("%s: %s, want %s", k, brief(got), brief(want)))
		}
	}
	if !reflect.DeepEqual(c.progress, other.progress) {
		all = append(all, fmt.Sprintf("progress %+v, want %+v", other.progress, c.progress))
	}
	return all
}

// brief is an entry with the numbers of the units in it, without what fills it.
func brief(e mapstate.Entry) string {
	return strings.ReplaceAll(fmt.Sprintf("%v after %v @%d", e.Value, e.Prev, e.TxID), "x", "")
}
