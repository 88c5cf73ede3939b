package mapstate

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// opCode is what an operation does to a key.
type opCode uint8

const (
	opUpdate opCode = iota
	opPut
	opRemove
)

// ops are the operations of one request: one code, one key per position, and
// for each its updater or its value.
type ops struct {
	code     opCode
	keys     []Key
	updaters []ValueUpdater
	values   []Value
}

// bytes is the size of o's keys, values and arguments. The argument of an updater
// that is not an Updater is not known.
func (o *ops) bytes() int64 {
	n := 0
	for i, k := range o.keys {
		n += len(k)
		switch o.code {
		case opPut:
			n += len(o.values[i].text)
		case opUpdate:
			if u, ok := o.updaters[i].(*Updater); ok {
				n += len(u.Arg.text)
			}
		}
	}
	return int64(n)
}

// attempt is the overlay of one attempt at a batch: for each key it touched, the
// record that a commit would write. It is not safe for concurrent use. Nothing of
// it is visible before its commit; dropping it undoes it.
type attempt struct {
	kind      Kind
	txid      TxID
	partition PartitionID

	index map[Key]int32 // position in slots
	slots []slot
	held  int64 // bytes of the records that were read, and of what values have grown by
	most  int64 // that may be held; 0: as much as it takes

	// Memory that is kept for the next attempt.
	slotOf  []int32
	missing []Key
	out     []Write
	buf     []byte
	touched []byte
}

// slot is one touched key.
type slot struct {
	key     Key
	next    Record   // the record to write; next.Curr is the key's value now
	replay  bool     // an earlier attempt at this batch wrote the stored record
	keep    bool     // updates are skipped, see Resolution.Keep
	skip    bool     // all is skipped
	written bool     // next differs from what is stored
	absent  bool     // there was no record
	dead    bool     // there was a tombstone
	sharing *sharing // of a key that other partitions touched under this txid, else nil
}

// reset makes a the empty overlay of an attempt, keeping its memory.
func (a *attempt) reset(kind Kind, x TxID, p PartitionID) {
	a.kind, a.txid, a.partition = kind, x, p
	if a.index == nil {
		a.index = make(map[Key]int32)
	}
	clear(a.index)
	clear(a.slots)
	a.slots, a.held, a.most = a.slots[:0], 0, 0
}

// run applies o in order, each position seeing those before it, and adds to res
// what it did. On an error the overlay is of no further use.
func (a *attempt) run(ctx context.Context, from Getter, o ops, res *Result) error {
	slotOf, err := a.load(ctx, from, o.keys)
	if err != nil {
		return err
	}
	if o.code == opUpdate {
		res.Values = slices.Grow(res.Values, len(o.keys))
	}
	answer := 0 // bytes of values that have text
	for i, n := range slotOf {
		s := &a.slots[n]
		before := len(s.next.Curr.text)
		if err := a.step(s, o, i); err != nil {
			return &KeyError{Index: i, Key: s.key, Err: err}
		}
		if a.held += int64(max(0, len(s.next.Curr.text)-before)); a.most > 0 && a.held > a.most {
			return &KeyError{Index: i, Key: s.key, Err: &LimitError{What: "values of an open batch (in bytes)", Got: a.held, Limit: a.most}}
		}
		if s.replay {
			res.Replayed++
		} else {
			res.Applied++
		}
		if o.code == opUpdate {
			res.Values = append(res.Values, s.next.Curr)
			if answer += len(s.next.Curr.text); answer > MaxReadBytes {
				return &KeyError{Index: i, Key: s.key, Err: TooMuchToRead()}
			}
		}
	}
	for i, n := range slotOf { // once the request has done all that it does to the key
		if s := &a.slots[n]; s.sharing != nil {
			if err := s.sharing.settle(s.next.Curr); err != nil {
				return &KeyError{Index: i, Key: s.key, Err: err}
			}
		}
	}
	return nil
}

// step applies position i of o to its slot.
func (a *attempt) step(s *slot, o ops, i int) error {
	if s.skip {
		return nil
	}
	switch o.code {
	case opUpdate:
		if s.keep {
			return nil
		}
		v, err := o.updaters[i].Update(s.next.Curr)
		if err != nil {
			return err
		}
		if err := v.CheckSize(); err != nil {
			return err
		}
		if v.IsNone() {
			return fmt.Errorf("%w: the updater returned no value", ErrInvalidValue)
		}
		s.next.Curr = v
	case opPut:
		s.next.Curr = o.values[i]
	case opRemove:
		s.next.Curr = Value{}
	}
	s.written = true
	if s.sharing != nil {
		return s.sharing.step(o, i)
	}
	s.keep = false
	return nil
}

