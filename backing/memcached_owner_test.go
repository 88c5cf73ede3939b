package backing

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tine/backing/memcachedtest"
	"tine/mapstate"
	"tine/mapstate/mapstatetest"
)

func TestMemcachedLooksForItsMarkAtMostOnceASecond(t *testing.T) {
	server := memcachedtest.NewFake(t)
	m := newMemcached(t, mapstate.NewMemory(), []string{server.Addr})
	clock := time.Unix(1_000_000, 0)
	m.now = func() time.Time { return clock }
	for second := range 3 {
		for range 10 {
			require.NoError(t, commitOne(t, m))
			clock = clock.Add(checkMarkEvery / 10)
		}
		require.Len(t, server.Commands("add "), second+1)
	}
	clock = clock.Add(-time.Hour) // set back: not trusted for an hour
	require.NoError(t, commitOne(t, m))
	require.Len(t, server.Commands("add "), 4)
}

func TestMemcachedSetsAForgottenMarkAgain(t *testing.T) {
	server := memcachedtest.NewFake(t)
	m := newMemcached(t, mapstate.NewMemory(), []string{server.Addr})
	require.NoError(t, m.Claim(t.Context()))
	require.Equal(t, map[string]string{"t:$owner": "test"}, server.Items())
	server.HangUp() // and forget
	require.Empty(t, server.Items())
	require.NoError(t, commitOne(t, m))
	require.Equal(t, "test", server.Items()["t:$owner"])
	require.NoError(t, m.Release(t.Context()))
	require.NotContains(t, server.Items(), "t:$owner")
}

func TestMemcachedMarkThatMakesNoSenseIsAnError(t *testing.T) {
	for says, want := range map[string]string{
		"NOT_STORED\r\nEND":                           "does not have it",
		"NOT_STORED\r\nVALUE t:$owner 0 0\r\n\r\nEND": "another program",
		"SERVER_ERROR out of memory\r\nEND":           "out of memory",
		"STORED\r\nVALUE other 0 4\r\ntest\r\nEND":    "other",
	} {
		server := memcachedtest.NewFake(t)
		m := newMemcached(t, mapstate.NewMemory(), []string{server.Addr})
		server.Play(func(line string) memcachedtest.Action {
			switch line {
			case "add t:$owner 0 0 4":
				return memcachedtest.Refuse(says)
			case "get t:$owner":
				return memcachedtest.Action{Ignore: true}
			}
			return memcachedtest.Action{}
		})
		for _, err := range []error{m.Claim(t.Context()), commitOne(t, m)} {
			require.ErrorIs(t, err, mapstate.ErrUnavailable, says)
			require.ErrorContains(t, err, want)
			require.ErrorContains(t, err, server.Addr)
		}
		require.Empty(t, server.Items(), "nothing was written")
		server.Play(nil)
		mapstatetest.Put(t, m, "k", "v")
	}
}

// The plain protocol answers each write, so the key is known.
func TestMemcachedPlainProtocolNamesTheKeyThatFailed(t *testing.T) {
	server := memcachedtest.NewFake(t)
	server.Be("1.6.12", 1<<20)
	m := newMemcached(t, mapstate.NewMemory(), []string{server.Addr})
	keys, w := manyWrites(2500, "r")
	mapstatetest.Commit(t, m, w)
	require.Empty(t, server.Commands("ms "))
	for _, says := range []string{"SERVER_ERROR out of memory storing object", "NOT_STORED", "ERROR", "DELETED", "garbage"} {
		server.Play(on(1234, "set ", memcachedtest.Refuse(says)))
		_, err := m.Commit(t.Context(), w)
		require.ErrorIs(t, err, mapstate.ErrUnavailable)
		require.ErrorContains(t, err, says)
		require.ErrorContains(t, err, "key "+keys[1233].String()+":")
	}
	w.Records = w.Records[:1]
	w.Records[0].Record = nil
	server.Play(on(1, "delete ", memcachedtest.Refuse("STORED")))
	_, err := m.Commit(t.Context(), w)
	require.ErrorContains(t, err, "STORED")
	server.Play(nil)
	mapstatetest.Commit(t, m, w)
	require.Equal(t, []string{"", "r"}, mapstatetest.Get(t, m, keys[:2]...))
}

// A server that calls itself new and knows no meta commands, as a proxy may, gets none: the
// bytes of a record would be commands to it.
func TestMemcachedSendsNoMetaCommandsToAServerThatKnowsNone(t *testing.T) {
	server := memcachedtest.NewFake(t)
	server.Play(on(0, "m", memcachedtest.Refuse("ERROR")))
	m := newMemcached(t, mapstate.NewMemory(), []string{server.Addr})
	mapstatetest.Put(t, m, "k", "v")
	require.Equal(t, []string{"v"}, mapstatetest.Get(t, m, "k"))
	require.Equal(t, []string{"mn"}, server.Commands("m"))
}

func TestMemcachedGreetingThatMakesNoSenseIsAnError(t *testing.T) {
	for prefix, says := range map[string]string{
		"version": "ERROR Too many open connections", "mn": "CLIENT_ERROR unauthenticated", "stats settings": "nonsense",
	} {
		server := memcachedtest.NewFake(t)
		server.Play(on(0, prefix, memcachedtest.Refuse(says)))
		_, err := newMemcached(t, mapstate.NewMemory(), []string{server.Addr}).MultiGet(t.Context(), []mapstate.Key{"k"})
		require.ErrorIs(t, err, mapstate.ErrUnavailable)
		require.ErrorContains(t, err, says)
		require.ErrorContains(t, err, server.Addr)
	}
}
