package server

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"tine/api"
	"tine/mapstate"
	"tine/nontx"
	"tine/opaque"
	"tine/transactional"
	"tine/trident"
)

// The words of a spec.
const (
	backingPebble    = "pebble"
	backingMemory    = "memory"
	backingMemcached = "memcached"

	durabilitySync     = "sync"
	durabilityInterval = "interval"
)

// Kinds returns the kinds that a spec may name.
func Kinds() []string {
	var names []string
	for _, k := range kinds() {
		names = append(names, k.Name())
	}
	return names
}

// Backings returns the backings that a spec may name, the default first.
func Backings() []string { return []string{backingPebble, backingMemory, backingMemcached} }

// Durabilities returns the durabilities that a spec may name, the default first.
func Durabilities() []string { return []string{durabilitySync, durabilityInterval} }

// kinds returns the state kinds.
func kinds() []mapstate.Kind {
	return []mapstate.Kind{nontx.Kind{}, transactional.Kind{}, opaque.Kind{}}
}

// kindOf returns the kind of a normalised spec, in the form that its entries are stored in.
func kindOf(spec api.StateSpec) (mapstate.Kind, error) {
	kind, err := kindNamed(spec.Kind)
	if err == nil && spec.Memcached != nil && spec.Memcached.Format == formatTrident {
		kind = trident.New(kind, api.ParseValue)
	}
	return kind, err
}

// kindNamed returns the kind with a name on the wire.
func kindNamed(name string) (mapstate.Kind, error) {
	for _, k := range kinds() {
		if k.Name() == name {
			return k, nil
		}
	}
	return nil, badWord("kind", name, Kinds()...)
}

func badWord(member, got string, allowed ...string) error {
	return fmt.Errorf("%w: %s is %q, want one of %s", api.ErrBadRequest, member, got, strings.Join(allowed, ", "))
}

// normalise checks a spec and returns it with every member filled in. What a spec
// leaves out is the server's to choose, and may change with its configuration;
// so the catalog keeps specs as they were given, and specs are compared normalised.
// The default cache is that of cfg; a state in memory has none unless it asks.
func normalise(spec api.StateSpec, cfg Config) (api.StateSpec, error) {
	if _, err := kindNamed(spec.Kind); err != nil {
		return spec, err
	}
	switch spec.Backing {
	case "":
		spec.Backing = backingPebble
	case backingPebble, backingMemory, backingMemcached:
	default:
		return spec, badWord("backing", spec.Backing, Backings()...)
	}
	if spec.Durability == "" {
		spec.Durability = durabilitySync
	}
	if !slices.Contains(Durabilities(), spec.Durability) {
		return spec, badWord("durability", spec.Durability, Durabilities()...)
	}
	cache, err := normaliseCache(spec, cfg)
	if err != nil {
		return spec, err
	}
	spec.Cache = &cache
	spec.Memcached, err = normaliseMemcached(spec)
	return spec, err
}

func normaliseCache(spec api.StateSpec, cfg Config) (api.CacheSpec, error) {
	var cache api.CacheSpec
	switch {
	case spec.Cache != nil:
		cache = *spec.Cache
	case spec.Backing != backingMemory:
		cache.Entries = cfg.CacheEntries
	}
	if cache.Entries < 0 || cache.Bytes < 0 {
		return cache, fmt.Errorf("%w: cache has %d entries and %d bytes, want 0 or more",
			api.ErrBadRequest, cache.Entries, cache.Bytes)
	}
	switch {
	case cache.Entries == 0:
		cache.Bytes = 0
	case cache.Bytes == 0:
		cache.Bytes = cfg.CacheBytes
	}
	return cache, nil
}

// sameSpec compares normalised specs.
func sameSpec(a, b api.StateSpec) bool {
	return a.Kind == b.Kind && a.Backing == b.Backing && a.Durability == b.Durability && *a.Cache == *b.Cache &&
		reflect.DeepEqual(a.Memcached, b.Memcached)
}

// capabilities returns what the backing of a normalised spec can promise.
func capabilities(spec api.StateSpec) api.Capabilities {
	onMemcached := spec.Backing == backingMemcached
	return api.Capabilities{
		AtomicBatch: !onMemcached, Durable: spec.Backing == backingPebble,
		Scan: !onMemcached, Evicts: onMemcached,
	}
}
