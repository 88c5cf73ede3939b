package backing

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"

	"tine/mapstate"
	"tine/mapstate/mapstatetest"
)

func TestOptionsReportAllProblemsAtOnce(t *testing.T) {
	_, err := Open(t.TempDir(), Options{CacheBytes: -1, MemTableBytes: 5, BloomBits: 99, SyncInterval: -1})
	for _, name := range []string{"CacheBytes is -1", "MemTableBytes is 5", "BloomBits is 99", "SyncInterval is -1ns"} {
		require.ErrorContains(t, err, name)
	}
	require.NoError(t, Options{}.Validate())
}

func TestADirectoryInUseIsLockedWithinTheProcess(t *testing.T) {
	dir := t.TempDir()
	d := open(t, dir, quiet(nil))
	_, err := Open(dir, quiet(nil))
	require.ErrorIs(t, err, mapstate.ErrLocked)
	require.ErrorContains(t, err, dir)
	wd, err := os.Getwd()
	require.NoError(t, err)
	relative, err := filepath.Rel(wd, dir)
	require.NoError(t, err)
	_, err = Open(relative, quiet(nil))
	require.ErrorIs(t, err, mapstate.ErrLocked, "under another name")
	require.NoError(t, d.Close())
	open(t, dir, quiet(nil))
}

// openInChild is the directory that this test binary opens and reports on, when
// it runs as a process of its own.
const openInChild = "TINE_TEST_OPEN"

func TestADirectoryInUseIsLockedForOtherProcesses(t *testing.T) {
	if dir := os.Getenv(openInChild); dir != "" {
		_, err := Open(dir, quiet(nil))
		require.ErrorIs(t, err, mapstate.ErrLocked)
		require.ErrorContains(t, err, "another process")
		return
	}
	dir := t.TempDir()
	open(t, dir, quiet(nil))
	child := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	child.Env = append(os.Environ(), openInChild+"="+dir)
	out, err := child.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "PASS: "+t.Name())
}

func TestADirectoryThatCannotBeMadeIsNotLocked(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	_, err := Open(filepath.Join(file, "data"), quiet(nil))
	require.ErrorIs(t, err, mapstate.ErrUnavailable)
	require.NotErrorIs(t, err, mapstate.ErrLocked)
}

func TestADamagedDirectoryIsRefused(t *testing.T) {
	for name, damage := range map[string]func(t *testing.T, file string){
		"a table is missing":    func(t *testing.T, file string) { require.NoError(t, os.Remove(file)) },
		"a table is cut short":  func(t *testing.T, file string) { require.NoError(t, os.Truncate(file, 10)) },
		"the manifest is empty": func(t *testing.T, file string) { require.NoError(t, os.Truncate(only(t, file, "MANIFEST-*"), 0)) },
		"the manifest is gone":  func(t *testing.T, file string) { require.NoError(t, os.Remove(only(t, file, "MANIFEST-*"))) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			d := open(t, dir, quiet(nil))
			p, err := d.Create("s", nil)
			require.NoError(t, err)
			mapstatetest.Put(t, p, "k", "v")
			require.NoError(t, d.engine.Flush())
			require.NoError(t, d.Close())
			damage(t, only(t, filepath.Join(dir, "x"), "*.sst"))
			_, err = Open(dir, quiet(nil))
			require.ErrorIs(t, err, mapstate.ErrCorrupt)
			require.ErrorContains(t, err, dir)
		})
	}
}

func TestADirectoryOfANewerEngineIsRefusedAndNotCalledDamaged(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, open(t, dir, quiet(nil)).Close())
	marker := only(t, filepath.Join(dir, "x"), "marker.format-version.*")
	require.NoError(t, os.Rename(marker, filepath.Join(dir, "marker.format-version.000099.999")))
	_, err := Open(dir, quiet(nil))
	require.ErrorIs(t, err, mapstate.ErrUnsupported)
	require.NotErrorIs(t, err, mapstate.ErrCorrupt)
}

// only returns the one file beside another that matches pattern.
func only(t *testing.T, beside, pattern string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(filepath.Dir(beside), pattern))
	require.NoError(t, err)
	require.Len(t, files, 1)
	return files[0]
}

