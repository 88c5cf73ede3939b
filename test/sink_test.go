package test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"

	"tine/api"
	"tine/mapstate"
	"tine/mapstate/mapstatetest"
)

// sink is a partition of a job that writes to a state: it counts the tuples of an
// endless source, batch by batch, and resumes from the progress that the state keeps.
// Each batch also sets the position, so that who reads a state at once can tell what it
// must hold. One goroutine uses a sink at a time.
type sink struct {
	group     *group
	partition string
	random    *rand.Rand
	epoch     int64 // one higher with each resume

	// sent are the attempts since the last resume, behind what was there then; the
	// state holds one of them. The last that was answered is at answered.
	sent     []attempt
	answered int
	// finished is the last batch of which there will be no further attempt.
	finished atomic.Int64
}

// attempt is an attempt at a batch: the tuples from one position of the source to
// another. The zero attempt is none.
type attempt struct {
	txid     mapstate.TxID
	from, to int
}

func (s *sink) last() attempt { return s.sent[s.answered] }

// errTorn says that a state does not hold what its positions say.
var errTorn = errors.New("a batch is there by half")

// tuple is the key of a tuple of the source. Some keys come again and again, and new
// ones come all the time.
func (s *sink) tuple(i int) mapstate.Key {
	const golden = 0x9E3779B97F4A7C15
	mixed := (uint64(i) + 1) * golden >> 40
	return s.key(int(mixed % uint64(8+i/16)))
}

// key is one of the group's, or one of the sink's own.
func (s *sink) key(n int) mapstate.Key {
	if s.group.shared {
		return mapstatetest.Key("shared", n)
	}
	return mapstatetest.Key(s.partition, n)
}

func (s *sink) positionKey() mapstate.Key { return mapstatetest.Key("position", s.partition) }

// next draws the next attempt, if there is one: a replay of a batch that is not
// finished, on an opaque state with other tuples, or the next batch. Batches of the other
// kinds have as many tuples each. Sinks that share keys begin a batch when all have
// finished the one before.
func (s *sink) next() (a attempt, ok bool) {
	const size = 4
	last := s.last()
	opaque := s.group.spec.Kind == "opaque"
	switch {
	case last.txid > mapstate.TxID(s.finished.Load()) && opaque:
		return attempt{last.txid, last.from, last.from + s.random.IntN(2*size)}, true
	case last.txid > mapstate.TxID(s.finished.Load()):
		return last, true
	case s.group.shared && !s.group.finished(last.txid):
		return attempt{}, false
	case opaque:
		return attempt{last.txid + 1, last.to, last.to + s.random.IntN(2*size)}, true
	}
	return attempt{last.txid + 1, last.to, last.to + size}, true
}

// send sends an attempt: as one request, or to an opaque state also as an open batch.
func (s *sink) send(ctx context.Context, client *api.Client, a attempt) error {
	env := mapstate.Envelope{
		TxID: a.txid, Partition: s.partition, Epoch: s.epoch,
		Offsets: fmt.Appendf(nil, "[%d,%d]", a.from, a.to), Whole: s.group.spec.Kind == "opaque",
	}
	if env.Whole && s.random.IntN(2) == 0 {
		return s.sendOpen(ctx, client, env, a)
	}
	s.sent = append(s.sent, a)
	_, err := client.MultiUpdate(ctx, s.group.state, s.request(env, a.from, a.to))
	return s.answer(err)
}

// sendOpen sends an attempt as an open batch of two requests. One in eight is
// aborted instead of committed.
func (s *sink) sendOpen(ctx context.Context, client *api.Client, env mapstate.Envelope, a attempt) error {
	if _, err := client.BeginCommit(ctx, s.group.state, env); err != nil {
		return err
	}
	middle := a.from + (a.to-a.from)/2
	part := mapstate.Envelope{TxID: env.TxID, Partition: env.Partition, Epoch: env.Epoch}
	for _, request := range []api.Request{s.request(part, a.from, middle), s.request(part, middle, a.to)} {
		if _, err := client.MultiUpdate(ctx, s.group.state, request); err != nil {
			return err
		}
	}
	staged, err := client.MultiGet(ctx, s.group.state, part, []mapstate.Key{s.positionKey()})
	if err != nil {
		return err
	}
	if want := mapstate.Int(int64(a.to)); staged[0] != want {
		return fmt.Errorf("%w: in its own batch %s finds position %s instead of %s", errTorn, s.partition, staged[0], want)
	}
	if s.random.IntN(8) == 0 {
		return client.Abort(ctx, s.group.state, env)
	}
	s.sent = append(s.sent, a)
	_, err = client.Commit(ctx, s.group.state, env)
	return s.answer(err)
}

// answer notes the answer to the attempt that was sent last. One in four counts as
// lost where a replay is harmless: then the batch is not finished.
func (s *sink) answer(err error) error {
	if err != nil {
		return err
	}
	s.answered = len(s.sent) - 1
	if s.group.spec.Kind == "nontx" || s.random.IntN(4) > 0 {
		s.finished.Store(int64(s.last().txid))
	}
	return nil
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
	if !slices.Contains(possible, there) || p.Epoch > s.epoch {
		return fmt.Errorf("%s, epoch %d, resumes in %s at %v, epoch %d, which is none of %v",
			s.partition, s.epoch, s.group.state, there, p.Epoch, possible)
	}
	s.sent, s.answered = []attempt{there}, 0
	s.finished.Store(int64(there.txid))
	s.epoch++
	return nil
}
