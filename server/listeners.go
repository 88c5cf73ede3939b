package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"syscall"
)

// listeners are HTTP servers, each with its own socket. The first is the API's.
type listeners struct {
	servers []*http.Server
	sockets []net.Listener
	serving sync.WaitGroup
	busy    busyConnections
}

// add opens a socket for srv on the address of a setting. On an error the sockets
// before it are closed.
func (l *listeners) add(ctx context.Context, setting, address string, srv *http.Server) error {
	var config net.ListenConfig
	socket, err := config.Listen(ctx, "tcp", address)
	if err != nil {
		errs := []error{listenError(setting, address, err)}
		for _, s := range l.sockets {
			errs = append(errs, s.Close())
		}
		return errors.Join(errs...)
	}
	srv.ConnState = l.busy.follow
	l.servers, l.sockets = append(l.servers, srv), append(l.sockets, socket)
	return nil
}

// listenError says why nothing can listen on an address, which it names once.
func listenError(setting, address string, err error) error {
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("%w: %s; stop the other server or choose another --%s", syscall.EADDRINUSE, address, setting)
	}
	if op, ok := errors.AsType[*net.OpError](err); ok {
		err = op.Err // without the address
	}
	return fmt.Errorf("listen on %s: %w; choose another --%s", address, err, setting)
}

// address is the API's, with the port that was taken.
func (l *listeners) address() string { return l.sockets[0].Addr().String() }

// adminAddress is that of the profiles, with the port that was taken; empty without them.
func (l *listeners) adminAddress() string {
	if len(l.sockets) == 1 {
		return ""
	}
	return l.sockets[1].Addr().String()
}

// serve starts to serve. The channel gets the error of a server that ends before
// close is called.
func (l *listeners) serve() <-chan error {
	failed := make(chan error, len(l.servers))
	for i, srv := range l.servers {
		l.serving.Go(func() {
			if err := srv.Serve(l.sockets[i]); !errors.Is(err, http.ErrServerClosed) {
				failed <- fmt.Errorf("serve %s: %w", l.sockets[i].Addr(), err)
			}
		})
	}
	return failed
}

// close closes the sockets and waits for what serve started. Answers on their way are
// given until ctx ends, then their connections are cut; it returns how many were.
func (l *listeners) close(ctx context.Context) (cut int, err error) {
	var errs []error
	for _, srv := range l.servers {
		err := srv.Shutdown(ctx)
		if err != nil && ctx.Err() != nil {
			cut = max(cut, l.busy.count())
			err = srv.Close()
		}
		errs = append(errs, err)
	}
	l.serving.Wait()
	return cut, errors.Join(errs...)
}

// busyConnections are those with a request under way.
type busyConnections struct {
	mu   sync.Mutex
	busy map[net.Conn]bool
}

// follow is an http.Server's ConnState.
func (b *busyConnections) follow(c net.Conn, state http.ConnState) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if state != http.StateActive {
		delete(b.busy, c)
		return
	}
	if b.busy == nil {
		b.busy = make(map[net.Conn]bool)
	}
	b.busy[c] = true
}

func (b *busyConnections) count() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.busy)
}
