package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"tine/api"
	"tine/mapstate"
)

// logLines is a writer for slog's JSON handler.
type logLines struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logLines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(b)
}

// take returns the lines since the last call.
func (l *logLines) take(t *testing.T) (lines []map[string]any) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range strings.Lines(l.buf.String()) {
		var m map[string]any
		require.NoError(t, json.Unmarshal([]byte(line), &m))
		lines = append(lines, m)
	}
	l.buf.Reset()
	return lines
}

func TestEachRequestIsLoggedOnceWithItsID(t *testing.T) {
	log := &logLines{}
	told := make(observed, 100)
	f := start(t, api.Options{Log: slog.New(slog.NewJSONHandler(log, nil)), Observer: told})
	got := f.do(http.MethodPost, "/v1/states/opaque/multiGet", `{"keys":["a"]}`, "X-Request-Id", "my-id.1")
	require.Equal(t, "my-id.1", got.header.Get("X-Request-Id"))
	require.Equal(t, "POST /v1/states/{state}/multiGet 200 true", <-told)
	lines := log.take(t)
	require.Len(t, lines, 1)
	line := lines[0]
	require.Equal(t, "POST", line["method"])
	require.Equal(t, "/v1/states/opaque/multiGet", line["path"])
	require.EqualValues(t, http.StatusOK, line["status"])
	require.EqualValues(t, len(got.body)+len("\n"), line["bytes"])
	require.Equal(t, "my-id.1", line["requestId"])
	require.Equal(t, "opaque", line["state"])
	require.Contains(t, line, "took")
	require.NotContains(t, line, "error")

	for _, id := range []string{"", "no spaces", strings.Repeat("x", 101), "é"} {
		got = f.do(http.MethodGet, "/nowhere", "", "X-Request-Id", id)
		require.Equal(t, "GET none 404 true", <-told)
		require.Regexp(t, "^[0-9a-f]{16}$", got.header.Get("X-Request-Id"))
		require.Equal(t, got.header.Get("X-Request-Id"), got.problem(t)["requestId"])
		line = log.take(t)[0]
		require.Equal(t, got.header.Get("X-Request-Id"), line["requestId"])
		require.Contains(t, line["error"], "not found")
	}
}

// panicking is a registry that breaks on one name.
type panicking struct{ api.States }

func (p panicking) State(name string) (*api.NamedState, error) {
	switch name {
	case "boom":
		panic("broken invariant")
	case "abort":
		panic(http.ErrAbortHandler)
	case "secret":
		return nil, errors.New("the password is hunter2")
	}
	return p.States.State(name)
}

func TestAPanicIsAnswered500AndTheServerLives(t *testing.T) {
	log := &logLines{}
	f := start(t, api.Options{})
	server := httptest.NewServer(api.New(panicking{f.states}, api.Options{Log: slog.New(slog.NewJSONHandler(log, nil))}))
	defer server.Close()
	f.url, f.http = server.URL, server.Client()

	p := f.refused("boom/multiGet", `{"keys":[]}`, http.StatusInternalServerError, "internal")
	require.NotContains(t, p["detail"], "invariant")
	lines := log.take(t)
	require.Len(t, lines, 2)
	require.Equal(t, "broken invariant", lines[0]["panic"])
	require.Contains(t, lines[0]["stack"], "process_test.go")
	require.Equal(t, "ERROR", lines[1]["level"])

	p = f.refused("secret/multiGet", `{"keys":[]}`, http.StatusInternalServerError, "internal")
	require.NotContains(t, p["detail"], "hunter2")
	require.Contains(t, log.take(t)[0]["error"], "hunter2")

	resp, err := f.http.Post(f.url+"/v1/states/abort/multiGet", "application/json", strings.NewReader("{}"))
	if err == nil {
		_ = resp.Body.Close()
	}
	require.ErrorIs(t, err, io.EOF)
	f.posted("opaque/multiGet", `{"keys":[]}`, `{"values":[]}`)
}

func TestADrainingServerRefusesNewRequests(t *testing.T) {
	var draining atomic.Bool
	f := start(t, api.Options{Draining: draining.Load})
	require.Equal(t, http.StatusOK, f.do(http.MethodGet, "/readyz", "").status)
	draining.Store(true)
	f.refused("opaque/multiGet", `{"keys":[]}`, http.StatusServiceUnavailable, "shutting_down")
	require.Equal(t, "shutting_down", f.do(http.MethodGet, "/v1/states", "").problem(t)["code"])
	require.Equal(t, "shutting_down", f.do(http.MethodGet, "/readyz", "").problem(t)["code"])
	require.Equal(t, http.StatusOK, f.do(http.MethodGet, "/livez", "").status)
	draining.Store(false)
	f.posted("opaque/multiGet", `{"keys":[]}`, `{"values":[]}`)
}

func TestRefusingRequestsInAnOrderlyStopIsNotLoggedAsAnError(t *testing.T) {
	log := &logLines{}
	told := make(observed, 10)
	f := start(t, api.Options{
		Log:      slog.New(slog.NewJSONHandler(log, nil)),
		Observer: told,
		Draining: func() bool { return true },
	})
	for _, path := range []string{"/readyz", "/v1/states"} {
		require.Equal(t, http.StatusServiceUnavailable, f.do(http.MethodGet, path, "").status)
		<-told // the line is written
		lines := log.take(t)
		require.Len(t, lines, 1)
		require.Equal(t, "INFO", lines[0]["level"], path)
		require.Contains(t, lines[0]["error"], "shutting down")
	}
}

func TestReadinessIsAsked(t *testing.T) {
	var broken atomic.Bool
	f := start(t, api.Options{Ready: func(context.Context) error {
		if broken.Load() {
			return errors.New("the disk is away")
		}
		return nil
	}})
	require.NoError(t, f.client.Ready(t.Context()))
	broken.Store(true)
	err := f.client.Ready(t.Context())
	require.ErrorIs(t, err, mapstate.ErrUnavailable)
	require.ErrorContains(t, err, "the disk is away")
}

func TestMetricsAreMounted(t *testing.T) {
	f := start(t, api.Options{Metrics: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "up 1\n")
	})})
	require.Equal(t, "up 1\n", f.do(http.MethodGet, "/metrics", "").body)
}

func TestARequestWhoseClientIsGoneIsCut(t *testing.T) {
	told := make(observed, 10)
	f := start(t, api.Options{Observer: told})
	f.states.faults["opaque"].FailGet(1, context.Canceled)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	req := httptest.NewRequestWithContext(ctx, http.MethodPost, "/v1/states/opaque/multiGet", strings.NewReader(`{"keys":["a"]}`))
	require.PanicsWithValue(t, http.ErrAbortHandler, func() {
		api.New(f.states, api.Options{Observer: told, Log: slog.New(slog.DiscardHandler)}).ServeHTTP(httptest.NewRecorder(), req)
	})
	require.Equal(t, "POST /v1/states/{state}/multiGet 499 true", <-told)
}
