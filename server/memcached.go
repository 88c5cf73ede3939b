package server

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"time"

	"tine/api"
	"tine/backing"
	"tine/mapstate"
)

// The words of a memcached spec.
const (
	formatTine    = "tine"
	formatTrident = "trident"

	// tridentGlobalKey is where Trident's memcached adapter keeps a single value.
	tridentGlobalKey = "$GLOBAL$"

	maxKeyPrefixBytes = 75
)

// normaliseMemcached checks the memcached part of a spec and fills it in.
func normaliseMemcached(spec api.StateSpec) (*api.MemcachedSpec, error) {
	if spec.Backing != backingMemcached {
		if spec.Memcached != nil {
			return nil, fmt.Errorf("%w: memcached is given, but backing is %s", api.ErrBadRequest, spec.Backing)
		}
		return nil, nil
	}
	if spec.Memcached == nil {
		return nil, fmt.Errorf(`%w: backing memcached wants its servers: "memcached":{"servers":["host:port"]}`, api.ErrBadRequest)
	}
	m := *spec.Memcached
	m.Format = cmp.Or(m.Format, formatTine)
	switch m.Format {
	case formatTine:
		if m.GlobalKey != "" {
			return nil, fmt.Errorf("%w: memcached: globalKey goes with format %s", api.ErrBadRequest, formatTrident)
		}
	case formatTrident:
		m.GlobalKey = cmp.Or(m.GlobalKey, tridentGlobalKey)
	default:
		return nil, badWord("memcached: format", m.Format, formatTine, formatTrident)
	}
	if len(m.KeyPrefix) > maxKeyPrefixBytes {
		return nil, fmt.Errorf("%w: memcached: keyPrefix has %d bytes, the limit is %d", api.ErrBadRequest, len(m.KeyPrefix), maxKeyPrefixBytes)
	}
	m.TimeoutMS = cmp.Or(m.TimeoutMS, 1000)
	m.Connections = cmp.Or(m.Connections, 4)
	if err := memcachedOptions("state", "id", &m).Validate(); err != nil {
		return nil, fmt.Errorf("%w: memcached: %w", api.ErrBadRequest, err)
	}
	return &m, nil
}

// memcachedOptions returns the options of a state's backing. In Tine's own format each
// state has names of its own, by its id: those of a deleted state, or of another
// server's state of the same name, are not found.
func memcachedOptions(name, id string, m *api.MemcachedSpec) backing.MemcachedOptions {
	opts := backing.MemcachedOptions{
		Servers: m.Servers, Owner: id,
		Timeout: time.Duration(m.TimeoutMS) * time.Millisecond, Connections: int(m.Connections),
	}
	if m.Format == formatTrident {
		opts.Prefix, opts.GlobalKey = m.KeyPrefix, m.GlobalKey
	} else {
		opts.Prefix = m.KeyPrefix + name[:min(len(name), 20)] + "." + id + ":"
	}
	return opts
}

// openMemcached returns the backing of a state whose records are on memcached, and
// whose progress is in store.
func openMemcached(ctx context.Context, name string, m *api.MemcachedSpec, store *backing.Pebble) (*backing.Memcached, error) {
	id, err := memcachedID(ctx, store)
	if err != nil {
		return nil, err
	}
	return backing.NewMemcached(store, memcachedOptions(name, id, m))
}

// memcachedIDName is where a state on memcached keeps its id, beside its progress.
const memcachedIDName = "memcached"

// memcachedID returns the id that a state has got when it was first opened.
func memcachedID(ctx context.Context, store *backing.Pebble) (string, error) {
	found, err := store.Meta(ctx, memcachedIDName)
	if err != nil {
		return "", err
	}
	if len(found) > 0 {
		return string(found[0].Value), nil
	}
	id := rand.Text()[:12]
	durable, err := store.Commit(ctx, mapstate.Writes{
		Meta: []mapstate.MetaWrite{{Name: memcachedIDName, Value: []byte(id)}},
		Sync: true,
	})
	if err != nil {
		return "", err
	}
	return id, durable.Wait()
}
