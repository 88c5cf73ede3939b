package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tine/api"
	"tine/mapstate"
)

func TestSecondServerOnADirectoryIsRefused(t *testing.T) {
	dir := t.TempDir()
	serve(t, dir)
	second := tine(t, nil, "serve", "--listen", "127.0.0.1:0", "--data-dir", dir)
	require.Equal(t, exitError, second.code)
	require.Contains(t, second.err, "tine: ")
	require.Contains(t, second.err, "data directory in use")
	require.Contains(t, second.err, dir)
	require.Empty(t, second.out)
}

func TestServeOnATakenPortIsAnError(t *testing.T) {
	first := serve(t, t.TempDir())
	address := strings.TrimPrefix(first.url, "http://")
	second := tine(t, nil, "serve", "--listen", address, "--data-dir", t.TempDir())
	require.Equal(t, exitError, second.code)
	require.Equal(t, "tine: address already in use: "+address+"; stop the other server or choose another --listen\n", second.err)
}

func TestTerminatedServerFinishesTheRequestUnderWayAndExitsWith0(t *testing.T) {
	dir := t.TempDir()
	s := serve(t, dir, "--shutdown-grace", "200ms")
	ok(t, s, "state", "create", "s", "--kind", "opaque")

	conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close()) }()
	body := `{"txid":1,"keys":["k"],"updater":"count"}`
	_, err = fmt.Fprintf(conn, "POST /v1/states/s/multiUpdate HTTP/1.1\r\nHost: tine\r\nContent-Length: %d\r\n\r\n%s", len(body), body[:20])
	require.NoError(t, err)
	eventually(t, func() bool { return strings.Contains(get(t, s, "/metrics").body, "tine_http_requests_in_flight 1\n") })

	s.signal(t, syscall.SIGTERM)
	eventually(t, func() bool { return get(t, s, "/readyz").status == http.StatusServiceUnavailable })
	require.Contains(t, get(t, s, "/readyz").body, `"shutting_down"`)
	eventually(t, func() bool { return strings.Contains(get(t, s, "/v1/states").body, `"shutting_down"`) })
	_, err = io.WriteString(conn, body[20:])
	require.NoError(t, err)
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, http.StatusOK, resp.StatusCode)
	require.Equal(t, exitOK, s.exit(t), s.log())
	require.NotContains(t, s.log(), "level=ERROR", "a stop in order is none")
	require.True(t, strings.HasSuffix(s.log(), "msg=stopped\n"), s.log())

	again := serve(t, dir)
	require.Contains(t, ok(t, again, "get", "s", "k", "--output", "json"), `"value":1`)
}

func TestTerminatedServerDoesNotWaitForeverForARequest(t *testing.T) {
	s := serve(t, t.TempDir(), "--shutdown-timeout", "50ms")
	ok(t, s, "state", "create", "s", "--kind", "opaque")
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close()) }()
	_, err = io.WriteString(conn, "POST /v1/states/s/multiUpdate HTTP/1.1\r\nHost: tine\r\nContent-Length: 100\r\n\r\n{")
	require.NoError(t, err)
	eventually(t, func() bool { return strings.Contains(get(t, s, "/metrics").body, "tine_http_requests_in_flight 1\n") })
	s.signal(t, syscall.SIGTERM)
	require.Equal(t, exitOK, s.exit(t), "its data is whole all the same")
	require.Contains(t, s.log(), "cut off")
	require.Contains(t, s.log(), "connections=1")
}

func TestKilledServerKeepsWhatItAcknowledged(t *testing.T) {
	dir := t.TempDir()
	s := serve(t, dir)
	ok(t, s, "state", "create", "s", "--kind", "nontx")

	// Writers count their own keys until the server dies under them.
	const writers = 4
	var acknowledged [writers]int64
	enough := make(chan struct{}, writers)
	var group sync.WaitGroup
	for w := range writers {
		group.Go(func() {
			transport := new(http.Transport)
			defer transport.CloseIdleConnections()
			client := api.NewClient(s.url, &http.Client{Transport: transport})
			for {
				_, err := client.MultiUpdate(context.Background(), "s", api.Request{Keys: []mapstate.Key{writerKey(w)}, Updater: api.Op{Name: "count"}})
				if err != nil {
					return
				}
				if acknowledged[w]++; acknowledged[w] == 20 {
					enough <- struct{}{}
				}
			}
		})
	}
	for range writers {
		<-enough
	}
	s.kill()
	group.Wait()

	again := serve(t, dir)
	client := api.NewClient(again.url, nil)
	for w, n := range acknowledged {
		values, err := client.MultiGet(t.Context(), "s", mapstate.Envelope{}, []mapstate.Key{writerKey(w)})
		require.NoError(t, err)
		stored, isInt := values[0].AsInt()
		require.True(t, isInt)
		require.GreaterOrEqual(t, stored, n, "acknowledged updates are on disk")
		require.LessOrEqual(t, stored, n+1, "at most one was in flight")
	}
	http.DefaultClient.CloseIdleConnections()
}

func writerKey(w int) mapstate.Key {
	return mapstate.Key(mapstate.AppendKeyString(nil, fmt.Sprintf("writer-%d", w)))
}

func TestInterruptStopsTheServer(t *testing.T) {
	s := serve(t, t.TempDir())
	s.signal(t, os.Interrupt)
	require.Equal(t, exitOK, s.exit(t), s.log())
}

func TestSecondSignalEndsTheServerAtOnce(t *testing.T) {
	s := serve(t, t.TempDir(), "--shutdown-grace", "1h")
	s.signal(t, syscall.SIGTERM)
	eventually(t, func() bool { return get(t, s, "/readyz").status == http.StatusServiceUnavailable })
	s.signal(t, syscall.SIGTERM)
	require.Equal(t, -1, s.exit(t), "it died of the signal")
}

func TestServerLogsAsToldTo(t *testing.T) {
	s := serve(t, t.TempDir(), "--log-format", "json", "--log-level", "info")
	eventually(t, func() bool { return strings.Contains(s.log(), `"msg":"ready"`) })
	quiet := serve(t, t.TempDir(), "--log-level", "error")
	get(t, quiet, "/livez")
	require.Empty(t, quiet.log())
}

// answer is an HTTP answer.
type answer struct {
	status int
	body   string
}

// get asks a server on a connection of its own.
func get(t *testing.T, s *serverProcess, path string) answer {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get(s.url + path)
	require.NoError(t, err)
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	return answer{resp.StatusCode, string(body)}
}

// eventually waits for something that must come.
func eventually(t *testing.T, is func() bool) {
	t.Helper()
	require.Eventually(t, is, time.Minute, 2*time.Millisecond)
}
