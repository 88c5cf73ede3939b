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
	switch {
	case isFull(err):
		return fmt.Errorf("%s: %w: %w", op, mapstate.ErrDiskFull, err)
	case pebble.IsCorruptionError(err):
		damage := &damageError{op: op, err: err}
		if info := pebble.ExtractDataCorruptionInfo(err); info != nil {
			damage.path = info.Path
		}
		return damage
	}
	return fmt.Errorf("%s: %w: %w", op, mapstate.ErrUnavailable, err)
}

// damageError says which file was found damaged. It is mapstate.ErrCorrupt, and,
// since only a copy of the data helps, mapstate.ErrUnavailable.
type damageError struct {
	op   string
	path string // "": it is in the cause, if anywhere
	err  error
}

func (e *damageError) Error() string {
	cause, _, _ := strings.Cut(e.err.Error(), "\n") // the engine's details are for its makers
	file := "the store is damaged"
	if e.path != "" {
		file = "the file " + e.path + " is damaged"
	}
	return fmt.Sprintf("%s: %s: %s; stop the server and restore the data directory from a copy", e.op, file, cause)
}

func (e *damageError) Unwrap() error { return e.err }

// Is reports whether target is mapstate.ErrCorrupt or mapstate.ErrUnavailable.
func (e *damageError) Is(target error) bool {
	return target == mapstate.ErrCorrupt || target == mapstate.ErrUnavailable
}

func isFull(err error) bool { return vfs.IsNoSpaceError(err) || errors.Is(err, syscall.EDQUOT) }

func isOutOfFiles(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}

// classifyOpen does so for what went wrong while opening dir, where the file read
// last was lastRead. What the operating system did not report is a complaint of
// the engine about what it found there.
func classifyOpen(dir, lastRead string, err error) error {
	op := "open " + dir
	var locked lockError
	var errno syscall.Errno
	var path *fs.PathError
	switch {
	case errors.As(err, &locked):
		return fmt.Errorf("%s: %w: another process, or another database of this one, has it open; stop it or choose another directory (%w)",
			op, mapstate.ErrLocked, locked.err)
	case isFull(err):
		return fmt.Errorf("%s: %w: make room on the disk and start again (%w)", op, mapstate.ErrDiskFull, err)
	case isOutOfFiles(err):
		return fmt.Errorf("%s: %w: allow the process more open files and start again (%w)", op, mapstate.ErrUnavailable, err)
	case errors.As(err, &path) && filepath.Base(path.Path) == "LOCK",
		errors.As(err, &errno) && errno != syscall.ENOENT:
		return classify(op, err)
	case strings.Contains(err.Error(), "unknown format major version"): // the engine has no sentinel for it
		return fmt.Errorf("%s: %w: a newer version of the program wrote it; use that one (%w)", op, mapstate.ErrUnsupported, err)
	}
	cause := strings.ReplaceAll(err.Error(), "\n", "; ")
	if lastRead != "" {
		cause += "; the file read last was " + lastRead
	}
	return fmt.Errorf("%s: %w: the directory is damaged, or another program's; restore it from a copy, or choose another one (%s)",
		op, mapstate.ErrCorrupt, cause)
}
