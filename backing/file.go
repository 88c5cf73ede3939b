package backing

import (
	"errors"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Open implements vfs.FS. It notes what is read before the engine is open: where
// that is damaged, not every complaint of the engine names the file.
func (f *disk) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	if !f.up.Load() {
		f.mu.Lock()
		f.lastRead = name
		f.mu.Unlock()
	}
	return f.FS.Open(name, opts...)
}

// Create implements vfs.FS. The engine makes a manifest, then a marker that names it, and
// syncs the directory after both: a crash that kept the marker alone would leave a
// store that cannot be opened. So the directory is synced before a marker is made.
func (f *disk) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if strings.HasPrefix(f.PathBase(name), "marker.") {
		if err := f.syncDir(f.PathDir(name)); err != nil {
			return nil, err
		}
	}
	return f.make(name, func() (vfs.File, error) { return f.FS.Create(name, category) })
}

// Rename implements vfs.FS.
func (f *disk) Rename(from, to string) error {
	return f.survive("rename "+from, func() error { return f.FS.Rename(from, to) })
}

// ReuseForWrite implements vfs.FS.
func (f *disk) ReuseForWrite(from, to string, category vfs.DiskWriteCategory) (vfs.File, error) {
	return f.make(to, func() (vfs.File, error) { return f.FS.ReuseForWrite(from, to, category) })
}

// make makes a file. Where there is no room for one it waits, whatever the file is
// for: the engine would try again at once, and again.
func (f *disk) make(name string, create func() (vfs.File, error)) (made vfs.File, err error) {
	role, op := f.role(name), "make "+name
	var other error // of a file that the engine can do without
	err = f.survive(op, func() (err error) {
		made, err = create()
		if err != nil && role == roleTable && !isScarce(err) {
			other, err = err, nil
		}
		return err
	})
	if err = errors.Join(err, f.slowly(op, other)); err != nil {
		return nil, err
	}
	switch role {
	case roleLog:
		return &logFile{File: made, disk: f, name: name}, nil
	case roleLedger:
		return &ledgerFile{File: made, disk: f, name: name}, nil
	}
	return &tableFile{File: made, disk: f, name: name}, nil
}

// OpenDir implements vfs.FS. The engine does not survive a directory that cannot
// be synced.
func (f *disk) OpenDir(name string) (vfs.File, error) {
	dir, err := f.FS.OpenDir(name)
	if err != nil {
		return nil, err
	}
	return &ledgerFile{File: dir, disk: f, name: name}, nil
}

func (f *disk) syncDir(name string) error {
	return f.survive("sync "+name, func() error {
		dir, err := f.FS.OpenDir(name)
		if err != nil {
			return err
		}
		return errors.Join(dir.Sync(), dir.Close())
	})
}

// writeAll writes p to w, going on where there was no room for all of it.
func (f *disk) writeAll(op string, w vfs.File, p []byte, try func(string, func() error) error) (n int, err error) {
	err = try(op, func() error {
		done, err := w.Write(p[n:])
		n += done
		return err
	})
	return n, err
}

// logFile is a file of the write-ahead log.
type logFile struct {
	vfs.File
	disk *disk
	name string
}

// Write implements vfs.File.
func (l *logFile) Write(p []byte) (int, error) {
	return l.disk.writeAll("write "+l.name, l.File, p, l.disk.untilRoom)
}

// Sync implements vfs.File.
func (l *logFile) Sync() error { return l.synced(l.File.Sync()) }

// SyncData implements vfs.File.
func (l *logFile) SyncData() error { return l.synced(l.File.SyncData()) }

// SyncTo implements vfs.File.
func (l *logFile) SyncTo(length int64) (bool, error) {
	full, err := l.File.SyncTo(length)
	return full, l.synced(err)
}

func (l *logFile) synced(err error) error { return l.disk.synced(l.name, err) }

// Close implements vfs.File. The engine closes a log to begin the next one, and does not
// survive that the old one was not written.
func (l *logFile) Close() error {
	err := l.File.Close()
	if err != nil {
		err = l.disk.fail(classify("close "+l.name, err))
	}
	if l.disk.Err() != nil && !l.disk.ending.Load() {
		l.disk.park()
	}
	return err
}

// ledgerFile is the manifest, a marker, the engine's options or a directory.
type ledgerFile struct {
	vfs.File
	disk *disk
	name string
}

// Write implements vfs.File.
func (l *ledgerFile) Write(p []byte) (int, error) {
	return l.disk.writeAll("write "+l.name, l.File, p, l.disk.survive)
}

// Sync implements vfs.File.
func (l *ledgerFile) Sync() error { return l.synced(l.File.Sync()) }

// SyncData implements vfs.File.
func (l *ledgerFile) SyncData() error { return l.synced(l.File.SyncData()) }

func (l *ledgerFile) synced(err error) error {
	if err = l.disk.synced(l.name, err); err != nil {
		l.disk.park()
	}
	return err
}

// synced ends writing where a sync has failed, for whatever reason: nobody knows
// what the operating system has kept of the file.
func (f *disk) synced(name string, err error) error {
	if err == nil {
		return nil
	}
	return f.fail(classify("sync "+name, err))
}

// tableFile is a file that the engine makes again if it cannot be written.
type tableFile struct {
	vfs.File
	disk *disk
	name string
}

// Write implements vfs.File.
func (t *tableFile) Write(p []byte) (int, error) {
	n, err := t.File.Write(p)
	return n, t.slowly("write", err)
}

// Sync implements vfs.File.
func (t *tableFile) Sync() error { return t.slowly("sync", t.File.Sync()) }

// SyncData implements vfs.File.
func (t *tableFile) SyncData() error { return t.slowly("sync", t.File.SyncData()) }

// SyncTo implements vfs.File.
func (t *tableFile) SyncTo(length int64) (bool, error) {
	full, err := t.File.SyncTo(length)
	return full, t.slowly("sync", err)
}

func (t *tableFile) slowly(op string, err error) error { return t.disk.slowly(op+" "+t.name, err) }

// slowly returns an error of a table after a while, since the engine tries again at
// once. It does not wait for room: giving up makes some.
func (f *disk) slowly(op string, err error) error {
	if err == nil {
		return nil
	}
	if isScarce(err) {
		f.wait(op, err)
		defer f.room(true)
	} else {
		f.note(err)
	}
	f.sleep(maxPause / 4)
	return err
}
