package server

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tine/api"
	"tine/mapstate"
)

// running is a server that runs in this process.
type running struct {
	url    string
	stop   context.CancelFunc
	ended  <-chan error
	client *http.Client
}

// testConfig is a configuration on a free port and a directory of its own.
func testConfig(t *testing.T) Config {
	cfg := DefaultConfig()
	cfg.Listen = "127.0.0.1:0"
	cfg.DataDir = t.TempDir()
	cfg.ShutdownGrace = 0
	return cfg
}

// start runs a server and waits until it listens. It is stopped, without an
// error, when the test ends, unless wait is called before.
func start(t *testing.T, cfg Config) *running {
	t.Helper()
	return startLogging(t, cfg, t.Output())
}

// startLogging is start with a log of the caller's.
func startLogging(t *testing.T, cfg Config, log io.Writer) *running {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	lines, out := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := New(cfg, Options{Out: out, Log: slog.New(slog.NewTextHandler(log, nil)), Version: "test"}).Run(ctx)
		_ = out.CloseWithError(io.EOF)
		ended <- err
	}()
	line, err := bufio.NewReader(lines).ReadString('\n')
	if err != nil {
		stop()
		require.NoError(t, <-ended)
		require.NoError(t, err)
	}
	_, url, ok := strings.Cut(strings.TrimSpace(line), "listening on ")
	require.True(t, ok, line)
	transport := new(http.Transport)
	r := &running{url: url, stop: stop, ended: ended, client: &http.Client{Transport: transport}}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		if r.ended != nil {
			require.NoError(t, r.wait())
		}
	})
	return r
}

// logText is a log in memory. A server whose requests were cut off may end before they do.
type logText struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logText) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(b)
}

func (l *logText) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// wait stops the server and returns what Run does.
func (r *running) wait() error {
	r.stop()
	err := <-r.ended
	r.ended = nil
	return err
}

func (r *running) api() *api.Client { return api.NewClient(r.url, r.client) }

func (r *running) get(t *testing.T, path string) (status int, body string) {
	t.Helper()
	resp, err := r.client.Get(r.url + path)
	require.NoError(t, err)
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	return resp.StatusCode, string(text)
}

func (r *running) createState(t *testing.T, name string) {
	t.Helper()
	_, _, err := r.api().CreateState(t.Context(), name, api.StateSpec{Kind: "opaque"})
	require.NoError(t, err)
}

// slowRequest is a request whose body is sent in two parts.
type slowRequest struct {
	conn net.Conn
	rest string
}

// startRequest sends an update up to the middle of its body. That the server has
// begun to read it is known once its metrics show it in flight.
func (r *running) startRequest(t *testing.T, state string) *slowRequest {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(r.url, "http://"))
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	body := `{"txid":1,"keys":["k"],"updater":"count"}`
	_, err = fmt.Fprintf(conn, "POST /v1/states/%s/multiUpdate HTTP/1.1\r\nHost: tine\r\nContent-Length: %d\r\n\r\n%s",
		state, len(body), body[:10])
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		_, metrics := r.get(t, "/metrics")
		return strings.Contains(metrics, "tine_http_requests_in_flight 1\n")
	}, time.Minute, time.Millisecond)
	return &slowRequest{conn: conn, rest: body[10:]}
}

// finish sends the rest of the body and returns the status of the answer.
func (s *slowRequest) finish(t *testing.T) int {
	t.Helper()
	_, err := io.WriteString(s.conn, s.rest)
	require.NoError(t, err)
	resp, err := http.ReadResponse(bufio.NewReader(s.conn), nil)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	return resp.StatusCode
}

func TestServerServesWhatItStoredBefore(t *testing.T) {
	cfg := testConfig(t)
	first := start(t, cfg)
	first.createState(t, "s")
	_, err := first.api().MultiPut(t.Context(), "s", mapstate.Envelope{TxID: 3}, []mapstate.Key{key(t, "k")}, []mapstate.Value{mapstate.Int(7)})
	require.NoError(t, err)
	require.NoError(t, first.wait())

	second := start(t, cfg)
	values, err := second.api().MultiGet(t.Context(), "s", mapstate.Envelope{}, []mapstate.Key{key(t, "k")})
	require.NoError(t, err)
	require.Equal(t, []mapstate.Value{mapstate.Int(7)}, values)
}

