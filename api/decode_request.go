package api

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"tine/mapstate"
)

// draftRequest is a request while it is read.
type draftRequest struct {
	Request
	seen    uint32 // bit i: the call's member i is there
	value   draft
	updater draftOp
	offsets draft
}

// draftOp is an Op whose argument is a draft.
type draftOp struct {
	name string
	arg  draft
}

// request reads the body of a call: one JSON object and nothing after it.
func (d *decoder) request(c *call) (*Request, error) {
	var r draftRequest
	err := d.object(func(name []byte) error {
		i := slices.IndexFunc(c.members, func(m string) bool { return m == string(name) })
		if i < 0 {
			return unknownMember(name, c.members)
		}
		member := c.members[i]
		if member != "value" && d.null() {
			return nil
		}
		r.seen |= 1 << i
		return d.member(member, &r)
	})
	if err != nil {
		return nil, err
	}
	if err := d.end(); err != nil {
		return nil, err
	}
	for i, member := range c.members[:c.required] {
		if r.seen&(1<<i) == 0 {
			return nil, missingMember(member)
		}
	}
	d.settle(c, &r)
	return &r.Request, r.check(c)
}

func unknownMember(name []byte, known []string) error {
	return fmt.Errorf("%w: unknown member %q; the members are %s", ErrBadRequest, excerpt(name), strings.Join(known, ", "))
}

func missingMember(member string) error {
	sentinel := ErrBadRequest
	if member == "txid" {
		sentinel = mapstate.ErrInvalidTxID
	}
	return fmt.Errorf("%w: member %q is missing", sentinel, member)
}

// member reads the value of one member. Errors are FieldErrors.
func (d *decoder) member(member string, r *draftRequest) (err error) {
	switch member {
	case "keys":
		return d.array(member, d.key)
	case "values":
		return d.array(member, func() error { return d.appendValue(&d.values) })
	case "args":
		return d.array(member, func() error { return d.appendValue(&d.args) })
	case "updaters":
		return d.array(member, d.appendOp)
	case "txid":
		r.TxID, err = d.txid()
	case "partition":
		r.Partition, err = d.partition()
	case "epoch":
		r.Epoch, err = d.epoch()
	case "offsets":
		r.offsets, err = d.value()
	case "whole":
		r.Whole, err = d.bool()
	case "updater":
		r.updater, err = d.op(draftOp{})
	case "value":
		r.value, err = d.value()
	case "detail":
		r.Detail, err = d.bool()
	case "return":
		r.NoValues, err = d.returnNone()
	default:
		panic("api: no reader for member " + member)
	}
	if err != nil {
		return &FieldError{Member: member, Index: -1, Err: err}
	}
	return nil
}

// settle turns what was read into the members of r.
func (d *decoder) settle(c *call, r *draftRequest) {
	arena := string(d.textArena)
	r.Keys = d.keys()
	r.Value = r.value.in(arena)
	r.Updater = r.updater.in(arena)
	if r.offsets.value != (mapstate.Value{}) {
		r.Offsets = r.offsets.in(arena).AppendJSON(nil)
	}
	for i, member := range c.members {
		if r.seen&(1<<i) == 0 {
			continue
		}
		switch member {
		case "values":
			r.Values = valuesOf(d.values, arena)
		case "args":
			r.Args = valuesOf(d.args, arena)
		case "updaters":
			r.Updaters = make([]Op, len(d.ops))
			for i, op := range d.ops {
				r.Updaters[i] = op.in(arena)
			}
		}
	}
}

func (d *decoder) appendValue(to *[]draft) error {
	v, err := d.value()
	*to = append(*to, v)
	return err
}

func (d *decoder) appendOp() error {
	var last draftOp
	if len(d.ops) > 0 {
		last = d.ops[len(d.ops)-1]
	}
	op, err := d.op(last)
	d.ops = append(d.ops, op)
	return err
}

// op reads an updater: its name, or an object of its name and argument. The name
// of like is taken where it is the same.
func (d *decoder) op(like draftOp) (op draftOp, err error) {
	readName := func() error {
		name, err := d.string()
		switch {
		case err != nil:
			return err
		case len(name) == 0:
			return fmt.Errorf("%w: the name is empty", mapstate.ErrUnknownUpdater)
		}
		if op.name = like.name; string(name) != like.name {
			op.name = string(name)
		}
		return nil
	}
	switch d.json.PeekKind() {
	case '"':
		return op, readName()
	case '{':
	default:
		return op, d.wrongKind(`the name of an updater or {"op", "arg"}`)
	}
	err = d.object(func(name []byte) (err error) {
		switch string(name) {
		case "op":
			return readName()
		case "arg":
			op.arg, err = d.value()
			return err
		}
		return unknownMember(name, []string{"op", "arg"})
	})
	if err == nil && op.name == "" {
		err = missingMember("op")
	}
	return op, err
}

func (op draftOp) in(arena string) Op { return Op{Name: op.name, Arg: op.arg.in(arena)} }

// txid reads a transaction id: an integer literal, or a string of decimal digits.
func (d *decoder) txid() (mapstate.TxID, error) {
	kind := d.json.PeekKind()
	if kind == '}' || kind == ']' || kind == 0 {
		return 0, d.wrongKind("a txid")
	}
	if kind != '0' && kind != '"' {
		return 0, fmt.Errorf("%w: want an integer, or a string of decimal digits, got %s", mapstate.ErrInvalidTxID, kindName(kind))
	}
	raw, err := d.json.ReadValue()
	if err != nil {
		return 0, d.syntax(err)
	}
	digits := raw
	if kind == '"' {
		digits = raw[1 : len(raw)-1]
	}
	return parseTxID(string(digits), string(raw))
}

// parseTxID parses decimal digits; got is what a message quotes.
func parseTxID(digits, got string) (mapstate.TxID, error) {
	x, err := strconv.ParseUint(digits, 10, 63)
	if err != nil || x == 0 || digits[0] == '0' || digits[0] == '+' {
		return 0, fmt.Errorf("%w: got %s, want an integer from 1 to %d without sign, fraction, exponent or leading zero",
			mapstate.ErrInvalidTxID, excerpt(got), int64(math.MaxInt64))
	}
	return mapstate.TxID(x), nil
}

func (d *decoder) partition() (string, error) {
	name, err := d.string()
	if err != nil {
		return "", err
	}
	return string(name), checkPartition(string(name))
}

func checkPartition(name string) error {
	if n := utf8.RuneCountInString(name); n > maxPartition {
		return fmt.Errorf("%w: %d characters, the limit is %d", ErrBadRequest, n, maxPartition)
	}
	return nil
}

func (d *decoder) epoch() (int64, error) {
	i, err := d.int()
	if err == nil && i < 0 {
		err = fmt.Errorf("%w: got %d, want 0 or more", ErrBadRequest, i)
	}
	return i, err
}

// int reads an integer literal.
func (d *decoder) int() (int64, error) {
	if kind := d.json.PeekKind(); kind != '0' {
		return 0, d.wrongKind("an integer")
	}
	raw, err := d.json.ReadValue()
	if err != nil {
		return 0, d.syntax(err)
	}
	i, err := strconv.ParseInt(string(raw), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%w: got %s, want an integer within int64", ErrBadRequest, excerpt(raw))
	}
	return i, nil
}

func (d *decoder) returnNone() (bool, error) {
	what, err := d.string()
	if err != nil {
		return false, err
	}
	switch string(what) {
	case "none":
		return true, nil
	case "values":
		return false, nil
	}
	return false, fmt.Errorf(`%w: got %q, want "none" or "values"`, ErrBadRequest, excerpt(what))
}
