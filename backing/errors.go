package backing

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"tine/mapstate"
)

// classify wraps an error of the engine with the sentinel that says what it means.
func classify(op string, err error) error {
	kind := mapstate.ErrUnavailable
	switch {
	case vfs.IsNoSpaceError(err):
		kind = mapstate.ErrDiskFull
	case pebble.IsCorruptionError(err):
		kind = mapstate.ErrCorrupt
	}
	return fmt.Errorf("%s: %w: %w", op, kind, err)
}

// classifyOpen does so for what went wrong while opening dir. What the operating
// system did not report is a complaint of the engine about what it found there.
func classifyOpen(dir string, err error) error {
	op := "open " + dir
	var locked lockError
	var errno syscall.Errno
	var path *fs.PathError
	switch {
	case errors.As(err, &locked):
		return fmt.Errorf("%s: %w: another process, or another database of this one, has it open; stop it or choose another directory (%w)",
			op, mapstate.ErrLocked, locked.err)
	case errors.As(err, &path) && filepath.Base(path.Path) == "LOCK",
		errors.As(err, &errno) && errno != syscall.ENOENT:
		return classify(op, err)
	case strings.Contains(err.Error(), "unknown format major version"): // the engine has no sentinel for it
		return fmt.Errorf("%s: %w: a newer version of the program wrote it; use that one (%w)", op, mapstate.ErrUnsupported, err)
	}
	return fmt.Errorf("%s: %w: the directory is damaged; restore it from a copy (%w)", op, mapstate.ErrCorrupt, err)
}
