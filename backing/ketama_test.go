package backing

import (
	"fmt"
	"net"
	"slices"
	"testing"

	"github.com/bradfitz/gomemcache/memcache"
	"github.com/stretchr/testify/require"
)

var _ memcache.ServerSelector = (*ring)(nil)

// gomemcacheOver returns a client of another make over a ring.
func gomemcacheOver(r *ring) *memcache.Client { return memcache.NewFromSelector(r) }

// TestRingHashIsLibketamas: the values are those of libketama's test program, which
// spymemcached's tests publish.
func TestRingHashIsLibketamas(t *testing.T) {
	for name, want := range map[string]uint32{
		"26": 3979113294, "1404": 2065000984, "4177": 1125759251, "9315": 3302915307,
		"14745": 2580083742, "105106": 3986458246, "355107": 3611074310,
	} {
		require.Equal(t, want, ringHash([]byte(name)), name)
	}
}

// TestRingHasLibketamasPoints: the values were computed apart from this code, with
// Python's hashlib and bisect.
func TestRingHasLibketamasPoints(t *testing.T) {
	r := newRing([]string{"192.168.1.101:11210", "192.168.1.102:11210", "192.168.1.103:11210", "192.168.1.104:11210"})
	require.Len(t, r.points, 4*160)
	require.Equal(t, []ringPoint{{19069626, 3}, {28439255, 0}, {36078660, 3}, {46162273, 3}, {54096687, 3}, {73548791, 1}}, r.points[:6])
	require.Equal(t, []ringPoint{{4280309254, 1}, {4281097143, 1}, {4294628205, 1}}, r.points[len(r.points)-3:])
	for name, want := range map[string]int{"foo": 2, "bar": 3, "man": 2, "tine:words:=the": 0, "чай": 2, "key-000000000042": 1, "": 3} {
		require.Equal(t, want, r.pick([]byte(name)), name)
	}
	// The default port is left out of what is hashed.
	r = newRing([]string{"10.0.1.1:11211", "10.0.1.2:11211", "10.0.1.3:11212"})
	require.Equal(t, []ringPoint{{14164473, 1}, {16012927, 1}, {17349376, 0}, {20424420, 0}}, r.points[:4])
	for name, want := range map[string]int{"foo": 0, "bar": 2, "man": 0, "tine:words:=the": 1, "чай": 1} {
		require.Equal(t, want, r.pick([]byte(name)), name)
	}
}

func TestRingBeyondItsLastPointBeginsAgain(t *testing.T) {
	r := &ring{servers: []tcpAddr{"a:1", "b:1"}, points: []ringPoint{{10, 1}, {20, 0}}}
	require.Greater(t, ringHash([]byte("foo")), uint32(20))
	require.Equal(t, 1, r.pick([]byte("foo")))
}

func TestRingDoesNotDependOnTheOrderOfServers(t *testing.T) {
	servers := []string{"a:1", "b:1", "c:1"}
	r, reversed := newRing(servers), newRing([]string{"c:1", "b:1", "a:1"})
	for i := range 1000 {
		name := fmt.Sprint("name-", i)
		want, err := r.PickServer(name)
		require.NoError(t, err)
		got, err := reversed.PickServer(name)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
}

func TestRingOfOneServerHashesNothing(t *testing.T) {
	r := newRing([]string{"a:1"})
	require.Empty(t, r.points)
	require.Zero(t, testing.AllocsPerRun(10, func() { require.Zero(t, r.pick([]byte("name"))) }))
	_, err := newRing(nil).PickServer("name")
	require.Error(t, err)
}

func TestRingEachVisitsEveryServer(t *testing.T) {
	servers := []string{"a:1", "b:1", "c:1"}
	var seen []string
	require.NoError(t, newRing(servers).Each(func(a net.Addr) error {
		require.Equal(t, "tcp", a.Network())
		seen = append(seen, a.String())
		return nil
	}))
	require.Equal(t, servers, seen)
	require.ErrorIs(t, newRing(servers).Each(func(net.Addr) error { return net.ErrClosed }), net.ErrClosed)
}

func TestRingAServerThatJoinsOrLeavesMovesItsShareOnly(t *testing.T) {
	const names = 20_000
	var servers []string
	for n := 1; n <= 10; n++ {
		before := slices.Clone(servers)
		servers = append(servers, fmt.Sprintf("10.0.0.%d:11211", n))
		if n == 1 {
			continue
		}
		was, is := newRing(before), newRing(servers)
		moved := 0
		for i := range names {
			name := []byte(fmt.Sprint("name-", i))
			if from, to := was.pick(name), is.pick(name); from != to {
				moved++
				require.Equal(t, n-1, to, "%s moved between servers that were there all the time", name)
			}
		}
		require.InDelta(t, 1/float64(n), float64(moved)/names, 0.06, "%d servers", n)
	}
}
