package backing

import (
	"errors"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"tine/backing/backingtest"
	"tine/mapstate"
	"tine/mapstate/mapstatetest"
)

// shortage is a disk that refuses some writes while it is on.
type shortage struct {
	*backingtest.Disk
	on atomic.Bool
}

func newShortage(err error, of func(backingtest.Write) bool) *shortage {
	s := &shortage{Disk: backingtest.NewDisk()}
	s.OnWrite(func(w backingtest.Write) (instead, after error) {
		if s.on.Load() && of(w) {
			return err, nil
		}
		return nil, nil
	})
	return s
}

func isLogWrite(w backingtest.Write) bool {
	return w.Op == "write" && strings.HasSuffix(w.Path, ".log")
}

// commitAsync begins a synced commit that may wait for room.
func commitAsync(t *testing.T, p *Pebble, w mapstate.Writes) <-chan error {
	w.Sync = true
	done := make(chan error, 1)
	ctx := t.Context()
	go func() {
		durable, err := p.Commit(ctx, w)
		if err == nil {
			err = durable.Wait()
		}
		done <- err
	}()
	return done
}

// awaitRefusal waits until commits are refused for want of room.
func awaitRefusal(t *testing.T, d *Database, want error) {
	t.Helper()
	require.Eventually(t, func() bool { return errors.Is(d.writable(), want) }, time.Minute, time.Millisecond)
}

func TestACommitThatFindsNoRoomGoesOnWhenThereIs(t *testing.T) {
	for name, c := range map[string]struct {
		cause, want error
		of          func(backingtest.Write) bool
	}{
		"no space for the log":      {syscall.ENOSPC, mapstate.ErrDiskFull, isLogWrite},
		"no quota for the log":      {syscall.EDQUOT, mapstate.ErrDiskFull, isLogWrite},
		"no descriptor for the log": {syscall.EMFILE, mapstate.ErrUnavailable, isNewFile},
		"no space for the log file": {syscall.ENOSPC, mapstate.ErrDiskFull, isNewFile},
	} {
		t.Run(name, func(t *testing.T) {
			disk := newShortage(c.cause, c.of)
			opts := quiet(disk)
			opts.MemTableBytes = minMemTableBytes // so that a large commit begins a new log
			d := open(t, "data", opts)
			p, err := d.Create("s", nil)
			require.NoError(t, err)
			mapstatetest.Put(t, p, "k", "v")

			disk.on.Store(true)
			large := record("large", strings.Repeat("v", 2*minMemTableBytes))
			begun := commitAsync(t, p, large)
			awaitRefusal(t, d, c.want)
			_, err = p.Commit(t.Context(), record("l", "v"))
			require.ErrorIs(t, err, c.want)
			_, err = d.Create("t", nil)
			require.ErrorIs(t, err, c.want)
			require.Equal(t, []string{"v", ""}, mapstatetest.Get(t, p, "k", "l"))
			require.NoError(t, d.Err(), "it is not the end")

			disk.on.Store(false)
			require.NoError(t, <-begun)
			require.Eventually(t, func() bool { return d.writable() == nil }, time.Minute, time.Millisecond)
			mapstatetest.Put(t, p, "l", "w")
			require.Equal(t, []string{"v", "w", string(large.Records[0].Record)}, mapstatetest.Get(t, p, "k", "l", "large"))
		})
	}
}

func isNewFile(w backingtest.Write) bool { return w.Op == "create" || w.Op == "reuse" }

func TestCloseDoesNotWaitForRoom(t *testing.T) {
	disk := newShortage(syscall.ENOSPC, isLogWrite)
	d, p := create(t, disk)
	disk.on.Store(true)
	begun := commitAsync(t, p, record("k", "v"))
	awaitRefusal(t, d, mapstate.ErrDiskFull)
	require.ErrorIs(t, d.Close(), mapstate.ErrDiskFull)
	require.ErrorIs(t, <-begun, mapstate.ErrDiskFull)
}

// TestAStartOnAFullDiskIsRefused fills the disk at each write of a first start, and of a
// start over what is there.
func TestAStartOnAFullDiskIsRefused(t *testing.T) {
	for name, prepare := range map[string]func(*testing.T, *backingtest.Disk){
		"first": func(*testing.T, *backingtest.Disk) {},
		"again": func(t *testing.T, disk *backingtest.Disk) {
			d, p := create(t, disk)
			mapstatetest.Put(t, p, "k", "v")
			require.NoError(t, d.Close())
		},
	} {
		t.Run(name, func(t *testing.T) {
			refused := 0
			for free := 0; ; free++ {
				disk := backingtest.NewDisk()
				prepare(t, disk)
				before := disk.Writes()
				disk.OnWrite(func(w backingtest.Write) (instead, after error) {
					if w.N > before+free && w.Op != "remove" && w.Op != "sync" {
						return syscall.ENOSPC, nil
					}
					return nil, nil
				})
				d, err := Open("data", quiet(disk))
				if err == nil {
					disk.OnWrite(nil)
					require.NoError(t, d.Close())
					break
				}
				refused++
				disk.OnWrite(nil) // what waits goes on, and ends
				require.ErrorIs(t, err, mapstate.ErrDiskFull, "with room for %d writes", free)
				require.ErrorContains(t, err, "make room on the disk")
			}
			require.Greater(t, refused, 5)
		})
	}
}

func TestARepeatedMessageIsLoggedOnceInAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRepeats(time.Now)
		for range 5 {
			r.next("flush")
		}
		_, ok := r.next("flush")
		require.False(t, ok)
		_, ok = r.next("other")
		require.True(t, ok, "another sort")
		time.Sleep(quietTime)
		withheld, ok := r.next("flush")
		require.True(t, ok)
		require.Equal(t, 5, withheld)
	})
}
