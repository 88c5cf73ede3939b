package verify

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"

	"tine/api"

	"golang.org/x/sync/errgroup"
)

// Options of Run.
type Options struct {
	Server     Server
	Seed       uint64
	Duration   time.Duration
	Kills      int           // of Server, at random moments; besides these it is stopped in order now and then
	Partitions int           // writers of each state; 0 is 3
	BatchIdle  time.Duration // how long the server keeps an open batch that nobody uses; 0: not known
	ShrinkFor  time.Duration // for the smallest history to be found; 0 is 30 s
	Prefix     string        // of the states' names; "" is one that nobody else has

	// Histories are the states, without steps; nil is all kinds and durabilities with
	// different caches, and one that readers watch.
	Histories []History
	// Progress is called now and then; nil is nobody.
	Progress func(done, total time.Duration)
}

// Histories returns the states of a verification.
func Histories() []History {
	state := func(kind, durability string, cache int64) History {
		return History{Spec: api.StateSpec{Kind: kind, Durability: durability, Cache: &api.CacheSpec{Entries: cache}}}
	}
	mirror := state("opaque", "sync", 1000)
	mirror.Mirror = true
	return []History{
		state("opaque", "sync", 0), state("opaque", "sync", 2), state("opaque", "interval", 1000),
		state("transactional", "sync", 2), state("transactional", "interval", 0),
		state("nontx", "sync", 1000), state("nontx", "interval", 2),
		mirror,
	}
}

func (o Options) withDefaults() Options {
	if o.Partitions == 0 {
		o.Partitions = 3
	}
	if o.ShrinkFor == 0 {
		o.ShrinkFor = 30 * time.Second
	}
	if o.Prefix == "" {
		o.Prefix = fmt.Sprintf("verify-%08x", rand.Uint32())
	}
	if o.Histories == nil {
		o.Histories = Histories()
	}
	if o.Progress == nil {
		o.Progress = func(time.Duration, time.Duration) {}
	}
	return o
}

// Run sends random histories to the server for so long, one per state and all side by
// side, and reports what was done and whether anything differed from what is promised.
// An error says that the run could not go on, and why; the report then says how far it
// came. The states are made for this and deleted afterwards. When ctx ends the report
// says that it was interrupted.
func Run(ctx context.Context, opts Options) (Report, error) {
	v := &verification{opts: opts.withDefaults()}
	if !v.opts.isServerOurs() && v.opts.Kills > 0 {
		return Report{}, fmt.Errorf("kills are %d: %w", v.opts.Kills, ErrNotOurs)
	}
	v.site = newSite(v.opts.Server)
	defer v.site.close()
	started := time.Now()
	for i, h := range v.opts.Histories {
		r := v.runner(fmt.Sprintf("%s-%d", v.opts.Prefix, i), h, uint64(i))
		if err := r.create(ctx); err != nil {
			return v.report(started), errors.Join(err, v.cleanUp(ctx))
		}
		v.runners = append(v.runners, r)
	}
	err := v.live(ctx)
	report := v.report(started)
	report.Interrupted = ctx.Err() != nil
	if d := asDifference(err); d != nil {
		report.Difference, err = v.find(ctx, d)
	} else if report.Interrupted {
		err = nil // whatever it is, it comes of that
	}
	return report, errors.Join(err, v.cleanUp(ctx))
}

func (o *Options) isServerOurs() bool {
	_, foreign := o.Server.(Running)
	return !foreign
}

// verification is a Run under way.
type verification struct {
	opts    Options
	site    *site
	runners []*runner
	reads   atomic.Int64
	kills   int64
	stops   int64
	tries   int
}

func (v *verification) runner(state string, h History, stream uint64) *runner {
	const delays = 1 << 32 // apart from what makes the steps
	return newRunner(v.site, state, h, v.opts.BatchIdle, rand.New(rand.NewPCG(v.opts.Seed, delays+stream)))
}

// live runs all histories side by side until the time is up and all kills are done.
func (v *verification) live(ctx context.Context) error {
	group, running := errgroup.WithContext(ctx)
	done := make(chan struct{})
	group.Go(func() error {
		defer close(done)
		return v.strike(ctx, running)
	})
	for i, r := range v.runners {
		h := v.opts.Histories[i]
		g := newGenerator(rand.New(rand.NewPCG(v.opts.Seed, uint64(i))), h, v.opts.Partitions)
		r.onRestart = g.restarted
		group.Go(func() error { return r.follow(running, g.next, done) })
		v.watch(running, group, r.state, h, done)
	}
	return group.Wait()
}

// watch starts the readers of a mirrored state.
func (v *verification) watch(ctx context.Context, group *errgroup.Group, state string, h History, done <-chan struct{}) {
	if !h.Mirror {
		return
	}
	for range 2 {
		group.Go(func() error {
			reads, err := readMirror(ctx, v.site, state, h, done)
			v.reads.Add(reads)
			return err
		})
	}
}

// follow takes steps until done is closed, and then looks at what is stored.
func (r *runner) follow(ctx context.Context, next func() Step, done <-chan struct{}) error {
	for {
		select {
		case <-done:
			return r.finish(ctx)
		case <-ctx.Done():
			return ctx.Err()
		default:
		}
		if err := r.step(ctx, next()); err != nil {
			return err
		}
	}
}

// strike ends the server at random moments until the time is up, or running ends. A
// restart under way is finished, unless ctx ends.
func (v *verification) strike(ctx, running context.Context) error {
	type blow struct {
		after time.Duration
		kill  bool
	}
	random := rand.New(rand.NewPCG(v.opts.Seed, 1<<33))
	var blows []blow
	for i := range v.opts.Kills + (v.opts.Kills+2)/3 {
		blows = append(blows, blow{time.Duration(random.Int64N(int64(v.opts.Duration))), i < v.opts.Kills})
	}
	slices.SortFunc(blows, func(a, b blow) int { return int(a.after - b.after) })
	started := time.Now()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		past := time.Since(started)
		v.opts.Progress(min(past, v.opts.Duration), v.opts.Duration)
		switch {
		case len(blows) > 0 && past >= blows[0].after:
			if err := v.site.restart(ctx, blows[0].kill); err != nil {
				return err
			}
			if blows[0].kill {
				v.kills++
			} else {
				v.stops++
			}
			blows = blows[1:]
		case len(blows) == 0 && past >= v.opts.Duration:
			return nil
		}
		select {
		case <-tick.C:
		case <-running.Done():
			return running.Err()
		}
	}
}

func (v *verification) report(started time.Time) Report {
	report := Report{Seed: v.opts.Seed, Seconds: round(time.Since(started)), States: len(v.runners), Partitions: v.opts.Partitions}
	for _, r := range v.runners {
		report.add(r.figures)
	}
	report.Kills, report.Stops, report.Reads = v.kills, v.stops, v.reads.Load()
	return report
}

// cleanUp deletes the states, even if ctx has ended, unless the server is gone.
func (v *verification) cleanUp(ctx context.Context) error {
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), answerTimeout)
	defer cancel()
	var errs []error
	for _, r := range v.runners {
		if now := v.site.now(); now.err == nil && (!v.opts.isServerOurs() || ctx.Err() == nil) {
			errs = append(errs, now.client.DeleteState(bounded, r.state))
		}
	}
	return errors.Join(errs...)
}
