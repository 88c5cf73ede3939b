package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"tine/api"
	"tine/mapstate"
	"tine/mapstate/mapstatetest"
	"tine/nontx"
	"tine/opaque"
	"tine/transactional"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// cutScan is a backing whose scans fail behind a number of records, 0 for never.
type cutScan struct {
	mapstate.BackingMap
	after atomic.Int64
}

func (c *cutScan) Scan(ctx context.Context, r mapstate.Range, yield func(mapstate.Key, []byte) error) error {
	left := c.after.Load()
	return c.BackingMap.Scan(ctx, r, func(k mapstate.Key, record []byte) error {
		if left--; left == 0 {
			return fmt.Errorf("%w: a block is damaged", mapstate.ErrUnavailable)
		}
		return yield(k, record)
	})
}

// registry is api.States in memory.
type registry struct {
	mu     sync.Mutex
	states map[string]*api.NamedState
	faults map[string]*mapstatetest.Fault
	scans  map[string]*cutScan
}

var _ api.States = (*registry)(nil)

func (r *registry) Create(ctx context.Context, name string, spec api.StateSpec) (*api.NamedState, bool, error) {
	kinds := map[string]mapstate.Kind{"opaque": opaque.Kind{}, "transactional": transactional.Kind{}, "nontx": nontx.Kind{}}
	kind, ok := kinds[spec.Kind]
	if !ok || spec.Backing != "" && spec.Backing != "memory" {
		return nil, false, fmt.Errorf("%w: kind %q on backing %q", api.ErrBadRequest, spec.Kind, spec.Backing)
	}
	spec.Backing = "memory"
	r.mu.Lock()
	defer r.mu.Unlock()
	if s, ok := r.states[name]; ok {
		if s.Spec.Kind != spec.Kind {
			return nil, false, fmt.Errorf("%w: %q is %s", mapstate.ErrStateExists, name, s.Spec.Kind)
		}
		return s, false, nil
	}
	scans := &cutScan{BackingMap: mapstate.NewMemory()}
	fault := mapstatetest.NewFault(scans)
	m, err := mapstate.Open(ctx, kind, fault, mapstate.Options{})
	if err != nil {
		return nil, false, err
	}
	r.faults[name], r.scans[name] = fault, scans
	r.states[name] = &api.NamedState{
		Name: name, Spec: spec, Map: m,
		Capabilities: api.Capabilities{AtomicBatch: true, Scan: true},
		CacheStats:   func() api.CacheStats { return api.CacheStats{Entries: 1, Bytes: 2, Hits: 3, Misses: 4} },
	}
	return r.states[name], true, nil
}

func (r *registry) State(name string) (*api.NamedState, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s, ok := r.states[name]; ok {
		return s, nil
	}
	return nil, fmt.Errorf("%w: %q", mapstate.ErrUnknownState, name)
}

func (r *registry) List() []*api.NamedState {
	r.mu.Lock()
	defer r.mu.Unlock()
	var list []*api.NamedState
	for _, name := range slices.Sorted(maps.Keys(r.states)) {
		list = append(list, r.states[name])
	}
	return list
}

func (r *registry) Delete(_ context.Context, name string) error {
	s, err := r.State(name)
	if err != nil {
		return err
	}
	s.Map.Close(mapstate.ErrUnknownState)
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.states, name)
	return nil
}

// fixture is a server with three states, called as their kinds are.
type fixture struct {
	t      *testing.T
	states *registry
	url    string
	http   *http.Client
	client *api.Client
}

func start(t *testing.T, opts api.Options) *fixture {
	t.Helper()
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	states := &registry{states: map[string]*api.NamedState{}, faults: map[string]*mapstatetest.Fault{}, scans: map[string]*cutScan{}}
	for _, kind := range []string{"opaque", "transactional", "nontx"} {
		_, _, err := states.Create(t.Context(), kind, api.StateSpec{Kind: kind})
		require.NoError(t, err)
	}
	server := httptest.NewServer(api.New(states, opts))
	t.Cleanup(func() {
		server.Close()
		for _, s := range states.List() {
			s.Map.Close(mapstate.ErrShuttingDown)
		}
	})
	return &fixture{t: t, states: states, url: server.URL, http: server.Client(), client: api.NewClient(server.URL, server.Client())}
}

// answer is a whole answer.
type answer struct {
	status int
	header http.Header
	body   string
}

// problem decodes the answer as a problem, strictly by its media type.
func (a answer) problem(t *testing.T) map[string]any {
	t.Helper()
	require.Equal(t, "application/problem+json", a.header.Get("Content-Type"), a.body)
	var p map[string]any
	require.NoError(t, json.Unmarshal([]byte(a.body), &p), a.body)
	require.EqualValues(t, a.status, p["status"])
	for _, member := range []string{"type", "title", "detail", "code", "requestId"} {
		require.NotEmpty(t, p[member], member)
	}
	return p
}

func (f *fixture) do(method, path, body string, headers ...string) answer {
	f.t.Helper()
	req, err := http.NewRequestWithContext(f.t.Context(), method, f.url+path, strings.NewReader(body))
	require.NoError(f.t, err)
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := f.http.Do(req)
	require.NoError(f.t, err)
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	require.NoError(f.t, err)
	if media := resp.Header.Get("Content-Type"); len(text) > 0 && (media == "application/json" || media == "application/problem+json") {
		require.Equal(f.t, fmt.Sprint(len(text)), resp.Header.Get("Content-Length"))
		line, ended := strings.CutSuffix(string(text), "\n")
		require.True(f.t, ended, "an answer ends its line: %s", text)
		text = []byte(line)
	}
	return answer{resp.StatusCode, resp.Header, string(text)}
}

func (f *fixture) post(path, body string) answer {
	f.t.Helper()
	return f.do(http.MethodPost, "/v1/states/"+path, body, "Content-Type", "application/json")
}

// posted posts and requires the very answer.
func (f *fixture) posted(path, body, want string) {
	f.t.Helper()
	got := f.post(path, body)
	require.Equal(f.t, http.StatusOK, got.status, got.body)
	require.Equal(f.t, want, got.body)
	require.Equal(f.t, "application/json", got.header.Get("Content-Type"))
}

// refused posts and requires a problem.
func (f *fixture) refused(path, body string, status int, code string) map[string]any {
	f.t.Helper()
	got := f.post(path, body)
	require.Equal(f.t, status, got.status, got.body)
	p := got.problem(f.t)
	require.Equal(f.t, code, p["code"], got.body)
	return p
}
