package test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/url"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"tine/api"
	"tine/mapstate"
)

// The load on a server that is killed.
const (
	killWriters = 8
	killReaders = 2
)

// ending is a way in which a server under load ends.
type ending int

const (
	killed      ending = iota // kill -9
	killedTwice               // and again while it starts
	terminated                // SIGTERM
)

// TestKilledServersHoldWholeBatches kills a server under load again and again, as
// often as -tine.kills says. Whatever the moment: each batch is there whole or not
// at all, also for who reads meanwhile; the progress tells which; with sync every batch
// that was answered is there, with interval the last ones may be gone unless the server
// was stopped in order; and writers that resume from the progress lose nothing and
// count nothing twice.
func TestKilledServersHoldWholeBatches(t *testing.T) {
	path := buildBinary(t)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	f := newFleet(t, path, seed)
	b := f.start(t)
	f.createStates(t, b)
	endings := []ending{killed, killedTwice, terminated, killed, killedTwice}
	for n := range *kills {
		how := endings[n%len(endings)]
		f.loadUntil(t, b, how)
		b = f.start(t)
		f.resume(t, b, how == terminated)
	}
	f.finish(t, b)
	t.Logf("%d attempts were answered; %d batches that were are lost with interval", f.answered.Load(), f.lost)
}

// fleet is a set of states, and for each of them a sink of each writer.
type fleet struct {
	path, dir string
	random    *rand.Rand
	groups    []*group
	answered  atomic.Int64 // attempts
	ending    atomic.Bool  // the server has been told to end
	lost      int          // batches that were answered
}

func newFleet(t *testing.T, path string, seed uint64) *fleet {
	f := &fleet{path: path, dir: t.TempDir(), random: rand.New(rand.NewPCG(seed, 0))}
	for _, kind := range kindNames {
		for entries, durability := range []string{"sync", "interval"} {
			spec := api.StateSpec{Kind: kind, Durability: durability, Cache: &api.CacheSpec{Entries: int64(100 * entries)}}
			for _, shared := range []bool{false, true} {
				g := &group{state: fmt.Sprintf("%s-%s-%v", kind, durability, shared), spec: spec, shared: shared}
				for w := range killWriters {
					random := rand.New(rand.NewPCG(seed, uint64(1+killWriters*len(f.groups)+w)))
					g.sinks = append(g.sinks, &sink{group: g, partition: fmt.Sprint("p", w), random: random, epoch: 1, sent: []attempt{{}}})
				}
				f.groups = append(f.groups, g)
			}
		}
	}
	return f
}

// start starts the server, with little memory, so that its tables are written under load.
func (f *fleet) start(t *testing.T) *binary {
	return startBinary(t, f.path, f.dir, "--memtable-bytes", "1048576", "--shutdown-grace", "5ms")
}

func (f *fleet) createStates(t *testing.T, b *binary) {
	for _, g := range f.groups {
		_, _, err := b.client.CreateState(t.Context(), g.state, g.spec)
		require.NoError(t, err)
	}
}

// loadUntil lets all writers and readers work until so many attempts as is drawn were
// answered, and then ends the server under them.
func (f *fleet) loadUntil(t *testing.T, b *binary, how ending) {
	enough := make(chan struct{})
	ended := make(chan error, 1)
	f.ending.Store(false)
	until := f.answered.Load() + 1 + f.random.Int64N(1000)
	go func() {
		ended <- f.load(t.Context(), b.client, how, func() {
			if f.answered.Add(1) == until {
				close(enough)
			}
		})
	}()
	select {
	case <-enough:
	case err := <-ended:
		require.NoError(t, err)
		require.Fail(t, "the server went away before it was told to", "%s", &b.log)
	}
	// Not at the moment of an answer only.
	time.Sleep(time.Duration(f.random.Int64N(int64(time.Millisecond))))
	f.ending.Store(true)
	f.end(t, b, how)
	require.NoError(t, <-ended)
	require.Empty(t, b.log.String(), "the server found something to complain of")
}

// end ends the server.
func (f *fleet) end(t *testing.T, b *binary, how ending) {
	if how == terminated {
		code, err := b.terminate()
		require.NoError(t, err)
		require.Zero(t, code, "the stop was not in order: %s", &b.log)
		return
	}
	b.kill()
	if how == killedTwice {
		for range 1 + f.random.IntN(2) {
			again := launchBinary(t, f.path, f.dir)
			again.killWithin(time.Duration(f.random.Int64N(int64(15 * time.Millisecond))))
			require.Empty(t, again.log.String(), "the server found something to complain of")
		}
	}
}

// load works until the server is gone, and calls answered for each attempt that was answered.
func (f *fleet) load(ctx context.Context, client *api.Client, how ending, answered func()) error {
	var load errgroup.Group
	for w := range killWriters {
		random := rand.New(rand.NewPCG(f.random.Uint64(), 0))
		load.Go(func() error {
			for {
				s := f.groups[random.IntN(len(f.groups))].sinks[w]
				a, ok := s.next()
				if !ok {
					continue // the others are not as far
				}
				if err := s.send(ctx, client, a); err != nil {
					return f.unlessGone(err, how)
				}
				answered()
			}
		})
	}
	for r := range killReaders {
		random := rand.New(rand.NewPCG(f.random.Uint64(), 0))
		read := []func(*group, context.Context, *api.Client) error{(*group).get, (*group).scan}[r%2]
		load.Go(func() error {
			for {
				if err := read(f.groups[random.IntN(len(f.groups))], ctx, client); err != nil {
					return f.unlessGone(err, how)
				}
			}
		})
	}
	return load.Wait()
}

// unlessGone returns an error unless it comes of the server's end: no answer, half of
// one, or that it stops.
func (f *fleet) unlessGone(err error, how ending) error {
	timeout, isNet := errors.AsType[net.Error](err)
	_, isURL := errors.AsType[*url.Error](err)
	switch {
	case !f.ending.Load():
		return fmt.Errorf("while the server was to serve: %w", err)
	case isNet && timeout.Timeout():
		return fmt.Errorf("the server hangs: %w", err)
	case how == terminated && errors.Is(err, mapstate.ErrShuttingDown):
		return nil
	case isNet, isURL, errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, api.ErrIncomplete):
		return nil
	}
	return err
}

// resume lets every sink go on from the progress that its state tells. In order says
// that the server was stopped, and not killed.
func (f *fleet) resume(t *testing.T, b *binary, inOrder bool) {
	for _, g := range f.groups {
		progress, err := b.client.Progress(t.Context(), g.state)
		require.NoError(t, err)
		lost, err := g.resume(progress, inOrder || g.spec.Durability == "sync")
		require.NoError(t, err)
		f.lost += lost
		f.requireHolds(t, b, g)
	}
}

// finish has all sinks finish the batch that the furthest is at, and one more. Batches
// whose answers were lost are sent again, and count once.
func (f *fleet) finish(t *testing.T, b *binary) {
	for _, g := range f.groups {
		var end mapstate.TxID
		for _, s := range g.sinks {
			end = max(end, s.last().txid+1)
		}
		for !g.finished(end) {
			for _, s := range g.sinks {
				if a, ok := s.next(); ok && a.txid <= end {
					require.NoError(t, s.send(t.Context(), b.client, a))
				}
			}
		}
		f.requireHolds(t, b, g)
	}
}

// requireHolds requires that a state holds what its sinks have sent, and nothing else.
func (f *fleet) requireHolds(t *testing.T, b *binary, g *group) {
	got, err := scanCounts(t.Context(), b.client, g.state)
	require.NoError(t, err)
	require.Equal(t, g.holds(), got, "%s", g.state)
}
