package backing

import (
	"fmt"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"

	"tine/mapstate"
)

// spaceStride is how much may be written between two looks at the free space.
const spaceStride = 1 << 20

// reserve keeps the last free bytes of a disk for the engine: its memtables must
// go somewhere, and it does not survive a log that it cannot write.
type reserve struct {
	fs    vfs.FS
	dir   string
	least int64

	mu      sync.Mutex
	written int64
	full    bool
}

func newReserve(fs vfs.FS, dir string, least int64) *reserve {
	return &reserve{fs: fs, dir: dir, least: least, written: spaceStride} // look at once
}

// take fails with ErrDiskFull where n more bytes would touch the reserve.
func (r *reserve) take(n int64) error {
	if r.least < 0 {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.written += n
	if r.written < spaceStride && !r.full {
		return nil
	}
	usage, err := r.fs.GetDiskUsage(r.dir)
	if err != nil {
		return nil // not every file system can tell
	}
	r.written = 0
	r.full = usage.AvailBytes < uint64(r.least+n)
	if r.full {
		return fmt.Errorf("%w: %s has %d bytes free, and %d are kept in reserve; free some space and try again",
			mapstate.ErrDiskFull, r.dir, usage.AvailBytes, r.least)
	}
	return nil
}
