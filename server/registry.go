package server

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"

	"tine/api"
	"tine/backing"
	"tine/cache"
	"tine/mapstate"
)

// Registry is the set of named states: one Map each, over one database. States
// on Pebble are in the database's catalog and come back with it; states in
// memory end with the process, and so does their name.
type Registry struct {
	cfg Config
	db  *backing.Database

	// changes is held through every Create, Delete and Close, which may take as long
	// as a write to disk. states is guarded by mu, which is only held for a moment.
	changes sync.Mutex
	closed  bool

	mu        sync.RWMutex
	states    map[string]*api.NamedState
	memcached map[string]*backing.Memcached // of the states on memcached

	log *slog.Logger
}

var _ api.States = (*Registry)(nil)

// OpenRegistry opens every state in the database's catalog. It does not take
// over the database, which is closed after the registry.
func OpenRegistry(ctx context.Context, db *backing.Database, cfg Config) (*Registry, error) {
	r := &Registry{
		cfg: cfg, db: db, log: slog.New(slog.DiscardHandler),
		states: make(map[string]*api.NamedState), memcached: make(map[string]*backing.Memcached),
	}
	entries, err := db.States()
	if err != nil {
		return nil, fmt.Errorf("open the states: %w", err)
	}
	for _, e := range entries {
		if err := r.reopen(ctx, e); err != nil {
			r.Close()
			return nil, fmt.Errorf("open state %q: %w", e.Name, err)
		}
	}
	return r, nil
}

func (r *Registry) reopen(ctx context.Context, e backing.CatalogEntry) error {
	var spec api.StateSpec
	if err := json.Unmarshal(e.Spec, &spec); err != nil {
		return fmt.Errorf("%w: its spec in the catalog: %w", mapstate.ErrCorrupt, err)
	}
	spec, err := normalise(spec, r.cfg)
	if err != nil {
		return fmt.Errorf("its spec in the catalog: %w", err)
	}
	store, err := r.db.State(e.Name)
	if err != nil {
		return err
	}
	state, err := r.openStored(ctx, e.Name, spec, store)
	if err != nil {
		return err
	}
	r.put(state)
	return nil
}

// openStored puts a normalised spec together over its store in the database.
func (r *Registry) openStored(ctx context.Context, name string, spec api.StateSpec, store *backing.Pebble) (*api.NamedState, error) {
	if spec.Backing != backingMemcached {
		return r.open(ctx, name, spec, store)
	}
	onServers, err := openMemcached(ctx, name, spec.Memcached, store)
	if err != nil {
		return nil, err
	}
	state, err := r.open(ctx, name, spec, onServers)
	if err != nil {
		return nil, errors.Join(err, onServers.Close())
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.memcached[name] = onServers
	return state, nil
}

// open puts a normalised spec together over its backing.
func (r *Registry) open(ctx context.Context, name string, spec api.StateSpec, store mapstate.BackingMap) (*api.NamedState, error) {
	kind, err := kindOf(spec)
	if err != nil {
		return nil, err
	}
	state := &api.NamedState{Name: name, Spec: spec, Capabilities: capabilities(spec)}
	if spec.Cache.Entries > 0 {
		lru := cache.New(store, cache.Options{Entries: spec.Cache.Entries, Bytes: spec.Cache.Bytes})
		state.CacheStats = func() api.CacheStats { return api.CacheStats(lru.Stats()) }
		store = lru
	}
	state.Map, err = mapstate.Open(ctx, kind, store, mapstate.Options{
		Interval:  spec.Durability == durabilityInterval,
		Torn:      !state.Capabilities.AtomicBatch,
		Evicts:    state.Capabilities.Evicts,
		BatchIdle: r.cfg.BatchIdle,
	})
	return state, err
}

// Create implements api.States. Concurrent calls for one name agree on one of
// them. A state on Pebble is on disk when Create returns.
func (r *Registry) Create(ctx context.Context, name string, spec api.StateSpec) (*api.NamedState, bool, error) {
	normal, err := normalise(spec, r.cfg)
	if err != nil {
		return nil, false, err
	}
	r.changes.Lock()
	defer r.changes.Unlock()
	if r.closed {
		return nil, false, mapstate.ErrShuttingDown
	}
	if state, err := r.State(name); err == nil {
		if !sameSpec(state.Spec, normal) {
			return nil, false, fmt.Errorf("%w: state %q is %s, asked for %s",
				mapstate.ErrStateExists, name, describe(state.Spec), describe(normal))
		}
		return state, false, nil
	}
	// A state is made whole even if its client has gone.
	state, err := r.create(context.WithoutCancel(ctx), name, spec, normal)
	if err != nil {
		return nil, false, fmt.Errorf("create state %q: %w", name, err)
	}
	r.put(state)
	return state, true, nil
}

func (r *Registry) create(ctx context.Context, name string, given, normal api.StateSpec) (*api.NamedState, error) {
	if normal.Backing == backingMemory {
		return r.open(ctx, name, normal, mapstate.NewMemory())
	}
	text, err := json.Marshal(given)
	if err != nil {
		return nil, err
	}
	store, err := r.db.Create(name, text)
	if err != nil {
		return nil, err
	}
	state, err := r.openStored(ctx, name, normal, store)
	if m := r.onMemcached()[name]; m != nil && err == nil {
		err = m.Claim(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, r.closeMemcached(ctx, name), r.db.Delete(name))
	}
	if normal.Memcached != nil && !normal.Memcached.AcceptEviction {
		r.log.Warn("memcached may forget keys of this state, to make room or in a restart; they start again from nothing. "+
			`Create it with "acceptEviction": true to say that it may`, "state", name)
	}
	return state, nil
}

// describe returns a normalised spec as JSON.
func describe(spec api.StateSpec) string {
	text, err := json.Marshal(spec)
	if err != nil {
		return fmt.Sprintf("%+v", spec)
	}
	return string(text)
}

// State implements api.States.
func (r *Registry) State(name string) (*api.NamedState, error) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	state, ok := r.states[name]
	if !ok {
		return nil, fmt.Errorf("%w: there is no state %q; create it with PUT /v1/states/%[2]s", mapstate.ErrUnknownState, name)
	}
	return state, nil
}

