package backing

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"

	"tine/mapstate"
)

// The spaces of a state, between its id and the rest of a key.
const (
	spaceMeta    = 1
	spaceRecords = 2
	spaceEnd     = 3

	prefixBytes = idBytes + 1
)

const (
	// checkEvery is how many records a long operation visits between two looks at
	// its context.
	checkEvery = 256
	// batchOverhead is more than a batch needs beside the keys and values: a
	// kind and two lengths for each, and a header.
	batchOverhead = 16
	// maxBatchBytes is below the 4 GiB that the engine can hold in one batch, and above
	// what one request may bring and read: a body of up to 1 GiB, and twice
	// mapstate.MaxReadBytes, since a record may have the value before it.
	maxBatchBytes = 2 << 30
)

// Pebble is one state of a Database. After Database.Close its operations fail
// with mapstate.ErrShuttingDown, after Database.Delete with
// mapstate.ErrUnknownState.
type Pebble struct {
	d    *Database
	name string
	id   uint32
	spec []byte
	gate *gate

	// Commits that have begun and commits that are visible: a reader that finds the
	// same number before and after has seen none in between.
	begun, visible atomic.Uint64
}

var _ mapstate.BackingMap = (*Pebble)(nil)

func newPebble(d *Database, name string, id uint32, spec []byte) *Pebble {
	return &Pebble{d: d, name: name, id: id, spec: spec, gate: newGate()}
}

// Name returns the name of the state.
func (p *Pebble) Name() string { return p.name }

// Spec returns what the state was created with; it must not be changed.
func (p *Pebble) Spec() []byte { return p.spec }

// space returns the first key of a space of this state.
func (p *Pebble) space(space byte) []byte {
	key := make([]byte, 0, prefixBytes+64)
	return append(binary.BigEndian.AppendUint32(key, p.id), space)
}

// enter begins an operation; leave the gate after it.
func (p *Pebble) enter(ctx context.Context, op string) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%s: state %q: %w", op, p.name, err)
	}
	if err := p.gate.enter(); err != nil {
		return fmt.Errorf("%s: %w", op, err)
	}
	return nil
}

// wrap says what an error of the engine means and where it was.
func (p *Pebble) wrap(op string, err error) error {
	return classify(fmt.Sprintf("%s: state %q in %s", op, p.name, p.d.dir), err)
}

// Commit implements mapstate.Committer.
func (p *Pebble) Commit(ctx context.Context, w mapstate.Writes) (mapstate.Durable, error) {
	if err := p.enter(ctx, "commit"); err != nil {
		return nil, err
	}
	defer p.gate.leave()
	if err := p.d.writable(); err != nil {
		return nil, fmt.Errorf("commit: state %q: %w", p.name, err)
	}
	size := batchBytes(w)
	if size > maxBatchBytes {
		return nil, fmt.Errorf("commit: state %q: %w", p.name, &mapstate.LimitError{What: "commit", Got: size, Limit: maxBatchBytes})
	}
	if err := p.d.reserve.take(size); err != nil {
		return nil, fmt.Errorf("commit: state %q: %w", p.name, err)
	}
	b := p.d.engine.NewBatchWithSize(int(size))
	if err := p.fill(b, w); err != nil {
		return nil, errors.Join(p.wrap("commit", err), b.Close())
	}
	p.begun.Add(1)
	known, err := p.d.apply(b, w.Sync)
	if !known {
		// Not ErrDiskFull, whatever the cause: that would say that nothing was written.
		return nil, fmt.Errorf("commit: state %q: %w: it may be on disk or not: %s", p.name, mapstate.ErrUnavailable, err.Error())
	}
	p.visible.Add(1)
	if err != nil {
		return nil, p.wrap("commit", err)
	}
	p.d.syncer.arm()
	if w.Sync {
		return &syncing{d: p.d, batch: b}, nil
	}
	if err := b.Close(); err != nil {
		return nil, p.wrap("commit", err)
	}
	return mapstate.NoWait, nil
}

// batchBytes is no less than what w takes in a batch.
func batchBytes(w mapstate.Writes) int64 {
	size := int64(batchOverhead)
	for _, r := range w.Records {
		size += int64(prefixBytes + len(r.Key) + len(r.Record) + batchOverhead)
	}
	for _, e := range w.Meta {
		size += int64(prefixBytes + len(e.Name) + len(e.Value) + batchOverhead)
	}
	return size
}

