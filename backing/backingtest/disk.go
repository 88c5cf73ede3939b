package backingtest

import (
	"math/rand/v2"
	"os"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Write is one operation that changes a disk: it makes, writes, syncs, renames or
// removes a file, or syncs a directory.
type Write struct {
	N    int    // its number, from 1
	Op   string // its name
	Path string
}

// Strike says what goes wrong at a write: an error instead of it, or one after it
// has been carried out all the same. Writes may come from several goroutines.
type Strike func(Write) (instead, after error)

// Disk is a file system in memory that forgets in a crash what was not synced, and
// whose writes may fail. The zero Disk is not usable.
type Disk struct {
	vfs.FS
	mem *vfs.MemFS

	mu     sync.Mutex
	writes int
	strike Strike

	// reusing keeps copies away while a file is reused: MemFS takes its lock for copies
	// twice then, and a copy that waits in between would stop both.
	reusing sync.Mutex
}

// NewDisk returns an empty disk, on which nothing goes wrong.
func NewDisk() *Disk { return on(vfs.NewCrashableMem()) }

func on(mem *vfs.MemFS) *Disk { return &Disk{FS: mem, mem: mem} }

// OnWrite asks s about every write from now on; nil about none.
func (d *Disk) OnWrite(s Strike) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.strike = s
}

// Writes returns how many writes there have been.
func (d *Disk) Writes() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.writes
}

// Crash returns the disk as a crash of the machine would leave it: with what was
// synced, and of the rest each block with a chance of survival in percent.
func (d *Disk) Crash(survival int, rnd *rand.Rand) *Disk {
	d.reusing.Lock()
	defer d.reusing.Unlock()
	return on(d.mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: survival, RNG: rnd}))
}

// write carries out a write, or what strikes it.
func (d *Disk) write(op, path string, do func() error) error {
	d.mu.Lock()
	d.writes++
	w, strike := Write{N: d.writes, Op: op, Path: path}, d.strike
	d.mu.Unlock()
	var after error
	if strike != nil {
		var instead error
		if instead, after = strike(w); instead != nil {
			return instead
		}
	}
	if err := do(); err != nil {
		return err
	}
	return after
}

// opened is write for what opens a file.
func (d *Disk) opened(op, path string, open func() (vfs.File, error)) (f vfs.File, err error) {
	err = d.write(op, path, func() (err error) {
		f, err = open()
		return err
	})
	if err != nil {
		if f != nil {
			_ = f.Close() // it is there, but nobody has it
		}
		return nil, err
	}
	return &file{File: f, disk: d, path: path}, nil
}

// Create implements vfs.FS.
func (d *Disk) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	return d.opened("create", name, func() (vfs.File, error) { return d.FS.Create(name, category) })
}

// OpenReadWrite implements vfs.FS.
func (d *Disk) OpenReadWrite(name string, category vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	return d.opened("open", name, func() (vfs.File, error) { return d.FS.OpenReadWrite(name, category, opts...) })
}

// ReuseForWrite implements vfs.FS.
func (d *Disk) ReuseForWrite(from, to string, category vfs.DiskWriteCategory) (vfs.File, error) {
	return d.opened("reuse", to, func() (vfs.File, error) {
		d.reusing.Lock()
		defer d.reusing.Unlock()
		return d.FS.ReuseForWrite(from, to, category)
	})
}

// OpenDir implements vfs.FS.
func (d *Disk) OpenDir(name string) (vfs.File, error) {
	f, err := d.FS.OpenDir(name)
	if err != nil {
		return nil, err
	}
	return &file{File: f, disk: d, path: name}, nil
}

// Link implements vfs.FS.
func (d *Disk) Link(from, to string) error {
	return d.write("link", to, func() error { return d.FS.Link(from, to) })
}

// Remove implements vfs.FS.
func (d *Disk) Remove(name string) error {
	return d.write("remove", name, func() error { return d.FS.Remove(name) })
}

// RemoveAll implements vfs.FS.
func (d *Disk) RemoveAll(name string) error {
	return d.write("remove", name, func() error { return d.FS.RemoveAll(name) })
}

// Rename implements vfs.FS.
func (d *Disk) Rename(from, to string) error {
	return d.write("rename", to, func() error { return d.FS.Rename(from, to) })
}

// MkdirAll implements vfs.FS.
func (d *Disk) MkdirAll(name string, perm os.FileMode) error {
	return d.write("mkdir", name, func() error { return d.FS.MkdirAll(name, perm) })
}

// Unwrap implements vfs.FS.
func (d *Disk) Unwrap() vfs.FS { return d.FS }

// file is an open file or directory of a Disk.
type file struct {
	vfs.File
	disk *Disk
	path string
}

// Write implements vfs.File.
func (f *file) Write(p []byte) (n int, err error) {
	err = f.disk.write("write", f.path, func() (err error) {
		n, err = f.File.Write(p)
		return err
	})
	return n, err
}

// Sync implements vfs.File.
func (f *file) Sync() error { return f.disk.write("sync", f.path, f.File.Sync) }

// SyncData implements vfs.File.
func (f *file) SyncData() error { return f.disk.write("sync", f.path, f.File.SyncData) }

// SyncTo implements vfs.File.
func (f *file) SyncTo(length int64) (full bool, err error) {
	err = f.disk.write("sync", f.path, func() (err error) {
		full, err = f.File.SyncTo(length)
		return err
	})
	return full, err
}
