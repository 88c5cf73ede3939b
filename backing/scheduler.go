package backing

import (
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// lookAgain is how often the scheduler looks for compactions to start while
// others run.
const lookAgain = 100 * time.Millisecond

// scheduler starts the engine's compactions, as many at a time as the engine
// allows. It does what the engine's own does, except that it has no ticker: it
// looks when a compaction is asked for, when one ends, when a flush has changed
// what is allowed, and at intervals only while one runs. An idle database
// therefore uses no CPU.
type scheduler struct {
	db pebble.DBForCompaction

	granting sync.Mutex // held by the one goroutine that grants; taken before mu
	rounds   sync.WaitGroup

	mu      sync.Mutex
	running int
	timer   *time.Timer // armed while compactions run
	closed  bool
}

var (
	_ pebble.CompactionScheduler   = (*scheduler)(nil)
	_ pebble.CompactionGrantHandle = (*scheduler)(nil)
)

// Register implements pebble.CompactionScheduler.
func (s *scheduler) Register(_ int, db pebble.DBForCompaction) { s.db = db }

// Unregister implements pebble.CompactionScheduler. When it returns, nothing calls
// into the engine any more.
func (s *scheduler) Unregister() {
	s.mu.Lock()
	s.closed = true
	if s.timer != nil && s.timer.Stop() {
		s.rounds.Done()
	}
	s.mu.Unlock()
	s.granting.Lock()   // a grant under way ends first
	s.granting.Unlock() //nolint:staticcheck // to wait is all that is wanted
	s.rounds.Wait()
}

// TrySchedule implements pebble.CompactionScheduler.
func (s *scheduler) TrySchedule() (bool, pebble.CompactionGrantHandle) {
	if !s.reserve() {
		return false, nil
	}
	return true, s
}

// UpdateGetAllowedWithoutPermission implements pebble.CompactionScheduler. The
// engine holds its locks, so the look is on another goroutine.
func (s *scheduler) UpdateGetAllowedWithoutPermission() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.rounds.Go(s.grant)
	}
}

// Started implements pebble.CompactionGrantHandle.
func (s *scheduler) Started() {}

// MeasureCPU implements pebble.CompactionGrantHandle.
func (s *scheduler) MeasureCPU(pebble.CompactionGoroutineKind) {}

// CumulativeStats implements pebble.CompactionGrantHandle.
func (s *scheduler) CumulativeStats(pebble.CompactionGrantHandleStats) {}

// Done implements pebble.CompactionGrantHandle: a compaction has ended.
func (s *scheduler) Done() {
	s.release()
	s.grant()
}

// reserve counts one more compaction, if the engine allows one.
func (s *scheduler) reserve() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.running >= s.db.GetAllowedWithoutPermission() {
		return false
	}
	s.running++
	if s.timer == nil {
		s.rounds.Add(1)
		s.timer = time.AfterFunc(lookAgain, s.round)
	}
	return true
}

func (s *scheduler) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running--
}

// grant starts waiting compactions until none waits or no more are allowed.
func (s *scheduler) grant() {
	s.granting.Lock()
	defer s.granting.Unlock()
	for s.reserve() {
		if waiting, _ := s.db.GetWaitingCompaction(); !waiting || !s.db.Schedule(s) {
			s.release()
			return
		}
	}
}

// round looks once, and again after a while if compactions still run.
func (s *scheduler) round() {
	defer s.rounds.Done()
	s.grant()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.timer = nil
	if s.running > 0 && !s.closed {
		s.rounds.Add(1)
		s.timer = time.AfterFunc(lookAgain, s.round)
	}
}
