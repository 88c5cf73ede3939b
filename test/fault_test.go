package test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"tine/api"
	"tine/mapstate"
	"tine/mapstate/mapstatetest"
	"tine/nontx"
	"tine/opaque"
	"tine/transactional"
)

// kindNames are the names of the kinds, on the wire and for the oracle.
var kindNames = []string{"nontx", "transactional", "opaque"}

// kindNamed returns the kind of a name, nil if there is none.
func kindNamed(name string) mapstate.Kind {
	switch name {
	case "nontx":
		return nontx.Kind{}
	case "transactional":
		return transactional.Kind{}
	case "opaque":
		return opaque.Kind{}
	}
	return nil
}

// faulty is a registry of states in memory whose store fails on order.
type faulty struct {
	mu     sync.Mutex
	states map[string]*api.NamedState
	stores map[string]*brokenStore
}

var _ api.States = (*faulty)(nil)

// brokenStore is a store that fails on order, and whose scan may be missing.
type brokenStore struct {
	*mapstatetest.Fault
	mu      sync.Mutex
	scanErr error
}

// Scan implements mapstate.Scanner.
func (b *brokenStore) Scan(ctx context.Context, r mapstate.Range, yield func(mapstate.Key, []byte) error) error {
	b.mu.Lock()
	err := b.scanErr
	b.mu.Unlock()
	if err != nil {
		return err
	}
	return b.Fault.Scan(ctx, r, yield)
}

// startFaulty starts the handlers over an empty registry whose states can fail.
func startFaulty(t *testing.T) (*faulty, string, *http.Client) {
	f := &faulty{states: make(map[string]*api.NamedState), stores: make(map[string]*brokenStore)}
	srv := httptest.NewServer(api.New(f, api.Options{Log: slog.New(slog.DiscardHandler)}))
	t.Cleanup(func() {
		srv.Close()
		for _, s := range f.states {
			s.Map.Close(mapstate.ErrShuttingDown)
		}
	})
	return f, srv.URL, srv.Client()
}

// Create implements api.States. It knows no specs but kinds.
func (f *faulty) Create(ctx context.Context, name string, spec api.StateSpec) (*api.NamedState, bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if s, ok := f.states[name]; ok {
		return s, false, nil
	}
	store := &brokenStore{Fault: mapstatetest.NewFault(mapstate.NewMemory())}
	m, err := mapstate.Open(ctx, kindNamed(spec.Kind), store, mapstate.Options{})
	if err != nil {
		return nil, false, err
	}
	spec.Backing = "memory"
	f.stores[name] = store
	f.states[name] = &api.NamedState{Name: name, Spec: spec, Map: m}
	return f.states[name], true, nil
}

// State implements api.States.
func (f *faulty) State(name string) (*api.NamedState, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if s, ok := f.states[name]; ok {
		return s, nil
	}
	return nil, fmt.Errorf("%w: %q", mapstate.ErrUnknownState, name)
}

// List implements api.States.
func (f *faulty) List() []*api.NamedState { return nil }

// Delete implements api.States.
func (f *faulty) Delete(context.Context, string) error { return mapstate.ErrUnsupported }

// order makes the next get, commit, answer to a commit or wait for the disk of a
// state fail, or its scans from now on.
func (f *faulty) order(t *testing.T, state, at, with string) {
	faults := map[string]error{
		"unavailable": mapstate.ErrUnavailable,
		"disk-full":   mapstate.ErrDiskFull,
		"unsupported": mapstate.ErrUnsupported,
		"corrupt":     fmt.Errorf("opaque record: %w: cut short", mapstate.ErrCorrupt),
		"unforeseen":  errors.New("a secret of the engine's"),
	}
	err := faults[with]
	require.Error(t, err, "no fault %q", with)
	f.mu.Lock()
	defer f.mu.Unlock()
	store := f.stores[state]
	require.NotNil(t, store, "no state %q", state)
	switch at {
	case "get":
		store.FailGet(1, err)
	case "commit":
		store.FailCommit(1, mapstatetest.BeforeWrite, err)
	case "answer":
		store.FailCommit(1, mapstatetest.AfterWrite, err)
	case "wait":
		store.FailCommit(1, mapstatetest.InWait, err)
	case "scan":
		store.mu.Lock()
		defer store.mu.Unlock()
		store.scanErr = err
	default:
		require.Fail(t, "no such moment", at)
	}
}
