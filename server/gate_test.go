package server

import (
	"testing"

	"github.com/stretchr/testify/require"

	"tine/mapstate"
)

func TestGateRefusesRequestsBeyondItsLimit(t *testing.T) {
	g := newGate(2, 100)
	require.NoError(t, g.enter(0))
	require.NoError(t, g.enter(0))
	require.ErrorIs(t, g.enter(0), mapstate.ErrOverloaded)
	g.leave(0)
	require.NoError(t, g.enter(0))
}

func TestGateRefusesBodiesBeyondItsLimit(t *testing.T) {
	g := newGate(10, 100)
	require.NoError(t, g.enter(60))
	require.ErrorIs(t, g.enter(41), mapstate.ErrOverloaded)
	require.NoError(t, g.enter(40))
	g.leave(60)
	require.NoError(t, g.enter(60))
}

func TestGateAdmitsALoneRequestOfAnySize(t *testing.T) {
	require.NoError(t, newGate(10, 100).enter(1000))
}

func TestDrainingGateIsEmptyWhenTheLastRequestLeaves(t *testing.T) {
	g := newGate(10, 100)
	require.False(t, g.isDraining())
	require.NoError(t, g.enter(0))
	empty := g.drain()
	require.True(t, g.isDraining())
	requireOpen(t, empty)

	require.NoError(t, g.enter(0), "a late request is counted")
	g.leave(0)
	requireOpen(t, empty)
	g.leave(0)
	<-empty
	require.NoError(t, g.enter(0))
	g.leave(0)
	<-g.drain()
}

func TestDrainingAnIdleGateIsEmptyAtOnce(t *testing.T) {
	<-newGate(1, 1).drain()
}

func requireOpen(t *testing.T, c <-chan struct{}) {
	t.Helper()
	select {
	case <-c:
		require.Fail(t, "the channel is closed")
	default:
	}
}
