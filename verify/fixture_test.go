package verify_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"tine/api"
	"tine/mapstate"
	"tine/nontx"
	"tine/opaque"
	"tine/transactional"
	"tine/verify"
)

// fault is what is wrong with the states of a house. Each member may be nil.
type fault struct {
	kind  func(mapstate.Kind) mapstate.Kind
	store func(mapstate.BackingMap) mapstate.BackingMap
	// restart returns what a restart makes of what was written; nil loses nothing.
	restart func([]mapstate.Writes) []mapstate.Writes
}

// house is a server of states in memory that have a fault. Its states survive restarts.
type house struct {
	fault  fault
	server *httptest.Server

	mu     sync.Mutex
	states map[string]*api.NamedState
	logs   map[string]*journal
}

var (
	_ verify.Server = (*house)(nil)
	_ api.States    = (*house)(nil)
)

func newHouse(t *testing.T, f fault) *house {
	h := &house{fault: f, states: map[string]*api.NamedState{}, logs: map[string]*journal{}}
	h.open()
	t.Cleanup(h.close)
	return h
}

func (h *house) open() {
	h.server = httptest.NewServer(api.New(h, api.Options{Log: slog.New(slog.DiscardHandler)}))
}

func (h *house) close() {
	h.server.CloseClientConnections()
	h.server.Close()
	for _, s := range h.List() {
		s.Map.Close(mapstate.ErrShuttingDown)
	}
}

func (h *house) URL() string { return h.server.URL }

func (h *house) Stop(ctx context.Context) error { return h.Kill(ctx) }

func (h *house) Kill(ctx context.Context) error {
	h.close()
	for name, s := range h.states {
		written := h.logs[name].written
		if h.fault.restart != nil {
			written = h.fault.restart(written)
		}
		if err := h.put(ctx, name, s.Spec, written); err != nil {
			return err
		}
	}
	h.open()
	return nil
}

// put opens a state over what was written to it.
func (h *house) put(ctx context.Context, name string, spec api.StateSpec, written []mapstate.Writes) error {
	log := &journal{BackingMap: mapstate.NewMemory()}
	for _, w := range written {
		if _, err := log.Commit(ctx, w); err != nil {
			return err
		}
	}
	kind := map[string]mapstate.Kind{"opaque": opaque.Kind{}, "transactional": transactional.Kind{}, "nontx": nontx.Kind{}}[spec.Kind]
	if h.fault.kind != nil {
		kind = h.fault.kind(kind)
	}
	var store mapstate.BackingMap = log
	if h.fault.store != nil {
		store = h.fault.store(store)
	}
	m, err := mapstate.Open(ctx, kind, store, mapstate.Options{})
	if err != nil {
		return err
	}
	h.logs[name] = log
	h.states[name] = &api.NamedState{Name: name, Spec: spec, Map: m}
	return nil
}

func (h *house) Create(ctx context.Context, name string, spec api.StateSpec) (*api.NamedState, bool, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if s, ok := h.states[name]; ok {
		return s, false, nil
	}
	err := h.put(ctx, name, spec, nil)
	return h.states[name], true, err
}

func (h *house) State(name string) (*api.NamedState, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if s, ok := h.states[name]; ok {
		return s, nil
	}
	return nil, fmt.Errorf("%w: %q", mapstate.ErrUnknownState, name)
}

func (h *house) List() (all []*api.NamedState) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, s := range h.states {
		all = append(all, s)
	}
	return all
}

func (h *house) Delete(_ context.Context, name string) error {
	s, err := h.State(name)
	if err != nil {
		return err
	}
	s.Map.Close(mapstate.ErrUnknownState)
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.states, name)
	return nil
}

// states of the house that are watched for a fault.
func histories(kind string) []verify.History {
	return []verify.History{{Spec: api.StateSpec{Kind: kind}}}
}

// found runs a verification that must find the fault.
func found(t *testing.T, f fault, opts verify.Options) *verify.Finding {
	t.Helper()
	opts.Server = newHouse(t, f)
	report, err := verify.Run(t.Context(), opts)
	require.NoError(t, err)
	require.NotNil(t, report.Difference, "%+v", report)
	t.Logf("%s\n%s\n%s", report.Difference.Error(), report.Difference.Text, report.Difference.Replay)
	return report.Difference
}
