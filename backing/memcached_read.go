package backing

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"tine/mapstate"
)

// memcachedGet is what one read reads from one server: text gets of up to
// chunkKeys names each, which are faster than as many meta gets.
type memcachedGet struct {
	naming  naming
	keys    []mapstate.Key // of the whole read
	records [][]byte       // likewise
	total   *atomic.Int64  // bytes of records so far

	at    []int32  // the positions of this server's keys
	names nameList // theirs
	bytes int64    // of their records
}

func (g *memcachedGet) add(i int, name []byte) {
	g.at = append(g.at, int32(i))
	g.names.add(name)
}

// chunk returns the positions from which and up to which names are one get.
func (g *memcachedGet) chunk(n int) (from, to int) {
	return n * chunkKeys, min((n+1)*chunkKeys, len(g.at))
}

func (g *memcachedGet) chunks() int { return (len(g.at) + chunkKeys - 1) / chunkKeys }

// run sends the gets and reads the answers. Where there is more than one get,
// sending has a goroutine of its own: the server may wait for its answers to be read.
func (g *memcachedGet) run(ctx context.Context, c *memcachedConn) error {
	return c.within(ctx, func() error {
		if g.chunks() == 1 {
			if err := g.send(c); err != nil {
				return err
			}
			return g.receive(c)
		}
		sent := make(chan error, 1)
		go func() { sent <- g.send(c) }()
		err := g.receive(c)
		if err != nil {
			_ = c.nc.Close() // which ends the sending
		}
		if sendErr := <-sent; err == nil {
			return sendErr
		}
		return err
	})
}

func (g *memcachedGet) send(c *memcachedConn) error {
	buf := make([]byte, 0, len(g.names.bytes)+len(g.at)+8*g.chunks())
	for n := range g.chunks() {
		from, to := g.chunk(n)
		buf = append(buf, "get"...)
		for i := from; i < to; i++ {
			buf = append(append(buf, ' '), g.names.name(i)...)
		}
		buf = append(buf, "\r\n"...)
	}
	_, err := c.nc.Write(buf)
	return err
}

// receive reads the answers into the records. One record's failure is the read's.
func (g *memcachedGet) receive(c *memcachedConn) error {
	g.total.Add(-g.bytes) // of what a connection that has ended left
	g.bytes = 0
	for _, i := range g.at {
		g.records[i] = nil
	}
	var arena []byte
	for n := range g.chunks() {
		from, to := g.chunk(n)
		err := readValues(c.r, to-from, func(i int) []byte { return g.names.name(from + i) }, func(i, size int) ([]byte, error) {
			g.bytes += int64(size)
			if g.total.Add(int64(size)) > mapstate.MaxReadBytes {
				return nil, mapstate.TooMuchToRead()
			}
			if size > cap(arena)-len(arena) {
				arena = make([]byte, 0, max(minArenaBytes, min(2*cap(arena), maxArenaBytes), size))
			}
			start := len(arena)
			arena = arena[:start+size]
			value := arena[start:len(arena):len(arena)]
			g.records[g.at[from+i]] = value
			return value, nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// open takes the records out of the values that were read.
func (g *memcachedGet) open() error {
	for n, i := range g.at {
		if g.records[i] == nil {
			continue
		}
		record, err := g.naming.record(g.names.name(n), g.keys[i], g.records[i])
		if err != nil {
			return &mapstate.KeyError{Index: int(i), Key: g.keys[i], Err: err}
		}
		g.records[i] = record
	}
	return nil
}

// failed is the error of the read where this server's part of it failed.
func (g *memcachedGet) failed(s *memcachedServer, err error, limit time.Duration) error {
	if errors.Is(err, mapstate.ErrTooLarge) {
		return fmt.Errorf("memcached %s: get: %w", s.addr, err)
	}
	err = s.unavailable("get", explain(err, limit))
	if n := len(g.at); n > 1 {
		err = fmt.Errorf("%w (the first of %d keys of the request that this server has)", err, n)
	}
	return &mapstate.KeyError{Index: int(g.at[0]), Key: g.keys[g.at[0]], Err: err}
}
