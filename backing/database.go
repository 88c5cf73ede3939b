package backing

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"sync"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"tine/mapstate"
)

// Database is one data directory: many states and their catalog. All methods may
// be called concurrently.
type Database struct {
	dir     string
	engine  *pebble.DB
	disk    *disk
	syncer  *syncer
	reserve *reserve

	applying sync.WaitGroup // batches that the engine has not given back

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
	if err := inspect(opts.FS, dir); err != nil {
		return nil, err
	}
	log := newEngineLog(opts.Logger)
	disk := newDisk(opts.FS, log)
	type opened struct {
		d   *Database
		err error
	}
	done := make(chan opened, 1)
	go func() {
		d, err := openOn(disk, dir, opts, log)
		done <- opened{d, err}
	}()
	select {
	case o := <-done:
		return o.d, o.err
	case <-disk.hurt:
	case <-disk.lost:
		return nil, fmt.Errorf("open %s: %w", dir, disk.Err())
	}
	// What is in the log is being written to tables, and cannot be for now. The
	// directory is let go of when it can.
	err := disk.stalled()
	if _, trouble := disk.opening(); trouble != nil {
		err = classify("write", trouble)
	}
	go func() {
		if o := <-done; o.err == nil {
			_ = o.d.Close() // nobody has used it
		}
	}()
	return nil, fmt.Errorf("open %s: %w; make room on the disk or mend it, and start again", dir, cmp.Or(err, mapstate.ErrUnavailable))
}

// openOn is Open, for as long as it takes.
func openOn(disk *disk, dir string, opts Options, log engineLog) (*Database, error) {
	engine, err := openEngine(disk, dir, opts, log)
	if err != nil {
		lastRead, _ := disk.opening()
		return nil, classifyOpen(dir, lastRead, err)
	}
	d := &Database{
		dir:     dir,
		engine:  engine,
		disk:    disk,
		reserve: newReserve(opts.FS, dir, opts.MinFreeBytes),
	}
	d.syncer = newSyncer(opts.SyncInterval, d.seal)
	if err := d.loadCatalog(); err != nil {
		return nil, errors.Join(fmt.Errorf("open %s: %w", dir, err), d.closeEngine())
	}
	return d, nil
}

// openEngine opens the engine. Where that fails in the middle the engine
// panics, or calls it fatal, on this goroutine.
func openEngine(disk *disk, dir string, opts Options, log engineLog) (engine *pebble.DB, err error) {
	opening := log
	opening.die = func(message string) {
		if !disk.up.Load() {
			panic(errors.New(message))
		}
		log.die(message)
	}
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%v", r)
			if _, trouble := disk.opening(); trouble != nil {
				err = trouble
			}
		}
	}()
	engine, err = pebble.Open(dir, opts.pebble(opening, disk))
	if err == nil {
		disk.up.Store(true)
	}
	return engine, err
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
	d.closeErr = d.closeEngine()
	return d.closeErr
}

// closeEngine closes the engine, which syncs the log. One that has failed may have
// been left in the middle of something that never ends; it is left to the end of
// the process then, and the directory with it.
func (d *Database) closeEngine() error {
	d.disk.giveUp()
	done := make(chan struct{})
	go func() {
		d.applying.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-d.disk.parked:
		return d.Err()
	}
	if d.Err() == nil {
		d.seal()
	}
	d.disk.ending.Store(true)
	closed := make(chan error, 1)
	go func() { closed <- d.engine.Close() }()
	select {
	case err := <-closed:
		if err != nil {
			return classify("close "+d.dir, err)
		}
		return nil
	case <-d.disk.parked:
		return d.Err()
	}
}

// GiveUp ends the waits of commits for room on the disk, where there are any: it is not known
// then whether they were written. It comes before the states are closed, which waits for
// their commits.
func (d *Database) GiveUp() { d.disk.giveUp() }

// Err returns why the database can no longer be written to, nil while it can. A
// database that has failed answers reads until it is closed.
func (d *Database) Err() error { return d.disk.Err() }

// writable returns why a commit is refused now.
func (d *Database) writable() error {
	if err := d.disk.Err(); err != nil {
		return err
	}
	return d.disk.stalled()
}

// sealBytes is more than the engine reads of its log at a time.
const sealBytes = 40 << 10

// seal brings every commit so far to disk: the log is synced in order. A record that
// ends beyond the block of the log with the commits in it says, in its own head,
// how far the log had been synced: so damage to the commits is told from a
// record that a crash has cut short, which is no damage.
func (d *Database) seal() {
	if d.writable() != nil {
		return
	}
	// Twice: the engine answers a sync before it notes how far that went, and notes it
	// before it begins the next one.
	for _, data := range [][]byte{nil, nil, make([]byte, sealBytes)} {
		if d.logOnly(data) != nil {
			return // what failed is logged, and the answer to every later write
		}
	}
}

// logOnly syncs a record that is in the log and nowhere else.
func (d *Database) logOnly(data []byte) error {
	b := d.engine.NewBatch()
	if err := b.LogData(data, nil); err != nil {
		return d.disk.fail(classify("write the log of "+d.dir, err))
	}
	return d.applySynced(b)
}

// apply gives b to the engine, on a goroutine of its own: the engine does not come
// back from a log that it cannot write. It returns false where it is not known
// whether b is or will be visible.
func (d *Database) apply(b *pebble.Batch, sync bool) (bool, error) {
	done := make(chan error, 1)
	d.applying.Go(func() {
		defer func() {
			if r := recover(); r != nil { // the engine keeps a lock
				_ = d.disk.fail(fmt.Errorf("write the log of %s: %w: %v", d.dir, mapstate.ErrUnavailable, r)) // all are told
				d.disk.stuck()
			}
		}()
		if sync {
			// Not Commit(Sync): that ends the process when the log cannot be synced.
			done <- d.engine.ApplyNoSyncWait(b, pebble.Sync)
			return
		}
		done <- d.engine.Apply(b, pebble.NoSync)
	})
	select {
	case err := <-done:
		return true, err
	case <-d.disk.lost:
		return false, d.Err()
	}
}

// applySynced writes b to disk and closes it.
func (d *Database) applySynced(b *pebble.Batch) error {
	if err := d.writable(); err != nil {
		return errors.Join(err, b.Close())
	}
	if _, err := d.apply(b, true); err != nil {
		return err
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
		// The batch is not for reuse.
		return s.d.disk.fail(classify("write the log of "+s.d.dir, err))
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
