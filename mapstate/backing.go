package mapstate

import "context"

// BackingMap keeps the records of one state: bytes in, bytes out. It knows
// nothing of kinds, values or txids. A BackingMap has one committer at a time
// (its Map sees to that); everything else may be called concurrently.
//
// mapstatetest.TestBacking is the contract as a test; every implementation and
// every decorator passes it.
type BackingMap interface {
	Getter
	Committer
	MetaReader
	Scanner
}

// Getter reads records by key.
type Getter interface {
	// MultiGet returns the record of each key, in the order of keys, nil where
	// there is none; a record is never empty. It sees each Commit wholly or not at
	// all. The caller owns the outer slice; the records are shared and must not be
	// changed.
	// An error is never an absence: where one key cannot be read, the call fails.
	// Records of far more than MaxReadBytes in all, duplicates counted, are ErrTooLarge.
	MultiGet(ctx context.Context, keys []Key) ([][]byte, error)
}

// MaxReadBytes bounds the records that one MultiGet returns, so that a small
// request for large records cannot take all memory.
const MaxReadBytes = 256 << 20

// TooMuchToRead is the error of a read beyond MaxReadBytes.
func TooMuchToRead() error {
	return &LimitError{What: "records of one request (in bytes)", Got: -1, Limit: MaxReadBytes}
}

// Committer writes.
type Committer interface {
	// Commit writes all of w at once. When it returns, every reader sees w; w is on
	// disk once the Durable it returns says so. On an error it is not known whether w was
	// written (nothing of it, or all), and readers see what the store has; ErrDiskFull
	// and ErrTooLarge say that nothing was.
	// The slices of w are the caller's again when Commit returns.
	Commit(ctx context.Context, w Writes) (Durable, error)
}

// Writes is what one Commit writes: records and meta entries, in one atomic step.
type Writes struct {
	Records []Write     // distinct keys, in any order
	Meta    []MetaWrite // distinct names
	// Sync asks that the write be on disk when Durable.Wait returns. Without it
	// the write is on disk within the store's sync interval.
	Sync bool
}

// Write stores a record under a key; a nil Record deletes the key.
type Write struct {
	Key    Key
	Record []byte
}

// MetaWrite stores a value under a name in the state's meta space, which is
// small, ordered by name, and apart from its records; a nil Value deletes the name.
type MetaWrite struct {
	Name  string
	Value []byte
}

// Durable is a write on its way to disk.
type Durable interface {
	// Wait returns once the write is as durable as it was asked to be. It must be
	// called exactly once, from any goroutine, and does not hold up other commits.
	Wait() error
}

// NoWait is a Durable for writes that nothing waits for.
var NoWait Durable = noWait{}

type noWait struct{}

func (noWait) Wait() error { return nil }

// MetaReader reads the meta space.
type MetaReader interface {
	// Meta returns the entries whose name begins with prefix, in order of name.
	// The caller owns them.
	Meta(ctx context.Context, prefix string) ([]MetaWrite, error)
}

// Scanner walks records in key order.
type Scanner interface {
	// Scan calls yield for each record with r.Start <= key < r.End, in order, until
	// yield returns an error, which it passes on. It sees the store as it was when Scan was
	// called. The record is valid only during the call to yield. The record of
	// SnapshotKey is never part of a scan. A backing that cannot scan returns ErrUnsupported.
	Scan(ctx context.Context, r Range, yield func(Key, []byte) error) error
}

// Range is a half-open range of keys. An empty End is the end of the map.
type Range struct {
	Start, End Key
}
