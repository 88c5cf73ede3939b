package backing

import (
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"tine/mapstate"
)

// Database is one data directory: many states and their catalog. All methods may
// be called concurrently.
type Database struct {
	dir     string
	engine  *pebble.DB
	log     *slog.Logger
	syncer  *syncer
	reserve *reserve
	failed  atomic.Pointer[error] // why nothing can be written any more

	mu       sync.Mutex // the catalog, and the engine's life
	states   map[string]*Pebble
	nextID   uint32
	closed   bool
	closeErr error
}

// Open opens the database in dir, which it makes where there is none. A directory
// that is in use is mapstate.ErrLocked, a damaged one mapstate.ErrCorrupt, one
// written by a newer version of this layout mapstate.ErrUnsupported.
func Open(dir string, opts Options) (*Database, error) {
	if err := opts.Validate(); err != nil {
		return nil, fmt.Errorf("open %s: invalid options: %w", dir, err)
	}
	opts = opts.withDefaults()
	if opts.FS == nil {
		// The lock of a directory is kept by its name.
		abs, err := filepath.Abs(dir)
		if err != nil {
			return nil, fmt.Errorf("open %s: %w", dir, err)
		}
		dir, opts.FS = abs, vfs.Default
	}
	engine, err := pebble.Open(dir, opts.pebble(newEngineLog(opts.Logger)))
	if err != nil {
		return nil, classifyOpen(dir, err)
	}
	d := &Database{
		dir:     dir,
		engine:  engine,
		log:     opts.Logger,
		reserve: newReserve(opts.FS, dir, opts.MinFreeBytes),
	}
	d.syncer = newSyncer(opts.SyncInterval, d.syncLog)
	if err := d.loadCatalog(); err != nil {
		return nil, errors.Join(fmt.Errorf("open %s: %w", dir, err), engine.Close())
	}
	return d, nil
}

// Close refuses further operations with mapstate.ErrShuttingDown, waits for those
// under way, scans being cut short, and closes the directory with everything
// committed on disk. A second call returns what the first did.
func (d *Database) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return d.closeErr
	}
	d.closed = true
	for _, p := range d.states {
		p.gate.close(fmt.Errorf("state %q: %w", p.name, mapstate.ErrShuttingDown))
	}
	d.syncer.close()
	if err := d.engine.Close(); err != nil { // syncs the log
		d.closeErr = classify("close "+d.dir, err)
	}
	return d.closeErr
}

// Err returns why the database can no longer be written to, nil while it can. A
// database that has failed answers reads until it is closed.
func (d *Database) Err() error {
	if err := d.failed.Load(); err != nil {
		return *err
	}
	return nil
}

// fail makes err the answer to every later write, and returns it.
func (d *Database) fail(err error) error {
	err = fmt.Errorf("%w; restart to go on from the last commit on disk", classify("write the log of "+d.dir, err))
	if d.failed.CompareAndSwap(nil, &err) {
		d.log.Error("the log cannot be written, every write is refused from here on", "err", err)
	}
	return err
}

// syncLog brings every commit so far to disk. An empty record does, since the log
// is synced in order.
func (d *Database) syncLog() {
	if d.Err() != nil {
		return
	}
	b := d.engine.NewBatch()
	if err := b.LogData(nil, nil); err != nil {
		_ = d.fail(err) // logged there
		return
	}
	_ = d.applySynced(b)
}

// applySynced writes b to disk and closes it.
func (d *Database) applySynced(b *pebble.Batch) error {
	if err := d.Err(); err != nil {
		return errors.Join(err, b.Close())
	}
	// Not Commit(Sync): that ends the process when the log cannot be synced.
	if err := d.engine.ApplyNoSyncWait(b, pebble.Sync); err != nil {
		return d.fail(err)
	}
	return (&syncing{d: d, batch: b}).Wait()
}

// syncing is a batch in the log whose fsync is under way.
type syncing struct {
	d     *Database
	batch *pebble.Batch
}

var _ mapstate.Durable = (*syncing)(nil)

// Wait implements mapstate.Durable. It is safe after Close, which syncs.
func (s *syncing) Wait() error {
	if err := s.batch.SyncWait(); err != nil {
		return s.d.fail(err) // the batch is not for reuse
	}
	if err := s.batch.Close(); err != nil {
		return classify("close a batch", err)
	}
	return nil
}

// Metrics are figures of a Database since it was opened.
type Metrics struct {
	DiskBytes       uint64 // all files
	FreeBytes       uint64 // left on the disk; 0 where the file system cannot tell
	MemTableBytes   uint64
	BlockCacheBytes int64
	BlockCacheHits  int64
	BlockCacheMiss  int64
	LogBytes        uint64 // the write-ahead log's live files
	LogBytesWritten uint64
	Flushes         int64
	Compactions     int64
	CompactionDebt  uint64 // bytes waiting to be compacted
	ReadAmp         int    // files a read may have to look into
}

// Metrics returns the current figures, zero once the database is closed.
func (d *Database) Metrics() Metrics {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return Metrics{}
	}
	m := d.engine.Metrics()
	free, err := d.reserve.fs.GetDiskUsage(d.dir)
	if err != nil {
		free = vfs.DiskUsage{}
	}
	return Metrics{
		DiskBytes:       m.DiskSpaceUsage(),
		FreeBytes:       free.AvailBytes,
		MemTableBytes:   m.MemTable.Size,
		BlockCacheBytes: m.BlockCache.Size,
		BlockCacheHits:  m.BlockCache.Hits,
		BlockCacheMiss:  m.BlockCache.Misses,
		LogBytes:        m.WAL.PhysicalSize,
		LogBytesWritten: m.WAL.BytesWritten,
		Flushes:         m.Flush.Count,
		Compactions:     m.Compact.Count,
		CompactionDebt:  m.Compact.EstimatedDebt,
		ReadAmp:         m.ReadAmp(),
	}
}
