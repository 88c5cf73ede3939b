package backing

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Pauses before an operation that lacked room is tried again.
const (
	minPause = 10 * time.Millisecond
	maxPause = time.Second
)

// disk is the file system as the engine gets it. The engine has no way back from
// an error of its log or its manifest: it panics, in places with locks that nobody
// can give back. So once it is open, disk keeps such errors from it:
//
//   - Where there is no room (space, or file descriptors), the operation waits and
//     is tried again until there is; stalled says why meanwhile.
//   - Any other error, or the end of the wait, is the end of writing: Err says
//     why, and the operation does not return. Reads go on.
//
// An error of writing or syncing the log is passed on, since the engine gives it to
// those who wait for the log; that the log cannot be closed then is not.
type disk struct {
	vfs.FS
	log engineLog

	up     atomic.Bool   // the engine is open, and may be in one of its own goroutines
	ending atomic.Bool   // the engine is being closed: nothing waits for the log any more
	lost   chan struct{} // closed when Err is set
	parked chan struct{} // closed when an operation of the engine will never return
	quit   chan struct{} // closed when nothing is to wait for room any more
	hurt   chan struct{} // closed when work in the background has failed or waits

	mu       sync.Mutex
	failed   error  // why nothing can be written any more
	trouble  error  // the first error that nobody else was told of
	lastRead string // the file that was opened last before the engine was open
	noRoom   error  // why operations wait
	waiting  int    // how many do
	isQuit   bool
	isStuck  bool
	isHurt   bool
}

func newDisk(inner vfs.FS, log engineLog) *disk {
	return &disk{
		FS: inner, log: log,
		lost: make(chan struct{}), parked: make(chan struct{}), quit: make(chan struct{}), hurt: make(chan struct{}),
	}
}

// Err returns why nothing can be written any more, nil while it can.
func (f *disk) Err() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.failed
}

// stalled returns why operations of the engine wait, nil while none does.
func (f *disk) stalled() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.noRoom
}

// opening returns the file that was opened last before the engine was open, and the
// first error that nobody else was told of.
func (f *disk) opening() (lastRead string, trouble error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.lastRead, f.trouble
}

// fail makes err the answer to every later write, unless there is one, and returns it.
func (f *disk) fail(err error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.failed == nil {
		f.failed = fmt.Errorf("%w; restart to go on from the last commit on disk", err)
		close(f.lost)
		f.log.log.Error("the store cannot be written, every write is refused from here on", "err", f.failed)
	}
	return f.failed
}

// giveUp ends the waits for room.
func (f *disk) giveUp() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.isQuit {
		f.isQuit = true
		close(f.quit)
	}
}

// stuck notes that the engine cannot be closed any more.
func (f *disk) stuck() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.isStuck {
		f.isStuck = true
		close(f.parked)
	}
}

// park never returns: the engine does not survive the answer.
func (f *disk) park() {
	f.stuck()
	select {}
}

// isScarce reports whether an error may go away by itself.
func isScarce(err error) bool { return isFull(err) || isOutOfFiles(err) }

// isForbidden reports whether an error says that a directory is not to be written
// to. The engine finds that out before it has begun anything.
func isForbidden(err error) bool {
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS)
}

// untilRoom tries do again for as long as there is no room for it. Any other
// error ends writing, and is returned.
func (f *disk) untilRoom(op string, do func() error) error {
	waits := false
	defer func() { f.room(waits) }()
	for pause := minPause; ; pause = min(2*pause, maxPause) {
		err := do()
		if err == nil {
			return nil
		}
		if !f.up.Load() && isForbidden(err) {
			return err
		}
		if isScarce(err) {
			if !waits {
				waits = true
				f.wait(op, err)
			}
			if f.sleep(pause) {
				continue
			}
		}
		return f.fail(classify(op, err))
	}
}

// survive is untilRoom for an operation whose error the engine does not survive.
func (f *disk) survive(op string, do func() error) error {
	err := f.untilRoom(op, do)
	if err != nil && f.Err() != nil {
		f.park()
	}
	return err
}

func (f *disk) note(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.trouble == nil {
		f.trouble = err
	}
	f.troubled()
}

// troubled wakes who opens the engine. The lock is held.
func (f *disk) troubled() {
	if !f.isHurt {
		f.isHurt = true
		close(f.hurt)
	}
}

// wait notes that an operation waits for room.
func (f *disk) wait(op string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.waiting++
	f.troubled()
	if f.noRoom == nil {
		f.noRoom = fmt.Errorf("%w; what was begun goes on when there is room again", classify(op, err))
		const message = "the store waits for room, commits are refused meanwhile"
		f.log.error(message, message, "err", err)
	}
}

// room notes that one operation less waits for room.
func (f *disk) room(waited bool) {
	if !waited {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.waiting--; f.waiting == 0 {
		f.noRoom = nil
	}
}

// sleep reports whether there is a point in trying again.
func (f *disk) sleep(pause time.Duration) bool {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-f.quit:
		return false
	}
}

// lockError is a refusal of the lock of a data directory.
type lockError struct{ err error }

func (e lockError) Error() string { return e.err.Error() }
func (e lockError) Unwrap() error { return e.err }

// Lock implements vfs.FS. It marks the refusal of a lock, which the engine and the
// operating system report in many ways, apart from a lock file that cannot be made.
func (f *disk) Lock(name string) (io.Closer, error) {
	c, err := f.FS.Lock(name)
	var path *fs.PathError
	if err != nil && !errors.As(err, &path) {
		return nil, lockError{err}
	}
	return c, err
}

// role is what a file is for the engine.
type role int

const (
	roleTable  role = iota // data that it can write again, elsewhere
	roleLog                // the write-ahead log
	roleLedger             // the manifest, and whatever else says what is where
)

func (f *disk) role(name string) role {
	switch base := f.PathBase(name); {
	case strings.HasSuffix(base, ".sst"), strings.HasSuffix(base, ".blob"):
		return roleTable
	case strings.HasSuffix(base, ".log"):
		return roleLog
	}
	return roleLedger
}
