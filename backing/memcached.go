package backing

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"tine/mapstate"
)

// MetaStore keeps a meta space. Its Commit gets no records.
type MetaStore interface {
	mapstate.Committer
	mapstate.MetaReader
}

// Memcached is a BackingMap whose records are on memcached servers, spread
// consistently (see ring), and whose meta space is in a store of the caller's.
//
// It differs from what mapstate.BackingMap says where memcached does:
//
//   - A Commit that fails may have written some of its records and not others, and a
//     record that a server refused may be gone; the meta space is written last, once all records are.
//     Short of that, MultiGet sees each Commit of this process wholly or not at all.
//   - A server may forget records, to make room or in a restart. They are absent then.
//   - There is no Scan.
//
// An error is never an absence: where a server cannot be asked, the read fails. A
// write is never sent twice, so one that was cut off is an error too, and the batch's replay
// repairs what it left.
type Memcached struct {
	opts    MemcachedOptions
	naming  naming
	meta    MetaStore
	ring    *ring
	servers []*memcachedServer // as the ring counts them
	buffers sendBuffers
	now     func() time.Time
	gate    *gate

	// publish is held shared by reads, and alone while records are being written.
	publish sync.RWMutex
}

var _ mapstate.BackingMap = (*Memcached)(nil)

// NewMemcached returns a Memcached. It connects to nothing yet: Claim does, and
// every use.
func NewMemcached(meta MetaStore, opts MemcachedOptions) (*Memcached, error) {
	if err := opts.Validate(); err != nil {
		return nil, fmt.Errorf("memcached: %w", err)
	}
	m := &Memcached{
		opts: opts.withDefaults(), naming: naming{prefix: opts.Prefix, global: opts.GlobalKey}, meta: meta,
		now: time.Now, gate: newGate(),
	}
	m.ring = newRing(m.opts.Servers)
	for _, addr := range m.opts.Servers {
		m.servers = append(m.servers, newMemcachedServer(addr, m.opts))
	}
	return m, nil
}

// enter must be followed by m.gate.leave, unless it fails.
func (m *Memcached) enter(ctx context.Context, op string) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("memcached: %s: %w", op, err)
	}
	if err := m.gate.enter(); err != nil {
		return fmt.Errorf("memcached: %s: %w", op, err)
	}
	return nil
}

// within bounds an operation of so many chunks.
func (m *Memcached) within(ctx context.Context, chunks int) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, time.Duration(1+chunks/8)*m.opts.Timeout)
}

// MultiGet implements mapstate.Getter.
func (m *Memcached) MultiGet(ctx context.Context, keys []mapstate.Key) ([][]byte, error) {
	if err := m.enter(ctx, "get"); err != nil {
		return nil, err
	}
	defer m.gate.leave()
	if err := m.checkKeys(keys); err != nil {
		return nil, fmt.Errorf("memcached: get: %w", err)
	}
	records := make([][]byte, len(keys))
	gets, again, chunks := m.gets(keys, records)
	bounded, cancel := m.within(ctx, chunks)
	defer cancel()
	m.publish.RLock()
	defer m.publish.RUnlock()
	err := each(len(gets), func(i int) error {
		g := gets[i]
		if len(g.at) == 0 {
			return nil
		}
		if err := m.servers[i].do(bounded, func(c *memcachedConn) error { return g.run(bounded, c) }); err != nil {
			return g.failed(m.servers[i], err, m.opts.Timeout)
		}
		return g.open()
	})
	if ctx.Err() != nil {
		return nil, fmt.Errorf("memcached: get: %w", ctx.Err())
	}
	if err != nil {
		return nil, err
	}
	return records, repeat(records, again)
}

// gets divides a read among the servers. A key that comes again is not read again:
// again has the position it was at before, or -1; it is nil where none does.
func (m *Memcached) gets(keys []mapstate.Key, records [][]byte) (gets []*memcachedGet, again []int32, chunks int) {
	total := new(atomic.Int64)
	share := m.share(len(keys))
	for range m.servers {
		gets = append(gets, &memcachedGet{
			naming: m.naming, keys: keys, records: records, total: total,
			at: make([]int32, 0, share), names: newNameList(share),
		})
	}
	seen := make(map[mapstate.Key]int32, len(keys))
	var name []byte
	for i, k := range keys {
		if first, ok := seen[k]; ok {
			if again == nil {
				again = make([]int32, len(keys))
				for j := range again {
					again[j] = -1
				}
			}
			again[i] = first
			continue
		}
		seen[k] = int32(i)
		name = m.naming.append(name[:0], k)
		gets[m.ring.pick(name)].add(i, name)
	}
	for _, g := range gets {
		chunks = max(chunks, g.chunks())
	}
	return gets, again, chunks
}

// share is how many of n keys to expect on one server, and some more.
func (m *Memcached) share(n int) int {
	if len(m.servers) == 1 {
		return n
	}
	return n/len(m.servers)*5/4 + 1
}

// repeat fills in the records of keys that have come before, which count again.
func repeat(records [][]byte, again []int32) error {
	total := 0
	for i, first := range again {
		if first >= 0 {
			records[i] = records[first]
		}
		if total += len(records[i]); total > mapstate.MaxReadBytes {
			return fmt.Errorf("memcached: get: %w", mapstate.TooMuchToRead())
		}
	}
	return nil
}

