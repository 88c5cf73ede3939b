package api

import (
	"fmt"
	"slices"

	"tine/mapstate"
)

// Op names an updater and gives its argument, which is no value where it is left out.
type Op struct {
	Name string
	Arg  mapstate.Value
}

// Request is the body of a call on a map or a snapshot. Each call takes some of
// its members, see the calls.
type Request struct {
	mapstate.Envelope
	Keys     []mapstate.Key
	Values   []mapstate.Value // multiPut: one per key
	Value    mapstate.Value   // set of the snapshot
	Updater  Op               // one for all keys
	Args     []mapstate.Value // with Updater: its argument for each key; nil: not given
	Updaters []Op             // in place of Updater: one per key
	NoValues bool             // multiUpdate: the answer leaves the values out
	Detail   bool             // multiGet: entries in place of values
}

// call is what one kind of request takes: its members, the required ones first.
type call struct {
	members  []string
	required int
}

// The calls that have a body.
var (
	multiGet       = call{[]string{"keys", "txid", "partition", "detail"}, 1}
	multiUpdate    = call{[]string{"keys", "txid", "partition", "epoch", "offsets", "whole", "updater", "updaters", "args", "return"}, 1}
	multiPut       = call{[]string{"keys", "values", "txid", "partition", "epoch", "offsets", "whole"}, 2}
	multiRemove    = call{[]string{"keys", "txid", "partition", "epoch", "offsets", "whole"}, 1}
	beginCommit    = call{[]string{"txid", "partition", "epoch"}, 1}
	commit         = call{[]string{"txid", "partition", "epoch", "offsets"}, 1}
	abort          = call{[]string{"txid", "partition", "epoch"}, 1}
	snapshotUpdate = call{[]string{"updater", "txid", "partition", "epoch", "offsets", "whole"}, 1}
	snapshotSet    = call{[]string{"value", "txid", "partition", "epoch", "offsets", "whole"}, 1}
)

func (c *call) takes(member string) bool { return slices.Contains(c.members, member) }

// check holds what no single member can tell: lengths, sizes, and which
// members go together.
func (r *Request) check(c *call) error {
	if c.takes("values") {
		if err := r.sameLength("values", len(r.Values)); err != nil {
			return err
		}
	}
	if err := r.checkSizes(); err != nil {
		return err
	}
	if c.takes("updater") {
		return r.checkUpdaters()
	}
	return nil
}

func (r *Request) sameLength(member string, n int) error {
	if n == len(r.Keys) {
		return nil
	}
	return &FieldError{Member: member, Index: -1,
		Err: fmt.Errorf("%w: %d %s for %d keys, want one per key", ErrBadRequest, n, member, len(r.Keys))}
}

func (r *Request) checkSizes() error {
	for i, v := range r.Values {
		if err := v.CheckSize(); err != nil {
			return &mapstate.KeyError{Index: i, Key: r.Keys[i], Err: err}
		}
	}
	for i, v := range r.Args {
		if err := v.CheckSize(); err != nil && i < len(r.Keys) {
			return &mapstate.KeyError{Index: i, Key: r.Keys[i], Err: err}
		}
	}
	for i, op := range r.Updaters {
		if err := op.Arg.CheckSize(); err != nil && i < len(r.Keys) {
			return &mapstate.KeyError{Index: i, Key: r.Keys[i], Err: err}
		}
	}
	if err := r.Value.CheckSize(); err != nil {
		return &FieldError{Member: "value", Index: -1, Err: err}
	}
	if err := r.Updater.Arg.CheckSize(); err != nil {
		return &FieldError{Member: "updater", Index: -1, Err: err}
	}
	if len(r.Offsets) > mapstate.MaxValueBytes {
		limit := &mapstate.LimitError{What: "offsets (in bytes)", Got: int64(len(r.Offsets)), Limit: mapstate.MaxValueBytes}
		return &FieldError{Member: "offsets", Index: -1, Err: limit}
	}
	return nil
}

func (r *Request) checkUpdaters() error {
	switch {
	case r.Updaters == nil && r.Updater.Name == "":
		return fmt.Errorf("%w: neither updater nor updaters is there, want one of them", ErrBadRequest)
	case r.Updaters != nil && r.Updater.Name != "":
		return fmt.Errorf("%w: both updater and updaters are there, want one of them", ErrBadRequest)
	case r.Updaters != nil && r.Args != nil:
		return fmt.Errorf("%w: args go with updater; each of updaters has its own arg", ErrBadRequest)
	case r.Args != nil && !r.Updater.Arg.IsNone():
		return fmt.Errorf("%w: updater %q has an arg and there are args, want one of them", ErrBadRequest, r.Updater.Name)
	case r.Updaters != nil:
		return r.sameLength("updaters", len(r.Updaters))
	case r.Args != nil:
		return r.sameLength("args", len(r.Args))
	}
	return nil
}

// bind returns the updater of each of n positions.
func (r *Request) bind(n int) ([]mapstate.ValueUpdater, error) {
	bound := make([]mapstate.Updater, n)
	updaters := make([]mapstate.ValueUpdater, n)
	op, member, index := r.Updater, "updater", -1
	var info mapstate.OpInfo
	if r.Updaters == nil {
		var err error
		if info, err = mapstate.LookupOp(op.Name); err != nil {
			return nil, &FieldError{Member: member, Index: index, Err: err}
		}
	}
	for i := range bound {
		switch {
		case r.Updaters != nil:
			op, member, index = r.Updaters[i], "updaters", i
			if op.Name != info.Name {
				var err error
				if info, err = mapstate.LookupOp(op.Name); err != nil {
					return nil, &FieldError{Member: member, Index: index, Err: err}
				}
			}
		case r.Args != nil:
			op.Arg = r.Args[i]
		}
		if info.ArgOptional && op.Arg == mapstate.Null {
			op.Arg = mapstate.Value{} // null for what is optional is as good as absent
		}
		if !info.ArgOptional && op.Arg.IsNone() {
			return nil, &FieldError{Member: member, Index: index,
				Err: fmt.Errorf("%w: %s needs an arg, or args with one per key", ErrBadRequest, op.Name)}
		}
		bound[i] = mapstate.Updater{Name: info.Name, Op: info.Op, Arg: op.Arg}
		updaters[i] = &bound[i]
	}
	return updaters, nil
}
