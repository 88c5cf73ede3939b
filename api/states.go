package api

import (
	"context"

	"tine/mapstate"
)

// StateSpec is what a state is created with. A normalised spec has every member
// filled in; two creations of one name are the same when their normalised specs are.
type StateSpec struct {
	Kind       string     `json:"kind"`                 // nontx, transactional or opaque
	Backing    string     `json:"backing,omitempty"`    // pebble (default), memory or memcached
	Cache      *CacheSpec `json:"cache,omitempty"`      // the LRU in front of the backing
	Durability string     `json:"durability,omitempty"` // sync (default) or interval

	Memcached *MemcachedSpec `json:"memcached,omitempty"` // with backing memcached only
}

// MemcachedSpec says where and how a state's entries live on memcached. The zero
// value of all but Servers is the default.
type MemcachedSpec struct {
	Servers     []string `json:"servers"`              // host:port, or host for port 11211
	Format      string   `json:"format,omitempty"`     // tine (default) or trident
	KeyPrefix   string   `json:"keyPrefix,omitempty"`  // of every name on the servers
	GlobalKey   string   `json:"globalKey,omitempty"`  // trident: the name of the snapshot; $GLOBAL$
	TimeoutMS   int64    `json:"timeoutMs,omitzero"`   // of one read or write of a batch; 1000
	Connections int64    `json:"connections,omitzero"` // to each server, at most; 4
	// AcceptEviction says that the author knows: what memcached forgets starts again from nothing.
	AcceptEviction bool `json:"acceptEviction,omitzero"`
}

// CacheSpec bounds a state's LRU, by whichever limit is reached first.
type CacheSpec struct {
	Entries int64 `json:"entries"`         // 0: no cache
	Bytes   int64 `json:"bytes,omitempty"` // 0: the server's default
}

// Capabilities say what a state's backing can promise.
type Capabilities struct {
	AtomicBatch bool `json:"atomicBatch"` // a batch is there whole or not at all
	Durable     bool `json:"durable"`     // survives a restart of the server
	Scan        bool `json:"scan"`        // entries can be listed
	Evicts      bool `json:"evicts"`      // the store may forget entries by itself
}

// NamedState is one state of the registry.
type NamedState struct {
	Name         string
	Spec         StateSpec
	Capabilities Capabilities
	Map          *mapstate.Map
	// CacheStats returns the LRU's figures; nil without an LRU.
	CacheStats func() CacheStats
}

// CacheStats are the figures of a state's LRU.
type CacheStats struct {
	Entries int64 `json:"entries"`
	Bytes   int64 `json:"bytes"`
	Hits    int64 `json:"hits"`
	Misses  int64 `json:"misses"`
}

// States is the registry of named states that the handlers serve. Its methods
// may be called concurrently. Errors are mapstate's sentinels.
type States interface {
	// Create makes a state, or finds it there with the same spec (created false).
	// Another spec is ErrStateExists.
	Create(ctx context.Context, name string, spec StateSpec) (state *NamedState, created bool, err error)
	// State returns a state, or ErrUnknownState.
	State(name string) (*NamedState, error)
	// List returns all states ordered by name.
	List() []*NamedState
	// Delete removes a state with its entries and progress, or ErrUnknownState.
	Delete(ctx context.Context, name string) error
}
