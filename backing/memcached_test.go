package backing

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tine/backing/memcachedtest"
	"tine/mapstate"
	"tine/mapstate/mapstatetest"
	"tine/opaque"
)

// newMemcached returns a Memcached over servers that waits long, so that a slow
// machine fails no test, and closes it with the test.
func newMemcached(t testing.TB, meta MetaStore, servers []string, change ...func(*MemcachedOptions)) *Memcached {
	t.Helper()
	opts := MemcachedOptions{Servers: servers, Prefix: "t:", Owner: "test", Timeout: 20 * time.Second, DialTimeout: 20 * time.Second}
	for _, c := range change {
		c(&opts)
	}
	m, err := NewMemcached(meta, opts)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, m.Close()) })
	return m
}

// hasty is for tests in which a server does not answer.
func hasty(o *MemcachedOptions) {
	o.Timeout, o.DialTimeout = 100*time.Millisecond, 100*time.Millisecond
}

// strings of n keys, and writes of a record under each.
func manyWrites(n int, record string) (keys []mapstate.Key, w mapstate.Writes) {
	for i := range n {
		keys = append(keys, mapstatetest.Key(fmt.Sprintf("key-%d", i)))
		w.Records = append(w.Records, mapstate.Write{Key: keys[i], Record: []byte(record)})
	}
	return keys, w
}

func TestMemcachedIsABackingMap(t *testing.T) {
	for _, n := range []int{1, 3} {
		t.Run(fmt.Sprintf("%d servers", n), func(t *testing.T) {
			_, addrs := memcachedtest.Starts(t, n, "-I", "8m", "-m", "100")
			opened := 0
			mapstatetest.TestBacking(t, func(t testing.TB) mapstatetest.Harness {
				opened++
				own := func(o *MemcachedOptions) { o.Prefix = fmt.Sprintf("t%d:", opened) }
				meta := mapstate.NewMemory()
				m := newMemcached(t, meta, addrs, own)
				return mapstatetest.Harness{Backing: m, NoScan: true, Reopen: func() mapstate.BackingMap {
					require.NoError(t, m.Close())
					return newMemcached(t, meta, addrs, own)
				}}
			})
		})
	}
}

func TestMemcachedPlainProtocolIsABackingMap(t *testing.T) {
	mapstatetest.TestBacking(t, func(t testing.TB) mapstatetest.Harness {
		f := memcachedtest.NewFake(t)
		f.Be("1.4.15", 8<<20)
		t.Cleanup(func() { require.Empty(t, append(f.Commands("ms "), f.Commands("md ")...)) })
		f.Play(func(line string) memcachedtest.Action {
			if line == "mn" {
				return memcachedtest.Refuse("ERROR")
			}
			return memcachedtest.Action{}
		})
		return mapstatetest.Harness{Backing: newMemcached(t, mapstate.NewMemory(), []string{f.Addr}), NoScan: true}
	})
}

func TestMemcachedIsReadByOtherClients(t *testing.T) {
	_, addrs := memcachedtest.Starts(t, 3)
	m := newMemcached(t, mapstate.NewMemory(), addrs)
	keys, w := manyWrites(500, "record")
	mapstatetest.Commit(t, m, w)
	client := gomemcacheOver(m.ring)
	for _, k := range keys {
		item, err := client.Get(string(m.naming.append(nil, k)))
		require.NoError(t, err, "%s", k)
		require.Equal(t, "record", string(item.Value))
	}
}

func TestMemcachedRefusesWhatTheServerHasNoPlaceForBeforeAnythingIsWritten(t *testing.T) {
	server := memcachedtest.Start(t, "-I", "2m", "-m", "64")
	m := newMemcached(t, mapstate.NewMemory(), []string{server.Addr})
	for _, text := range []string{"k", strings.Repeat("long", 100)} {
		key := mapstatetest.Key(text)
		name := m.naming.append(nil, key)
		overhead := m.naming.valueSize(name, mapstate.Write{Key: key}) + len(name) + itemOverhead
		fits := make([]byte, 2<<20-overhead)
		mapstatetest.Commit(t, m, mapstate.Writes{Records: []mapstate.Write{{Key: key, Record: fits}}})
		require.Len(t, mapstatetest.Get(t, m, key)[0], len(fits))

		_, err := m.Commit(t.Context(), mapstate.Writes{
			Records: []mapstate.Write{{Key: "other", Record: []byte("r")}, {Key: key, Record: append(fits, 0)}},
			Meta:    []mapstate.MetaWrite{{Name: "m", Value: []byte("v")}},
		})
		require.ErrorIs(t, err, mapstate.ErrTooLarge)
		require.ErrorContains(t, err, key.String())
		require.ErrorContains(t, err, fmt.Sprintf("%d, the limit is %d", 2<<20+1, 2<<20))
		require.Equal(t, []string{""}, mapstatetest.Get(t, m, "other"))
		entries, err := m.Meta(t.Context(), "")
		require.NoError(t, err)
		require.Empty(t, entries)
		require.Len(t, mapstatetest.Get(t, m, key)[0], len(fits), "what was there before")
	}
}

