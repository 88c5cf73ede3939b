package server

import (
	"bytes"
	"log/slog"
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tine/api"
	"tine/backing/memcachedtest"
	"tine/mapstate"
	"tine/mapstate/mapstatetest"
)

func TestAStateOnMemcachedComesBackWithItsEntries(t *testing.T) {
	server := memcachedtest.Start(t)
	d := newDisk(t)
	state, created, err := d.reg.Create(t.Context(), "s", onMemcached(api.MemcachedSpec{Servers: []string{server.Addr}}))
	require.NoError(t, err)
	require.True(t, created)
	require.Equal(t, api.Capabilities{Evicts: true}, state.Capabilities)
	update := func(x mapstate.TxID) {
		state, err := d.reg.State("s")
		require.NoError(t, err)
		_, err = state.Map.Update(t.Context(), mapstate.Envelope{TxID: x}, mapstatetest.Keys("a"), mapstatetest.Updates("sum", 1))
		require.NoError(t, err)
	}
	value := func() mapstate.Value {
		state, err := d.reg.State("s")
		require.NoError(t, err)
		entries, err := state.Map.Read(t.Context(), mapstate.Envelope{}, mapstatetest.Keys("a"))
		require.NoError(t, err)
		return entries[0].Value
	}
	update(1)
	d.reopen(t)
	require.Equal(t, mapstate.Int(1), value())
	update(1)
	update(2)
	require.Equal(t, mapstate.Int(2), value())
	// Another state of that name does not find what the one before has left.
	require.NoError(t, d.reg.Delete(t.Context(), "s"))
	_, _, err = d.reg.Create(t.Context(), "s", onMemcached(api.MemcachedSpec{Servers: []string{server.Addr}}))
	require.NoError(t, err)
	require.True(t, value().IsNone())
	// A start does not need memcached; what does says so.
	server.Kill()
	d.reopen(t)
	state, err = d.reg.State("s")
	require.NoError(t, err)
	_, err = state.Map.Read(t.Context(), mapstate.Envelope{}, mapstatetest.Keys("a"))
	require.ErrorIs(t, err, mapstate.ErrUnavailable)
}

func TestAStateIsNotCreatedWhereMemcachedIsNot(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	d := newDisk(t)
	_, _, err = d.reg.Create(t.Context(), "s", onMemcached(api.MemcachedSpec{Servers: []string{l.Addr().String()}}))
	require.ErrorIs(t, err, mapstate.ErrUnavailable)
	require.ErrorContains(t, err, l.Addr().String())
	require.Empty(t, d.reg.List())
	_, _, err = d.reg.Create(t.Context(), "s", api.StateSpec{Kind: "opaque"})
	require.NoError(t, err, "the name is free")
}

// Two servers may have one memcached, but not the same names there.
func TestTridentsNamesHaveOneServer(t *testing.T) {
	server := memcachedtest.Start(t)
	spec := onMemcached(api.MemcachedSpec{Servers: []string{server.Addr}, Format: "trident"})
	first, second := newDisk(t), newDisk(t)
	_, _, err := first.reg.Create(t.Context(), "s", spec)
	require.NoError(t, err)
	_, _, err = second.reg.Create(t.Context(), "s", spec)
	require.ErrorIs(t, err, mapstate.ErrUnavailable)
	require.ErrorContains(t, err, "$TINE-OWNER$")
	require.NoError(t, first.reg.Delete(t.Context(), "s"))
	_, _, err = second.reg.Create(t.Context(), "s", spec)
	require.NoError(t, err)
}

func TestWhoCreatesAStateThatForgetsIsWarned(t *testing.T) {
	server := memcachedtest.Start(t)
	d := newDisk(t)
	var log bytes.Buffer
	d.reg.log = slog.New(slog.NewTextHandler(&log, nil))
	for _, accepts := range []bool{false, true} {
		name := map[bool]string{false: "warned", true: "knows"}[accepts]
		_, _, err := d.reg.Create(t.Context(), name, onMemcached(api.MemcachedSpec{Servers: []string{server.Addr}, AcceptEviction: accepts}))
		require.NoError(t, err)
	}
	require.Equal(t, 1, strings.Count(log.String(), "acceptEviction"))
	require.Contains(t, log.String(), "state=warned")
}