// fill writes w into b, records in key order: the engine's memtable takes sorted
// ones faster.
func (p *Pebble) fill(b *pebble.Batch, w mapstate.Writes) error {
	records := p.space(spaceRecords)
	for _, i := range ordered(len(w.Records), func(i int) mapstate.Key { return w.Records[i].Key }) {
		r := &w.Records[i]
		if err := put(b, records, string(r.Key), r.Record); err != nil {
			return err
		}
	}
	meta := p.space(spaceMeta)
	for i := range w.Meta {
		if err := put(b, meta, w.Meta[i].Name, w.Meta[i].Value); err != nil {
			return err
		}
	}
	return nil
}

// put sets or, for a nil value, deletes prefix+rest, without building the key twice.
func put(b *pebble.Batch, prefix []byte, rest string, value []byte) error {
	n := len(prefix) + len(rest)
	var op *pebble.DeferredBatchOp
	if value == nil {
		op = b.DeleteDeferred(n)
	} else {
		op = b.SetDeferred(n, len(value))
		copy(op.Value, value)
	}
	copy(op.Key[copy(op.Key, prefix):], rest)
	return op.Finish()
}

// ordered returns the positions of n keys in order of the keys.
func ordered(n int, key func(int) mapstate.Key) []int32 {
	if n > math.MaxInt32 {
		panic("backing: more keys than a request may have")
	}
	order := make([]int32, n)
	sorted := true
	for i := range order {
		order[i] = int32(i)
		sorted = sorted && (i == 0 || key(i-1) <= key(i))
	}
	if !sorted {
		slices.SortFunc(order, func(a, b int32) int { return strings.Compare(string(key(int(a))), string(key(int(b)))) })
	}
	return order
}

// Meta implements mapstate.MetaReader.
func (p *Pebble) Meta(ctx context.Context, prefix string) ([]mapstate.MetaWrite, error) {
	if err := p.enter(ctx, "meta"); err != nil {
		return nil, err
	}
	defer p.gate.leave()
	var entries []mapstate.MetaWrite
	start := append(p.space(spaceMeta), prefix...)
	end := []byte(mapstate.PrefixEnd(mapstate.Key(start)))
	err := p.walk(ctx, "meta", start, end, func(name, value []byte) error {
		entries = append(entries, mapstate.MetaWrite{Name: string(name), Value: append([]byte{}, value...)})
		return nil
	})
	if err != nil {
		return nil, err
	}
	return entries, nil
}

// Scan implements mapstate.Scanner.
func (p *Pebble) Scan(ctx context.Context, r mapstate.Range, yield func(mapstate.Key, []byte) error) error {
	if err := p.enter(ctx, "scan"); err != nil {
		return err
	}
	defer p.gate.leave()
	if r.End != "" && r.Start >= r.End {
		return nil
	}
	// The smallest key above SnapshotKey is one zero byte.
	start, end := append(p.space(spaceRecords), max(r.Start, "\x00")...), p.space(spaceEnd)
	if r.End != "" {
		end = append(p.space(spaceRecords), r.End...)
	}
	return p.walk(ctx, "scan", start, end, func(key, record []byte) error {
		return yield(mapstate.Key(key), record)
	})
}

// walk visits the keys of one space from start to before end, without their
// prefix, as they are now.
func (p *Pebble) walk(ctx context.Context, op string, start, end []byte, visit func(rest, value []byte) error) (err error) {
	it, err := p.d.engine.NewIter(&pebble.IterOptions{LowerBound: start, UpperBound: end})
	if err != nil {
		return p.wrap(op, err)
	}
	defer func() {
		if closeErr := it.Close(); closeErr != nil && err == nil {
			err = p.wrap(op, closeErr)
		}
	}()
	seen := 0
	for ok := it.First(); ok; ok = it.Next() {
		value, err := it.ValueAndErr()
		if err != nil {
			return p.wrap(op, err)
		}
		if err := visit(it.Key()[prefixBytes:], value); err != nil {
			return err
		}
		// A visit may take long, so the gate is looked at after each.
		if seen++; seen%checkEvery == 0 || p.gate.isShut() {
			if err := p.goOn(ctx, op); err != nil {
				return err
			}
		}
	}
	return nil
}

// goOn fails where a long operation has to end early.
func (p *Pebble) goOn(ctx context.Context, op string) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%s: state %q: %w", op, p.name, err)
	}
	if p.gate.isShut() {
		return fmt.Errorf("%s: %w", op, p.gate.reason)
	}
	return nil
}