func TestRunRefusesABadConfigurationBeforeItTouchesAnything(t *testing.T) {
	cfg := testConfig(t)
	cfg.DataDir += "/not-there"
	cfg.MaxKeys = 0
	require.ErrorContains(t, New(cfg, Options{}).Run(t.Context()), "max-keys")
	require.NoDirExists(t, cfg.DataDir)
}

func TestRunRefusesADirectoryInUse(t *testing.T) {
	cfg := testConfig(t)
	start(t, cfg)
	err := New(cfg, Options{}).Run(t.Context())
	require.ErrorIs(t, err, mapstate.ErrLocked)
	require.ErrorContains(t, err, cfg.DataDir)
}

func TestRunGivesTheDirectoryBackWhenItCannotListen(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, taken.Close()) }()
	cfg := testConfig(t)
	cfg.AdminListen = taken.Addr().String()
	require.ErrorContains(t, New(cfg, Options{}).Run(t.Context()), cfg.AdminListen)
	cfg.AdminListen = ""
	start(t, cfg)
}

func TestATakenAddressIsNamedOnceWithTheFlagToChange(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, taken.Close()) }()
	address := taken.Addr().String()
	cfg := testConfig(t)
	cfg.Listen = address
	err = New(cfg, Options{}).Run(t.Context())
	require.ErrorIs(t, err, syscall.EADDRINUSE)
	require.EqualError(t, err, "address already in use: "+address+"; stop the other server or choose another --listen")

	cfg.Listen, cfg.AdminListen = "127.0.0.1:0", address
	require.ErrorContains(t, New(cfg, Options{}).Run(t.Context()), "choose another --admin-listen")
}

func TestLogTellsAddressesDirectoryAndTheEnd(t *testing.T) {
	cfg := testConfig(t)
	cfg.AdminListen = "127.0.0.1:0"
	var log logText
	r := startLogging(t, cfg, &log)
	require.NoError(t, r.wait())
	address := strings.TrimPrefix(r.url, "http://")
	require.Contains(t, log.String(), "msg=ready address="+address+" dataDir="+cfg.DataDir)
	_, admin, found := strings.Cut(log.String(), "adminAddress=127.0.0.1:")
	require.True(t, found, log.String())
	require.NotEqual(t, byte('0'), admin[0], "the port that was taken")
	require.True(t, strings.HasSuffix(log.String(), "msg=stopped\n"), log.String())
}

func TestProfilesAreOnTheAdminListenerOnly(t *testing.T) {
	cfg := testConfig(t)
	free, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	cfg.AdminListen = free.Addr().String()
	require.NoError(t, free.Close())
	r := start(t, cfg)
	status, _ := r.get(t, "/debug/pprof/cmdline")
	require.Equal(t, http.StatusNotFound, status)
	resp, err := r.client.Get("http://" + cfg.AdminListen + "/debug/pprof/cmdline")
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, http.StatusOK, resp.StatusCode)
}

func TestMetricsShowStatesDatabaseAndRequests(t *testing.T) {
	r := start(t, testConfig(t))
	r.createState(t, "words")
	for range 2 {
		_, err := r.api().MultiPut(t.Context(), "words", mapstate.Envelope{TxID: 2}, []mapstate.Key{key(t, "k")}, []mapstate.Value{mapstate.Int(7)})
		require.NoError(t, err)
	}
	_, err := r.api().MultiPut(t.Context(), "words", mapstate.Envelope{TxID: 1}, []mapstate.Key{key(t, "k")}, []mapstate.Value{mapstate.Int(7)})
	require.ErrorIs(t, err, mapstate.ErrStaleTx)

	status, metrics := r.get(t, "/metrics")
	require.Equal(t, http.StatusOK, status)
	for _, line := range []string{
		`tine_state_commits_total{kind="opaque",state="words"} 2`,
		`tine_state_replayed_total{kind="opaque",state="words"} 1`,
		`tine_state_stale_total{kind="opaque",state="words"} 1`,
		`tine_cache_hits_total{kind="opaque",state="words"}`,
		`tine_http_requests_total{method="POST",route="/v1/states/{state}/multiPut",status="2xx"} 2`,
		`tine_http_requests_total{method="POST",route="/v1/states/{state}/multiPut",status="4xx"} 1`,
		`tine_http_request_duration_seconds_bucket{method="POST",route="/v1/states/{state}/multiPut",status="2xx"`,
		`tine_pebble_disk_bytes`, `tine_build_info{`, `version="test"`, `go_goroutines`, `process_open_fds`,
	} {
		require.Contains(t, metrics, line)
	}
}

