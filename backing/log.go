package backing

import (
	"fmt"
	"log/slog"

	"github.com/cockroachdb/pebble/v2"
)

// engineLog is the engine's log, passed on.
type engineLog struct {
	log *slog.Logger
	// die ends the process; it may return only in a test.
	die func(message string)
}

var _ pebble.Logger = engineLog{}

// newEngineLog returns an engineLog whose fatal errors end the process. The panic
// is on a goroutine of its own: on the caller's it might be recovered (net/http
// does so) while the engine holds its locks.
func newEngineLog(log *slog.Logger) engineLog {
	return engineLog{log: log, die: func(message string) {
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
	l.log.Error("pebble", "message", fmt.Sprintf(format, args...))
}

// Fatalf implements pebble.Logger. It does not return.
func (l engineLog) Fatalf(format string, args ...any) {
	message := fmt.Sprintf(format, args...)
	l.log.Error("pebble failed, the process ends; its data is whole up to the last commit on disk", "message", message)
	l.die(message)
}

// events are what an operator wants to hear of. Corruption that a read finds is
// logged here and returned to the reader; by default it would be fatal.
func (l engineLog) events() *pebble.EventListener {
	return &pebble.EventListener{
		BackgroundError: func(err error) { l.log.Error("pebble: background work failed, it will be tried again", "err", err) },
		DataCorruption:  func(i pebble.DataCorruptionInfo) { l.log.Error("pebble: damaged file", "info", i.String()) },
		WriteStallBegin: func(i pebble.WriteStallBeginInfo) {
			l.log.Warn("pebble: commits wait for the disk", "reason", i.Reason)
		},
		WriteStallEnd: func() { l.log.Info("pebble: commits go on") },
	}
}
