package verify_test

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tine/mapstate"
	"tine/verify"
)

// patience bounds how long a fault may stay unseen; it is seen long before.
const patience = time.Minute

// journal is a store that keeps what was written, write by write.
type journal struct {
	mapstate.BackingMap
	mu      sync.Mutex
	written []mapstate.Writes
}

func (j *journal) Commit(ctx context.Context, w mapstate.Writes) (mapstate.Durable, error) {
	kept := mapstate.Writes{Sync: w.Sync}
	for _, r := range w.Records {
		r.Key, r.Record = mapstate.Key(strings.Clone(string(r.Key))), slices.Clone(r.Record)
		kept.Records = append(kept.Records, r)
	}
	for _, m := range w.Meta {
		kept.Meta = append(kept.Meta, mapstate.MetaWrite{Name: strings.Clone(m.Name), Value: slices.Clone(m.Value)})
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.written = append(j.written, kept)
	return j.BackingMap.Commit(ctx, w)
}

// forgetful is a store that does not give back which keys a batch touched, so that a
// whole replay restores nothing.
type forgetful struct{ mapstate.BackingMap }

func (f forgetful) Meta(ctx context.Context, prefix string) ([]mapstate.MetaWrite, error) {
	if strings.HasPrefix(prefix, "t") {
		return nil, nil
	}
	return f.BackingMap.Meta(ctx, prefix)
}

func TestAWholeReplayThatDoesNotRestoreIsFound(t *testing.T) {
	d := found(t, fault{store: func(s mapstate.BackingMap) mapstate.BackingMap { return forgetful{s} }},
		verify.Options{Seed: 2, Duration: patience, Histories: histories("opaque")})
	require.True(t, d.Reproduced)
	require.LessOrEqual(t, d.Steps, 5) // a batch, and its replay without one of its keys; open batches take three steps each
	require.Equal(t, "opaque", d.Spec.Kind)
}

// eager is a store with a cache that is filled before the store, and keeps what the
// store did not take. The store takes no writes of three records and more.
type eager struct {
	mapstate.BackingMap
	mu    sync.Mutex
	cache map[mapstate.Key][]byte
}

func (e *eager) MultiGet(ctx context.Context, keys []mapstate.Key) ([][]byte, error) {
	records, err := e.BackingMap.MultiGet(ctx, keys)
	e.mu.Lock()
	defer e.mu.Unlock()
	for i := range records {
		if cached, ok := e.cache[keys[i]]; ok {
			records[i] = cached
		}
	}
	return records, err
}

func (e *eager) Commit(ctx context.Context, w mapstate.Writes) (mapstate.Durable, error) {
	e.mu.Lock()
	for _, r := range w.Records {
		e.cache[mapstate.Key(strings.Clone(string(r.Key)))] = slices.Clone(r.Record)
	}
	e.mu.Unlock()
	if len(w.Records) >= 3 {
		return nil, mapstate.ErrUnavailable
	}
	return e.BackingMap.Commit(ctx, w)
}

func TestACacheThatKeepsWhatTheStoreDidNotTakeIsFound(t *testing.T) {
	d := found(t, fault{store: func(s mapstate.BackingMap) mapstate.BackingMap {
		return &eager{BackingMap: s, cache: map[mapstate.Key][]byte{}}
	}}, verify.Options{Seed: 2, Duration: patience, Histories: histories("transactional")})
	require.True(t, d.Reproduced)
	require.LessOrEqual(t, d.Steps, 3)
}

// ruled is a kind that resolves as it is told.
type ruled struct {
	mapstate.Kind
	resolve func(stored mapstate.Record, r *mapstate.Resolution)
}

func (k ruled) Resolve(stored mapstate.Record, x mapstate.TxID) (mapstate.Resolution, error) {
	r, err := k.Kind.Resolve(stored, x)
	if err == nil && r.Replay {
		k.resolve(stored, &r)
	}
	return r, err
}

func TestATransactionalKindThatDoesNotSkipReplaysIsFound(t *testing.T) {
	d := found(t, fault{kind: func(k mapstate.Kind) mapstate.Kind {
		return ruled{k, func(_ mapstate.Record, r *mapstate.Resolution) { r.Keep = false }}
	}}, verify.Options{Seed: 2, Duration: patience, Histories: histories("transactional")})
	require.True(t, d.Reproduced)
	require.LessOrEqual(t, d.Steps, 4)
}

func TestAnOpaqueKindThatOverwritesThePreviousValueIsFound(t *testing.T) {
	d := found(t, fault{kind: func(k mapstate.Kind) mapstate.Kind {
		return ruled{k, func(stored mapstate.Record, r *mapstate.Resolution) { r.Next.Prev = stored.Curr }}
	}}, verify.Options{Seed: 2, Duration: patience, Histories: histories("opaque")})
	require.True(t, d.Reproduced)
	require.LessOrEqual(t, d.Steps, 4)
	require.Contains(t, d.Expected+d.Got, "prev")
}

func TestAServerThatLosesItsLastBatchAtARestartIsFound(t *testing.T) {
	d := found(t, fault{restart: func(written []mapstate.Writes) []mapstate.Writes {
		return written[:max(0, len(written)-1)]
	}}, verify.Options{Seed: 2, Duration: 2 * time.Second, Kills: 5, Histories: histories("opaque")})
	require.True(t, d.Reproduced)
	require.LessOrEqual(t, d.Steps, 3) // a write and a kill
	require.Contains(t, d.Text, "kill")
}

// torn is a store whose reads see half of the keys before a write and half after it.
type torn struct {
	mapstate.BackingMap
	mu      sync.Mutex
	records map[mapstate.Key][]byte // as they were before the last write
}

func (s *torn) Commit(ctx context.Context, w mapstate.Writes) (mapstate.Durable, error) {
	keys := make([]mapstate.Key, len(w.Records))
	for i, r := range w.Records {
		keys[i] = mapstate.Key(strings.Clone(string(r.Key)))
	}
	before, err := s.BackingMap.MultiGet(ctx, keys)
	if err != nil {
		return nil, err
	}
	old := map[mapstate.Key][]byte{}
	for i, k := range keys {
		old[k] = before[i]
	}
	s.mu.Lock()
	s.records = old
	s.mu.Unlock()
	d, err := s.BackingMap.Commit(ctx, w)
	// A commit is over once a reader has had its chance to see half of it.
	s.mu.Lock()
	s.records = nil
	s.mu.Unlock()
	return d, err
}

func (s *torn) MultiGet(ctx context.Context, keys []mapstate.Key) ([][]byte, error) {
	s.mu.Lock()
	old := maps.Clone(s.records)
	s.mu.Unlock()
	records, err := s.BackingMap.MultiGet(ctx, keys)
	for i := range len(records) / 2 {
		if before, ok := old[keys[i]]; ok {
			records[i] = before
		}
	}
	return records, err
}

func TestReadsThatMixTwoBatchesAreFound(t *testing.T) {
	mirror := histories("opaque")
	mirror[0].Mirror = true
	d := found(t, fault{store: func(s mapstate.BackingMap) mapstate.BackingMap { return &torn{BackingMap: s} }},
		verify.Options{Seed: 2, Duration: patience, ShrinkFor: 3 * time.Second, Histories: mirror})
	require.Contains(t, d.What, "beside")
}
