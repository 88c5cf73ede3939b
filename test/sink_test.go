package test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"

	"tine/api"
	"tine/mapstate"
	"tine/mapstate/mapstatetest"
)

// sink is a job's writer to one partition of a state: it counts the tuples of an
// endless source, batch by batch, and resumes from the progress that the state keeps.
// Each batch also sets the position, so that who reads all keys of a partition at
// once can tell what they must hold. One goroutine uses it at a time.
type sink struct {
	state, kind, partition string
	random                 *rand.Rand
	epoch                  int64 // one higher with each resume

	// sent are the attempts since the last resume, behind what was there then; the
	// state holds one of them. The last that was answered is at answered.
	sent     []attempt
	answered int
}

// attempt is an attempt at a batch: the tuples from one position of the source to
// another. The zero attempt is none.
type attempt struct {
	txid     mapstate.TxID
	from, to int
}

// errTorn says that a partition does not hold what its position says.
var errTorn = errors.New("a batch is there by half")

// tuple is the key of a tuple of the source. Some keys come again and again, and new
// ones come all the time.
func (s *sink) tuple(i int) mapstate.Key {
	const golden = 0x9E3779B97F4A7C15
	mixed := (uint64(i) + 1) * golden >> 40
	return s.key(int(mixed % uint64(8+i/16)))
}

func (s *sink) key(n int) mapstate.Key { return mapstatetest.Key(s.partition, n) }

func (s *sink) positionKey() mapstate.Key { return mapstatetest.Key(s.partition, "position") }

// fold returns what the partition holds at a position of the source.
func (s *sink) fold(position int) map[mapstate.Key]int64 {
	counts := map[mapstate.Key]int64{s.positionKey(): int64(position)}
	for i := range position {
		counts[s.tuple(i)]++
	}
	return counts
}

// next draws the next attempt. Some answers count as lost, then it is a replay: to an
// opaque state of other tuples. Batches of the other kinds have as many tuples each.
func (s *sink) next() attempt {
	const size = 4
	last := s.sent[s.answered]
	lost := last.txid != mapstate.NoTxID && s.random.IntN(4) == 0
	switch {
	case s.kind == "opaque" && lost:
		return attempt{last.txid, last.from, last.from + s.random.IntN(2*size)}
	case s.kind == "opaque":
		return attempt{last.txid + 1, last.to, last.to + s.random.IntN(2*size)}
	case s.kind == "transactional" && lost:
		return last
	}
	return attempt{last.txid + 1, last.to, last.to + size}
}

// send sends an attempt: as one request, or to an opaque state also as an open batch.
func (s *sink) send(ctx context.Context, client *api.Client, a attempt) error {
	env := mapstate.Envelope{
		TxID: a.txid, Partition: s.partition, Epoch: s.epoch,
		Offsets: fmt.Appendf(nil, "[%d,%d]", a.from, a.to), Whole: s.kind == "opaque",
	}
	if s.kind == "opaque" && s.random.IntN(2) == 0 {
		return s.sendOpen(ctx, client, env, a)
	}
	s.sent = append(s.sent, a)
	_, err := client.MultiUpdate(ctx, s.state, s.request(env, a.from, a.to))
	return s.answer(err)
}

// sendOpen sends an attempt as an open batch of two requests. One in eight is
// aborted instead of committed.
func (s *sink) sendOpen(ctx context.Context, client *api.Client, env mapstate.Envelope, a attempt) error {
	if _, err := client.BeginCommit(ctx, s.state, env); err != nil {
		return err
	}
	middle := a.from + (a.to-a.from)/2
	part := mapstate.Envelope{TxID: env.TxID, Partition: env.Partition, Epoch: env.Epoch}
	for _, request := range []api.Request{s.request(part, a.from, middle), s.request(part, middle, a.to)} {
		if _, err := client.MultiUpdate(ctx, s.state, request); err != nil {
			return err
		}
	}
	staged, err := client.MultiGet(ctx, s.state, part, []mapstate.Key{s.positionKey()})
	if err != nil {
		return err
	}
	if want := mapstate.Int(int64(a.to)); staged[0] != want {
		return fmt.Errorf("%w: in its own batch %s finds position %s instead of %s", errTorn, s.partition, staged[0], want)
	}
	if s.random.IntN(8) == 0 {
		return client.Abort(ctx, s.state, env)
	}
	s.sent = append(s.sent, a)
	_, err = client.Commit(ctx, s.state, env)
	return s.answer(err)
}

