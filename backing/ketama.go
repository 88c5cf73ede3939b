package backing

import (
	"cmp"
	"crypto/md5"
	"encoding/binary"
	"errors"
	"net"
	"slices"
	"sort"
	"strconv"
)

// defaultMemcachedPort is the port of a server that is named without one.
const defaultMemcachedPort = "11211"

// ring spreads names over servers consistently, as libketama, finagle and
// spymemcached do: each server has 160 points on a circle of 2^32, from 40 md5
// sums of 4 points each, and a name belongs to the first point at or after the
// first 4 bytes of its own md5, little endian. A server that joins or leaves moves
// the names of its own points only. A ring never changes.
//
// It is a memcache.ServerSelector of gomemcache.
type ring struct {
	servers []tcpAddr
	points  []ringPoint // in order of hash; empty for one server
}

type ringPoint struct {
	hash   uint32
	server int32
}

// tcpAddr is a host:port; the dialer resolves it.
type tcpAddr string

var _ net.Addr = tcpAddr("")

func (tcpAddr) Network() string  { return "tcp" }
func (a tcpAddr) String() string { return string(a) }

const ringSums = 40 // md5 sums per server, of 4 points each

// newRing returns the ring of servers, each a host:port. Two points that meet
// belong to the server whose host:port is first in order of bytes, so the order of servers does
// not matter.
func newRing(servers []string) *ring {
	r := &ring{}
	for _, s := range servers {
		r.servers = append(r.servers, tcpAddr(s))
	}
	if len(servers) < 2 {
		return r
	}
	for i, s := range servers {
		id := ringID(s)
		for n := range ringSums {
			sum := md5.Sum(strconv.AppendInt(append([]byte(id), '-'), int64(n), 10))
			for at := 0; at < len(sum); at += 4 {
				r.points = append(r.points, ringPoint{binary.LittleEndian.Uint32(sum[at:]), int32(i)})
			}
		}
	}
	slices.SortFunc(r.points, func(a, b ringPoint) int {
		return cmp.Or(cmp.Compare(a.hash, b.hash), cmp.Compare(servers[a.server], servers[b.server]))
	})
	return r
}

// ringID is what a server is hashed as: the default port is left out.
func ringID(server string) string {
	if host, port, err := net.SplitHostPort(server); err == nil && port == defaultMemcachedPort {
		return host
	}
	return server
}

// ringHash is where a name is on the circle.
func ringHash(name []byte) uint32 {
	sum := md5.Sum(name)
	return binary.LittleEndian.Uint32(sum[:])
}

// pick returns the index of the server that a name belongs to.
func (r *ring) pick(name []byte) int {
	if len(r.servers) == 1 {
		return 0
	}
	hash := ringHash(name)
	i := sort.Search(len(r.points), func(i int) bool { return r.points[i].hash >= hash })
	if i == len(r.points) {
		i = 0
	}
	return int(r.points[i].server)
}

// PickServer implements memcache.ServerSelector.
func (r *ring) PickServer(key string) (net.Addr, error) {
	if len(r.servers) == 0 {
		return nil, errors.New("memcached: no servers")
	}
	return r.servers[r.pick([]byte(key))], nil
}

// Each implements memcache.ServerSelector.
func (r *ring) Each(f func(net.Addr) error) error {
	for _, s := range r.servers {
		if err := f(s); err != nil {
			return err
		}
	}
	return nil
}
