package verify

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"tine/api"
	"tine/mapstate"
	"tine/verify/oracle"
)

// fenceTries bounds the writes that a server may refuse in a row for reasons that pass.
const fenceTries = 100

// runner takes one state of a site through one history, step by step, and knows at
// each what must be answered. One goroutine uses it.
type runner struct {
	site  *site
	state string
	idle  time.Duration // how long the server keeps an open batch; 0: not known
	pool  []mapstate.Key

	random  *rand.Rand // how long it takes until a fault strikes
	at      endpoint   // that the steps so far have seen
	taken   History    // the steps so far, with the faults that befell them
	belief  *belief
	batches map[batchID]*openBatch
	figures Figures

	// onRestart is told of restarts; nil is nobody.
	onRestart func()
}

func newRunner(s *site, state string, h History, idle time.Duration, random *rand.Rand) *runner {
	return &runner{
		site: s, state: state, idle: idle, pool: keyPool(h.Mirror), random: random,
		at: s.now(), taken: h.with(nil), belief: newBelief(h), batches: map[batchID]*openBatch{},
	}
}

// create makes the state.
func (r *runner) create(ctx context.Context) error {
	_, created, err := r.at.client.CreateState(ctx, r.state, r.taken.Spec)
	if err == nil && !created {
		err = mapstate.ErrStateExists
	}
	if err != nil {
		return fmt.Errorf("create state %s: %w", r.state, err)
	}
	return nil
}

// step takes one step. A *Difference says that the server answered or holds what
// it must not; any other error, that the run cannot go on.
func (r *runner) step(ctx context.Context, s Step) error {
	if err := r.catchUp(ctx); err != nil {
		return err
	}
	if r.isOpenQuestion(s) {
		r.figures.LeftOut++
		return nil
	}
	r.taken.Steps = append(r.taken.Steps, s)
	r.figures.Steps++
	switch s.Verb {
	case Check:
		return r.check(ctx)
	case Idle:
		return r.waitForDrop(ctx)
	case Kill, Stop:
		if err := r.site.restart(ctx, s.Verb == Kill); err != nil {
			return err
		}
		return r.resume(ctx, r.site.now())
	}
	return r.call(ctx, s)
}

// catchUp takes in restarts of the server since the last step.
func (r *runner) catchUp(ctx context.Context) error {
	now := r.site.now()
	switch {
	case now.err != nil:
		return now.err
	case now.life() == r.at.life():
		return nil
	}
	verb := Stop
	if now.since(r.at.life()).killed {
		verb = Kill
	}
	r.taken.Steps = append(r.taken.Steps, Step{Verb: verb})
	return r.resume(ctx, now)
}

// resume takes in that the server was ended and lives again, and looks at what it
// came back with.
func (r *runner) resume(ctx context.Context, now endpoint) error {
	switch {
	case now.err != nil:
		return now.err
	case now.life() == r.at.life():
		return nil
	}
	how := now.since(r.at.life())
	r.at = now
	r.belief.restarted(how.killed, how.at)
	clear(r.batches)
	if r.onRestart != nil {
		r.onRestart()
	}
	return r.check(ctx)
}

// call sends a call and compares its answer.
func (r *runner) call(ctx context.Context, s Step) error {
	r.doubtIdleBatches()
	if len(r.belief.now) > maxDoubt && s.Fault == Cut {
		s.Fault = NoFault
	}
	got := r.send(ctx, s)
	at := time.Now()
	switch {
	case errors.Is(got.err, errAnswerLost):
		r.belief.lost(s, at)
		r.figures.LostAnswers++
		r.track(s, answer{}, false)
	case isKnown(got.err):
		want, ok := r.belief.answered(s, got, at)
		if !ok {
			return r.difference(fmt.Sprintf("the answer to %s %s", s.Verb, describe(s)), want.String(), got.String())
		}
		r.track(s, got, true)
		r.figures.count(s, got)
		if s.Fault == Killed || s.Fault == Stopped { // after its answer
			return r.resume(ctx, r.site.now())
		}
	case ctx.Err() != nil:
		return ctx.Err()
	default:
		return r.unanswered(ctx, s, got.err, at)
	}
	return nil
}

// isKnown reports whether an answer says if the call was carried out.
func isKnown(err error) bool {
	if err == nil {
		return true
	}
	problem := new(api.Problem)
	return errors.As(err, &problem) && !isTemporary(err)
}

