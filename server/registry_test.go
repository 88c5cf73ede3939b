package server

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"tine/api"
	"tine/backing"
	"tine/mapstate"
)

// disk is a file system in memory, with a registry on it that can be opened again.
type disk struct {
	fs  *vfs.MemFS
	cfg Config
	db  *backing.Database
	reg *Registry
}

func newDisk(t *testing.T) *disk {
	t.Helper()
	d := &disk{fs: vfs.NewMem(), cfg: DefaultConfig()}
	d.open(t)
	t.Cleanup(func() { d.close(t) })
	return d
}

func (d *disk) open(t *testing.T) {
	t.Helper()
	var err error
	d.db, err = backing.Open("data", backing.Options{FS: d.fs, MinFreeBytes: -1})
	require.NoError(t, err)
	d.reg, err = OpenRegistry(t.Context(), d.db, d.cfg)
	require.NoError(t, err)
}

func (d *disk) close(t *testing.T) {
	t.Helper()
	d.reg.Close()
	require.NoError(t, d.db.Close())
}

func (d *disk) reopen(t *testing.T) {
	t.Helper()
	d.close(t)
	d.open(t)
}

func (d *disk) create(t *testing.T, name string, spec api.StateSpec) *api.NamedState {
	t.Helper()
	state, created, err := d.reg.Create(t.Context(), name, spec)
	require.NoError(t, err)
	require.True(t, created)
	return state
}

func key(t *testing.T, text string) mapstate.Key {
	t.Helper()
	k, err := mapstate.NewKey(mapstate.String(text))
	require.NoError(t, err)
	return k
}

// put stores 1 under a key, in batch x.
func put(t *testing.T, m *mapstate.Map, x mapstate.TxID, k mapstate.Key) error {
	t.Helper()
	_, err := m.Put(t.Context(), mapstate.Envelope{TxID: x}, []mapstate.Key{k}, []mapstate.Value{mapstate.Int(1)})
	return err
}

func TestCreateFillsInTheSpec(t *testing.T) {
	d := newDisk(t)
	onPebble := d.create(t, "a", api.StateSpec{Kind: "opaque"})
	require.Equal(t, api.StateSpec{
		Kind: "opaque", Backing: "pebble", Durability: "sync",
		Cache: &api.CacheSpec{Entries: d.cfg.CacheEntries, Bytes: d.cfg.CacheBytes},
	}, onPebble.Spec)
	require.Equal(t, api.Capabilities{AtomicBatch: true, Durable: true, Scan: true}, onPebble.Capabilities)
	require.NotNil(t, onPebble.CacheStats)

	inMemory := d.create(t, "b", api.StateSpec{Kind: "nontx", Backing: "memory"})
	require.Equal(t, &api.CacheSpec{}, inMemory.Spec.Cache)
	require.False(t, inMemory.Capabilities.Durable)
	require.Nil(t, inMemory.CacheStats)
}

func TestCreateAgainFindsTheSameState(t *testing.T) {
	d := newDisk(t)
	first := d.create(t, "s", api.StateSpec{Kind: "opaque"})
	again, created, err := d.reg.Create(t.Context(), "s", api.StateSpec{Kind: "opaque", Backing: "pebble", Durability: "sync"})
	require.NoError(t, err)
	require.False(t, created)
	require.Same(t, first, again)
}

func TestCreateWithAnotherSpecIsAConflict(t *testing.T) {
	d := newDisk(t)
	d.create(t, "s", api.StateSpec{Kind: "opaque"})
	for _, other := range []api.StateSpec{
		{Kind: "nontx"},
		{Kind: "opaque", Backing: "memory"},
		{Kind: "opaque", Durability: "interval"},
		{Kind: "opaque", Cache: &api.CacheSpec{Entries: 7}},
		{Kind: "opaque", Cache: &api.CacheSpec{}},
	} {
		_, _, err := d.reg.Create(t.Context(), "s", other)
		require.ErrorIs(t, err, mapstate.ErrStateExists, "%+v", other)
	}
}

func TestCreateRefusesUnknownWordsAndListsTheKnown(t *testing.T) {
	d := newDisk(t)
	for _, c := range []struct {
		spec  api.StateSpec
		texts []string
	}{
		{api.StateSpec{}, []string{"kind", "nontx", "transactional", "opaque"}},
		{api.StateSpec{Kind: "opake"}, []string{`"opake"`, "nontx", "transactional", "opaque"}},
		{api.StateSpec{Kind: "opaque", Backing: "redis"}, []string{"redis", "pebble", "memory"}},
		{api.StateSpec{Kind: "opaque", Backing: "memcached"}, []string{"memcached", "servers"}},
		{api.StateSpec{Kind: "opaque", Memcached: &api.MemcachedSpec{}}, []string{"memcached is given, but backing is pebble"}},
		{onMemcached(api.MemcachedSpec{}), []string{"Servers is empty"}},
		{onMemcached(api.MemcachedSpec{Servers: []string{"h:1"}, Format: "storm"}), []string{"storm", "tine", "trident"}},
		{onMemcached(api.MemcachedSpec{Servers: []string{"h:1"}, GlobalKey: "g"}), []string{"globalKey", "trident"}},
		{onMemcached(api.MemcachedSpec{Servers: []string{"a b:1"}, TimeoutMS: -1}), []string{"a b:1", "Timeout"}},
		{api.StateSpec{Kind: "opaque", Durability: "maybe"}, []string{"maybe", "sync", "interval"}},
		{api.StateSpec{Kind: "opaque", Cache: &api.CacheSpec{Entries: -1}}, []string{"-1"}},
	} {
		_, _, err := d.reg.Create(t.Context(), "s", c.spec)
		require.ErrorIs(t, err, api.ErrBadRequest)
		for _, text := range c.texts {
			require.ErrorContains(t, err, text)
		}
	}
	require.Empty(t, d.reg.List())
}

