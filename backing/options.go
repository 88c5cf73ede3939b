package backing

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// Options of a Database. The zero value works.
type Options struct {
	FS            vfs.FS        // nil: the disk
	CacheBytes    int64         // block cache; 0: 256 MiB
	MemTableBytes int64         // one memtable, of up to 4; 0: 16 MiB
	BloomBits     int           // filter bits per key; 0: 10
	SyncInterval  time.Duration // longest time a commit without Sync is not on disk; 0: 500ms
	MinFreeBytes  int64         // commits are refused when the disk has less; 0: 128 MiB, negative: no check
	Logger        *slog.Logger  // nil: slog.Default()
}

// Bounds of Options.
const (
	minMemTableBytes = 64 << 10
	maxMemTableBytes = 1 << 30
	maxBloomBits     = 30
)

// withDefaults fills in what was left zero.
func (o Options) withDefaults() Options {
	if o.CacheBytes == 0 {
		o.CacheBytes = 256 << 20
	}
	if o.MemTableBytes == 0 {
		o.MemTableBytes = 16 << 20
	}
	if o.BloomBits == 0 {
		o.BloomBits = 10
	}
	if o.SyncInterval == 0 {
		o.SyncInterval = 500 * time.Millisecond
	}
	if o.MinFreeBytes == 0 {
		o.MinFreeBytes = 128 << 20
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	return o
}

// Validate reports all problems at once; zero members are none.
func (o Options) Validate() error {
	o = o.withDefaults()
	var problems []error
	bad := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	if o.CacheBytes < 0 {
		bad("CacheBytes is %d, want 0 for the default or more", o.CacheBytes)
	}
	if o.MemTableBytes < minMemTableBytes || o.MemTableBytes > maxMemTableBytes {
		bad("MemTableBytes is %d, want %d to %d", o.MemTableBytes, minMemTableBytes, maxMemTableBytes)
	}
	if o.BloomBits < 1 || o.BloomBits > maxBloomBits {
		bad("BloomBits is %d, want 1 to %d", o.BloomBits, maxBloomBits)
	}
	if o.SyncInterval < 0 {
		bad("SyncInterval is %s, want 0 for the default or more", o.SyncInterval)
	}
	return errors.Join(problems...)
}

// pebble returns the engine's options. The format is named, not "newest": an
// upgrade of it cannot be undone and is a decision.
func (o Options) pebble(log engineLog, disk *disk) *pebble.Options {
	p := &pebble.Options{
		FS:                          disk,
		CacheSize:                   o.CacheBytes,
		MemTableSize:                uint64(o.MemTableBytes),
		MemTableStopWritesThreshold: 4,
		FormatMajorVersion:          pebble.FormatValueSeparation,
		FlushDelayDeleteRange:       10 * time.Second,
		Logger:                      log,
		EventListener:               log.events(disk),
	}
	p.Experimental.CompactionScheduler = new(scheduler)
	for i := range p.Levels {
		p.Levels[i].FilterPolicy = bloom.FilterPolicy(o.BloomBits)
	}
	return p
}