// load makes sure that each key has a slot, reading those that have none, and
// returns the slot of each position, which is good until the next load.
func (a *attempt) load(ctx context.Context, from Getter, keys []Key) ([]int32, error) {
	slotOf, missing := a.slotOf[:0], a.missing[:0]
	known := len(a.slots)
	for _, k := range keys {
		n, ok := a.index[k]
		if !ok {
			n = int32(len(a.slots))
			a.index[k] = n
			a.slots = append(a.slots, slot{key: k})
			missing = append(missing, k)
		}
		slotOf = append(slotOf, n)
	}
	a.slotOf, a.missing = slotOf, missing
	records, err := from.MultiGet(ctx, missing)
	if err != nil {
		return nil, located(err, keys)
	}
	for i, b := range records {
		a.held += int64(len(b))
		if err := a.resolve(&a.slots[known+i], b); err != nil {
			return nil, positionOf(err, keys, missing[i])
		}
	}
	return slotOf, nil
}

// positionOf names the first position of key in an error.
func positionOf(err error, keys []Key, key Key) error {
	if i := slices.Index(keys, key); i >= 0 {
		return &KeyError{Index: i, Key: key, Err: err}
	}
	return err
}

// located returns the error of a MultiGet with the position that its key has among
// keys: on the way to the store there may have been fewer.
func located(err error, keys []Key) error {
	var at *KeyError
	if errors.As(err, &at) {
		return positionOf(at.Err, keys, at.Key)
	}
	return err
}

// resolve fills a slot from its stored bytes, nil for an absent key.
func (a *attempt) resolve(s *slot, stored []byte) error {
	s.absent = stored == nil
	r, err := decodeStored(a.kind, stored)
	if err != nil {
		return err
	}
	s.dead = stored != nil && r.Curr.IsNone()
	found, err := a.kind.Resolve(r, a.txid)
	if err != nil {
		return err
	}
	s.next = found.Next
	s.next.Curr = found.Base
	s.replay, s.keep = found.Replay, found.Keep
	switch {
	case a.txid == NoTxID:
		s.next.Partition, s.next.Shares = r.Partition, r.Shares
	case s.next.TxID != NoTxID:
		s.next.Partition = a.partition
	}
	if a.txid != NoTxID && r.TxID == a.txid && (r.Partition != a.partition || r.Shares != "") {
		return a.share(s, r)
	}
	return nil
}

// share fills the slot of a key that other partitions have touched under this txid.
func (a *attempt) share(s *slot, r Record) error {
	skips := a.kind.Replays() == ReplaySkips
	shared, err := sharingOf(r, skips)
	if err != nil {
		return err
	}
	switch {
	case !shared.knows(a.partition): // first touched by this one now: built upon
		s.next, s.replay, s.keep = r, false, false
		shared.join(a.partition)
	case skips: // puts and removes as well: they would undo what others have built upon
		s.next, s.skip = r, true
		return nil
	default:
		if s.next.Curr, err = shared.replace(a.partition, r.Prev); err != nil {
			return err
		}
	}
	s.sharing = shared
	return nil
}

// decodeStored decodes a record as MultiGet returns it: nil is the zero Record.
func decodeStored(c Codec, stored []byte) (Record, error) {
	if stored == nil {
		return Record{}, nil
	}
	return c.DecodeRecord(stored)
}

// restore takes back what an earlier attempt of this partition at the batch did to a
// key that this attempt does not touch: it is what it was before the batch, or what
// the other partitions of the batch made of that. It reports whether that changes
// the key's value.
func (a *attempt) restore(key Key, stored []byte) (changed bool, err error) {
	r, err := decodeStored(a.kind, stored)
	if err != nil || r.TxID != a.txid {
		return false, err
	}
	shared, err := sharingOf(r, false)
	if err != nil || !shared.knows(a.partition) {
		return false, err
	}
	s := slot{key: key, next: r, replay: true}
	s.next.Curr = r.Prev
	if len(shared.others) > 0 {
		s.next.Curr, err = shared.replace(a.partition, r.Prev)
		if err == nil {
			err = shared.settle(s.next.Curr)
		}
		if err != nil {
			return false, nil // what others have done needs what this one did: it stays
		}
		s.sharing = shared
	}
	changed = r.Curr != s.value()
	s.written = changed || s.sharing != nil
	a.index[key] = int32(len(a.slots))
	a.slots = append(a.slots, s)
	return changed, nil
}

// tombstone reports whether the slot leaves a removed key whose record must stay
// for a while, because a batch that wrote it may be replayed.
func (s *slot) tombstone() bool { return s.value().IsNone() && s.next.TxID != NoTxID }

// value is the value that the slot leaves. Of a shared key it is more than the attempt
// knows of: the shares behind its own count as well.
func (s *slot) value() Value {
	if s.sharing != nil {
		return s.sharing.final
	}
	return s.next.Curr
}

// writes returns the write of each slot that changed. They are good until the
// next use of a.
func (a *attempt) writes() []Write {
	out, buf := a.out[:0], a.buf[:0]
	for i := range a.slots {
		s := &a.slots[i]
		if !s.written {
			continue
		}
		if s.value().IsNone() && !s.tombstone() {
			out = append(out, Write{Key: s.key})
			continue
		}
		r := s.next
		if s.sharing != nil {
			s.sharing.into(&r)
		}
		start := len(buf)
		buf = a.kind.AppendRecord(buf, r)
		out = append(out, Write{Key: s.key, Record: buf[start:len(buf):len(buf)]})
	}
	a.out, a.buf = out, buf
	return out
}
