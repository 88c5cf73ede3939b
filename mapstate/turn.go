package mapstate

import (
	"context"
	"fmt"
	"sync/atomic"
)

// turn is the ownership of a state: one holder at a time, and a bounded number of
// waiters.
type turn struct {
	holder  chan struct{} // holds one token when the turn is free
	waiting atomic.Int64
	max     int64
}

func newTurn(maxWaiting int) *turn {
	t := &turn{holder: make(chan struct{}, 1), max: int64(maxWaiting)}
	t.holder <- struct{}{}
	return t
}

// take waits for the turn. Whoever takes it passes it on.
func (t *turn) take(ctx context.Context) error {
	select {
	case <-t.holder:
		return nil
	default:
	}
	if n := t.waiting.Add(1); n > t.max {
		t.waiting.Add(-1)
		return fmt.Errorf("%w: %d requests already wait for this state, the limit", ErrOverloaded, t.max)
	}
	defer t.waiting.Add(-1)
	select {
	case <-t.holder:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (t *turn) pass() { t.holder <- struct{}{} }
