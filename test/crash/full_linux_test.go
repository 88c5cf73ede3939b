package crash

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tine/api"
	"tine/mapstate"
	"tine/mapstate/mapstatetest"
	"tine/server"
)

// smallDisk mounts a file system of so many MiB, where that is permitted.
func smallDisk(t *testing.T, mib int) string {
	dir := t.TempDir()
	if err := syscall.Mount("tine-test", dir, "tmpfs", 0, fmt.Sprintf("size=%dm", mib)); err != nil {
		t.Skipf("mount tmpfs: %v", err)
	}
	t.Cleanup(func() { require.NoError(t, syscall.Unmount(dir, syscall.MNT_DETACH)) })
	return dir
}

// fill writes a file that leaves so many bytes, and returns its name.
func fill(t *testing.T, dir string, leave int64) string {
	var room syscall.Statfs_t
	require.NoError(t, syscall.Statfs(dir, &room))
	name := filepath.Join(dir, "filler")
	f, err := os.Create(name)
	require.NoError(t, err)
	left := int64(room.Bavail)*room.Bsize - leave
	for size := int64(1 << 20); size > 0 && left > 0; {
		n, err := f.Write(make([]byte, min(size, left)))
		if left -= int64(n); err != nil {
			require.ErrorIs(t, err, syscall.ENOSPC) // others write as well
			size /= 2
		}
	}
	require.NoError(t, f.Close())
	return name
}

// running is a server of this process.
type running struct {
	*api.Client
	stop  context.CancelFunc
	ended chan error
	http  *http.Transport
}

func fullConfig(dir string, reserve int64) server.Config {
	cfg := server.DefaultConfig()
	cfg.Listen, cfg.DataDir, cfg.ShutdownGrace = "127.0.0.1:0", filepath.Join(dir, "data"), 0
	cfg.BlockCacheBytes, cfg.MemTableBytes, cfg.MinFreeBytes = 8<<20, 1<<20, reserve
	return cfg
}

func startServer(t *testing.T, cfg server.Config) *running {
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	lines, out := io.Pipe()
	r := &running{stop: stop, ended: make(chan error, 1), http: &http.Transport{}}
	go func() {
		err := server.New(cfg, server.Options{Out: out, Log: slog.New(slog.DiscardHandler)}).Run(ctx)
		_ = out.CloseWithError(err)
		r.ended <- err
	}()
	line, err := bufio.NewReader(lines).ReadString('\n')
	require.NoError(t, err)
	_, url, _ := strings.Cut(strings.TrimSpace(line), "listening on ")
	r.Client = api.NewClient(url, &http.Client{Transport: r.http})
	return r
}

func (r *running) end(t *testing.T) {
	r.stop()
	r.http.CloseIdleConnections()
	require.NoError(t, <-r.ended)
}

// fuller is a writer whose batches put one number on each of its keys.
type fuller struct {
	partition string
	answered  mapstate.TxID
	keys      []mapstate.Key
}

func newFullers(n int) []*fuller {
	var all []*fuller
	for i := range n {
		w := &fuller{partition: fmt.Sprint("p", i)}
		for k := range 20 {
			w.keys = append(w.keys, mapstatetest.Key(i, k))
		}
		all = append(all, w)
	}
	return all
}

// next sends the batch after the last answered one.
func (w *fuller) next(r *running) error {
	x := w.answered + 1
	var values []mapstate.Value
	for range w.keys {
		values = append(values, mapstate.String(fmt.Sprintf("%d %s", x, strings.Repeat("x", 2000))))
	}
	_, err := r.MultiPut(background, "s", mapstate.Envelope{TxID: x, Partition: w.partition, Whole: true}, w.keys, values)
	if err == nil {
		w.answered = x
	}
	return err
}

// untilStopped sends batches, each until it is taken.
func (w *fuller) untilStopped(t *testing.T, r *running, stop *atomic.Bool, refused *atomic.Int64) {
	for !stop.Load() {
		err := w.next(r)
		switch {
		case errors.Is(err, mapstate.ErrDiskFull):
			refused.Add(1)
		case err != nil:
			t.Errorf("%s: %v", w.partition, err)
			return
		}
	}
}

