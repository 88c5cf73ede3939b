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
// A replay goes in the place of its partition's share: it starts from what those
// before it left, and those after it are applied again to what it leaves. So a replay
// with the same contents changes nothing. Of a kind that skips replays it is enough to
// know who has been there: its values and steps are left out.
type share struct {
	by    PartitionID
	steps []byte
}

// sharing is what a slot knows of the others' shares, and its own.
type sharing struct {
	skips  bool        // the kind skips replays
	first  PartitionID // that touched the key
	left   Value       // by it
	others []share     // after it, without the own one
	own    share
	at     int   // the place of the own one: 0 is the first's, n is behind others[n-1:n]
	final  Value // what all of them leave
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

// join makes p the last to share the key.
func (s *sharing) join(p PartitionID) {
	s.own, s.at = share{by: p}, len(s.others)+1
}

// replace puts a new share of p, which has one, in the place of that, and returns what
// the shares before it leave where prev was before the batch.
func (s *sharing) replace(p PartitionID, prev Value) (v Value, err error) {
	s.own = share{by: p}
	if s.first == p {
		return prev, nil
	}
	i := slices.IndexFunc(s.others, func(o share) bool { return o.by == p })
	s.others, s.at = slices.Delete(s.others, i, i+1), i+1
	return applyAll(s.left, s.others[:i])
}

// settle notes what all leave where the own share leaves v.
func (s *sharing) settle(v Value) (err error) {
	if s.skips {
		s.final = v
		return nil
	}
	s.final, err = applyAll(v, s.others[max(0, s.at-1):])
	return err
}

func applyAll(v Value, shares []share) (Value, error) {
	for _, o := range shares {
		var err error
		if v, err = o.apply(v); err != nil {
			return Value{}, err
		}
	}
	return v, nil
}

// step adds position i of o to the own share.
func (s *sharing) step(o ops, i int) error {
	if s.skips {
		return nil
	}
	b := append(s.own.steps, byte(o.code))
	switch o.code {
	case opPut:
		b = AppendValue(b, o.values[i])
	case opUpdate:
		u, ok := o.updaters[i].(*Updater)
		if ok {
			_, err := LookupOp(u.Name)
			ok = err == nil
		}
		if !ok {
			return fmt.Errorf("%w: another partition has written the key under this txid, and a %T without a known name cannot be kept for a replay: use an Updater of LookupOp, or give each partition keys of its own", ErrInvalidValue, o.updaters[i])
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

// into writes what all leave, and the shares, into r, whose value the own share left.
func (s *sharing) into(r *Record) {
	left, all := s.left, s.others
	if s.at == 0 {
		s.first, left = s.own.by, r.Curr
	} else {
		all = slices.Insert(slices.Clone(s.others), s.at-1, s.own)
	}
	if s.skips {
		left = Value{}
	}
	b := AppendValue(nil, left)
	for _, o := range all {
		b = binary.AppendUvarint(b, uint64(o.by))
		b = binary.AppendUvarint(b, uint64(len(o.steps)))
		b = append(b, o.steps...)
	}
	r.Curr, r.Partition, r.Shares = s.final, s.first, string(b)
}
