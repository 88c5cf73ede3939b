package crash

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/cockroachdb/pebble/v2/vfs"

	"tine/backing"
	"tine/cache"
	"tine/mapstate"
	"tine/nontx"
	"tine/opaque"
	"tine/transactional"
)

// background is the context of all work: a store's end is what the tests are about.
var background = context.Background()

// store is an open database with the states of scripts, as a server has them.
type store struct {
	db   *backing.Database
	maps map[string]*mapstate.Map
}

// openStore opens what is on a disk.
func openStore(fs vfs.FS, scripts []*script) (*store, error) {
	db, err := backing.Open("data", backing.Options{
		FS: fs, CacheBytes: 8 << 20, MemTableBytes: 64 << 10, MinFreeBytes: -1, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return nil, err
	}
	s := &store{db: db, maps: make(map[string]*mapstate.Map)}
	for _, sc := range scripts {
		if err := s.open(sc); err != nil && !errors.Is(err, mapstate.ErrUnknownState) {
			return nil, errors.Join(err, s.close())
		}
	}
	return s, nil
}

// open opens the state of a script, with an LRU that does not hold all of it.
func (s *store) open(sc *script) error {
	state, err := s.db.State(sc.name)
	if err != nil {
		return err
	}
	lru := cache.New(state, cache.Options{Entries: 4})
	m, err := mapstate.Open(background, kindNamed(sc.kind), lru, mapstate.Options{Interval: sc.interval})
	if err != nil {
		return err
	}
	s.maps[sc.name] = m
	return nil
}

func kindNamed(name string) mapstate.Kind {
	return map[string]mapstate.Kind{"nontx": nontx.Kind{}, "transactional": transactional.Kind{}, "opaque": opaque.Kind{}}[name]
}

func (s *store) close() error {
	for _, m := range s.maps {
		m.Close(mapstate.ErrShuttingDown)
	}
	return s.db.Close()
}

// do does a unit.
func (s *store) do(sc *script, u unit) error {
	switch u.deed {
	case create:
		if _, err := s.db.Create(sc.name, []byte(sc.kind)); err != nil {
			return err
		}
		return s.open(sc)
	case remove:
		s.maps[sc.name].Close(mapstate.ErrUnknownState)
		if err := s.db.Delete(sc.name); err != nil {
			return err
		}
		delete(s.maps, sc.name)
		return nil
	}
	return perform(mapTarget{s.maps[sc.name]}, u)
}

// content reads all that the state of a script holds, nil where there is none.
func (s *store) content(sc *script) (*content, error) {
	m := s.maps[sc.name]
	if m == nil {
		return nil, nil
	}
	entries, err := m.Read(background, mapstate.Envelope{}, allKeys)
	if err != nil {
		return nil, err
	}
	c := &content{entries: make(map[mapstate.Key]mapstate.Entry), progress: withoutTimes(m.Progress())}
	for i, e := range entries {
		if e != (mapstate.Entry{}) {
			c.entries[allKeys[i]] = e
		}
	}
	return c, s.scanAgrees(m, c)
}

// scanAgrees checks that a scan, which goes past the LRU, finds what was read through it.
func (s *store) scanAgrees(m *mapstate.Map, c *content) error {
	seen := 0
	err := m.Scan(background, mapstate.Range{}, func(k mapstate.Key, e mapstate.Entry) error {
		seen++
		if c.entries[k] != e {
			return fmt.Errorf("key %s: read %+v, scanned %+v", k, c.entries[k], e)
		}
		return nil
	})
	for k, e := range c.entries {
		if k != mapstate.SnapshotKey && !e.Value.IsNone() {
			seen--
		}
	}
	if err == nil && seen != 0 {
		err = fmt.Errorf("a scan finds %d entries more than reads do", seen)
	}
	return err
}

// mapTarget is a Map as a target.
type mapTarget struct{ *mapstate.Map }

func (m mapTarget) update(env mapstate.Envelope, c call) error {
	var err error
	switch {
	case c.updaters != nil:
		_, err = m.Update(background, env, c.keys, c.updaters)
	case c.values[0].IsNone():
		_, err = m.Remove(background, env, c.keys)
	default:
		_, err = m.Put(background, env, c.keys, c.values)
	}
	return err
}

func (m mapTarget) begin(env mapstate.Envelope) error { _, err := m.Begin(background, env); return err }
func (m mapTarget) commit(env mapstate.Envelope) error {
	_, err := m.Commit(background, env)
	return err
}
func (m mapTarget) abort(env mapstate.Envelope) error { return m.Abort(background, env) }
