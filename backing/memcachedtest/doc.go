// Package memcachedtest has what tests need of memcached: Server, a real one as a
// process that can be stopped, continued, killed and started again; Fake, one in
// the test that misbehaves on order; and Slow, a proxy that delays.
package memcachedtest
