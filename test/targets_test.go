package test

import (
	"context"
	"fmt"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"tine/api"
	"tine/backing"
	"tine/backing/memcachedtest"
	"tine/cache"
	"tine/mapstate"
	"tine/mapstate/mapstatetest"
)

// target is a state that a history happens to.
type target interface {
	update(env mapstate.Envelope, keys []mapstate.Key, ops []api.Op) (mapstate.Result, error)
	put(env mapstate.Envelope, keys []mapstate.Key, values []mapstate.Value) (mapstate.Result, error)
	remove(env mapstate.Envelope, keys []mapstate.Key) (mapstate.Result, error)
	read(env mapstate.Envelope, keys []mapstate.Key) ([]mapstate.Entry, error)
	begin(env mapstate.Envelope) (mapstate.Begun, error)
	commit(env mapstate.Envelope) (mapstate.Result, error)
	abort(env mapstate.Envelope) error
	progress() ([]mapstate.Progress, error)
	// restart stops what holds the state and starts it again.
	restart()
	close()
}

// background is the context of histories: they end when the test does.
var background = context.Background()

// bind returns the updaters of ops.
func bind(ops []api.Op) []mapstate.ValueUpdater {
	updaters := make([]mapstate.ValueUpdater, len(ops))
	for i, op := range ops {
		updaters[i] = mapstatetest.Update(op.Name, op.Arg)
	}
	return updaters
}

// mapTarget is a Map of this process.
type mapTarget struct {
	*mapstate.Map
	open       func() *mapstate.Map // opens it again, over what is there
	closeStore func()
}

func (m *mapTarget) update(env mapstate.Envelope, keys []mapstate.Key, ops []api.Op) (mapstate.Result, error) {
	return m.Update(background, env, keys, bind(ops))
}

func (m *mapTarget) put(env mapstate.Envelope, keys []mapstate.Key, values []mapstate.Value) (mapstate.Result, error) {
	return m.Put(background, env, keys, values)
}

func (m *mapTarget) remove(env mapstate.Envelope, keys []mapstate.Key) (mapstate.Result, error) {
	return m.Remove(background, env, keys)
}

func (m *mapTarget) read(env mapstate.Envelope, keys []mapstate.Key) ([]mapstate.Entry, error) {
	return m.Read(background, env, keys)
}

func (m *mapTarget) begin(env mapstate.Envelope) (mapstate.Begun, error) {
	return m.Begin(background, env)
}

func (m *mapTarget) commit(env mapstate.Envelope) (mapstate.Result, error) {
	return m.Commit(background, env)
}

func (m *mapTarget) abort(env mapstate.Envelope) error { return m.Abort(background, env) }

func (m *mapTarget) progress() ([]mapstate.Progress, error) { return m.Progress(), nil }

func (m *mapTarget) close() {
	m.Close(mapstate.ErrShuttingDown)
	m.closeStore()
}

func (m *mapTarget) restart() {
	m.Close(mapstate.ErrShuttingDown)
	m.Map = m.open()
}

// httpTarget is a state of a server. The snapshot has calls of its own there.
type httpTarget struct {
	house *house
	name  string
}

// house is a server that can be restarted, with the states of many histories.
type house struct {
	t       *testing.T
	dir     string
	process *process
	client  *api.Client
	states  int
}

func newHouse(t *testing.T) *house {
	h := &house{t: t, dir: t.TempDir()}
	h.start()
	return h
}

func (h *house) start() {
	h.process = startProcess(h.t, testConfig(h.dir))
	h.client = api.NewClient(h.process.url, h.process.http)
}

func isSnapshot(keys []mapstate.Key) bool { return len(keys) == 1 && keys[0] == mapstate.SnapshotKey }

func (h *httpTarget) update(env mapstate.Envelope, keys []mapstate.Key, ops []api.Op) (mapstate.Result, error) {
	if isSnapshot(keys) {
		return h.house.client.UpdateSnapshot(background, h.name, env, ops[0])
	}
	return h.house.client.MultiUpdate(background, h.name, api.Request{Envelope: env, Keys: keys, Updaters: ops})
}

func (h *httpTarget) put(env mapstate.Envelope, keys []mapstate.Key, values []mapstate.Value) (mapstate.Result, error) {
	if isSnapshot(keys) {
		return h.house.client.SetSnapshot(background, h.name, env, values[0])
	}
	return h.house.client.MultiPut(background, h.name, env, keys, values)
}

