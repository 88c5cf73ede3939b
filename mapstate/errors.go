package mapstate

import (
	"errors"
	"fmt"
)

// The sentinels of the whole project. Layers wrap them with the operation and
// %w; the api package maps each to one HTTP status and code, and its client maps
// them back, so errors.Is works on both sides of the wire.
var (
	ErrInvalidKey      = errors.New("invalid key")
	ErrInvalidValue    = errors.New("invalid value")
	ErrInvalidTxID     = errors.New("invalid txid")
	ErrUnknownUpdater  = errors.New("unknown updater")
	ErrUpdaterType     = errors.New("updater does not fit the type")
	ErrUpdaterOverflow = errors.New("updater result out of range")
	ErrStaleTx         = errors.New("stale txid")
	ErrFenced          = errors.New("fenced by a higher epoch")
	ErrNoOpenBatch     = errors.New("no open batch")
	ErrUnknownState    = errors.New("unknown state")
	ErrStateExists     = errors.New("state exists with another spec")
	ErrTooLarge        = errors.New("too large")
	ErrOverloaded      = errors.New("overloaded")
	ErrUnsupported     = errors.New("unsupported")
	ErrUnavailable     = errors.New("backing unavailable")
	ErrDiskFull        = errors.New("disk full")
	ErrShuttingDown    = errors.New("shutting down")
	ErrCorrupt         = errors.New("corrupt record")
	ErrLocked          = errors.New("data directory in use")
)

// KeyError says which position of a request failed, and why.
type KeyError struct {
	Index int // position in the request, from 0
	Key   Key // the key there; SnapshotKey for the snapshot value
	Err   error
}

func (e *KeyError) Error() string {
	var stale *StaleTxError
	if errors.As(e.Err, &stale) {
		where := fmt.Sprintf("key %s at index %d", e.Key, e.Index)
		if e.Key == SnapshotKey {
			where = "the snapshot"
		}
		return fmt.Sprintf("%s: stale txid: the batch has txid %d, but %d is already stored there; it is a late retry if progress says that its partition has committed it, else another partition has gone ahead",
			where, stale.Got, stale.Stored)
	}
	if e.Key == SnapshotKey {
		return fmt.Sprintf("snapshot: %v", e.Err)
	}
	return fmt.Sprintf("key %s at index %d: %v", e.Key, e.Index, e.Err)
}

func (e *KeyError) Unwrap() error { return e.Err }

// StaleTxError says that a batch is behind what is stored. It is ErrStaleTx.
// Raised for a key it comes inside a KeyError; raised for a whole attempt it
// names the partition whose watermark is ahead.
type StaleTxError struct {
	Partition string
	Stored    TxID // what is stored
	Got       TxID // what the batch brought
}

func (e *StaleTxError) Error() string {
	return fmt.Sprintf("stale txid: the batch has txid %d, but %d is already stored; a late retry of a batch that was committed needs nothing more", e.Got, e.Stored)
}

// Is reports whether target is ErrStaleTx.
func (e *StaleTxError) Is(target error) bool { return target == ErrStaleTx }

// FencedError says that a writer with a higher epoch has taken over. It is ErrFenced.
type FencedError struct {
	Partition string
	Stored    int64
	Got       int64
}

func (e *FencedError) Error() string {
	return fmt.Sprintf("fenced: the writer has epoch %d, but partition %q has seen epoch %d", e.Got, e.Partition, e.Stored)
}

// Is reports whether target is ErrFenced.
func (e *FencedError) Is(target error) bool { return target == ErrFenced }

// LimitError says what was too large, how large it was and what is allowed. It is ErrTooLarge.
type LimitError struct {
	What  string // "body", "keys", "value", ...
	Got   int64  // -1: unknown, but over the limit
	Limit int64
}

func (e *LimitError) Error() string {
	if e.Got < 0 {
		return fmt.Sprintf("%s too large: the limit is %d", e.What, e.Limit)
	}
	return fmt.Sprintf("%s too large: %d, the limit is %d", e.What, e.Got, e.Limit)
}

// Is reports whether target is ErrTooLarge.
func (e *LimitError) Is(target error) bool { return target == ErrTooLarge }
