package mapstate

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// Memory is a BackingMap on the heap. Nothing outlives the process, so every
// write is as durable as it will ever be when Commit returns.
type Memory struct {
	mu      sync.RWMutex
	records map[Key][]byte // never changed in place: readers share them
	meta    map[string][]byte
}

var _ BackingMap = (*Memory)(nil)

// NewMemory returns an empty Memory.
func NewMemory() *Memory {
	return &Memory{records: make(map[Key][]byte), meta: make(map[string][]byte)}
}

// checkEvery is how many records a long walk visits between two looks at its context.
const checkEvery = 256

// MultiGet implements Getter.
func (m *Memory) MultiGet(ctx context.Context, keys []Key) ([][]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("memory: get: %w", err)
	}
	records := make([][]byte, len(keys))
	m.mu.RLock()
	defer m.mu.RUnlock()
	total := 0
	for i, k := range keys {
		records[i] = m.records[k]
		if total += len(records[i]); total > MaxReadBytes {
			return nil, fmt.Errorf("memory: get: %w", TooMuchToRead())
		}
	}
	return records, nil
}

// Commit implements Committer. Keys and records are copied: those of a request
// often share one buffer, which a stored key must not keep alive.
func (m *Memory) Commit(ctx context.Context, w Writes) (Durable, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("memory: commit: %w", err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range w.Records {
		if r.Record == nil {
			delete(m.records, r.Key)
			continue
		}
		m.records[Key(strings.Clone(string(r.Key)))] = slices.Clone(r.Record)
	}
	for _, e := range w.Meta {
		if e.Value == nil {
			delete(m.meta, e.Name)
			continue
		}
		m.meta[strings.Clone(e.Name)] = slices.Clone(e.Value)
	}
	return NoWait, nil
}

// Meta implements MetaReader.
func (m *Memory) Meta(ctx context.Context, prefix string) ([]MetaWrite, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("memory: meta: %w", err)
	}
	m.mu.RLock()
	defer m.mu.RUnlock()
	var entries []MetaWrite
	for name, value := range m.meta {
		if strings.HasPrefix(name, prefix) {
			entries = append(entries, MetaWrite{Name: name, Value: slices.Clone(value)})
		}
	}
	slices.SortFunc(entries, func(a, b MetaWrite) int { return strings.Compare(a.Name, b.Name) })
	return entries, nil
}

// Scan implements Scanner. It works on a copy of the range, so that neither
// writers nor yield wait for the other.
func (m *Memory) Scan(ctx context.Context, r Range, yield func(Key, []byte) error) error {
	for i, w := range m.inRange(r) {
		if i%checkEvery == 0 {
			if err := ctx.Err(); err != nil {
				return fmt.Errorf("memory: scan: %w", err)
			}
		}
		if err := yield(w.Key, w.Record); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// inRange returns the records in r, in key order.
func (m *Memory) inRange(r Range) []Write {
	m.mu.RLock()
	var found []Write
	for k, record := range m.records {
		if k != SnapshotKey && k >= r.Start && (r.End == "" || k < r.End) {
			found = append(found, Write{Key: k, Record: record})
		}
	}
	m.mu.RUnlock()
	slices.SortFunc(found, func(a, b Write) int { return strings.Compare(string(a.Key), string(b.Key)) })
	return found
}