func TestMemcachedAsksForTheLimitAgainAfterARestart(t *testing.T) {
	server := memcachedtest.Start(t, "-I", "4m", "-m", "64")
	m := newMemcached(t, mapstate.NewMemory(), []string{server.Addr})
	large := mapstate.Writes{Records: []mapstate.Write{{Key: "k", Record: make([]byte, 2<<20)}}}
	mapstatetest.Commit(t, m, large)
	server.Arg("-I", "1m")
	server.Restart()
	_, err := m.Commit(t.Context(), large)
	require.ErrorIs(t, err, mapstate.ErrTooLarge)
}

func TestMemcachedGoesOnAfterARestartOfItsServers(t *testing.T) {
	servers, addrs := memcachedtest.Starts(t, 2)
	m := newMemcached(t, mapstate.NewMemory(), addrs)
	keys, w := manyWrites(3000, "before")
	for range 3 {
		mapstatetest.Commit(t, m, w)
		require.Equal(t, slices.Repeat([]string{"before"}, len(keys)), mapstatetest.Get(t, m, keys...))
		for _, s := range servers {
			s.Restart()
		}
		require.Equal(t, make([]string, len(keys)), mapstatetest.Get(t, m, keys...), "what a restart forgot is absent")
	}
}

func TestMemcachedThatIsNotThereIsAnErrorAndNeverAMiss(t *testing.T) {
	servers, addrs := memcachedtest.Starts(t, 3)
	m := newMemcached(t, mapstate.NewMemory(), addrs)
	keys, w := manyWrites(100, "r")
	mapstatetest.Commit(t, m, w)
	servers[1].Kill()
	_, err := m.MultiGet(t.Context(), keys)
	require.ErrorIs(t, err, mapstate.ErrUnavailable)
	require.ErrorContains(t, err, addrs[1])
	first := slices.IndexFunc(keys, func(k mapstate.Key) bool { return m.serverOf(k) == 1 })
	var at *mapstate.KeyError
	require.ErrorAs(t, err, &at)
	require.Equal(t, keys[first], at.Key)
	require.Equal(t, first, at.Index)
	here := slices.DeleteFunc(slices.Clone(keys), func(k mapstate.Key) bool { return m.serverOf(k) == 1 })
	require.Regexp(t, fmt.Sprintf("first of %d keys", len(keys)-len(here)), err.Error())
	require.Equal(t, slices.Repeat([]string{"r"}, len(here)), mapstatetest.Get(t, m, here...), "others go on")

	_, err = m.Commit(t.Context(), w)
	require.ErrorIs(t, err, mapstate.ErrUnavailable)
	require.ErrorContains(t, err, "nothing was written")
	servers[1].Restart()
	mapstatetest.Commit(t, m, w)
	require.Equal(t, slices.Repeat([]string{"r"}, len(keys)), mapstatetest.Get(t, m, keys...))
}

// serverOf returns the index of the server that a key belongs to.
func (m *Memcached) serverOf(k mapstate.Key) int { return m.ring.pick(m.naming.append(nil, k)) }

func TestMemcachedAThirdServerTakesItsShareOnly(t *testing.T) {
	servers, addrs := memcachedtest.Starts(t, 3)
	two := newMemcached(t, mapstate.NewMemory(), addrs[:2])
	keys, w := manyWrites(3000, "r")
	mapstatetest.Commit(t, two, w)
	servers[0].Pause()
	t.Cleanup(servers[0].Continue)
	impatient := newMemcached(t, mapstate.NewMemory(), addrs[:2], hasty)
	_, err := impatient.MultiGet(t.Context(), keys)
	require.ErrorIs(t, err, mapstate.ErrUnavailable)
	require.ErrorContains(t, err, addrs[0])
	servers[0].Continue()

	three := newMemcached(t, mapstate.NewMemory(), addrs)
	absent := 0
	for i, r := range mapstatetest.Get(t, three, keys...) {
		if r == "" {
			absent++
			require.Equal(t, 2, three.serverOf(keys[i]), "a key that has moved is on the new server")
		}
	}
	require.InDelta(t, len(keys)/3, absent, 0.1*float64(len(keys)))
}

