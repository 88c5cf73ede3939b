package test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"tine/api"
	"tine/mapstate"
	"tine/mapstate/mapstatetest"
)

// buildBinary builds the command and returns its path.
func buildBinary(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("the binary is built and run in the long tests only")
	}
	path := filepath.Join(t.TempDir(), "tine")
	out, err := exec.Command("go", "build", "-o", path, "tine/cmd/tine").CombinedOutput()
	require.NoError(t, err, "%s", out)
	return path
}

// binary is a server in a process of its own.
type binary struct {
	cmd    *exec.Cmd
	url    string
	client *api.Client
	http   *http.Client
}

// startBinary starts the server over dir and waits until it listens.
func startBinary(t *testing.T, path, dir string) *binary {
	t.Helper()
	b := &binary{
		cmd:  exec.Command(path, "serve", "--listen", "127.0.0.1:0", "--data-dir", dir, "--log-level", "error"),
		http: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 16}},
	}
	stdout, err := b.cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, b.cmd.Start())
	t.Cleanup(b.kill)
	b.url, err = readAddress(stdout)
	require.NoError(t, err)
	b.client = api.NewClient(b.url, b.http)
	return b
}

// kill ends the process at once. A second call does nothing.
func (b *binary) kill() {
	b.http.CloseIdleConnections()
	_ = b.cmd.Process.Kill() // it has ended already
	_ = b.cmd.Wait()         // it was killed
}

// counter is a writer whose batches add one to each of its keys.
type counter struct {
	partition string
	keys      []mapstate.Key
	answered  mapstate.TxID // the last batch whose commit was answered
}

func newCounters(n, keys int) []*counter {
	all := make([]*counter, n)
	for i := range all {
		all[i] = &counter{partition: fmt.Sprint("p", i)}
		for k := range keys {
			all[i].keys = append(all[i].keys, mapstatetest.Key(i, k))
		}
	}
	return all
}

// next sends the batch after the last answered one, which may be there already.
func (c *counter) next(ctx context.Context, client *api.Client) error {
	env := mapstate.Envelope{TxID: c.answered + 1, Partition: c.partition}
	if _, err := client.MultiUpdate(ctx, "s", increment(env, c.keys)); err != nil {
		return err
	}
	c.answered++
	return nil
}

// read returns the value of all keys, which must be one.
func (c *counter) read(ctx context.Context, client *api.Client) (mapstate.TxID, error) {
	values, err := client.MultiGet(ctx, "s", mapstate.Envelope{}, c.keys)
	if err != nil {
		return 0, err
	}
	for _, v := range values {
		if v != values[0] {
			return 0, fmt.Errorf("%w: %s holds %v", errTorn, c.partition, values)
		}
	}
	n, _ := values[0].AsInt()
	return mapstate.TxID(n), nil
}

var errTorn = errors.New("a batch is there by half")

// killUnderLoad lets all counters and a reader work until so many batches were
// answered, and then kills the server under them.
func killUnderLoad(t *testing.T, b *binary, all []*counter, batches int64) {
	t.Helper()
	var answered atomic.Int64
	enough := make(chan struct{})
	var load errgroup.Group
	for _, c := range all {
		load.Go(func() error {
			for {
				if err := c.next(t.Context(), b.client); err != nil {
					return unlessKilled(err)
				}
				if answered.Add(1) == batches {
					close(enough)
				}
			}
		})
	}
	load.Go(func() error {
		for i := 0; ; i++ {
			if _, err := all[i%len(all)].read(t.Context(), b.client); err != nil {
				return unlessKilled(err)
			}
		}
	})
	ended := make(chan error, 1)
	go func() { ended <- load.Wait() }()
	select {
	case <-enough:
		b.kill()
		require.NoError(t, <-ended)
	case err := <-ended:
		require.NoError(t, err)
		require.Fail(t, "the server went away before it was killed")
	}
}

// unlessKilled returns an error that does not come of the server's end.
func unlessKilled(err error) error {
	var problem *api.Problem
	if errors.As(err, &problem) || errors.Is(err, errTorn) {
		return err
	}
	return nil
}

// With sync an answered batch is there; with interval the last ones may be gone,
// but whole, and the progress tells which.
func TestKilledServersHoldWholeBatches(t *testing.T) {
	path := buildBinary(t)
	for _, durability := range []string{"sync", "interval"} {
		t.Run(durability, func(t *testing.T) { killedHoldsWholeBatches(t, path, durability) })
	}
}

func killedHoldsWholeBatches(t *testing.T, path, durability string) {
	dir, all := t.TempDir(), newCounters(4, 20)
	b := startBinary(t, path, dir)
	_, _, err := b.client.CreateState(t.Context(), "s", api.StateSpec{Kind: "transactional", Durability: durability})
	require.NoError(t, err)
	const kills, batches = 3, 150
	for range kills {
		killUnderLoad(t, b, all, batches)
		b = startBinary(t, path, dir)
		committed := make(map[string]mapstate.TxID)
		progress, err := b.client.Progress(t.Context(), "s")
		require.NoError(t, err)
		for _, p := range progress {
			committed[p.Partition] = p.TxID
		}
		for _, c := range all {
			n, err := c.read(t.Context(), b.client)
			require.NoError(t, err)
			require.Equal(t, committed[c.partition], n, "the progress and the values of %s", c.partition)
			require.LessOrEqual(t, n, c.answered+1, "%s holds more than was sent", c.partition)
			if durability == "sync" {
				require.GreaterOrEqual(t, n, c.answered, "answered batches of %s are gone", c.partition)
			}
			c.answered = min(c.answered, n)
		}
	}
	// The batch whose answer was lost is sent again, and counts once.
	for _, c := range all {
		require.NoError(t, c.next(t.Context(), b.client))
		n, err := c.read(t.Context(), b.client)
		require.NoError(t, err)
		require.Equal(t, c.answered, n)
	}
}
