package backing

import "sync"

// gate lets operations pass until it is shut, then refuses them with the reason
// it was shut for. An operation inside may enter again; that never blocks.
type gate struct {
	mu     sync.Mutex
	reason error
	inside sync.WaitGroup
	shut   chan struct{} // closed with the gate
}

func newGate() *gate { return &gate{shut: make(chan struct{})} }

// enter must be followed by leave, unless it fails.
func (g *gate) enter() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.reason != nil {
		return g.reason
	}
	g.inside.Add(1)
	return nil
}

func (g *gate) leave() { g.inside.Done() }

// isShut reports whether a long operation inside should end early.
func (g *gate) isShut() bool {
	select {
	case <-g.shut:
		return true
	default:
		return false
	}
}

// close shuts the gate and waits for the operations inside. The first reason stays.
func (g *gate) close(reason error) {
	g.mu.Lock()
	if g.reason == nil {
		g.reason = reason
		close(g.shut)
	}
	g.mu.Unlock()
	g.inside.Wait()
}
