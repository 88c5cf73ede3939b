package backing

import (
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/stretchr/testify/require"
)

// engineStub is an engine that has a number of compactions waiting.
type engineStub struct {
	mu      sync.Mutex
	allowed int
	waiting int
	started []pebble.CompactionGrantHandle
}

var _ pebble.DBForCompaction = (*engineStub)(nil)

func (e *engineStub) GetAllowedWithoutPermission() int { return e.allowed }

func (e *engineStub) GetWaitingCompaction() (bool, pebble.WaitingCompaction) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.waiting > 0, pebble.WaitingCompaction{}
}

func (e *engineStub) Schedule(h pebble.CompactionGrantHandle) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.waiting == 0 {
		return false
	}
	e.waiting--
	e.started = append(e.started, h)
	return true
}

func (e *engineStub) count() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.started)
}

func TestSchedulerRunsAsManyCompactionsAsAllowed(t *testing.T) {
	engine := &engineStub{allowed: 2}
	s := new(scheduler)
	s.Register(1, engine)
	defer s.Unregister()
	for range 2 {
		ok, h := s.TrySchedule()
		require.True(t, ok)
		require.NotNil(t, h)
	}
	ok, _ := s.TrySchedule()
	require.False(t, ok, "two of two are running")

	engine.waiting = 3
	s.Done()
	require.Equal(t, 1, engine.count(), "the end of one starts the next")
	s.Done()
	s.Done()
	require.Equal(t, 3, engine.count())
	ok, _ = s.TrySchedule()
	require.False(t, ok)
	s.Done()
	s.Done()
	ok, _ = s.TrySchedule()
	require.True(t, ok, "what has ended is not counted")
	s.Done()
}

func TestSchedulerLooksAgainWhileCompactionsRun(t *testing.T) {
	engine := &engineStub{allowed: 1}
	s := new(scheduler)
	s.Register(1, engine)
	ok, _ := s.TrySchedule()
	require.True(t, ok)
	s.mu.Lock()
	engine.allowed, engine.waiting = 2, 1 // nobody says so
	s.mu.Unlock()
	require.Eventually(t, func() bool { return engine.count() == 1 }, time.Minute, lookAgain/10)
	s.Done()
	s.Done()
	require.Eventually(t, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.timer == nil
	}, time.Minute, lookAgain/10, "an idle scheduler has no timer")
	s.Unregister()
	ok, _ = s.TrySchedule()
	require.False(t, ok, "nothing starts after the end")
	s.UpdateGetAllowedWithoutPermission()
}
