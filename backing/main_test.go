package backing

import (
	"io"
	"log/slog"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"tine/mapstate"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// quiet returns Options for a small database that logs nothing.
func quiet(fs vfs.FS) Options {
	return Options{FS: fs, CacheBytes: 8 << 20, MemTableBytes: 1 << 20, Logger: slog.New(slog.NewTextHandler(io.Discard, nil))}
}

// open opens a database, and closes it at the end of the test.
func open(t testing.TB, dir string, opts Options) *Database {
	t.Helper()
	d, err := Open(dir, opts)
	require.NoError(t, err)
	t.Cleanup(func() { _ = d.Close() })
	return d
}

// create makes a state in a new database on fs.
func create(t testing.TB, fs vfs.FS) (*Database, *Pebble) {
	t.Helper()
	d := open(t, "data", quiet(fs))
	p, err := d.Create("s", []byte("spec"))
	require.NoError(t, err)
	return d, p
}

// record is a Writes of one record.
func record(key, value string) mapstate.Writes {
	return mapstate.Writes{Records: []mapstate.Write{{Key: mapstate.Key(key), Record: []byte(value)}}}
}
