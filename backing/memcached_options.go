package backing

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"
)

// MemcachedOptions of a Memcached. Servers and Owner must be given; what else is
// zero has a default.
type MemcachedOptions struct {
	Servers []string // host:port, or host for port 11211; in any order
	Prefix  string   // of every name: up to 150 visible ASCII characters, none of = + # $ but in Trident's format
	Owner   string   // who writes under this prefix: up to 100 visible ASCII characters

	// GlobalKey is the snapshot's name in Trident's format. Given, it makes the names of
	// keys those of Trident's adapter: a key is one string, and its name is that.
	GlobalKey string

	// Timeout bounds one read or write as a whole, whatever comes in meanwhile. 0 is
	// 1 s. One of very many keys has as much again for every 8,000 keys, or 8 MiB.
	Timeout     time.Duration
	DialTimeout time.Duration // to connect and learn the server's version and limits; 0: 500 ms
	Connections int           // to each server, at most; 0: 4
}

// Bounds of MemcachedOptions.
const (
	maxPrefixBytes          = 150
	maxOwnerBytes           = 100
	maxMemcachedConnections = 1024
)

// withDefaults fills in what was left zero.
func (o MemcachedOptions) withDefaults() MemcachedOptions {
	servers := make([]string, len(o.Servers))
	for i, s := range o.Servers {
		servers[i] = withPort(s)
	}
	o.Servers = servers
	if o.Timeout == 0 {
		o.Timeout = time.Second
	}
	if o.DialTimeout == 0 {
		o.DialTimeout = 500 * time.Millisecond
	}
	if o.Connections == 0 {
		o.Connections = 4
	}
	return o
}

// withPort adds the default port to a host.
func withPort(server string) string {
	if _, _, err := net.SplitHostPort(server); err == nil || server == "" {
		return server
	}
	return net.JoinHostPort(strings.Trim(server, "[]"), defaultMemcachedPort)
}

// Validate reports all problems at once.
func (o MemcachedOptions) Validate() error {
	o = o.withDefaults()
	var problems []error
	bad := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	if len(o.Servers) == 0 {
		bad("Servers is empty, want at least one host:port")
	}
	for i, s := range o.Servers {
		host, port, err := net.SplitHostPort(s)
		if err != nil || host == "" || port == "" || !isVisible(s) {
			bad("Servers has %q, want host:port", s)
		}
		if slices.Contains(o.Servers[:i], s) {
			bad("Servers has %s twice", s)
		}
	}
	if len(o.Prefix) > maxPrefixBytes || !isVisible(o.Prefix) || o.GlobalKey == "" && strings.ContainsAny(o.Prefix, tags) {
		bad("Prefix is %q, want up to %d visible ASCII characters and none of %s", o.Prefix, maxPrefixBytes, tags)
	}
	if len(o.GlobalKey) > maxPrefixBytes/2 || !isVisible(o.GlobalKey) || o.GlobalKey == nameTridentOwner {
		bad("GlobalKey is %q, want up to %d visible ASCII characters, and not %s", o.GlobalKey, maxPrefixBytes/2, nameTridentOwner)
	}
	if o.Owner == "" || len(o.Owner) > maxOwnerBytes || !isVisible(o.Owner) {
		bad("Owner is %q, want 1 to %d visible ASCII characters", o.Owner, maxOwnerBytes)
	}
	if o.Timeout < 0 {
		bad("Timeout is %s, want 0 for the default or more", o.Timeout)
	}
	if o.DialTimeout < 0 {
		bad("DialTimeout is %s, want 0 for the default or more", o.DialTimeout)
	}
	if o.Connections < 0 || o.Connections > maxMemcachedConnections {
		bad("Connections is %d, want 0 for the default or up to %d", o.Connections, maxMemcachedConnections)
	}
	return errors.Join(problems...)
}

// isVisible reports whether s is visible ASCII, without blanks.
func isVisible(s string) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] >= 0x7F {
			return false
		}
	}
	return true
}
