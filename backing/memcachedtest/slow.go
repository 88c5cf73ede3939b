package memcachedtest

import (
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Slow starts a proxy in front of a server, in which each packet of up to 16 KiB
// takes so long, one after the other, and returns its address. It ends with the test.
func Slow(t testing.TB, server string, delay time.Duration) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var running sync.WaitGroup
	var mu sync.Mutex
	var open []net.Conn
	track := func(c net.Conn) {
		mu.Lock()
		defer mu.Unlock()
		open = append(open, c)
	}
	running.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			track(client)
			behind, err := net.Dial("tcp", server)
			if err != nil {
				_ = client.Close()
				continue
			}
			track(behind)
			running.Go(func() { forward(behind, client, delay) })
			running.Go(func() { forward(client, behind, delay) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		mu.Lock()
		for _, c := range open {
			_ = c.Close()
		}
		mu.Unlock()
		running.Wait()
	})
	return l.Addr().String()
}

// forward copies packets until either side ends, and passes the end on.
func forward(to, from net.Conn, delay time.Duration) {
	packet := make([]byte, 16<<10)
	for {
		n, err := from.Read(packet)
		if n > 0 {
			time.Sleep(delay)
			if _, err := to.Write(packet[:n]); err != nil {
				break
			}
		}
		if err != nil {
			break
		}
	}
	if half, ok := to.(*net.TCPConn); ok {
		_ = half.CloseWrite()
	}
	_, _ = io.Copy(io.Discard, from)
}
