package verify

import (
	"context"
	"slices"
	"time"
)

// shrinker looks for a smaller history that still shows a difference.
type shrinker struct {
	// try runs a history on a fresh state and returns the difference it shows, nil for
	// none, with the steps that were taken up to there.
	try   func(context.Context, History) (History, *Difference)
	until time.Time

	best History
	diff *Difference
}

// isOver reports whether the time is up.
func (s *shrinker) isOver(ctx context.Context) bool {
	return ctx.Err() != nil || !time.Now().Before(s.until)
}

// accepts tries a history, and makes it the best one if it shows a difference.
func (s *shrinker) accepts(ctx context.Context, steps []Step) bool {
	if s.isOver(ctx) {
		return false
	}
	taken, d := s.try(ctx, s.best.with(steps))
	if d == nil {
		return false
	}
	s.best, s.diff = taken, d
	return true
}

// shrink drops what is not needed: runs of steps, long ones first, then keys and faults.
func (s *shrinker) shrink(ctx context.Context) {
	for before := -1; before != s.size() && !s.isOver(ctx); {
		before = s.size()
		for n := max(1, len(s.best.Steps)/2); n > 0; n /= 2 {
			s.dropRuns(ctx, n)
		}
		s.dropKeys(ctx)
		s.dropFaults(ctx)
	}
}

// size is what shrinks.
func (s *shrinker) size() int {
	n := 0
	for _, step := range s.best.Steps {
		n += 1 + len(step.Keys)
		if step.Fault != NoFault {
			n++
		}
	}
	return n
}

// dropRuns drops runs of n steps, from the end on.
func (s *shrinker) dropRuns(ctx context.Context, n int) {
	for start := len(s.best.Steps) - n; start >= 0; start -= n {
		steps := s.best.Steps
		if start+n > len(steps) { // fewer were taken
			continue
		}
		s.accepts(ctx, slices.Concat(steps[:start], steps[start+n:]))
	}
}

func (s *shrinker) dropKeys(ctx context.Context) {
	if s.best.Mirror {
		return // what makes it one is that all keys are written
	}
	for i := len(s.best.Steps) - 1; i >= 0; i-- {
		for k := 0; i < len(s.best.Steps) && k < len(s.best.Steps[i].Keys) && !s.best.Steps[i].isSnapshot(); {
			if !s.replaces(ctx, i, s.best.Steps[i].without(k)) {
				k++
			}
		}
	}
}

func (s *shrinker) dropFaults(ctx context.Context) {
	for i := len(s.best.Steps) - 1; i >= 0; i-- {
		if i < len(s.best.Steps) && s.best.Steps[i].Fault != NoFault {
			step := s.best.Steps[i]
			step.Fault = NoFault
			s.replaces(ctx, i, step)
		}
	}
}

// replaces tries the best history with another i-th step.
func (s *shrinker) replaces(ctx context.Context, i int, step Step) bool {
	steps := slices.Clone(s.best.Steps)
	steps[i] = step
	return s.accepts(ctx, steps)
}
