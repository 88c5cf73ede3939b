package test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tine/api"
	"tine/mapstate"
	"tine/mapstate/mapstatetest"
	"tine/server"
)

// stalls are clients that stop half way, by what they send before. Those that read
// ask the state big for more than the sockets between hold.
func stalls() map[string]string {
	keys := `{"keys":[0` + strings.Repeat(`,0`, 23) + `]}`
	return map[string]string{
		"half a header": "POST /v1/states/s/multiUpdate HTTP/1.1\r\nHost: ti",
		"half a body":   "POST /v1/states/s/multiUpdate HTTP/1.1\r\nHost: tine\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{\"txid\":1,\"ke",
		"no body":       "POST /v1/states/s/commit HTTP/1.1\r\nHost: tine\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n",
		"an answer":     fmt.Sprintf("POST /v1/states/big/multiGet HTTP/1.1\r\nHost: tine\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(keys), keys),
		"a scan":        "GET /v1/states/big/entries HTTP/1.1\r\nHost: tine\r\nAccept: application/x-ndjson\r\n\r\n",
	}
}

// stall opens a connection of each sort of stalled client. Where there is something
// to read, the first of it was read, so that the server is in the middle of it.
func stall(t *testing.T, url string) {
	t.Helper()
	for name, sends := range stalls() {
		conn, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
		require.NoError(t, err)
		t.Cleanup(func() { _ = conn.Close() })
		require.NoError(t, conn.SetDeadline(time.Now().Add(patience)))
		_, err = io.WriteString(conn, sends)
		require.NoError(t, err, name)
		if strings.HasPrefix(name, "a") {
			_, err := io.ReadFull(conn, make([]byte, 1))
			require.NoError(t, err, name)
		}
	}
}

// startBig starts a server with the opaque states s, which is empty, and big.
func startBig(t *testing.T, config server.Config) *process {
	t.Helper()
	if testing.Short() {
		t.Skip("to fill the sockets takes a while")
	}
	p := startProcess(t, config)
	createBig(t, p.connect())
	return p
}

// createBig creates the states; big has 24 MiB.
func createBig(t *testing.T, client *api.Client) {
	t.Helper()
	for _, name := range []string{"s", "big"} {
		_, _, err := client.CreateState(t.Context(), name, api.StateSpec{Kind: "opaque", Durability: "interval"})
		require.NoError(t, err)
	}
	const most = 1<<20 - 100
	for i := range 24 {
		value := mapstatetest.Vals(strings.Repeat("x", most))
		_, err := client.MultiPut(t.Context(), "big", mapstate.Envelope{}, mapstatetest.Keys(i), value)
		require.NoError(t, err)
	}
}

// patientConfig is that of a server which waits for its clients as good as for ever.
func patientConfig(dir string) server.Config {
	config := testConfig(dir)
	config.BodyTimeout, config.WriteTimeout = time.Hour, time.Hour
	return config
}

// connect returns a client that gives up once a request hangs.
func (p *process) connect() *api.Client {
	return api.NewClient(p.url, &http.Client{Transport: p.http.Transport, Timeout: patience})
}

// However long the server waits for those who stall, others go on in the same states,
// and in the same batch.
func TestStalledClientsHoldUpNobody(t *testing.T) {
	t.Parallel()
	p := startBig(t, patientConfig(t.TempDir()))
	client, key := p.connect(), mapstatetest.Key("total")
	stall(t, p.url)
	require.NoError(t, batchOf(t.Context(), client, mapstate.Envelope{TxID: 1}, key, 1, 1))
	requireTotals(t, client, []mapstate.Key{key}, 2)
	progress, err := client.Progress(t.Context(), "s")
	require.NoError(t, err)
	require.Len(t, progress, 1)
	_, err = client.MultiRemove(t.Context(), "big", mapstate.Envelope{TxID: 1}, mapstatetest.Keys(1, 2, 3))
	require.NoError(t, err)
	page, err := client.Entries(t.Context(), "big", api.Listing{Start: "20"}, 2, "")
	require.NoError(t, err)
	require.Len(t, page.Keys, 2)
}

// hastyConfig is that of a server which waits for its clients no longer than it must,
// but for its own stop as long as that takes.
func hastyConfig(dir string) server.Config {
	config := testConfig(dir)
	config.BodyTimeout, config.WriteTimeout = 50*time.Millisecond, 50*time.Millisecond
	config.ShutdownTimeout = patience
	return config
}

// A state can be deleted once nobody scans it. Who has stopped reading is nobody, soon.
func TestAScanThatNobodyReadsEnds(t *testing.T) {
	t.Parallel()
	p := startBig(t, hastyConfig(t.TempDir()))
	stall(t, p.url)
	require.NoError(t, p.connect().DeleteState(t.Context(), "big"))
}

// Clients that never go on are left after the time they have. Then nothing of theirs is
// under way, and the server stops in order.
func TestStalledClientsDoNotDisturbTheStop(t *testing.T) {
	t.Parallel()
	config := hastyConfig(t.TempDir())
	p := startBig(t, config)
	require.NoError(t, batchOf(t.Context(), p.connect(), mapstate.Envelope{TxID: 1}, mapstatetest.Key("total"), 1))
	stall(t, p.url)
	require.NoError(t, p.stop())
	requireTotals(t, startProcess(t, config).connect(), mapstatetest.Keys("total"), 1)
}

// A server that waits for its clients for ever does not do so once it is told to stop:
// it cuts them off, says so, and exits with 1. What was answered is there all the same.
func TestTheStopIsBoundedWhateverClientsDo(t *testing.T) {
	t.Parallel()
	path, dir := buildBinary(t), t.TempDir()
	b := startBinary(t, path, dir, "--body-timeout", "1h", "--write-timeout", "1h", "--shutdown-timeout", "100ms")
	createBig(t, b.client)
	require.NoError(t, batchOf(t.Context(), b.client, mapstate.Envelope{TxID: 1}, mapstatetest.Key("total"), 1))
	stall(t, b.url)
	code, err := b.terminate()
	require.NoError(t, err)
	require.Equal(t, 1, code, "%s", &b.log)
	require.Contains(t, b.log.String(), "requests were cut off")
	requireTotals(t, startBinary(t, path, dir).client, mapstatetest.Keys("total"), 1)
}

// While a server stops, a request is either done or refused as such; nobody is left
// without an answer, and exactly what was answered is there afterwards.
func TestRequestsDuringAStopAreDoneOrRefused(t *testing.T) {
	config := testConfig(t.TempDir())
	config.ShutdownTimeout = patience
	p := startProcess(t, config)
	client, keys := p.connect(), counters(4)
	_, _, err := client.CreateState(t.Context(), "s", api.StateSpec{Kind: "opaque", Durability: "interval"})
	require.NoError(t, err)
	body := `{"keys":[["counter",0],["counter",1],["counter",2],["counter",3]],"updater":"count"}`
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, p.url+"/v1/states/s/multiUpdate", strings.NewReader(body))
	require.NoError(t, err)
	request.Header.Set("Content-Type", "application/json")
	underWay := hold(t, request) // so that the server goes on stopping

	var done atomic.Int64
	var writers sync.WaitGroup
	refused := make(chan error, 8)
	for range cap(refused) {
		writers.Go(func() {
			for {
				if _, err := client.MultiUpdate(context.WithoutCancel(t.Context()), "s", increment(mapstate.Envelope{}, keys)); err != nil {
					refused <- err
					return
				}
				if done.Add(1) == 100 {
					p.cancel()
				}
			}
		})
	}
	writers.Wait()
	for range cap(refused) {
		err := <-refused
		require.ErrorIs(t, err, mapstate.ErrShuttingDown)
		problem, ok := errors.AsType[*api.Problem](err)
		require.True(t, ok)
		require.Equal(t, http.StatusServiceUnavailable, problem.Status)
	}
	require.Equal(t, http.StatusOK, underWay.release(t).StatusCode)
	require.NoError(t, p.stop())
	requireTotals(t, startProcess(t, config).connect(), keys, int(done.Load())+1)
}
