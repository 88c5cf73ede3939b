package backing

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"

	"github.com/cockroachdb/pebble/v2"

	"tine/mapstate"
)

const (
	// sortFrom is how many keys are worth reading in order.
	sortFrom = 16
	// splitFrom is how many keys are worth reading on two goroutines. More than two
	// gain nothing on the machines measured.
	splitFrom = 256
	// Sizes of the buffers that records are copied into; each is twice the one
	// before, up to the limit, unless a record is larger.
	minArenaBytes = 1 << 10
	maxArenaBytes = 64 << 10
)

// MultiGet implements mapstate.Getter. It reads the live store, and where a
// commit became visible meanwhile, again through a snapshot. A snapshot for every
// read would be simpler, but closing one has the engine look for compactions.
func (p *Pebble) MultiGet(ctx context.Context, keys []mapstate.Key) ([][]byte, error) {
	if err := p.enter(ctx, "get"); err != nil {
		return nil, err
	}
	defer p.gate.leave()
	before := p.visible.Load()
	records, err := p.read(ctx, p.d.engine, keys)
	if err != nil || len(keys) < 2 || p.begun.Load() == before {
		return records, err
	}
	snapshot := p.d.engine.NewSnapshot()
	records, err = p.read(ctx, snapshot, keys)
	if closeErr := p.d.closeSnapshot(snapshot); closeErr != nil && err == nil {
		err = p.wrap("get", closeErr)
	}
	return records, err
}

// closeSnapshot closes a snapshot. To look for compactions the engine waits for the
// manifest, for ever where that could not be written: the snapshot is then left to it.
func (d *Database) closeSnapshot(s *pebble.Snapshot) error {
	closed := make(chan error, 1)
	go func() { closed <- s.Close() }()
	select {
	case err := <-closed:
		return err
	case <-d.disk.parked:
		return nil
	}
}

// read reads keys from r: in key order where they are many, since neighbours
// share blocks, and on two goroutines where they are very many.
func (p *Pebble) read(ctx context.Context, r pebble.Reader, keys []mapstate.Key) ([][]byte, error) {
	records := make([][]byte, len(keys))
	if len(keys) < sortFrom {
		g := p.getter(r, keys, records)
		for i := range keys {
			if err := g.get(i); err != nil {
				return nil, err
			}
		}
		return records, nil
	}
	order := ordered(len(keys), func(i int) mapstate.Key { return keys[i] })
	if len(keys) < splitFrom || runtime.GOMAXPROCS(0) == 1 {
		if err := p.readOrdered(ctx, r, keys, order, records); err != nil {
			return nil, err
		}
		return records, nil
	}
	half := len(order) / 2
	var upper error
	var wg sync.WaitGroup
	wg.Go(func() { upper = p.readOrdered(ctx, r, keys, order[half:], records) })
	lower := p.readOrdered(ctx, r, keys, order[:half], records)
	wg.Wait()
	if lower != nil || upper != nil {
		return nil, errors.Join(lower, upper)
	}
	return records, nil
}

// readOrdered reads the keys at the positions of order.
func (p *Pebble) readOrdered(ctx context.Context, r pebble.Reader, keys []mapstate.Key, order []int32, records [][]byte) error {
	g := p.getter(r, keys, records)
	for n, i := range order {
		if n%checkEvery == checkEvery-1 {
			if err := p.goOn(ctx, "get"); err != nil {
				return err
			}
		}
		if n > 0 && keys[order[n-1]] == keys[i] {
			if err := g.again(int(i), int(order[n-1])); err != nil {
				return err
			}
			continue
		}
		if err := g.get(int(i)); err != nil {
			return err
		}
	}
	return nil
}

// getter reads records into buffers that they share.
type getter struct {
	p       *Pebble
	r       pebble.Reader
	keys    []mapstate.Key
	records [][]byte
	key     []byte // the prefix, and the key last read
	arena   []byte // the buffer being filled
	bytes   int    // of the records so far
}

func (p *Pebble) getter(r pebble.Reader, keys []mapstate.Key, records [][]byte) getter {
	return getter{p: p, r: r, keys: keys, records: records, key: p.space(spaceRecords)}
}

// get reads the record of the key at position i.
func (g *getter) get(i int) error {
	g.key = append(g.key[:prefixBytes], g.keys[i]...)
	value, closer, err := g.r.Get(g.key)
	if errors.Is(err, pebble.ErrNotFound) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("key %s: %w", g.keys[i], g.p.wrap("get", err))
	}
	if len(value) > cap(g.arena)-len(g.arena) {
		g.arena = make([]byte, 0, max(minArenaBytes, min(2*cap(g.arena), maxArenaBytes), len(value)))
	}
	start := len(g.arena)
	g.arena = append(g.arena, value...)
	g.records[i] = g.arena[start:len(g.arena):len(g.arena)]
	if err := closer.Close(); err != nil {
		return g.p.wrap("get", err)
	}
	return g.count(i)
}

// again gives the position i the record of another position that has its key.
func (g *getter) again(i, other int) error {
	g.records[i] = g.records[other]
	return g.count(i)
}

// count adds the record at position i to what one read may have.
func (g *getter) count(i int) error {
	if g.bytes += len(g.records[i]); g.bytes > mapstate.MaxReadBytes {
		return mapstate.TooMuchToRead()
	}
	return nil
}
