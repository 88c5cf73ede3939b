package verify

import (
	"context"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
)

// tail is how many steps are shown of a history that does not show its difference again.
const tail = 40

// find looks for the smallest history that shows a difference as d does.
func (v *verification) find(ctx context.Context, d *Difference) (*Finding, error) {
	at := slices.IndexFunc(v.runners, func(r *runner) bool { return r.state == d.State })
	h := v.runners[at].taken
	s := &shrinker{try: v.try, until: time.Now().Add(v.opts.ShrinkFor), best: h, diff: d}
	reproduced := false
	for range 3 {
		if reproduced = s.accepts(ctx, h.Steps); reproduced {
			break
		}
	}
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
