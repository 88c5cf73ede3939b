package server

import (
	"context"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"tine/api"
	"tine/backing"
	"tine/mapstate"
)

// stateCollector reports the figures of every state.
type stateCollector struct {
	states api.States
	stats  figures[mapstate.Stats]
	cache  figures[api.CacheStats] // of the states with an LRU
}

// databaseCollector reports the figures of the database.
type databaseCollector struct {
	db      *backing.Database
	figures figures[backing.Metrics]
}

// memcachedCollector reports the figures of the memcached servers, which it asks.
type memcachedCollector struct {
	states  *Registry
	up      figures[bool]
	figures figures[backing.MemcachedStats]
}

// gateCollector reports the load of the gate.
type gateCollector struct {
	gate    *gate
	figures figures[load]
}

var (
	_ prometheus.Collector = (*stateCollector)(nil)
	_ prometheus.Collector = (*databaseCollector)(nil)
	_ prometheus.Collector = (*memcachedCollector)(nil)
	_ prometheus.Collector = (*gateCollector)(nil)
)

func newStateCollector(states api.States) *stateCollector {
	type stats = mapstate.Stats
	type lru = api.CacheStats
	labels := []string{"state", "kind"}
	return &stateCollector{
		states: states,
		stats: figures[stats]{
			counter("tine_state_commits_total", "Attempts committed.", func(s stats) int64 { return s.Commits }, labels...),
			counter("tine_state_keys_total", "Keys written by commits.", func(s stats) int64 { return s.Keys }, labels...),
			counter("tine_state_replayed_total", "Positions that an earlier attempt at the batch had written.", func(s stats) int64 { return s.Replayed }, labels...),
			counter("tine_state_restored_total", "Keys put back to what they were before an earlier attempt.", func(s stats) int64 { return s.Restored }, labels...),
			counter("tine_state_stale_total", "Operations refused for a stale txid.", func(s stats) int64 { return s.Stale }, labels...),
			counter("tine_state_forgotten_total", "Keys that the backing has lost, as far as it was noticed.", func(s stats) int64 { return s.Forgotten }, labels...),
			gauge("tine_state_open_batches", "Batches begun and not yet committed.", func(s stats) int64 { return s.Open }, labels...),
			gauge("tine_state_waiting_requests", "Requests that wait for the state's owner.", func(s stats) int64 { return s.Waiting }, labels...),
		},
		cache: figures[lru]{
			counter("tine_cache_hits_total", "Keys found in the LRU.", func(s lru) int64 { return s.Hits }, labels...),
			counter("tine_cache_misses_total", "Keys not found in the LRU.", func(s lru) int64 { return s.Misses }, labels...),
			gauge("tine_cache_entries", "Records in the LRU.", func(s lru) int64 { return s.Entries }, labels...),
			gauge("tine_cache_bytes", "Memory of the records in the LRU.", func(s lru) int64 { return s.Bytes }, labels...),
		},
	}
}

// Describe implements prometheus.Collector.
func (c *stateCollector) Describe(out chan<- *prometheus.Desc) {
	c.stats.describe(out)
	c.cache.describe(out)
}

// Collect implements prometheus.Collector.
func (c *stateCollector) Collect(out chan<- prometheus.Metric) {
	for _, s := range c.states.List() {
		c.stats.collect(out, s.Map.Stats(), s.Name, s.Spec.Kind)
		if s.CacheStats != nil {
			c.cache.collect(out, s.CacheStats(), s.Name, s.Spec.Kind)
		}
	}
}

