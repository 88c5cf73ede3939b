package verify

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
)

// tail is how many steps are shown of a history that does not show its difference again.
const tail = 40

// reproductions is how often a history is tried until its difference counts as a race.
const reproductions = 10

// find looks for the smallest history that shows a difference as d does.
func (v *verification) find(ctx context.Context, d *Difference) (*Finding, error) {
	at := slices.IndexFunc(v.runners, func(r *runner) bool { return r.state == d.State })
	h := v.runners[at].taken
	s := &shrinker{try: v.try, until: time.Now().Add(v.opts.ShrinkFor), best: h, diff: d}
	reproduced := v.reproduces(ctx, s, h.Steps)
	if reproduced {
		s.shrink(ctx)
	} else {
		s.best = h.with(h.Steps[max(0, len(h.Steps)-tail):])
	}
	s.diff.State = d.State // its name while it was tried says nothing
	file, err := s.best.replayFile(d.State)
	return &Finding{
		Difference: *s.diff, Reproduced: reproduced, Steps: len(s.best.Steps),
		Text: s.best.text(), Replay: file, History: s.best,
	}, err
}

// reproduces runs a history again until it shows a difference: as it was, and then with
// each call that may or may not have been carried out settled one way or the other.
func (v *verification) reproduces(ctx context.Context, s *shrinker, steps []Step) bool {
	random := rand.New(rand.NewPCG(v.opts.Seed, 1<<34))
	ways := []func() bool{
		func() bool { return true },
		func() bool { return false },
		func() bool { return random.IntN(2) == 0 },
	}
	for n := range reproductions {
		if s.accepts(ctx, steps) || s.accepts(ctx, settled(steps, ways[min(n, len(ways)-1)])) {
			return true
		}
	}
	return false
}

// settled returns steps in which no call is in doubt: carriedOut decides whether one
// that was is there, with its answer lost, or is not.
func settled(steps []Step, carriedOut func() bool) []Step {
	var all []Step
	for _, s := range steps {
		var then Step
		switch {
		case s.Fault == Killed:
			then = Step{Verb: Kill}
		case s.Fault == Stopped:
			then = Step{Verb: Stop}
		case s.Fault == Cut && s.Verb.writes():
			then = fence(s)
		default:
			all = append(all, s)
			continue
		}
		if s.Fault = Lost; carriedOut() {
			all = append(all, s)
		}
		all = append(all, then)
	}
	return all
}

// try runs a history alone, on a fresh state that is deleted afterwards.
func (v *verification) try(ctx context.Context, h History) (History, *Difference) {
	v.tries++
	r := v.runner(fmt.Sprintf("%s-try-%d", v.opts.Prefix, v.tries), h, uint64(v.tries))
	if r.at.err != nil || r.create(ctx) != nil {
		return h, nil
	}
	group, running := errgroup.WithContext(ctx)
	done := make(chan struct{})
	group.Go(func() error {
		defer close(done)
		return r.replay(running, h.Steps)
	})
	v.watch(running, group, r.state, h, done)
	d := asDifference(group.Wait())
	// A state that cannot be deleted is in nobody's way: the server is ours, or in trouble.
	_ = v.site.now().client.DeleteState(ctx, r.state)
	return r.taken, d
}

// replay takes the steps of a history, and then looks at what is stored.
func (r *runner) replay(ctx context.Context, steps []Step) error {
	for _, s := range steps {
		if err := r.step(ctx, s); err != nil {
			return err
		}
	}
	return r.finish(ctx)
}