// List implements api.States.
func (r *Registry) List() []*api.NamedState {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return slices.SortedFunc(maps.Values(r.states), func(a, b *api.NamedState) int {
		return cmp.Compare(a.Name, b.Name)
	})
}

// Delete implements api.States. Operations under way finish first, later ones
// fail with ErrUnknownState. Where the entries cannot be deleted the name stays,
// for Delete to be called again.
func (r *Registry) Delete(ctx context.Context, name string) error {
	r.changes.Lock()
	defer r.changes.Unlock()
	if r.closed {
		return mapstate.ErrShuttingDown
	}
	state, err := r.State(name)
	if err != nil {
		return err
	}
	state.Map.Close(fmt.Errorf("%w: state %q was deleted", mapstate.ErrUnknownState, name))
	if err := r.closeMemcached(ctx, name); err != nil {
		return fmt.Errorf("delete state %q: %w", name, err)
	}
	if state.Spec.Backing != backingMemory {
		if err := r.db.Delete(name); err != nil {
			return fmt.Errorf("delete state %q: %w", name, err)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.states, name)
	return nil
}

// Close closes every state: operations under way finish first, later ones fail
// with ErrShuttingDown. A second call does nothing.
func (r *Registry) Close() {
	r.changes.Lock()
	defer r.changes.Unlock()
	r.closed = true
	for _, state := range r.List() {
		state.Map.Close(mapstate.ErrShuttingDown)
	}
	for _, m := range r.onMemcached() {
		_ = m.Close() // its connections; nothing is lost with them
	}
}

// onMemcached returns the backings of the states on memcached, by the state's name.
func (r *Registry) onMemcached() map[string]*backing.Memcached {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return maps.Clone(r.memcached)
}

// closeMemcached gives up what a state has on memcached, if it is there.
func (r *Registry) closeMemcached(ctx context.Context, name string) error {
	m, ok := r.onMemcached()[name]
	if !ok {
		return nil
	}
	r.mu.Lock()
	delete(r.memcached, name)
	r.mu.Unlock()
	// A server that cannot be asked keeps a mark that nobody needs: names are not used again.
	released := m.Release(ctx)
	if errors.Is(released, mapstate.ErrUnavailable) {
		released = nil
	}
	return errors.Join(released, m.Close())
}

func (r *Registry) put(state *api.NamedState) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.states[state.Name] = state
}