// isTemporary reports whether a server could not do what it was asked for a reason
// that passes. A writer then sends the same again.
func isTemporary(err error) bool {
	for _, passes := range []error{mapstate.ErrOverloaded, mapstate.ErrUnavailable, mapstate.ErrDiskFull, mapstate.ErrShuttingDown} {
		if errors.Is(err, passes) {
			return true
		}
	}
	return false
}

// send sends a call, and lets its fault befall it.
func (r *runner) send(ctx context.Context, s Step) (got answer) {
	delay := time.Duration(r.random.Int64N(int64(2 * time.Millisecond)))
	switch s.Fault {
	case Lost:
		return call(ctx, r.at.lossy, r.state, s)
	case Cut:
		ctx, cancel := context.WithCancel(ctx)
		traced, wait := onceWritten(ctx, func() {
			time.Sleep(delay)
			cancel()
		})
		got = call(traced, r.at.client, r.state, s)
		wait()
		return got
	case Killed, Stopped:
		traced, wait := onceWritten(ctx, func() {
			time.Sleep(delay)
			_ = r.site.restart(ctx, s.Fault == Killed) // the site knows
		})
		got = call(traced, r.at.client, r.state, s)
		wait()
		return got
	}
	return call(ctx, r.at.client, r.state, s)
}

// unanswered takes in a call of which it is not known whether it was carried out,
// and finds out as a writer would.
func (r *runner) unanswered(ctx context.Context, s Step, err error, at time.Time) error {
	if s.Verb.writes() {
		r.belief.doubted(s, at)
		r.track(s, answer{}, false)
	}
	now := r.site.now()
	switch {
	case now.life() != r.at.life():
		fault := &r.taken.Steps[len(r.taken.Steps)-1].Fault
		if *fault = Stopped; now.since(r.at.life()).killed {
			*fault = Killed
		}
		return r.resume(ctx, now)
	case isTemporary(err):
		r.figures.Unavailable++
		return r.check(ctx)
	case s.Fault != Cut:
		return fmt.Errorf("%s on state %s: %w", s.Verb, r.state, err)
	}
	r.figures.LostAnswers++
	if !s.Verb.writes() {
		return nil
	}
	return r.fence(ctx, s)
}

// fence makes sure that a step that was cut off, and may still be under way, does not come
// after what we are going to find.
func (r *runner) fence(ctx context.Context, s Step) error {
	for range fenceTries {
		before := r.figures.Unavailable
		if err := r.call(ctx, fence(s)); err != nil {
			return err
		}
		if r.figures.Unavailable == before {
			return r.check(ctx)
		}
	}
	return fmt.Errorf("state %s: the server takes no writes: it refused %d in a row", r.state, fenceTries)
}

// fence is the step that keeps an earlier one, which may still be under way, from
// being carried out from now on: it takes over with a higher epoch.
func fence(s Step) Step {
	env := mapstate.Envelope{Partition: s.Env.Partition, Epoch: s.Env.Epoch + 1}
	return Step{Verb: MultiUpdate, Env: env, Keys: []mapstate.Key{}, Role: Takeover}
}

// waitForDrop waits until the server has dropped what is open.
func (r *runner) waitForDrop(ctx context.Context) error {
	if r.idle == 0 || len(r.batches) == 0 {
		return nil
	}
	timer := time.NewTimer(r.idle + time.Second) // the server's timer is not ours
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return ctx.Err()
	}
	r.figures.Idles++
	clear(r.batches)
	r.belief.dropped()
	return nil
}

// doubtAfter is how long a batch may be unused until it is doubtful, on a server whose
// limit is not known: it is seconds at least, or nobody could work with it.
const doubtAfter = time.Second

// doubtIdleBatches takes in that batches that were not used for long may be gone.
func (r *runner) doubtIdleBatches() {
	limit := r.idle / 2
	if r.idle == 0 {
		limit = doubtAfter
	}
	for id, b := range r.batches {
		if !b.idle && time.Since(b.used) > limit {
			b.idle, b.doubtful = true, true
			r.belief.perhaps(func(o *oracle.Map) {
				_ = o.Abort(mapstate.Envelope{TxID: id.txid, Partition: id.partition}) // or it was not open
			})
		}
	}
}

// difference describes what the server did wrong.
func (r *runner) difference(what, want, got string) *Difference {
	return &Difference{State: r.state, Spec: r.taken.Spec, Step: len(r.taken.Steps), What: what, Expected: want, Got: got}
}
