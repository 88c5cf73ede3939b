package verify

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"tine/api"
	"tine/mapstate"
	"tine/verify/oracle"
)

// answer is what a call came to. Which members are used depends on the call.
type answer struct {
	res    mapstate.Result
	begun  mapstate.Begun
	values []mapstate.Value // of a read
	err    error
}

// call sends a step to a state of a server.
func call(ctx context.Context, client *api.Client, state string, s Step) (a answer) {
	switch {
	case s.Verb == MultiUpdate && s.isSnapshot():
		a.res, a.err = client.UpdateSnapshot(ctx, state, s.Env, s.Ops[0])
	case s.Verb == MultiPut && s.isSnapshot():
		a.res, a.err = client.SetSnapshot(ctx, state, s.Env, s.Values[0])
	case s.Verb == MultiGet && s.isSnapshot():
		var entry mapstate.Entry
		entry, a.err = client.Snapshot(ctx, state, s.Env)
		a.values = []mapstate.Value{entry.Value}
	case s.Verb == MultiUpdate:
		a.res, a.err = client.MultiUpdate(ctx, state, api.Request{Envelope: s.Env, Keys: s.Keys, Updaters: emptyNotNil(s.Ops)})
	case s.Verb == MultiPut:
		a.res, a.err = client.MultiPut(ctx, state, s.Env, s.Keys, s.Values)
	case s.Verb == MultiRemove:
		a.res, a.err = client.MultiRemove(ctx, state, s.Env, s.Keys)
	case s.Verb == MultiGet:
		var entries []mapstate.Entry
		entries, a.err = client.Read(ctx, state, s.Env, s.Keys)
		for _, e := range entries {
			a.values = append(a.values, e.Value)
		}
	case s.Verb == BeginCommit:
		a.begun, a.err = client.BeginCommit(ctx, state, s.Env)
	case s.Verb == Commit:
		a.res, a.err = client.Commit(ctx, state, s.Env)
	case s.Verb == Abort:
		a.err = client.Abort(ctx, state, s.Env)
	default:
		panic("verify: " + string(s.Verb) + " is not a call")
	}
	return a
}

// emptyNotNil keeps a request of no updaters from being one without updaters.
func emptyNotNil(ops []api.Op) []api.Op { return append([]api.Op{}, ops...) }

// apply gives a step to an oracle and returns what must be answered.
func apply(o *oracle.Map, s Step) (a answer) {
	switch s.Verb {
	case MultiUpdate:
		a.res, a.err = o.Update(s.Env, s.Keys, bind(s.Ops))
	case MultiPut:
		a.res, a.err = o.Put(s.Env, s.Keys, s.Values)
	case MultiRemove:
		a.res, a.err = o.Remove(s.Env, s.Keys)
	case MultiGet:
		a.values, a.err = o.Read(s.Env, s.Keys)
	case BeginCommit:
		a.begun, a.err = o.Begin(s.Env)
	case Commit:
		a.res, a.err = o.Commit(s.Env)
	case Abort:
		a.err = o.Abort(s.Env)
	}
	return a
}

// updater is an operation of a step. It holds no function, so that two oracles that
// have staged the same can be seen to be the same.
type updater api.Op

var _ mapstate.ValueUpdater = updater{}

// Update implements mapstate.ValueUpdater.
func (u updater) Update(stored mapstate.Value) (mapstate.Value, error) {
	info, err := mapstate.LookupOp(u.Name)
	if err != nil {
		return mapstate.Value{}, err
	}
	return info.Op(stored, u.Arg)
}

func bind(ops []api.Op) []mapstate.ValueUpdater {
	updaters := make([]mapstate.ValueUpdater, len(ops))
	for i, op := range ops {
		updaters[i] = updater(op)
	}
	return updaters
}

// String says what was answered, in the words of the wire.
func (a answer) String() string {
	if a.err != nil {
		return "refused: " + a.reason()
	}
	var b strings.Builder
	sep := ""
	put := func(format string, args ...any) {
		fmt.Fprintf(&b, sep+format, args...)
		sep = ", "
	}
	if a.values != nil {
		put("values %v", found(a.values))
	}
	if len(a.res.Values) > 0 {
		put("values %v", a.res.Values)
	}
	if a.res.AlreadyCommitted {
		put("already committed")
	}
	put("applied %d, replayed %d, restored %d", a.res.Applied, a.res.Replayed, a.res.Restored)
	if a.begun != (mapstate.Begun{}) {
		put("committed %d, replay %v", a.begun.Committed, a.begun.Replay)
	}
	return b.String()
}

// found tells an absent value from a null.
func found(values []mapstate.Value) []string {
	texts := make([]string, len(values))
	for i, v := range values {
		texts[i] = show(v)
	}
	return texts
}

func show(v mapstate.Value) string {
	if v.IsNone() {
		return "absent"
	}
	return v.String()
}

// same reports whether two answers are the same, as far as the contract says what is
// answered: of an error, its code.
func (a answer) same(b answer) bool {
	if a.err != nil || b.err != nil {
		return a.reason() == b.reason()
	}
	return a.begun == b.begun &&
		a.res.Applied == b.res.Applied && a.res.Replayed == b.res.Replayed && a.res.Restored == b.res.Restored &&
		a.res.AlreadyCommitted == b.res.AlreadyCommitted &&
		slices.Equal(nulls(a.res.Values), nulls(b.res.Values)) && slices.Equal(a.values, b.values)
}

// nulls returns the values of an update as they travel: a removed key's is a null.
func nulls(values []mapstate.Value) []mapstate.Value {
	values = slices.Clone(values)
	for i, v := range values {
		if v.IsNone() {
			values[i] = mapstate.Null
		}
	}
	return values
}

// reason says why a call was refused.
func (a answer) reason() string {
	if a.err == nil {
		return "not refused"
	}
	for _, sentinel := range []error{
		mapstate.ErrStaleTx, mapstate.ErrFenced, mapstate.ErrNoOpenBatch, mapstate.ErrUpdaterType, mapstate.ErrUpdaterOverflow,
	} {
		if errors.Is(a.err, sentinel) {
			return sentinel.Error()
		}
	}
	return a.err.Error()
}