func TestMoreRequestsThanAllowedAreOverloaded(t *testing.T) {
	cfg := testConfig(t)
	cfg.MaxRequests = 1
	r := start(t, cfg)
	r.createState(t, "s")
	slow := r.startRequest(t, "s")
	_, err := r.api().States(t.Context())
	require.ErrorIs(t, err, mapstate.ErrOverloaded)
	status, _ := r.get(t, "/readyz")
	require.Equal(t, http.StatusOK, status, "probes are answered under load")
	require.Equal(t, http.StatusOK, slow.finish(t))
	require.Eventually(t, func() bool { _, err := r.api().States(t.Context()); return err == nil }, time.Minute, time.Millisecond)
}

func TestAStalledBodyIsCutOff(t *testing.T) {
	cfg := testConfig(t)
	cfg.BodyTimeout = 20 * time.Millisecond
	r := start(t, cfg)
	r.createState(t, "s")
	conn, err := net.Dial("tcp", strings.TrimPrefix(r.url, "http://"))
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close()) }()
	_, err = io.WriteString(conn, "POST /v1/states/s/multiUpdate HTTP/1.1\r\nHost: tine\r\nContent-Length: 100\r\n\r\n{")
	require.NoError(t, err)
	answer, err := io.ReadAll(conn) // until the server closes the connection
	require.NoError(t, err)
	require.True(t, bytes.HasPrefix(answer, []byte("HTTP/1.1 4")), "%s", answer)
}

func TestAnIdleBatchIsDropped(t *testing.T) {
	cfg := testConfig(t)
	cfg.BatchIdle = time.Millisecond
	r := start(t, cfg)
	r.createState(t, "s")
	env := mapstate.Envelope{TxID: 1}
	_, err := r.api().BeginCommit(t.Context(), "s", env)
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		info, err := r.api().State(t.Context(), "s")
		return err == nil && info.Stats.OpenBatches == 0
	}, time.Minute, time.Millisecond)
	_, err = r.api().Commit(t.Context(), "s", env)
	require.ErrorIs(t, err, mapstate.ErrNoOpenBatch)
}

func TestBodiesBeyondTheBudgetAreOverloaded(t *testing.T) {
	cfg := testConfig(t)
	cfg.MaxBodyBytes, cfg.MaxInFlightBytes = 1<<10, 1<<10
	r := start(t, cfg)
	r.createState(t, "s")
	slow := r.startRequest(t, "s")
	post := func(body io.Reader) int {
		resp, err := r.client.Post(r.url+"/v1/states/s/multiGet", "application/json", body)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		return resp.StatusCode
	}
	text := `{"keys":["` + strings.Repeat("k", 500) + `"]}`
	ofUnknownLength := func() io.Reader { return io.MultiReader(strings.NewReader(text)) }
	require.Equal(t, http.StatusOK, post(strings.NewReader(text)))
	require.Equal(t, http.StatusTooManyRequests, post(ofUnknownLength()), "it may become as large as the limit")
	require.Equal(t, http.StatusRequestEntityTooLarge, post(strings.NewReader(strings.Repeat("k", 2<<10))))
	require.Equal(t, http.StatusOK, slow.finish(t))
	require.Eventually(t, func() bool { return post(ofUnknownLength()) == http.StatusOK }, time.Minute, time.Millisecond)
}