// Commit implements mapstate.Committer. Sync is of the meta space; the records are
// as durable as they will ever be when Commit returns.
func (m *Memcached) Commit(ctx context.Context, w mapstate.Writes) (mapstate.Durable, error) {
	if err := m.enter(ctx, "commit"); err != nil {
		return nil, err
	}
	defer m.gate.leave()
	if len(w.Records) > 0 {
		if err := m.write(ctx, w.Records); err != nil {
			return nil, err
		}
	}
	if len(w.Meta) == 0 {
		return mapstate.NoWait, nil
	}
	// The records are written: a writer that has gone must not stop what they belong to.
	d, err := m.meta.Commit(context.WithoutCancel(ctx), mapstate.Writes{Meta: w.Meta, Sync: w.Sync})
	if err != nil && len(w.Records) > 0 {
		// Not with the store's own sentinel: it may say that nothing was written.
		return nil, fmt.Errorf("memcached: commit: the records are written, their progress may not be: %w: %s", mapstate.ErrUnavailable, err.Error())
	}
	return d, err
}

// checkKeys refuses keys that have no name.
func (m *Memcached) checkKeys(keys []mapstate.Key) error {
	for i, k := range keys {
		if err := m.naming.check(k); err != nil {
			return &mapstate.KeyError{Index: i, Key: k, Err: err}
		}
	}
	return nil
}

// write writes records: connections, marks and sizes first, while nothing is
// written, then all servers at once.
func (m *Memcached) write(ctx context.Context, records []mapstate.Write) error {
	for i, w := range records {
		if err := m.naming.check(w.Key); err != nil {
			return fmt.Errorf("memcached: commit: nothing was written: %w", &mapstate.KeyError{Index: i, Key: w.Key, Err: err})
		}
	}
	puts, chunks := m.puts(records)
	bounded, cancel := m.within(ctx, chunks)
	defer cancel()
	err := each(len(puts), func(i int) error { return m.prepare(bounded, m.servers[i], puts[i]) })
	if err == nil {
		m.publish.Lock()
		defer m.publish.Unlock()
		err = ctx.Err()
	}
	if err != nil {
		for i, p := range puts {
			if p.conn != nil {
				m.servers[i].release(p.conn, true)
			}
		}
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return fmt.Errorf("memcached: commit: nothing was written: %w", err)
	}
	bounded, cancel = m.within(ctx, chunks) // readers may have been waited for
	defer cancel()
	return each(len(puts), func(i int) error {
		if puts[i].conn == nil {
			return nil
		}
		return m.servers[i].put(bounded, puts[i].conn, puts[i])
	})
}

// puts divides the writes among the servers.
func (m *Memcached) puts(records []mapstate.Write) (puts []*memcachedPut, chunks int) {
	share := m.share(len(records))
	for range m.servers {
		puts = append(puts, &memcachedPut{
			naming: m.naming, writes: records, buffers: &m.buffers,
			at: make([]int32, 0, share), names: newNameList(share),
		})
	}
	inChunk := make([]int, len(puts))
	var name []byte
	for i, w := range records {
		name = m.naming.append(name[:0], w.Key)
		server := m.ring.pick(name)
		puts[server].add(int32(i), name, &inChunk[server])
	}
	for _, p := range puts {
		chunks = max(chunks, len(p.chunks))
	}
	return puts, chunks
}

// prepare gets a connection for p and checks all that can be checked before the
// first byte is written.
func (m *Memcached) prepare(ctx context.Context, s *memcachedServer, p *memcachedPut) error {
	if len(p.at) == 0 {
		return nil
	}
	c, err := s.acquire(ctx, s.writes, false)
	if err != nil {
		return err
	}
	if err := m.claimIfDue(ctx, s, c); err != nil {
		s.release(c, false)
		return err
	}
	p.conn = c
	return p.check(s.addr)
}

// Meta implements mapstate.MetaReader.
func (m *Memcached) Meta(ctx context.Context, prefix string) ([]mapstate.MetaWrite, error) {
	if err := m.enter(ctx, "meta"); err != nil {
		return nil, err
	}
	defer m.gate.leave()
	return m.meta.Meta(ctx, prefix)
}

// Scan implements mapstate.Scanner: memcached cannot list what it has.
func (m *Memcached) Scan(ctx context.Context, _ mapstate.Range, _ func(mapstate.Key, []byte) error) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("memcached: scan: %w", err)
	}
	return fmt.Errorf("memcached: scan: %w: memcached cannot list its keys; read those that you know", mapstate.ErrUnsupported)
}

// Close refuses further operations, waits for those under way and ends all
// connections, also those whose writes are in doubt. A second call waits likewise.
func (m *Memcached) Close() error {
	m.gate.close(mapstate.ErrShuttingDown)
	for _, s := range m.servers {
		s.close()
	}
	return nil
}

// each calls f for 0 to n-1 at once and returns the first error of the lowest.
func each(n int, f func(int) error) error {
	if n == 1 {
		return f(0)
	}
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { errs[i] = f(i) })
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
