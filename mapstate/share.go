package mapstate

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
)

// PartitionID is the number of a partition within its state, from 1. It stands for
// the partition's name in records.
type PartitionID uint32

// share is one partition's share of a key that several partitions touch under one
// txid: what it did to the key.
//
// A record of such a key names the partition that came first, and keeps in Shares
// what a replay has to know, so that it takes the place of its own partition's work
// and of nothing else:
//
//	value             that the first partition left
//	{id, len, steps}  of each further partition, in the order in which they committed
//
// A partition that replays takes its share out, applies its new operations to what
// the others left, and is then the last. Of a kind that skips replays it is enough
// to know who has been there: its values and steps are left out.
type share struct {
	by    PartitionID
	steps []byte
}

// sharing is what a slot knows of the others' shares, and its own.
type sharing struct {
	skips  bool        // the kind skips replays
	first  PartitionID // that touched the key
	left   Value       // by it
	others []share     // after it
	own    share
	final  bool // own is to be what the key's value is in the end
}

// sharingOf returns the shares of r.
func sharingOf(r Record, skips bool) (*sharing, error) {
	s := &sharing{first: r.Partition, left: r.Curr, skips: skips}
	if r.Shares == "" {
		return s, nil
	}
	var err error
	s.left, s.others, err = decodeShares([]byte(r.Shares))
	return s, err
}

// DecodeShares decodes Record.Shares, at the end of a stored record.
func DecodeShares(b []byte) (string, error) {
	if len(b) == 0 {
		return "", nil
	}
	_, _, err := decodeShares(b)
	return string(b), err
}

func decodeShares(b []byte) (left Value, others []share, err error) {
	if left, b, err = DecodeValue(b); err != nil {
		return Value{}, nil, fmt.Errorf("shares: %w", err)
	}
	for len(b) > 0 || len(others) == 0 {
		id, n := binary.Uvarint(b)
		size, m := binary.Uvarint(b[max(n, 0):])
		if n <= 0 || m <= 0 || id > math.MaxUint32 || size > uint64(len(b)-n-m) {
			return Value{}, nil, fmt.Errorf("shares: %w: cut short", ErrCorrupt)
		}
		end := n + m + int(size)
		others = append(others, share{by: PartitionID(id), steps: b[n+m : end : end]})
		b = b[end:]
	}
	return left, others, nil
}

// knows reports whether a partition has a share.
func (s *sharing) knows(p PartitionID) bool {
	if s.first == p {
		return true
	}
	for _, o := range s.others {
		if o.by == p {
			return true
		}
	}
	return false
}

// replace takes the share of a partition, which is not the only one, out for a new
// one, and returns the value that the others leave where prev was before the batch.
func (s *sharing) replace(p PartitionID, prev Value) (v Value, err error) {
	s.own = share{by: p}
	if s.first == p {
		s.first = s.others[0].by
		if s.left, err = s.others[0].apply(prev); err != nil {
			return Value{}, err
		}
		s.others = s.others[1:]
	}
	s.others = slices.DeleteFunc(s.others, func(o share) bool { return o.by == p })
	v = s.left
	for _, o := range s.others {
		if v, err = o.apply(v); err != nil {
			return Value{}, err
		}
	}
	return v, nil
}

// reopenLast makes the share of the partition that wrote last the own one: an
// un-numbered write counts as its work, and goes with it when it replays.
func (s *sharing) reopenLast() {
	last := len(s.others) - 1
	s.own, s.others, s.final = s.others[last], s.others[:last], true
}

// step adds position i of o to the own share.
func (s *sharing) step(o ops, i int) error {
	if s.skips || s.final {
		return nil
	}
	b := append(s.own.steps, byte(o.code))
	switch o.code {
	case opPut:
		b = AppendValue(b, o.values[i])
	case opUpdate:
		u, ok := o.updaters[i].(*Updater)
		if !ok || u.Name == "" {
			return fmt.Errorf("%w: another partition has written the key under this txid, and a %T cannot be kept for a replay: use an Updater, or give each partition keys of its own", ErrInvalidValue, o.updaters[i])
		}
		b = append(append(b, byte(len(u.Name))), u.Name...)
		b = AppendValue(b, u.Arg)
	}
	s.own.steps = b
	size := len(b)
	for _, o := range s.others {
		size += len(o.steps)
	}
	if size > MaxValueBytes {
		return &LimitError{What: "operations on a key that several partitions write under one txid (in bytes)", Got: int64(size), Limit: MaxValueBytes}
	}
	return nil
}

// apply applies the steps of a share to v.
func (s share) apply(v Value) (Value, error) {
	for b := s.steps; len(b) > 0; {
		code := opCode(b[0])
		if b = b[1:]; code == opRemove {
			v = Value{}
			continue
		}
		name := ""
		if code == opUpdate && len(b) > 0 {
			n := min(int(b[0]), len(b)-1)
			name, b = string(b[1:1+n]), b[1+n:]
		}
		arg, rest, err := DecodeValue(b)
		if err != nil {
			return Value{}, fmt.Errorf("shares: %w", err)
		}
		if b = rest; code == opPut {
			v = arg
			continue
		}
		op, err := LookupOp(name)
		if err != nil {
			return Value{}, fmt.Errorf("shares: %w: %w", ErrCorrupt, err)
		}
		if v, err = op.Op(v, arg); err != nil {
			return Value{}, fmt.Errorf("what another partition did under this txid, applied again: %w", err)
		}
	}
	return v, nil
}

// into writes the shares into r, the own one last.
func (s *sharing) into(r *Record) {
	left, own := s.left, s.own
	switch {
	case s.skips:
		left = Value{}
	case s.final && r.Curr.IsNone():
		own.steps = []byte{byte(opRemove)}
	case s.final:
		own.steps = AppendValue([]byte{byte(opPut)}, r.Curr)
	}
	b := AppendValue(nil, left)
	for _, o := range append(slices.Clip(s.others), own) {
		b = binary.AppendUvarint(b, uint64(o.by))
		b = binary.AppendUvarint(b, uint64(len(o.steps)))
		b = append(b, o.steps...)
	}
	r.Partition, r.Shares = s.first, string(b)
}