func onMemcached(m api.MemcachedSpec) api.StateSpec {
	return api.StateSpec{Kind: "opaque", Backing: "memcached", Memcached: &m}
}

func TestConcurrentCreatesAgreeOnOneState(t *testing.T) {
	d := newDisk(t)
	const writers = 16
	states := make([]*api.NamedState, writers)
	created := make([]bool, writers)
	errs := make([]error, writers)
	var group sync.WaitGroup
	for i := range writers {
		group.Go(func() {
			states[i], created[i], errs[i] = d.reg.Create(context.Background(), "s", api.StateSpec{Kind: "opaque"})
		})
	}
	group.Wait()
	makers := 0
	for i := range writers {
		require.NoError(t, errs[i])
		require.Same(t, states[0], states[i])
		if created[i] {
			makers++
		}
	}
	require.Equal(t, 1, makers)
}

func TestStatesOnPebbleComeBackAfterARestart(t *testing.T) {
	d := newDisk(t)
	for _, kind := range []string{"nontx", "opaque", "transactional"} {
		require.NoError(t, put(t, d.create(t, kind, api.StateSpec{Kind: kind}).Map, 5, key(t, "k")))
	}
	d.reopen(t)
	require.Len(t, d.reg.List(), 3)
	for i, kind := range []string{"nontx", "opaque", "transactional"} {
		state := d.reg.List()[i]
		require.Equal(t, kind, state.Name)
		require.Equal(t, kind, state.Spec.Kind)
		entries, err := state.Map.Read(t.Context(), mapstate.Envelope{}, []mapstate.Key{key(t, "k")})
		require.NoError(t, err)
		require.Equal(t, mapstate.Int(1), entries[0].Value)
		require.EqualValues(t, 5, state.Map.Progress()[0].TxID)
	}
}

func TestStatesInMemoryEndWithTheProcess(t *testing.T) {
	d := newDisk(t)
	d.create(t, "m", api.StateSpec{Kind: "opaque", Backing: "memory"})
	d.reopen(t)
	_, err := d.reg.State("m")
	require.ErrorIs(t, err, mapstate.ErrUnknownState)
	d.create(t, "m", api.StateSpec{Kind: "nontx"})
}

func TestADefaultMayChangeBetweenRuns(t *testing.T) {
	d := newDisk(t)
	d.create(t, "s", api.StateSpec{Kind: "opaque"})
	d.cfg.CacheEntries = 10
	d.reopen(t)
	state, created, err := d.reg.Create(t.Context(), "s", api.StateSpec{Kind: "opaque"})
	require.NoError(t, err, "the same request is the same state")
	require.False(t, created)
	require.EqualValues(t, 10, state.Spec.Cache.Entries)
}

func TestDeleteWhileUpdatingRefusesLaterUpdates(t *testing.T) {
	for _, backing := range []string{"pebble", "memory"} {
		t.Run(backing, func(t *testing.T) {
			d := newDisk(t)
			m := d.create(t, "s", api.StateSpec{Kind: "nontx", Backing: backing, Durability: "interval"}).Map
			committed := make(chan struct{}, 1)
			last := make([]error, 4)
			var group sync.WaitGroup
			for w := range last {
				k := key(t, fmt.Sprint(w))
				group.Go(func() {
					for last[w] == nil {
						last[w] = put(t, m, mapstate.NoTxID, k)
						select {
						case committed <- struct{}{}:
						default:
						}
					}
				})
			}
			<-committed
			require.NoError(t, d.reg.Delete(t.Context(), "s"))
			group.Wait()
			for _, err := range last {
				require.ErrorIs(t, err, mapstate.ErrUnknownState)
			}
			require.ErrorIs(t, d.reg.Delete(t.Context(), "s"), mapstate.ErrUnknownState)

			again := d.create(t, "s", api.StateSpec{Kind: "nontx", Backing: backing})
			entries, err := again.Map.Read(t.Context(), mapstate.Envelope{}, []mapstate.Key{key(t, "0")})
			require.NoError(t, err)
			require.True(t, entries[0].Value.IsNone(), "nothing of the deleted state is left")
		})
	}
}

func TestAClosedRegistryRefuses(t *testing.T) {
	d := newDisk(t)
	m := d.create(t, "s", api.StateSpec{Kind: "opaque"}).Map
	d.reg.Close()
	d.reg.Close()
	require.ErrorIs(t, put(t, m, 1, key(t, "k")), mapstate.ErrShuttingDown)
	_, _, err := d.reg.Create(t.Context(), "t", api.StateSpec{Kind: "opaque"})
	require.ErrorIs(t, err, mapstate.ErrShuttingDown)
	require.ErrorIs(t, d.reg.Delete(t.Context(), "s"), mapstate.ErrShuttingDown)
}

func TestACatalogThatCannotBeReadIsRefused(t *testing.T) {
	d := newDisk(t)
	_, err := d.db.Create("bad", []byte("not JSON"))
	require.NoError(t, err)
	_, err = OpenRegistry(t.Context(), d.db, d.cfg)
	require.ErrorIs(t, err, mapstate.ErrCorrupt)
	require.ErrorContains(t, err, `"bad"`)
	require.NoError(t, d.db.Delete("bad"))
}