func TestMemcachedThatEvictsForgetsButNeverMixes(t *testing.T) {
	server := memcachedtest.Start(t, "-m", "8")
	m := newMemcached(t, mapstate.NewMemory(), []string{server.Addr})
	pad := strings.Repeat("x", 10_000)
	var keys []mapstate.Key
	for round := range 40 {
		var w mapstate.Writes
		for i := range 100 {
			k := mapstatetest.Key(fmt.Sprintf("key-%d-%d", round, i))
			keys = append(keys, k)
			w.Records = append(w.Records, mapstate.Write{Key: k, Record: []byte(k.String() + pad)})
		}
		mapstatetest.Commit(t, m, w)
	}
	stats := m.Stats(t.Context())[0]
	require.NoError(t, stats.Err)
	require.Positive(t, stats.Evictions)
	require.Positive(t, stats.Items)
	require.Equal(t, int64(8<<20), stats.MaxBytes)
	there := 0
	for i, r := range mapstatetest.Get(t, m, keys...) {
		if r != "" {
			there++
			require.Equal(t, keys[i].String()+pad, r)
		}
	}
	require.Positive(t, there)
	require.Less(t, there, len(keys))
}

func TestMemcachedCloseIsIdempotentAndEndsItsUse(t *testing.T) {
	server := memcachedtest.Start(t)
	m := newMemcached(t, mapstate.NewMemory(), []string{server.Addr})
	mapstatetest.Put(t, m, "k", "v")
	require.NoError(t, m.Close())
	require.NoError(t, m.Close())
	_, err := m.MultiGet(t.Context(), []mapstate.Key{"k"})
	require.ErrorIs(t, err, mapstate.ErrShuttingDown)
	_, err = m.Commit(t.Context(), record("k", "v"))
	require.ErrorIs(t, err, mapstate.ErrShuttingDown)
	require.ErrorIs(t, m.Claim(t.Context()), mapstate.ErrShuttingDown)
	require.ErrorIs(t, m.Stats(t.Context())[0].Err, mapstate.ErrShuttingDown)
}

func TestMemcachedOptionsSayAllThatIsWrong(t *testing.T) {
	require.NoError(t, MemcachedOptions{Servers: []string{"localhost", "[::1]:1", "::2"}, Owner: "o"}.Validate())
	err := MemcachedOptions{
		Servers: []string{"h:1", "h", "h:11211", ":1", "a b:2"}, Prefix: "a=b", Timeout: -1, DialTimeout: -1, Connections: -1,
	}.Validate()
	for _, want := range []string{"h:11211 twice", `":1"`, `"a b:2"`, `"a=b"`, "Owner", "Timeout", "DialTimeout", "Connections"} {
		require.ErrorContains(t, err, want)
	}
	require.ErrorContains(t, MemcachedOptions{Owner: "o"}.Validate(), "Servers is empty")
	_, err = NewMemcached(mapstate.NewMemory(), MemcachedOptions{})
	require.Error(t, err)
}

// TestMemcachedCountsEveryParallelUpdate over a network that is slow.
func TestMemcachedCountsEveryParallelUpdate(t *testing.T) {
	const updates = 500
	server := memcachedtest.Start(t)
	m := newMemcached(t, mapstate.NewMemory(), []string{memcachedtest.Slow(t, server.Addr, time.Millisecond)})
	state, err := mapstate.Open(t.Context(), opaque.Kind{}, m, mapstate.Options{MaxWaiting: updates})
	require.NoError(t, err)
	defer state.Close(mapstate.ErrShuttingDown)
	failed := make(chan error, updates)
	for i := range updates {
		go func() {
			keys := mapstatetest.Keys("all", i%7)
			_, err := state.Update(context.WithoutCancel(t.Context()), mapstate.Envelope{}, keys, mapstatetest.Updates("sum", 1, 1))
			failed <- err
		}()
	}
	for range updates {
		require.NoError(t, <-failed)
	}
	entries, err := state.Read(t.Context(), mapstate.Envelope{}, mapstatetest.Keys("all"))
	require.NoError(t, err)
	require.Equal(t, mapstate.Int(updates), entries[0].Value)
}

func TestMemcachedReadsManyKeysInFewRoundTrips(t *testing.T) {
	const n = 10_000
	server := memcachedtest.Start(t)
	keys, w := manyWrites(n, "a record of some length")
	mapstatetest.Commit(t, newMemcached(t, mapstate.NewMemory(), []string{server.Addr}), w)
	m := newMemcached(t, mapstate.NewMemory(), []string{memcachedtest.Slow(t, server.Addr, time.Millisecond)})
	began := time.Now()
	require.Equal(t, slices.Repeat([]string{"a record of some length"}, n), mapstatetest.Get(t, m, keys...))
	once := time.Since(began)
	began = time.Now()
	for i := range 100 {
		mapstatetest.Get(t, m, keys[i])
	}
	require.Less(t, once, 20*time.Since(began), "10,000 keys at once take less than 2,000 single reads would")
}
