package backing

import (
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"

	"tine/mapstate/mapstatetest"
)

func TestSyncerSyncsOnceAnIntervalAfterTheFirstWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		at := make(chan time.Duration, 10)
		s := newSyncer(500*time.Millisecond, func() { at <- time.Since(start) })
		s.arm()
		time.Sleep(300 * time.Millisecond)
		s.arm()
		time.Sleep(time.Hour) // idle: nothing happens
		s.arm()
		time.Sleep(time.Hour)
		s.close()
		require.Len(t, at, 2)
		require.Equal(t, 500*time.Millisecond, <-at)
		require.Equal(t, time.Hour+800*time.Millisecond, <-at)
	})
}

func TestSyncerSyncsAgainWhatIsWrittenDuringASync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var syncs atomic.Int32
		var s *syncer
		s = newSyncer(time.Second, func() {
			if syncs.Add(1) == 1 {
				s.arm()
			}
		})
		s.arm()
		time.Sleep(time.Hour)
		s.close()
		require.EqualValues(t, 2, syncs.Load())
	})
}

func TestSyncerWaitsForASyncAndDropsTheNextWhenItIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var finished atomic.Int32
		s := newSyncer(time.Second, func() {
			time.Sleep(time.Minute)
			finished.Add(1)
		})
		s.arm()
		time.Sleep(2 * time.Second) // the sync runs
		s.arm()
		s.close()
		require.EqualValues(t, 1, finished.Load())
		s.arm()
		time.Sleep(time.Hour)
		require.EqualValues(t, 1, finished.Load())
	})
}

func TestACommitWithoutSyncReachesTheDiskWithinTheInterval(t *testing.T) {
	mem := vfs.NewCrashableMem()
	synced := make(chan struct{}, 100)
	fs := &syncedLog{FS: mem, synced: synced}
	opts := quiet(fs.wrap())
	opts.SyncInterval = time.Millisecond
	d := open(t, "data", opts)
	p, err := d.Create("s", nil)
	require.NoError(t, err)
	fs.on.Store(true)
	mapstatetest.Put(t, p, "k", "v")
	<-synced // a sync of the log began; Close is the one that waits for it
	d.syncer.close()
	require.Equal(t, []string{"v"}, mapstatetest.Get(t, afterCrash(t, mem), "k"))
}

// syncedLog tells of syncs of the log.
type syncedLog struct {
	vfs.FS
	on     atomic.Bool
	synced chan<- struct{}
}

func (l *syncedLog) wrap() vfs.FS {
	return errorfs.Wrap(l.FS, errorfs.InjectorFunc(func(op errorfs.Op) error {
		syncs := op.Kind == errorfs.OpFileSync || op.Kind == errorfs.OpFileSyncData || op.Kind == errorfs.OpFileSyncTo
		if l.on.Load() && syncs && strings.HasSuffix(op.Path, ".log") {
			l.synced <- struct{}{}
		}
		return nil
	}))
}
