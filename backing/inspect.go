package backing

import (
	"fmt"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"

	"tine/mapstate"
)

// inspect refuses a directory in which the engine would begin an empty database, although
// it is not empty, or is the rest of one: it would remove what it does not know.
func inspect(fs vfs.FS, dir string) error {
	names, err := fs.List(dir)
	if err != nil {
		return nil // it is not there yet, or the engine says why it cannot be read
	}
	var manifest, log, table bool
	foreign := ""
	for _, name := range names {
		switch {
		case strings.HasPrefix(name, "marker.manifest."):
			manifest = true
		case strings.HasSuffix(name, ".log"):
			log = true
		case strings.HasSuffix(name, ".sst"), strings.HasSuffix(name, ".blob"):
			table = true
		case !isEngineFile(name):
			foreign = name
		}
	}
	switch {
	case !manifest && (log || table):
		return fmt.Errorf("open %s: %w: there is data, but marker.manifest.* is gone; restore the directory from a copy", dir, mapstate.ErrCorrupt)
	case !manifest && foreign != "":
		return fmt.Errorf("open %s: %w: it holds %q and is not a data directory; choose an empty one", dir, mapstate.ErrUnsupported, foreign)
	case table && !log:
		return fmt.Errorf("open %s: %w: the write-ahead log, *.log, is gone; restore the directory from a copy", dir, mapstate.ErrCorrupt)
	}
	return nil
}

// isEngineFile reports whether a file may be the engine's, or what any directory may have.
func isEngineFile(name string) bool {
	if name == "lost+found" {
		return true
	}
	for _, prefix := range []string{".", "LOCK", "MANIFEST-", "OPTIONS-", "marker.", "temporary."} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return strings.HasSuffix(name, ".dbtmp")
}
