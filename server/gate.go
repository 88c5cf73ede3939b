package server

import (
	"fmt"
	"sync"

	"tine/mapstate"
)

// gate counts the requests under way and the bytes of their bodies, and refuses
// what is over its bounds. A draining gate goes on counting, so that what comes late is
// waited for too; that it is refused is its handler's part.
type gate struct {
	maxRequests int
	maxBytes    int64

	mu       sync.Mutex
	requests int
	bytes    int64
	draining bool
	empty    chan struct{} // closed when, while draining, no request was under way
	emptied  bool
}

func newGate(maxRequests int, maxBytes int64) *gate {
	return &gate{maxRequests: maxRequests, maxBytes: maxBytes, empty: make(chan struct{})}
}

// enter admits a request whose body has so many bytes, or fails with
// ErrOverloaded. Whoever was admitted calls leave. A request that is alone is
// admitted whatever its size.
func (g *gate) enter(bytes int64) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.requests >= g.maxRequests {
		return fmt.Errorf("%w: %d requests are under way, which is the limit; try again later", mapstate.ErrOverloaded, g.requests)
	}
	if g.bytes+bytes > g.maxBytes && g.requests > 0 {
		return fmt.Errorf("%w: request bodies of %d bytes are under way, %d more are beyond the limit of %d; try again later",
			mapstate.ErrOverloaded, g.bytes, bytes, g.maxBytes)
	}
	g.requests++
	g.bytes += bytes
	return nil
}

// leave ends a request that was admitted with so many bytes.
func (g *gate) leave(bytes int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.requests--
	g.bytes -= bytes
	g.checkEmpty()
}

// drain begins to drain, and returns a channel that is closed once no request is under way.
func (g *gate) drain() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.draining = true
	g.checkEmpty()
	return g.empty
}

func (g *gate) checkEmpty() {
	if g.draining && g.requests == 0 && !g.emptied {
		g.emptied = true
		close(g.empty)
	}
}

// isDraining reports whether drain has been called.
func (g *gate) isDraining() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.draining
}

// load is what is under way at one moment.
type load struct {
	requests int
	bytes    int64 // of their bodies
}

func (g *gate) load() load {
	g.mu.Lock()
	defer g.mu.Unlock()
	return load{requests: g.requests, bytes: g.bytes}
}
