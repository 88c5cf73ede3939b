package cache

import (
	"context"
	"fmt"
	"sync"

	"tine/mapstate"
)

// Options bound a Map, by whichever limit is reached first.
type Options struct {
	Entries int64 // 0: no cache, everything is passed on
	Bytes   int64 // of heap, counted with every entry's overhead; 0: no limit
}

// Stats are the figures of a Map. Hits and misses count keys.
type Stats struct {
	Entries, Bytes, Hits, Misses int64
}

// Map is a BackingMap with a strict LRU of records in front. Scans and the meta
// space are the backing's own.
type Map struct {
	mapstate.BackingMap
	lru *lru // nil: no cache

	// publish is held shared by a read and alone by a commit, over the cache and the
	// backing together.
	publish sync.RWMutex
}

var _ mapstate.BackingMap = (*Map)(nil)

// New returns a Map over next. Options that are not valid count as no cache, or
// no limit.
func New(next mapstate.BackingMap, opts Options) *Map {
	m := &Map{BackingMap: next}
	if opts.Entries > 0 {
		m.lru = newLRU(opts)
	}
	return m
}

// MultiGet implements mapstate.Getter.
func (m *Map) MultiGet(ctx context.Context, keys []mapstate.Key) ([][]byte, error) {
	if m.lru == nil {
		return m.BackingMap.MultiGet(ctx, keys)
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("cache: get: %w", err)
	}
	m.publish.RLock()
	defer m.publish.RUnlock()
	records := make([][]byte, len(keys))
	missing, err := m.lru.get(keys, records)
	if err != nil || len(missing) == 0 {
		return records, err
	}
	wanted := make([]mapstate.Key, len(missing))
	for n, i := range missing {
		wanted[n] = keys[i]
	}
	found, err := m.BackingMap.MultiGet(ctx, wanted)
	if err != nil {
		return nil, err
	}
	m.lru.fill(wanted, found)
	for n, i := range missing {
		records[i] = found[n]
	}
	return records, nil
}

// Commit implements mapstate.Committer.
func (m *Map) Commit(ctx context.Context, w mapstate.Writes) (mapstate.Durable, error) {
	if m.lru == nil {
		return m.BackingMap.Commit(ctx, w)
	}
	m.publish.Lock()
	defer m.publish.Unlock()
	d, err := m.BackingMap.Commit(ctx, w)
	if err != nil {
		m.lru.forget(w.Records) // written or not: the backing knows
		return nil, err
	}
	m.lru.apply(w.Records)
	if d == mapstate.NoWait {
		return d, nil
	}
	return &durable{Durable: d, lru: m.lru}, nil
}

// Stats returns the figures so far.
func (m *Map) Stats() Stats {
	if m.lru == nil {
		return Stats{}
	}
	return m.lru.stats()
}

// durable drops the whole cache where a write did not become durable. That is the
// end of the backing's writes in any case, so it need not remember its keys.
type durable struct {
	mapstate.Durable
	lru *lru
}

// Wait implements mapstate.Durable.
func (d *durable) Wait() error {
	err := d.Durable.Wait()
	if err != nil {
		d.lru.clear()
	}
	return err
}
