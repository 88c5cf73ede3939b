package backing

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// memcachedConn is one connection to a server. One operation uses it at a time.
type memcachedConn struct {
	nc   net.Conn
	r    *bufio.Reader
	turn chan struct{} // that it was acquired under

	// What the server said when it was greeted.
	meta      bool  // it knows ms, md and mn as we use them
	itemLimit int64 // bytes of one item; 0: it does not tell
	used      bool  // an operation has succeeded on it
}

const (
	memcachedReadBuffer = 32 << 10

	// itemOverhead is what memcached counts of an item besides its name and value: 48
	// bytes of header, 8 of CAS, a NUL after the name and CR LF after the value.
	itemOverhead = 48 + 8 + 1 + 2
)

// metaSince is the first version whose meta commands are used. The present form of ms came with
// 1.6.10; 1.6.13 repaired meta deletes and large multi-gets.
var metaSince = [3]int{1, 6, 13}

// dialMemcached connects to a server and greets it.
func dialMemcached(ctx context.Context, addr string, limit time.Duration) (*memcachedConn, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	d := net.Dialer{KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 5 * time.Second, Count: 4}}
	nc, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	c := &memcachedConn{nc: nc, r: bufio.NewReaderSize(nc, memcachedReadBuffer)}
	if err := c.within(ctx, c.greet); err != nil {
		_ = nc.Close()
		return nil, err
	}
	return c, nil
}

// within does what reads and writes on the connection, which ends with ctx, and
// checks that it is in step afterwards. ctx has a deadline.
func (c *memcachedConn) within(ctx context.Context, do func() error) error {
	until, _ := ctx.Deadline()
	if err := c.nc.SetDeadline(until); err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = c.nc.SetDeadline(time.Unix(1, 0)) })
	err := do()
	if n := c.r.Buffered(); err == nil && n > 0 {
		err = garbled("it answered %d bytes more than it was asked for", n)
	}
	if !stop() && (err == nil || errors.Is(err, os.ErrDeadlineExceeded)) {
		return ctx.Err()
	}
	return err
}

// greet learns what the server is. A server that does not know mn knows no meta
// command, whatever its version says: the bytes of a record would be commands to it.
func (c *memcachedConn) greet() error {
	if _, err := c.nc.Write([]byte("version\r\nmn\r\nstats settings\r\n")); err != nil {
		return err
	}
	line, err := readLine(c.r)
	if err != nil {
		return noEOF(err)
	}
	version, ok := strings.CutPrefix(string(line), "VERSION ")
	if !ok {
		return garbled("it answered %s to version", quoted(line))
	}
	if line, err = readLine(c.r); err != nil {
		return noEOF(err)
	}
	known := string(line) == "MN"
	if !known && string(line) != "ERROR" {
		return garbled("it answered %s to mn", quoted(line))
	}
	c.meta = known && isSince(version, metaSince)
	settings, err := readStats(c.r)
	if err != nil {
		return noEOF(err)
	}
	c.itemLimit, _ = strconv.ParseInt(settings["item_size_max"], 10, 64)
	return nil
}

// isSince reports whether a version such as 1.6.18 or 1.6.18_1 is least or later.
func isSince(version string, least [3]int) bool {
	parts := strings.SplitN(version, ".", 3)
	for i, want := range least {
		if i == len(parts) {
			return false
		}
		digits := parts[i]
		if end := strings.IndexFunc(digits, func(r rune) bool { return r < '0' || r > '9' }); end >= 0 {
			digits = digits[:end]
		}
		got, err := strconv.Atoi(digits)
		if err != nil || got < want {
			return false
		}
		if got > want {
			return true
		}
	}
	return true
}

// ask sends a short request and has the answer read, all within ctx.
func (c *memcachedConn) ask(ctx context.Context, request []byte, read func(*bufio.Reader) error) error {
	return c.within(ctx, func() error {
		if _, err := c.nc.Write(request); err != nil {
			return err
		}
		return read(c.r)
	})
}

// closeWrite tells the server that no more will come: what it has not read yet it
// will still read, and then close the connection.
func (c *memcachedConn) closeWrite() {
	if half, ok := c.nc.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
	}
}

// isLost reports whether err says that the connection has ended.
func isLost(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// explain turns the errors of the network into words.
func explain(err error, limit time.Duration) error {
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		return fmt.Errorf("no answer within %s", limit)
	case isLost(err):
		return fmt.Errorf("it closed the connection (%w)", err)
	}
	return err
}
