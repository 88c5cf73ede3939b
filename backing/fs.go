package backing

import (
	"errors"
	"io"
	"io/fs"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// lockError is a refusal of the lock of a data directory.
type lockError struct{ err error }

func (e lockError) Error() string { return e.err.Error() }
func (e lockError) Unwrap() error { return e.err }

// engineFS is the file system as the engine gets it.
type engineFS struct{ vfs.FS }

// Lock implements vfs.FS. It marks the refusal of a lock, which the engine and the
// operating system report in many ways, apart from a lock file that cannot be made.
func (f engineFS) Lock(name string) (io.Closer, error) {
	c, err := f.FS.Lock(name)
	var path *fs.PathError
	if err != nil && !errors.As(err, &path) {
		return nil, lockError{err}
	}
	return c, err
}

// Create implements vfs.FS. The engine makes a manifest, then a marker that names it, and
// syncs the directory after both: a crash that kept the marker alone would leave a
// store that cannot be opened. So the directory is synced before a marker is made.
func (f engineFS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if strings.HasPrefix(f.PathBase(name), "marker.") {
		if err := f.syncDir(f.PathDir(name)); err != nil {
			return nil, err
		}
	}
	return f.FS.Create(name, category)
}

func (f engineFS) syncDir(dir string) error {
	d, err := f.OpenDir(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
