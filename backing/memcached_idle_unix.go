//go:build unix

package backing

import (
	"net"
	"syscall"
)

// isIdle reports whether a connection on which nothing is asked is open and has
// nothing to read: no end, no reset, no late answer.
func isIdle(nc net.Conn) bool {
	sc, ok := nc.(syscall.Conn)
	if !ok {
		return true
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return false
	}
	idle := false
	err = raw.Read(func(fd uintptr) bool {
		var b [1]byte
		_, _, err := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK)
		idle = err == syscall.EAGAIN || err == syscall.EWOULDBLOCK || err == syscall.EINTR
		return true // do not wait
	})
	return err == nil && idle
}
