package backing

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"tine/mapstate"
)

// memcachedServer is one server: its connections, and the writes of which it is not
// known whether they were done.
//
// A write that was not answered in time is in doubt: its bytes may wait in a socket buffer
// and be applied later, over newer values. So its connection is not closed, which
// would not take them back, but read on until the answer comes, or the end, which
// comes after all that was sent has been read. Until then nothing is read from the
// server, and nothing written to it.
type memcachedServer struct {
	addr  string
	limit time.Duration // to dial

	// Turns bound the connections in use. Writes have one of their own: a commit waits
	// for readers to leave, who must not wait for its connection.
	reads, writes chan struct{}

	mu      sync.Mutex
	idle    []*memcachedConn             // last in, first out
	doubts  map[*memcachedConn]time.Time // in doubt since
	checked time.Time                    // when the mark was last found to be ours; see memcached_owner.go
	running sync.WaitGroup
}

func newMemcachedServer(addr string, opts MemcachedOptions) *memcachedServer {
	return &memcachedServer{
		addr: addr, limit: opts.DialTimeout,
		reads: make(chan struct{}, opts.Connections), writes: make(chan struct{}, 1),
		doubts: make(map[*memcachedConn]time.Time),
	}
}

// unavailable says what of the server failed, unless err does.
func (s *memcachedServer) unavailable(what string, err error) error {
	if errors.Is(err, mapstate.ErrUnavailable) {
		return err
	}
	return fmt.Errorf("memcached %s: %w: %s: %w", s.addr, mapstate.ErrUnavailable, what, err)
}

// acquire returns a connection under a turn, to be given to release. One that
// has been idle is known to be open; a fresh one has never been idle.
func (s *memcachedServer) acquire(ctx context.Context, turn chan struct{}, fresh bool) (*memcachedConn, error) {
	if err := s.inDoubt(); err != nil {
		return nil, err
	}
	select {
	case turn <- struct{}{}:
	case <-ctx.Done():
		return nil, s.unavailable(fmt.Sprintf("all %d connections are in use", cap(turn)), ctx.Err())
	}
	for !fresh {
		c := s.popIdle()
		if c == nil {
			break
		}
		if isIdle(c.nc) {
			c.turn = turn
			return c, nil
		}
		_ = c.nc.Close()
	}
	c, err := dialMemcached(ctx, s.addr, s.limit)
	if err != nil {
		<-turn
		return nil, s.unavailable("connect", explain(err, s.limit))
	}
	c.turn = turn
	return c, nil
}

func (s *memcachedServer) popIdle() *memcachedConn {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.idle) == 0 {
		return nil
	}
	c := s.idle[len(s.idle)-1]
	s.idle = s.idle[:len(s.idle)-1]
	return c
}

// release gives a connection back; unless it is in step, it is closed.
func (s *memcachedServer) release(c *memcachedConn, inStep bool) {
	turn := c.turn // c is another's once it is idle
	if inStep && c.nc.SetDeadline(time.Time{}) == nil {
		c.used = true
		s.mu.Lock()
		s.idle = append(s.idle, c)
		s.mu.Unlock()
	} else {
		_ = c.nc.Close()
	}
	<-turn
}

// do has an operation done that may be done twice. It is done once more, on a fresh
// connection, where one that was used before turns out to have ended: it may have
// before the operation began.
func (s *memcachedServer) do(ctx context.Context, op func(*memcachedConn) error) error {
	for again := false; ; again = true {
		c, err := s.acquire(ctx, s.reads, again)
		if err != nil {
			return err
		}
		reused := c.used
		err = op(c)
		s.release(c, err == nil)
		if err == nil || again || !reused || !isLost(err) {
			return err
		}
	}
}

// inDoubt fails while a write is in doubt.
func (s *memcachedServer) inDoubt() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.doubts) == 0 {
		return nil
	}
	since := slices.MinFunc(slices.Collect(maps.Values(s.doubts)), time.Time.Compare)
	return fmt.Errorf("memcached %s: %w: it has not answered a write of %s ago; waiting for it, since the write may still be applied",
		s.addr, mapstate.ErrUnavailable, max(time.Since(since).Round(100*time.Millisecond), 100*time.Millisecond))
}

// written is how the answers to a write ended.
type written struct {
	refusal *refusal
	err     error // the connection ended before the last answer
}

// put sends writes on a connection from acquire, which it releases, and returns when all
// have been answered, or ctx has reached its deadline: a cancellation does not leave
// a write in doubt.
func (s *memcachedServer) put(ctx context.Context, c *memcachedConn, p *memcachedPut) error {
	until, _ := ctx.Deadline()
	began := time.Now()
	// The reader has no deadline: where it is not waited for any more, it goes on.
	if err := errors.Join(c.nc.SetReadDeadline(time.Time{}), c.nc.SetWriteDeadline(until)); err != nil {
		s.release(c, false)
		return s.unavailable("write", err)
	}
	answered := make(chan written, 1)
	s.running.Go(func() {
		refusal, err := readWritten(c.r, c.meta, p.chunks, p.deletes)
		answered <- written{refusal, err}
	})
	unsent := p.send(c)
	if unsent != nil {
		c.closeWrite() // what was cut off is no command; the answer is the end
	}
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	select {
	case got := <-answered:
		s.release(c, unsent == nil && got == (written{}) && c.r.Buffered() == 0)
		return p.outcome(s, unsent, got)
	case <-timer.C:
		c.closeWrite()
		s.doubt(c, answered, began)
		<-c.turn
		return s.unavailable(fmt.Sprintf("write of %d keys", len(p.at)), fmt.Errorf(
			"no answer within %s; whether they were written will be known when it answers", time.Since(began).Round(time.Millisecond)))
	}
}

// doubt holds up the server until the answers to a write have been read.
func (s *memcachedServer) doubt(c *memcachedConn, answered <-chan written, since time.Time) {
	s.mu.Lock()
	s.doubts[c] = since
	s.mu.Unlock()
	s.running.Go(func() {
		<-answered
		_ = c.nc.Close()
		s.mu.Lock()
		delete(s.doubts, c)
		s.mu.Unlock()
	})
}

// stats asks for the server's figures.
func (s *memcachedServer) stats(ctx context.Context) (stats map[string]string, err error) {
	err = s.do(ctx, func(c *memcachedConn) error {
		return c.ask(ctx, []byte("stats\r\n"), func(r *bufio.Reader) error {
			stats, err = readStats(r)
			return err
		})
	})
	return stats, err
}

// close ends all connections, also those that wait for an answer, and waits for
// the goroutines that read them. No operation is under way any more.
func (s *memcachedServer) close() {
	s.mu.Lock()
	for _, c := range s.idle {
		_ = c.nc.Close()
	}
	s.idle = nil
	for c := range s.doubts {
		_ = c.nc.Close()
	}
	s.mu.Unlock()
	s.running.Wait()
}
