package test

import (
	"context"
	"fmt"
	"maps"

	"tine/api"
	"tine/mapstate"
)

// group is the sinks of one state. Its methods may be called while they work.
type group struct {
	state  string
	spec   api.StateSpec
	shared bool // the sinks count into the same keys, in batches that they do together
	sinks  []*sink
}

// finished reports whether all sinks have finished a batch.
func (g *group) finished(x mapstate.TxID) bool {
	for _, s := range g.sinks {
		if mapstate.TxID(s.finished.Load()) < x {
			return false
		}
	}
	return true
}

// resume lets all sinks go on from the progress that the state tells, and returns how
// many batches that were answered are gone.
func (g *group) resume(all []mapstate.Progress, exact bool) (lost int, err error) {
	progress := make(map[string]mapstate.Progress)
	for _, p := range all {
		progress[p.Partition] = p
	}
	furthest := mapstate.NoTxID
	for _, s := range g.sinks {
		before := s.last()
		if err := s.resume(progress[s.partition], exact); err != nil {
			return 0, err
		}
		lost += max(0, int(before.txid-s.last().txid))
		furthest = max(furthest, s.last().txid)
	}
	// Who is as far as any may have to do that batch again.
	for _, s := range g.sinks {
		if x := s.last().txid; x == furthest && x > 1 && g.spec.Kind != "nontx" && s.random.IntN(2) == 0 {
			s.finished.Store(int64(x - 1))
		}
	}
	return lost, nil
}

// fold returns what the state holds where each partition is at a position of its
// source; one that has none has not begun.
func (g *group) fold(position func(*sink) (int64, bool)) map[mapstate.Key]int64 {
	counts := make(map[mapstate.Key]int64)
	for _, s := range g.sinks {
		at, begun := position(s)
		if begun {
			counts[s.positionKey()] = at
		}
		for i := range int(at) {
			counts[s.tuple(i)]++
		}
	}
	return counts
}

// holds returns what the state must hold now that its sinks are at rest.
func (g *group) holds() map[mapstate.Key]int64 {
	return g.fold(func(s *sink) (int64, bool) { return int64(s.last().to), s.last().txid != mapstate.NoTxID })
}

// scan reads the state as a stream and checks that it holds whole batches.
func (g *group) scan(ctx context.Context, client *api.Client) error {
	got, err := scanCounts(ctx, client, g.state)
	if err != nil {
		return err
	}
	return g.check(got, func(mapstate.Key) bool { return true })
}

// get reads the commonest keys with the positions and checks that they hold whole batches.
func (g *group) get(ctx context.Context, client *api.Client) error {
	var keys []mapstate.Key
	asked := make(map[mapstate.Key]bool)
	for _, s := range g.sinks {
		for _, k := range []mapstate.Key{s.positionKey(), s.key(0), s.key(1), s.key(2), s.key(3), s.key(8)} {
			if !asked[k] {
				asked[k] = true
				keys = append(keys, k)
			}
		}
	}
	values, err := client.MultiGet(ctx, g.state, mapstate.Envelope{}, keys)
	if err != nil {
		return err
	}
	got := make(map[mapstate.Key]int64)
	for i, v := range values {
		n, ok := v.AsInt()
		if ok {
			got[keys[i]] = n
		} else if !v.IsNone() {
			return fmt.Errorf("%w: %s of %s is %s", errTorn, keys[i], g.state, v)
		}
	}
	return g.check(got, func(k mapstate.Key) bool { return asked[k] })
}

// check compares what was read at once, of all keys that were asked for, with what the
// positions in it say.
func (g *group) check(got map[mapstate.Key]int64, asked func(mapstate.Key) bool) error {
	want := g.fold(func(s *sink) (int64, bool) {
		at, begun := got[s.positionKey()]
		return at, begun
	})
	maps.DeleteFunc(want, func(k mapstate.Key, _ int64) bool { return !asked(k) })
	if maps.Equal(want, got) {
		return nil
	}
	for k := range want {
		if got[k] != want[k] {
			return fmt.Errorf("%w: %s of %s is %d instead of %d: %v", errTorn, k, g.state, got[k], want[k], got)
		}
	}
	return fmt.Errorf("%w: %s holds %v, which should be %v", errTorn, g.state, got, want)
}

// scanCounts returns all entries of a state of integers, as a stream has them.
func scanCounts(ctx context.Context, client *api.Client, state string) (map[mapstate.Key]int64, error) {
	counts := make(map[mapstate.Key]int64)
	err := client.Scan(ctx, state, api.Listing{}, func(k mapstate.Key, e mapstate.Entry) error {
		n, ok := e.Value.AsInt()
		if _, again := counts[k]; again || !ok {
			return fmt.Errorf("%w: %s of %s is %s, or comes twice", errTorn, k, state, e.Value)
		}
		counts[k] = n
		return nil
	})
	return counts, err
}
