package test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"tine/api"
	"tine/mapstate"
	"tine/mapstate/mapstatetest"
	"tine/opaque"
)

// barrier holds one call back: arrived is closed when it comes, it goes on after
// release, which may be called again.
type barrier struct {
	arrived, released chan struct{}
	release           func()
}

// newBarrier returns a barrier that is released at the end of the test in any case.
func newBarrier(t *testing.T) *barrier {
	b := &barrier{arrived: make(chan struct{}), released: make(chan struct{})}
	b.release = sync.OnceFunc(func() { close(b.released) })
	t.Cleanup(b.release)
	return b
}

func (b *barrier) pass() {
	close(b.arrived)
	<-b.released
}

// slow is a store of which one call can be held: the next one that is ordered. A
// channel hands the barrier to that call.
type slow struct {
	mapstate.BackingMap
	get, commit, wait chan *barrier
}

func newSlow() *slow {
	return &slow{
		BackingMap: mapstate.NewMemory(),
		get:        make(chan *barrier, 1), commit: make(chan *barrier, 1), wait: make(chan *barrier, 1),
	}
}

// passOne holds the call if a barrier was ordered.
func passOne(order chan *barrier) {
	select {
	case b := <-order:
		b.pass()
	default:
	}
}

// MultiGet implements mapstate.Getter.
func (s *slow) MultiGet(ctx context.Context, keys []mapstate.Key) ([][]byte, error) {
	passOne(s.get)
	return s.BackingMap.MultiGet(ctx, keys)
}

// Commit implements mapstate.Committer.
func (s *slow) Commit(ctx context.Context, w mapstate.Writes) (mapstate.Durable, error) {
	passOne(s.commit)
	d, err := s.BackingMap.Commit(ctx, w)
	return slowWait{d, s.wait}, err
}

type slowWait struct {
	mapstate.Durable
	order chan *barrier
}

func (d slowWait) Wait() error {
	passOne(d.order)
	return d.Durable.Wait()
}

// only is a registry of one state, whatever it is called.
type only struct{ state *api.NamedState }

var _ api.States = only{}

// Create implements api.States.
func (o only) Create(context.Context, string, api.StateSpec) (*api.NamedState, bool, error) {
	return o.state, false, nil
}

// State implements api.States.
func (o only) State(string) (*api.NamedState, error) { return o.state, nil }

// List implements api.States.
func (o only) List() []*api.NamedState { return []*api.NamedState{o.state} }

// Delete implements api.States.
func (o only) Delete(context.Context, string) error { return mapstate.ErrUnsupported }

// startSlow serves one opaque state over a store that can be held.
func startSlow(t *testing.T) (*slow, *api.Client) {
	store := newSlow()
	m, err := mapstate.Open(t.Context(), opaque.Kind{}, store, mapstate.Options{})
	require.NoError(t, err)
	srv := httptest.NewServer(api.New(only{&api.NamedState{Name: "s", Map: m}}, api.Options{Log: slog.New(slog.DiscardHandler)}))
	t.Cleanup(func() {
		srv.Close()
		m.Close(mapstate.ErrShuttingDown)
	})
	return store, api.NewClient(srv.URL, &http.Client{Transport: srv.Client().Transport, Timeout: patience})
}

// A batch is open, and its writer waits for the store: for what it reads, for the
// write of its commit, for the disk. Meanwhile the progress tells the last commit.
func TestProgressNeverWaitsForABatch(t *testing.T) {
	keys := mapstatetest.Keys("total")
	for _, at := range []string{"get", "commit", "wait"} {
		t.Run(at, func(t *testing.T) {
			store, client := startSlow(t)
			env := mapstate.Envelope{TxID: 1, Partition: "p", Offsets: []byte("1"), Whole: true}
			_, err := client.MultiUpdate(t.Context(), "s", increment(env, keys))
			require.NoError(t, err)
			env = mapstate.Envelope{TxID: 2, Partition: "p", Offsets: []byte("2")}
			_, err = client.BeginCommit(t.Context(), "s", env)
			require.NoError(t, err)
			requireProgress(t, client, 1)

			held, done := newBarrier(t), make(chan error, 1)
			map[string]chan *barrier{"get": store.get, "commit": store.commit, "wait": store.wait}[at] <- held
			go func() { done <- finish(t.Context(), client, env, keys[0], 1) }()
			<-held.arrived
			requireProgress(t, client, 1)
			info, err := client.State(t.Context(), "s")
			require.NoError(t, err)
			require.Len(t, info.Progress, 1)

			held.release()
			require.NoError(t, <-done)
			requireProgress(t, client, 2)
			requireTotals(t, client, keys, 2)
		})
	}
}

// requireProgress requires that the one partition has committed x with its offsets.
func requireProgress(t *testing.T, client *api.Client, x mapstate.TxID) {
	t.Helper()
	progress, err := client.Progress(t.Context(), "s")
	require.NoError(t, err)
	require.Len(t, progress, 1)
	require.Equal(t, x, progress[0].TxID)
	require.Equal(t, fmt.Sprint(x), string(progress[0].Offsets))
}
