package backing

import (
	"sync"
	"time"
)

// syncer calls sync once, an interval after the first of any number of calls to
// arm. Between two such rounds it has no timer and no goroutine.
type syncer struct {
	interval time.Duration
	sync     func()

	mu     sync.Mutex
	timer  *time.Timer
	armed  bool
	closed bool
	rounds sync.WaitGroup
}

func newSyncer(interval time.Duration, sync func()) *syncer {
	return &syncer{interval: interval, sync: sync}
}

// arm asks for a sync within the interval of everything written so far.
func (s *syncer) arm() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.armed || s.closed {
		return
	}
	s.armed = true
	s.rounds.Add(1)
	if s.timer == nil {
		s.timer = time.AfterFunc(s.interval, s.round)
		return
	}
	s.timer.Reset(s.interval)
}

func (s *syncer) round() {
	defer s.rounds.Done()
	s.mu.Lock()
	s.armed = false // before the sync: what is written from here on is not in it
	s.mu.Unlock()
	s.sync()
}

// close stops the timer and waits for a sync that has begun. What was armed for
// is left to the caller.
func (s *syncer) close() {
	s.mu.Lock()
	s.closed = true
	if s.armed && s.timer.Stop() {
		s.armed = false
		s.rounds.Done()
	}
	s.mu.Unlock()
	s.rounds.Wait()
}