func (h *httpTarget) remove(env mapstate.Envelope, keys []mapstate.Key) (mapstate.Result, error) {
	return h.house.client.MultiRemove(background, h.name, env, keys)
}

func (h *httpTarget) read(env mapstate.Envelope, keys []mapstate.Key) ([]mapstate.Entry, error) {
	if isSnapshot(keys) {
		entry, err := h.house.client.Snapshot(background, h.name, env)
		return []mapstate.Entry{entry}, err
	}
	return h.house.client.Read(background, h.name, env, keys)
}

func (h *httpTarget) begin(env mapstate.Envelope) (mapstate.Begun, error) {
	return h.house.client.BeginCommit(background, h.name, env)
}

func (h *httpTarget) commit(env mapstate.Envelope) (mapstate.Result, error) {
	return h.house.client.Commit(background, h.name, env)
}

func (h *httpTarget) abort(env mapstate.Envelope) error {
	return h.house.client.Abort(background, h.name, env)
}

func (h *httpTarget) progress() ([]mapstate.Progress, error) {
	return h.house.client.Progress(background, h.name)
}

func (h *httpTarget) close() {}

func (h *httpTarget) restart() {
	require.NoError(h.house.t, h.house.process.stop())
	h.house.start()
}

// openTarget makes an empty state of a kind.
type openTarget func(kind string) target

// openMap opens a kind over a store and a cache of so many entries.
func openMap(t *testing.T, kind string, entries int64, store mapstate.BackingMap) *mapstate.Map {
	return openMapWith(t, kind, entries, store, mapstate.Options{})
}

func openMapWith(t *testing.T, kind string, entries int64, store mapstate.BackingMap, opts mapstate.Options) *mapstate.Map {
	cached := cache.New(store, cache.Options{Entries: entries})
	m, err := mapstate.Open(background, kindNamed(kind), cached, opts)
	require.NoError(t, err)
	return m
}

func onMemory(t *testing.T, entries int64) openTarget {
	return func(kind string) target {
		store := mapstate.NewMemory()
		open := func() *mapstate.Map { return openMap(t, kind, entries, store) }
		return &mapTarget{Map: open(), open: open, closeStore: func() {}}
	}
}

// onPebble gives each history a database of its own, which a restart opens from
// what a crash of the machine leaves of it.
func onPebble(t *testing.T, entries int64) openTarget {
	return func(kind string) target {
		fs := vfs.NewCrashableMem()
		db, err := openSmall("data", fs)
		require.NoError(t, err)
		closeStore := func() { require.NoError(t, db.Close()) }
		reopen := func() *mapstate.Map {
			fs = fs.CrashClone(vfs.CrashCloneCfg{})
			closeStore()
			db, err = openSmall("data", fs)
			require.NoError(t, err)
			return openMap(t, kind, entries, reopenState(t, db))
		}
		return &mapTarget{Map: openMap(t, kind, entries, createState(t, db)), open: reopen, closeStore: closeStore}
	}
}

// onMemcached gives each history names of its own on one memcached. A restart keeps
// them, and the progress, which is in memory.
func onMemcached(t *testing.T, entries int64) openTarget {
	server := memcachedtest.Start(t)
	histories := 0
	return func(kind string) target {
		histories++
		meta, last := mapstate.NewMemory(), (*backing.Memcached)(nil)
		closeStore := func() { require.NoError(t, last.Close()) }
		open := func() *mapstate.Map {
			var err error
			last, err = backing.NewMemcached(meta, backing.MemcachedOptions{
				Servers: []string{server.Addr}, Prefix: fmt.Sprint(histories, ":"), Owner: "test", Timeout: patience, DialTimeout: patience,
			})
			require.NoError(t, err)
			return openMapWith(t, kind, entries, last, mapstate.Options{Torn: true})
		}
		reopen := func() *mapstate.Map {
			closeStore()
			return open()
		}
		return &mapTarget{Map: open(), open: reopen, closeStore: closeStore}
	}
}

// onServer keeps the states of all histories in one server. They are written
// without waiting for the disk; the server is stopped in order.
func onServer(t *testing.T, spec api.StateSpec) openTarget {
	h := newHouse(t)
	return func(kind string) target {
		h.states++
		spec.Kind, spec.Durability = kind, "interval"
		name := fmt.Sprint(kind, h.states)
		_, created, err := h.client.CreateState(background, name, spec)
		require.NoError(t, err)
		require.True(t, created)
		return &httpTarget{house: h, name: name}
	}
}