func newDatabaseCollector(db *backing.Database) *databaseCollector {
	type m = backing.Metrics
	return &databaseCollector{db: db, figures: figures[m]{
		gauge("tine_pebble_disk_bytes", "Size of all files of the database.", func(m m) uint64 { return m.DiskBytes }),
		gauge("tine_pebble_disk_free_bytes", "Space left on the disk of the database.", func(m m) uint64 { return m.FreeBytes }),
		gauge("tine_pebble_memtable_bytes", "Memory of the memtables.", func(m m) uint64 { return m.MemTableBytes }),
		gauge("tine_pebble_block_cache_bytes", "Memory of the block cache.", func(m m) int64 { return m.BlockCacheBytes }),
		counter("tine_pebble_block_cache_hits_total", "Blocks found in the block cache.", func(m m) int64 { return m.BlockCacheHits }),
		counter("tine_pebble_block_cache_misses_total", "Blocks not found in the block cache.", func(m m) int64 { return m.BlockCacheMiss }),
		gauge("tine_pebble_wal_bytes", "Size of the live write-ahead log.", func(m m) uint64 { return m.LogBytes }),
		counter("tine_pebble_wal_written_bytes_total", "Bytes written to the write-ahead log.", func(m m) uint64 { return m.LogBytesWritten }),
		counter("tine_pebble_flushes_total", "Memtables flushed.", func(m m) int64 { return m.Flushes }),
		counter("tine_pebble_compactions_total", "Compactions done.", func(m m) int64 { return m.Compactions }),
		gauge("tine_pebble_compaction_debt_bytes", "Bytes that wait to be compacted.", func(m m) uint64 { return m.CompactionDebt }),
		gauge("tine_pebble_read_amplification_files", "Files that one read may have to look into.", func(m m) int { return m.ReadAmp }),
	}}
}

// Describe implements prometheus.Collector.
func (c *databaseCollector) Describe(out chan<- *prometheus.Desc) { c.figures.describe(out) }

// Collect implements prometheus.Collector.
func (c *databaseCollector) Collect(out chan<- prometheus.Metric) {
	c.figures.collect(out, c.db.Metrics())
}

func newMemcachedCollector(states *Registry) *memcachedCollector {
	type m = backing.MemcachedStats
	labels := []string{"state", "server"}
	up := func(up bool) int {
		if up {
			return 1
		}
		return 0
	}
	return &memcachedCollector{
		states: states,
		up:     figures[bool]{gauge("tine_memcached_up", "Whether the memcached server answers.", up, labels...)},
		figures: figures[m]{
			counter("tine_memcached_evictions_total", "Items that the memcached server has forgotten to make room, of all its users.", func(s m) int64 { return s.Evictions }, labels...),
			gauge("tine_memcached_items", "Items on the memcached server, of all its users.", func(s m) int64 { return s.Items }, labels...),
			gauge("tine_memcached_bytes", "Bytes of items on the memcached server, of all its users.", func(s m) int64 { return s.Bytes }, labels...),
			gauge("tine_memcached_limit_bytes", "Bytes that the memcached server may use.", func(s m) int64 { return s.MaxBytes }, labels...),
		},
	}
}

// Describe implements prometheus.Collector.
func (c *memcachedCollector) Describe(out chan<- *prometheus.Desc) {
	c.up.describe(out)
	c.figures.describe(out)
}

// Collect implements prometheus.Collector. It takes as long as a read of the slowest
// server may.
func (c *memcachedCollector) Collect(out chan<- prometheus.Metric) {
	var asked sync.WaitGroup
	for name, m := range c.states.onMemcached() {
		asked.Go(func() {
			for _, s := range m.Stats(context.Background()) {
				c.up.collect(out, s.Err == nil, name, s.Server)
				if s.Err == nil {
					c.figures.collect(out, s, name, s.Server)
				}
			}
		})
	}
	asked.Wait()
}

func newGateCollector(g *gate) *gateCollector {
	return &gateCollector{gate: g, figures: figures[load]{
		gauge("tine_http_requests_in_flight", "Requests for data under way.", func(l load) int { return l.requests }),
		gauge("tine_http_bodies_in_flight_bytes", "Bytes of the bodies of requests under way.", func(l load) int64 { return l.bytes }),
	}}
}

// Describe implements prometheus.Collector.
func (c *gateCollector) Describe(out chan<- *prometheus.Desc) { c.figures.describe(out) }

// Collect implements prometheus.Collector.
func (c *gateCollector) Collect(out chan<- prometheus.Metric) {
	c.figures.collect(out, c.gate.load())
}