// requireWhole checks that all keys of a writer hold one batch: the last that was answered,
// or, until it has been sent again, the one after it.
func (w *fuller) requireWhole(t *testing.T, r *running) {
	t.Helper()
	entries, err := r.Read(background, "s", mapstate.Envelope{}, w.keys)
	require.NoError(t, err)
	for _, e := range entries {
		require.Equal(t, entries[0], e, "a batch of %s is torn", w.partition)
	}
	require.GreaterOrEqual(t, entries[0].TxID, w.answered)
	require.LessOrEqual(t, entries[0].TxID, w.answered+1)
}

// TestAFullDiskTurnsTheServerReadOnlyUntilThereIsRoom fills the disk under writers, first up to the
// reserve, by themselves, then whole, by somebody else.
func TestAFullDiskTurnsTheServerReadOnlyUntilThereIsRoom(t *testing.T) {
	dir := smallDisk(t, 48)
	cfg := fullConfig(dir, 8<<20)
	r := startServer(t, cfg)
	_, _, err := r.CreateState(background, "s", api.StateSpec{Kind: "opaque"})
	require.NoError(t, err)
	all := newFullers(4)

	for _, leave := range []int64{6 << 20, 0} {
		var stop atomic.Bool
		defer stop.Store(true)
		var refused atomic.Int64
		var group sync.WaitGroup
		for _, w := range all {
			group.Go(func() { w.untilStopped(t, r, &stop, &refused) })
		}
		filler := fill(t, dir, leave)
		require.Eventually(t, func() bool { return refused.Load() > 20 }, patience, time.Millisecond, "%d bytes left", leave)
		for _, w := range all {
			_, err := r.MultiGet(background, "s", mapstate.Envelope{}, w.keys)
			require.NoError(t, err, "reads go on with %d bytes left", leave)
		}
		require.NoError(t, r.Ready(background))
		require.NoError(t, os.Remove(filler))
		stop.Store(true)
		group.Wait()
		for _, w := range all {
			w.requireWhole(t, r)
			require.Eventually(t, func() bool { return w.next(r) == nil }, patience, time.Millisecond, "it goes on without a restart")
			w.requireWhole(t, r)
		}
	}
	r.end(t)
	r = startServer(t, cfg)
	for _, w := range all {
		w.requireWhole(t, r)
	}
	r.end(t)
}

func TestAStartOnAFullDiskSaysSo(t *testing.T) {
	dir := smallDisk(t, 4)
	filler := fill(t, dir, 0)
	cfg := fullConfig(dir, 1)
	err := server.New(cfg, server.Options{Log: slog.New(slog.DiscardHandler)}).Run(background)
	require.Error(t, err)
	require.True(t, errors.Is(err, mapstate.ErrDiskFull) || errors.Is(err, syscall.ENOSPC), "%v", err)
	require.NotContains(t, err.Error(), "\n")
	require.NoError(t, os.Remove(filler))
}

// TestAStopDoesNotWaitForRoom stops a server whose writers wait for room.
func TestAStopDoesNotWaitForRoom(t *testing.T) {
	dir := smallDisk(t, 24)
	cfg := fullConfig(dir, 1)
	cfg.ShutdownTimeout = 100 * time.Millisecond
	r := startServer(t, cfg)
	_, _, err := r.CreateState(background, "s", api.StateSpec{Kind: "opaque"})
	require.NoError(t, err)
	w := newFullers(1)[0]
	require.NoError(t, w.next(r))
	fill(t, dir, 0)
	var ended atomic.Bool
	var group sync.WaitGroup
	group.Go(func() {
		for !ended.Load() {
			_ = w.next(r) // refused, waiting or cut off
		}
	})
	require.Eventually(t, func() bool { return w.answered > 0 }, patience, time.Millisecond)
	r.stop()
	select {
	case <-r.ended:
	case <-time.After(patience):
		require.Fail(t, "the server does not stop")
	}
	ended.Store(true)
	r.http.CloseIdleConnections()
	group.Wait()
}
