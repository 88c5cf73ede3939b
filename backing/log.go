package backing

import (
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// quietTime is how long a message is not logged again.
const quietTime = 10 * time.Second

// engineLog is the engine's log, passed on.
type engineLog struct {
	log     *slog.Logger
	repeats *repeats
	// die ends the process; it may return only in a test.
	die func(message string)
}

var _ pebble.Logger = engineLog{}

// newEngineLog returns an engineLog whose fatal errors end the process. The panic
// is on a goroutine of its own: on the caller's it might be recovered (net/http
// does so) while the engine holds its locks.
func newEngineLog(log *slog.Logger) engineLog {
	return engineLog{log: log, repeats: newRepeats(time.Now), die: func(message string) {
		go panic("backing: " + message)
		select {}
	}}
}

// Infof implements pebble.Logger.
func (l engineLog) Infof(format string, args ...any) {
	l.log.Debug("pebble", "message", fmt.Sprintf(format, args...))
}

// Errorf implements pebble.Logger.
func (l engineLog) Errorf(format string, args ...any) {
	l.error(format, "pebble", "message", fmt.Sprintf(format, args...))
}

// Fatalf implements pebble.Logger. It does not return.
func (l engineLog) Fatalf(format string, args ...any) {
	message := fmt.Sprintf(format, args...)
	l.log.Error("pebble failed, the process ends; its data is whole up to the last commit on disk", "message", message)
	l.die(message)
}

// error logs an error of some sort, unless one of that sort was logged just before:
// what the engine cannot do it tries again, many times a second.
func (l engineLog) error(sort, message string, attrs ...any) {
	withheld, ok := l.repeats.next(sort)
	if !ok {
		return
	}
	if withheld > 0 {
		attrs = append(attrs, "notLogged", withheld)
	}
	l.log.Error(message, attrs...)
}

// events are what an operator wants to hear of. Corruption that a read finds is
// logged here and returned to the reader; by default it would be fatal.
func (l engineLog) events(disk *disk) *pebble.EventListener {
	return &pebble.EventListener{
		// The engine works in the background from here on, also before Open has returned.
		FlushBegin:      func(pebble.FlushInfo) { disk.up.Store(true) },
		CompactionBegin: func(pebble.CompactionInfo) { disk.up.Store(true) },
		BackgroundError: func(err error) {
			const message = "pebble: background work failed, it will be tried again"
			l.error(message, message, "err", err)
		},
		DataCorruption: func(i pebble.DataCorruptionInfo) {
			const message = "pebble: damaged file; stop the server and restore the data directory from a copy"
			l.error(message, message, "info", i.String())
		},
		WriteStallBegin: func(i pebble.WriteStallBeginInfo) {
			l.log.Warn("pebble: commits wait for the disk", "reason", i.Reason)
		},
		WriteStallEnd: func() { l.log.Info("pebble: commits go on") },
	}
}

// repeats counts the messages of each sort that came within quietTime of one that
// was logged. The sorts are few.
type repeats struct {
	now func() time.Time

	mu    sync.Mutex
	sorts map[string]*repeated
}

type repeated struct {
	logged   time.Time
	withheld int
}

func newRepeats(now func() time.Time) *repeats {
	return &repeats{now: now, sorts: make(map[string]*repeated)}
}

// next reports whether a message is to be logged, and how many of its sort were
// not since the last one that was.
func (r *repeats) next(sort string) (withheld int, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.now()
	last := r.sorts[sort]
	if last != nil && now.Sub(last.logged) < quietTime {
		last.withheld++
		return 0, false
	}
	if last != nil {
		withheld = last.withheld
	}
	r.sorts[sort] = &repeated{logged: now}
	return withheld, true
}
