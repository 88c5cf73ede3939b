package server

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"
)

// Config is everything a server can be told. The flags of "tine serve" are its
// members, one by one.
type Config struct {
	Listen      string // host:port of the API; port 0 takes a free one
	AdminListen string // host:port of /debug/pprof; "" is off
	DataDir     string // made if it is not there

	CacheEntries int64 // default LRU of a state, entries; 0 is no LRU
	CacheBytes   int64 // default LRU of a state, bytes

	BlockCacheBytes int64         // Pebble's block cache, shared by all states
	MemTableBytes   int64         // Pebble's memtable
	SyncInterval    time.Duration // at most so long until an "interval" commit is on disk
	MinFreeBytes    int64         // commits are refused while the disk has less

	MaxBodyBytes     int64         // of one request
	MaxKeys          int           // of one request
	MaxRequests      int           // under way at once; more are refused as overloaded
	MaxInFlightBytes int64         // of all request bodies under way; one of unknown length counts as the largest
	BatchIdle        time.Duration // how long an open batch may be idle before it is dropped
	BodyTimeout      time.Duration // for a request's body to arrive
	WriteTimeout     time.Duration // for a client to take the next part of a stream
	ShutdownGrace    time.Duration // from failing readiness to refusing requests
	ShutdownTimeout  time.Duration // for requests under way to finish
	LogFormat        string        // text or json
	LogLevel         slog.Level
}

// DefaultConfig returns the configuration of a server that is told nothing.
func DefaultConfig() Config {
	return Config{
		Listen:           "127.0.0.1:7070",
		DataDir:          "./tine-data",
		CacheEntries:     1_000_000,
		CacheBytes:       256 << 20,
		BlockCacheBytes:  256 << 20,
		MemTableBytes:    16 << 20,
		SyncInterval:     500 * time.Millisecond,
		MinFreeBytes:     128 << 20,
		MaxBodyBytes:     64 << 20,
		MaxKeys:          1_000_000,
		MaxRequests:      1024,
		MaxInFlightBytes: 512 << 20,
		BatchIdle:        time.Minute,
		BodyTimeout:      30 * time.Second,
		WriteTimeout:     30 * time.Second,
		ShutdownGrace:    500 * time.Millisecond,
		ShutdownTimeout:  10 * time.Second,
		LogFormat:        "text",
		LogLevel:         slog.LevelInfo,
	}
}

// SettingError says what is wrong with one setting.
type SettingError struct {
	Name    string // of its flag, without dashes
	Problem string // as it reads behind the name
}

func (e *SettingError) Error() string { return e.Name + " " + e.Problem }

// Validate reports every problem of the configuration, or nil: a join of
// SettingErrors.
func (c Config) Validate() error {
	return errors.Join(
		checkAddress("listen", c.Listen),
		optional(c.AdminListen, func() error { return checkAddress("admin-listen", c.AdminListen) }),
		check(c.DataDir != "", "data-dir", "is empty; name a directory"),
		check(c.AdminListen == "" || c.AdminListen != c.Listen || isPortZero(c.Listen),
			"admin-listen", "is the address of listen; give it its own"),

		atLeast("cache-entries", c.CacheEntries, 0),
		atLeast("cache-bytes", c.CacheBytes, 1),
		atLeast("block-cache-bytes", c.BlockCacheBytes, 1<<20),
		within("memtable-bytes", c.MemTableBytes, 1<<20, 1<<30),
		within("sync-interval", c.SyncInterval, time.Millisecond, time.Second),
		atLeast("min-free-bytes", c.MinFreeBytes, 1),

		within("max-body-bytes", c.MaxBodyBytes, 1<<10, 1<<30),
		atLeast("max-keys", c.MaxKeys, 1),
		atLeast("max-requests", c.MaxRequests, 1),
		check(c.MaxInFlightBytes >= c.MaxBodyBytes, "max-in-flight-bytes",
			fmt.Sprintf("is %d, below max-body-bytes, which is %d", c.MaxInFlightBytes, c.MaxBodyBytes)),
		atLeast("batch-idle", c.BatchIdle, time.Millisecond),
		atLeast("body-timeout", c.BodyTimeout, time.Millisecond),
		atLeast("write-timeout", c.WriteTimeout, time.Millisecond),
		atLeast("shutdown-grace", c.ShutdownGrace, 0),
		atLeast("shutdown-timeout", c.ShutdownTimeout, time.Millisecond),
		check(c.LogFormat == "text" || c.LogFormat == "json", "log-format",
			fmt.Sprintf("is %q, want text or json", c.LogFormat)),
	)
}

func check(ok bool, name, problem string) error {
	if ok {
		return nil
	}
	return &SettingError{Name: name, Problem: problem}
}

func optional(value string, validate func() error) error {
	if value == "" {
		return nil
	}
	return validate()
}

func atLeast[T int | int64 | time.Duration](name string, got, low T) error {
	return check(got >= low, name, fmt.Sprintf("is %v, want at least %v", got, low))
}

func within[T int64 | time.Duration](name string, got, low, high T) error {
	return check(low <= got && got <= high, name, fmt.Sprintf("is %v, want %v to %v", got, low, high))
}

func checkAddress(name, address string) error {
	_, port, err := net.SplitHostPort(address)
	if err == nil {
		_, err = net.LookupPort("tcp", port)
	}
	return check(err == nil, name, fmt.Sprintf("is %q, want host:port with a port up to 65535, such as 127.0.0.1:7070", address))
}

func isPortZero(address string) bool {
	_, port, err := net.SplitHostPort(address)
	return err == nil && port == "0"
}