// failingLog is a file system whose log cannot be synced once it is switched on.
func failingLog(err error) (vfs.FS, *atomic.Bool) {
	on := new(atomic.Bool)
	return errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		syncs := op.Kind == errorfs.OpFileSync || op.Kind == errorfs.OpFileSyncData || op.Kind == errorfs.OpFileSyncTo
		if on.Load() && syncs && strings.HasSuffix(op.Path, ".log") {
			return err
		}
		return nil
	})), on
}

func TestALogThatCannotBeWrittenEndsWritesAndNotReads(t *testing.T) {
	for name, c := range map[string]struct{ cause, want error }{
		"disk full":  {syscall.ENOSPC, mapstate.ErrDiskFull},
		"disk error": {errors.New("input/output error"), mapstate.ErrUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			fs, broken := failingLog(c.cause)
			d, p := create(t, fs)
			mapstatetest.Put(t, p, "k", "v")
			broken.Store(true)
			w := record("l", "v")
			w.Sync = true
			durable, err := p.Commit(t.Context(), w)
			if err == nil { // the log has not been found out yet
				err = durable.Wait()
			}
			require.ErrorIs(t, err, c.want)
			require.ErrorIs(t, d.Err(), c.want)

			for _, sync := range []bool{true, false} {
				w.Sync = sync
				_, err = p.Commit(t.Context(), w)
				require.ErrorIs(t, err, c.want)
				require.ErrorContains(t, err, "restart")
			}
			_, err = d.Create("t", nil)
			require.ErrorIs(t, err, c.want)
			require.ErrorIs(t, d.Delete("s"), c.want)
			p, err = d.State("s")
			require.NoError(t, err)
			require.Equal(t, []string{"v"}, mapstatetest.Get(t, p, "k"))
			require.ErrorIs(t, d.Close(), c.want, "Close could not sync either")
		})
	}
}

// smallDisk is a file system that reports its free space from a variable.
type smallDisk struct {
	vfs.FS
	free *atomic.Uint64
}

func (f smallDisk) GetDiskUsage(string) (vfs.DiskUsage, error) {
	return vfs.DiskUsage{AvailBytes: f.free.Load(), TotalBytes: 1 << 30}, nil
}

func TestCommitsAreRefusedWhileTheReserveIsTouched(t *testing.T) {
	fs := smallDisk{FS: vfs.NewMem(), free: new(atomic.Uint64)}
	fs.free.Store(1 << 30)
	d, p := create(t, fs)
	mapstatetest.Put(t, p, "k", "v")
	fs.free.Store(1 << 20)
	large := record("large", strings.Repeat("v", spaceStride))
	_, err := p.Commit(t.Context(), large)
	require.ErrorIs(t, err, mapstate.ErrDiskFull)
	require.ErrorContains(t, err, "1048576 bytes free")
	_, err = p.Commit(t.Context(), record("l", "small"))
	require.ErrorIs(t, err, mapstate.ErrDiskFull, "also a small one, until there is space again")
	require.Equal(t, []string{"v", "", ""}, mapstatetest.Get(t, p, "k", "l", "large"))

	fs.free.Store(1 << 30)
	mapstatetest.Commit(t, p, large)
	fs.free.Store(1 << 20)
	require.NoError(t, d.Delete("s"), "deleting makes space")
}

func TestAFatalEngineErrorIsLoggedAndEndsTheProcess(t *testing.T) {
	var died string
	log := newEngineLog(quiet(nil).Logger)
	log.die = func(message string) { died = message }
	log.Fatalf("MANIFEST flush failed: %v", syscall.EIO)
	require.Equal(t, "MANIFEST flush failed: input/output error", died)
}

func TestMetricsFollowWhatIsWritten(t *testing.T) {
	d, p := create(t, vfs.NewMem())
	before := d.Metrics()
	mapstatetest.Put(t, p, "k", strings.Repeat("v", 10_000))
	require.NoError(t, d.engine.Flush())
	mapstatetest.Get(t, p, "k")
	after := d.Metrics()
	require.Equal(t, before.Flushes+1, after.Flushes)
	require.Greater(t, after.LogBytesWritten, before.LogBytesWritten+10_000)
	require.Positive(t, after.DiskBytes)
	require.Positive(t, after.MemTableBytes)
	require.Positive(t, after.BlockCacheMiss)
	require.Equal(t, 1, after.ReadAmp)
}
