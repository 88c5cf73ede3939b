package backing

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"slices"
	"time"

	"tine/mapstate"
)

// Two servers of Tine that write under one prefix would overwrite each other's
// records and know nothing of it. So each memcached server has a mark under the prefix that
// says who writes there. It has no expiry, but may be forgotten like everything
// else, and is then set again.

// checkMarkEvery is how long a mark is trusted.
const checkMarkEvery = time.Second

// Claim marks every server as ours, or fails with ErrUnavailable where one cannot be
// asked or has another's mark. A commit does the same for the servers it writes
// to; claiming says so early.
func (m *Memcached) Claim(ctx context.Context) error {
	if err := m.enter(ctx, "claim"); err != nil {
		return err
	}
	defer m.gate.leave()
	ctx, cancel := m.within(ctx, 0)
	defer cancel()
	return each(len(m.servers), func(i int) error {
		s := m.servers[i]
		return s.do(ctx, func(c *memcachedConn) error { return m.claim(ctx, s, c) })
	})
}

// Release takes our marks away, so that another may claim the prefix. Marks of
// others stay.
func (m *Memcached) Release(ctx context.Context) error {
	if err := m.enter(ctx, "release"); err != nil {
		return err
	}
	defer m.gate.leave()
	ctx, cancel := m.within(ctx, 0)
	defer cancel()
	return each(len(m.servers), func(i int) error {
		s := m.servers[i]
		err := s.do(ctx, func(c *memcachedConn) error { return m.release(ctx, c) })
		if err != nil {
			return s.unavailable("release the mark", explain(err, m.opts.Timeout))
		}
		s.trust(time.Time{})
		return nil
	})
}

func (m *Memcached) release(ctx context.Context, c *memcachedConn) error {
	var owner string
	get := slices.Concat([]byte("get "), []byte(m.naming.owner()), []byte("\r\n"))
	err := c.ask(ctx, get, func(r *bufio.Reader) (err error) {
		owner, err = m.readMark(r)
		return err
	})
	if err != nil || owner != m.opts.Owner {
		return err
	}
	del := slices.Concat([]byte("delete "), []byte(m.naming.owner()), []byte("\r\n"))
	return c.ask(ctx, del, func(r *bufio.Reader) error {
		line, err := readLine(r)
		if err == nil && !isDone(line, true) {
			err = garbled("it answered %s to delete", quoted(line))
		}
		return err
	})
}

// claimIfDue claims a server over a connection, if the mark has not been seen there lately
// or the connection is new: the server may have been restarted.
func (m *Memcached) claimIfDue(ctx context.Context, s *memcachedServer, c *memcachedConn) error {
	if age := m.now().Sub(s.trusted()); c.used && age >= 0 && age < checkMarkEvery {
		return nil
	}
	return m.claim(ctx, s, c)
}

// claim adds the mark and reads who is in it.
func (m *Memcached) claim(ctx context.Context, s *memcachedServer, c *memcachedConn) error {
	name := m.naming.owner()
	request := fmt.Appendf(nil, "add %s 0 0 %d\r\n%s\r\nget %s\r\n", name, len(m.opts.Owner), m.opts.Owner, name)
	var owner string
	err := c.ask(ctx, request, func(r *bufio.Reader) error {
		line, err := readLine(r)
		if err != nil {
			return err
		}
		if string(line) != "STORED" && string(line) != "NOT_STORED" {
			return garbled("it answered %s to add", quoted(line))
		}
		owner, err = m.readMark(r)
		return err
	})
	switch {
	case err != nil:
		return s.unavailable("look for the mark "+name, explain(err, m.opts.Timeout))
	case owner == "":
		return s.unavailable("claim", fmt.Errorf("it took the mark %s and does not have it; is its memory too small?", name))
	case owner != m.opts.Owner:
		return fmt.Errorf("memcached %s: %w: prefix %q belongs to the server %s, and this one is %s: the key %s says so; "+
			"stop that server or use another prefix, or, if it is gone for good, delete the key (send the server: delete %s)",
			s.addr, mapstate.ErrUnavailable, m.opts.Prefix, owner, m.opts.Owner, name, name)
	}
	s.trust(m.now())
	return nil
}

// readMark reads the answer to a get of the mark: who it names, or "".
func (m *Memcached) readMark(r *bufio.Reader) (string, error) {
	name := []byte(m.naming.owner())
	var owner []byte
	err := readValues(r, 1, func(int) []byte { return name }, func(_, size int) ([]byte, error) {
		if size == 0 || size > 1<<10 {
			return nil, garbled("the mark %s has %d bytes; another program writes under this prefix", name, size)
		}
		owner = make([]byte, size)
		return owner, nil
	})
	return string(bytes.ToValidUTF8(owner, []byte("?"))), err
}

func (s *memcachedServer) trusted() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.checked
}

func (s *memcachedServer) trust(since time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.checked = since
}
