package api

import (
	"strconv"

	"tine/mapstate"
)

// appendRequest appends the body of a call: the members of r that the call takes
// and that differ from what their absence means.
func appendRequest(dst []byte, c *call, r *Request) []byte {
	dst = append(dst, '{')
	first := true
	for _, member := range c.members {
		if !r.has(member) {
			continue
		}
		if !first {
			dst = append(dst, ',')
		}
		first = false
		dst = append(mapstate.AppendQuoted(dst, member), ':')
		dst = r.appendMember(dst, member)
	}
	return append(dst, '}')
}

func (r *Request) has(member string) bool {
	switch member {
	case "keys", "values", "value":
		return true
	case "txid":
		return r.TxID != mapstate.NoTxID
	case "partition":
		return r.Partition != ""
	case "epoch":
		return r.Epoch != 0
	case "offsets":
		return r.Offsets != nil
	case "whole":
		return r.Whole
	case "detail":
		return r.Detail
	case "updater":
		return r.Updaters == nil
	case "updaters":
		return r.Updaters != nil
	case "args":
		return r.Args != nil
	case "return":
		return r.NoValues
	}
	panic("api: no writer for member " + member)
}

func (r *Request) appendMember(dst []byte, member string) []byte {
	switch member {
	case "keys":
		return appendKeys(dst, r.Keys)
	case "values":
		return appendValues(dst, r.Values)
	case "value":
		return r.Value.AppendJSON(dst)
	case "txid":
		return appendTxID(dst, r.TxID)
	case "partition":
		return mapstate.AppendQuoted(dst, r.Partition)
	case "epoch":
		return strconv.AppendInt(dst, r.Epoch, 10)
	case "offsets":
		return append(dst, r.Offsets...)
	case "updater":
		return appendOp(dst, r.Updater)
	case "updaters":
		return appendOps(dst, r.Updaters)
	case "args":
		return appendValues(dst, r.Args)
	case "return":
		return append(dst, `"none"`...)
	}
	return append(dst, "true"...) // whole, detail
}

func appendOps(dst []byte, ops []Op) []byte {
	dst = append(dst, '[')
	for i, op := range ops {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendOp(dst, op)
	}
	return append(dst, ']')
}

func appendOp(dst []byte, op Op) []byte {
	if op.Arg.IsNone() {
		return mapstate.AppendQuoted(dst, op.Name)
	}
	dst = mapstate.AppendQuoted(append(dst, `{"op":`...), op.Name)
	return append(op.Arg.AppendJSON(append(dst, `,"arg":`...)), '}')
}
