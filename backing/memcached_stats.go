package backing

import (
	"context"
	"strconv"
)

// MemcachedStats are the figures of one server, of all that it holds.
type MemcachedStats struct {
	Server    string
	Err       error // why there are none; nil: there are
	Version   string
	Items     int64
	Bytes     int64 // of items
	MaxBytes  int64 // what it may use
	Evictions int64 // items forgotten to make room, since it was started
}

// Stats asks every server for its figures, in the order of the options.
func (m *Memcached) Stats(ctx context.Context) []MemcachedStats {
	all := make([]MemcachedStats, len(m.servers))
	ctx, cancel := m.within(ctx, 0)
	defer cancel()
	_ = each(len(all), func(i int) error {
		all[i] = m.serverStats(ctx, m.servers[i])
		return nil
	})
	return all
}

func (m *Memcached) serverStats(ctx context.Context, s *memcachedServer) MemcachedStats {
	if err := m.enter(ctx, "stats"); err != nil {
		return MemcachedStats{Server: s.addr, Err: err}
	}
	defer m.gate.leave()
	stats, err := s.stats(ctx)
	if err != nil {
		return MemcachedStats{Server: s.addr, Err: s.unavailable("stats", explain(err, m.opts.Timeout))}
	}
	number := func(name string) int64 {
		n, _ := strconv.ParseInt(stats[name], 10, 64)
		return n
	}
	return MemcachedStats{
		Server: s.addr, Version: stats["version"],
		Items: number("curr_items"), Bytes: number("bytes"), MaxBytes: number("limit_maxbytes"), Evictions: number("evictions"),
	}
}
