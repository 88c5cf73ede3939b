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

// stalled is a client that stops half way, by what it sends before.
type stalled struct {
	sends string
	reads bool // it also reads one byte of the answer, which does not fit the sockets between
}

func stalls() map[string]stalled {
	keys := `{"keys":[0` + strings.Repeat(`,0`, 23) + `]}`
	post := func(target, header, body string) string {
		return "POST /v1/states/" + target + " HTTP/1.1\r\nHost: tine\r\nContent-Type: application/json\r\n" + header + "\r\n\r\n" + body
	}
	return map[string]stalled{
		"nothing":       {},
		"half a header": {sends: "POST /v1/states/s/multiUpdate HTTP/1.1\r\nHost: ti"},
		"half a body":   {sends: post("s/multiUpdate", "Content-Length: 1000", `{"txid":2,"ke`)},
		"no body":       {sends: post("s/commit", "Transfer-Encoding: chunked", "")},
		"an answer":     {sends: post("big/multiGet", fmt.Sprint("Content-Length: ", len(keys)), keys), reads: true},
		"a scan": {
			sends: "GET /v1/states/big/entries HTTP/1.1\r\nHost: tine\r\nAccept: application/x-ndjson\r\n\r\n",
			reads: true,
		},
	}
}

// stall opens a connection of each sort of stalled client. Where there is something
// to read, the server is in the middle of it when stall returns.
func stall(t *testing.T, url string) {
	t.Helper()
	for name, client := range stalls() {
		conn, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
		require.NoError(t, err)
		t.Cleanup(func() { _ = conn.Close() })
		require.NoError(t, conn.SetDeadline(time.Now().Add(patience)))
		_, err = io.WriteString(conn, client.sends)
		require.NoError(t, err, name)
		if client.reads {
			_, err := io.ReadFull(conn, make([]byte, 1))
			require.NoError(t, err, name)
		}
	}
}

// startBig starts a server with the opaque states s, where total is 2, and big.
func startBig(t *testing.T, config server.Config) *process {
	t.Helper()
	if testing.Short() {
		t.Skip("to fill the sockets takes a while")
	}
	filling := startProcess(t, patientConfig(config.DataDir))
	createBig(t, filling.connect())
	require.NoError(t, filling.stop())
	return startProcess(t, config)
}

// createBig creates these states; big has 24 MiB.
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
	require.NoError(t, batchOf(t.Context(), client, mapstate.Envelope{TxID: 1}, mapstatetest.Key("total"), 1, 1))
}

// requireBig requires that what createBig has written is there.
func requireBig(t *testing.T, client *api.Client) {
	t.Helper()
	requireTotals(t, client, mapstatetest.Keys("total"), 2)
	page, err := client.Entries(t.Context(), "big", api.Listing{Start: "23"}, 2, "")
	require.NoError(t, err)
	require.Len(t, page.Keys, 1)
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
	require.NoError(t, batchOf(t.Context(), client, mapstate.Envelope{TxID: 2}, key, 1, 1))
	requireTotals(t, client, []mapstate.Key{key}, 4)
	progress, err := client.Progress(t.Context(), "s")
	require.NoError(t, err)
	require.Len(t, progress, 1)
	_, err = client.MultiRemove(t.Context(), "big", mapstate.Envelope{TxID: 1}, mapstatetest.Keys(1, 2, 3))
	require.NoError(t, err)
	page, err := client.Entries(t.Context(), "big", api.Listing{Start: "20"}, 2, "")
	require.NoError(t, err)
	require.Len(t, page.Keys, 2)
}

// A state can be deleted once nobody scans it. Who has stopped reading is nobody, soon.
func TestAScanThatNobodyReadsEnds(t *testing.T) {
	t.Parallel()
	config := testConfig(t.TempDir())
	config.BodyTimeout, config.WriteTimeout = 50*time.Millisecond, 50*time.Millisecond
	p := startBig(t, config)
	stall(t, p.url)
	require.NoError(t, p.connect().DeleteState(t.Context(), "big"))
}

// Clients that never go on are left after the time they have, and nothing of theirs is
// under way when the server stops. A server that would wait for them for ever does not do
// so once it is told to stop: it cuts them off and says so. Either way it exits with 0, and
// what was answered is there.
func TestTheStopIsBoundedWhateverClientsDo(t *testing.T) {
	t.Parallel()
	path := buildBinary(t)
	for name, c := range map[string]struct {
		flags []string
		cuts  bool
	}{
		"left behind": {[]string{"--body-timeout", "50ms", "--write-timeout", "50ms", "--shutdown-timeout", patience.String()}, false},
		"cut off":     {[]string{"--body-timeout", "1h", "--write-timeout", "1h", "--shutdown-timeout", "100ms"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config := patientConfig(t.TempDir())
			require.NoError(t, startBig(t, config).stop())
			b := startBinary(t, path, config.DataDir, append(c.flags, "--log-level", "warn")...)
			stall(t, b.url)
			code, err := b.terminate()
			require.NoError(t, err)
			require.Zero(t, code, "%s", &b.log)
			require.Equal(t, c.cuts, strings.Contains(b.log.String(), "connections were cut off"), "%s", &b.log)
			requireBig(t, startProcess(t, config).connect())
		})
	}
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