// answer notes the answer to the attempt that was sent last.
func (s *sink) answer(err error) error {
	if err == nil {
		s.answered = len(s.sent) - 1
	}
	return err
}

// request counts the tuples from one position to another, and sets the position.
func (s *sink) request(env mapstate.Envelope, from, to int) api.Request {
	request := api.Request{Envelope: env, NoValues: true}
	for i := from; i < to; i++ {
		request.Keys = append(request.Keys, s.tuple(i))
		request.Updaters = append(request.Updaters, api.Op{Name: "count"})
	}
	request.Keys = append(request.Keys, s.positionKey())
	request.Updaters = append(request.Updaters, api.Op{Name: "set", Arg: mapstate.Int(int64(to))})
	return request
}

// resume goes on from the progress that the state tells, the zero Progress if it
// tells of none. If exact, everything that was answered must be in it; else the
// last attempts may be gone.
func (s *sink) resume(p mapstate.Progress, exact bool) error {
	there := attempt{txid: p.TxID}
	if p.TxID != mapstate.NoTxID {
		var offsets [2]int
		if err := json.Unmarshal(p.Offsets, &offsets); err != nil {
			return fmt.Errorf("offsets %q: %w", p.Offsets, err)
		}
		there.from, there.to = offsets[0], offsets[1]
	}
	possible := s.sent
	if exact {
		possible = s.sent[s.answered:]
	}
	found := false
	for _, a := range possible {
		found = found || a == there
	}
	if !found || p.Epoch > s.epoch {
		return fmt.Errorf("%s, epoch %d, resumes in %s at %v, epoch %d, which is none of %v", s.partition, s.epoch, s.state, there, p.Epoch, possible)
	}
	s.sent, s.answered = []attempt{there}, 0
	s.epoch++
	return nil
}

// holds returns what the partition must hold now.
func (s *sink) holds() map[mapstate.Key]int64 {
	last := s.sent[s.answered]
	if last.txid == mapstate.NoTxID {
		return nil
	}
	return s.fold(last.to)
}

// scan reads the partition as a stream and checks that it holds whole batches.
func (s *sink) scan(ctx context.Context, client *api.Client) error {
	got, err := scanCounts(ctx, client, s.state, api.Listing{Prefix: fmt.Sprintf("[%q]", s.partition)})
	if err != nil {
		return err
	}
	position, begun := got[s.positionKey()]
	if want := s.fold(int(position)); begun && !maps.Equal(want, got) || !begun && len(got) > 0 {
		return fmt.Errorf("%w: a scan of %s at %s finds %v instead of %v", errTorn, s.state, s.partition, got, want)
	}
	return nil
}

// get reads the commonest keys with the position and checks that they hold whole batches.
func (s *sink) get(ctx context.Context, client *api.Client) error {
	keys := []mapstate.Key{s.positionKey()}
	for n := range 12 {
		keys = append(keys, s.key(n))
	}
	values, err := client.MultiGet(ctx, s.state, mapstate.Envelope{}, keys)
	if err != nil {
		return err
	}
	position, _ := values[0].AsInt()
	want := s.fold(int(position))
	for i, v := range values[1:] {
		if got, _ := v.AsInt(); got != want[keys[i+1]] || v.IsNone() != (got == 0) {
			return fmt.Errorf("%w: at position %d of %s, %s of %s is %s instead of %d",
				errTorn, position, s.partition, keys[i+1], s.state, v, want[keys[i+1]])
		}
	}
	return nil
}

// scanCounts returns the entries of a listing of integers.
func scanCounts(ctx context.Context, client *api.Client, state string, l api.Listing) (map[mapstate.Key]int64, error) {
	counts := make(map[mapstate.Key]int64)
	err := client.Scan(ctx, state, l, func(k mapstate.Key, e mapstate.Entry) error {
		n, ok := e.Value.AsInt()
		if _, again := counts[k]; again || !ok {
			return fmt.Errorf("%w: %s of %s is %s, or comes twice", errTorn, k, state, e.Value)
		}
		counts[k] = n
		return nil
	})
	return counts, err
}
