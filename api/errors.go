package api

import (
	"errors"
	"fmt"
	"net/http"

	"tine/mapstate"
)

// The errors that only the wire knows. All others are mapstate's sentinels.
var (
	ErrBadRequest           = errors.New("bad request")
	ErrNotFound             = errors.New("not found")
	ErrMethodNotAllowed     = errors.New("method not allowed")
	ErrUnsupportedMediaType = errors.New("unsupported media type")
	ErrInternal             = errors.New("internal error")
)

// problemKind is one row of the table between errors and the wire. Its name is unique
// and makes the problem's type; several kinds may share a code.
type problemKind struct {
	err    error
	name   string
	code   string
	status int
	title  string
}

// problemKinds is the table. The first row whose error matches wins: an invalid
// key that is also too large is an invalid key. An error without a row is the last.
var problemKinds = [...]problemKind{
	{mapstate.ErrInvalidKey, "invalid_key", "invalid_key", http.StatusBadRequest, "Invalid key"},
	{mapstate.ErrInvalidValue, "invalid_value", "invalid_value", http.StatusBadRequest, "Invalid value"},
	{mapstate.ErrInvalidTxID, "invalid_txid", "invalid_txid", http.StatusBadRequest, "Invalid txid"},
	{mapstate.ErrUnknownUpdater, "unknown_updater", "bad_request", http.StatusBadRequest, "Unknown updater"},
	{ErrBadRequest, "bad_request", "bad_request", http.StatusBadRequest, "Bad request"},
	{mapstate.ErrUnknownState, "unknown_state", "unknown_state", http.StatusNotFound, "Unknown state"},
	{ErrNotFound, "not_found", "not_found", http.StatusNotFound, "Not found"},
	{ErrMethodNotAllowed, "method_not_allowed", "method_not_allowed", http.StatusMethodNotAllowed, "Method not allowed"},
	{mapstate.ErrStaleTx, "stale_txid", "stale_txid", http.StatusConflict, "Stale txid"},
	{mapstate.ErrFenced, "fenced", "fenced", http.StatusConflict, "Fenced by a higher epoch"},
	{mapstate.ErrStateExists, "state_exists", "state_exists", http.StatusConflict, "State exists with another spec"},
	{mapstate.ErrNoOpenBatch, "no_open_batch", "no_open_batch", http.StatusConflict, "No open batch"},
	{mapstate.ErrTooLarge, "too_large", "too_large", http.StatusRequestEntityTooLarge, "Too large"},
	{ErrUnsupportedMediaType, "unsupported_media_type", "unsupported_media_type", http.StatusUnsupportedMediaType, "Unsupported media type"},
	{mapstate.ErrUpdaterType, "updater_type", "updater_type", http.StatusUnprocessableEntity, "Updater does not fit the type"},
	{mapstate.ErrUpdaterOverflow, "updater_overflow", "updater_overflow", http.StatusUnprocessableEntity, "Updater result out of range"},
	{mapstate.ErrOverloaded, "overloaded", "overloaded", http.StatusTooManyRequests, "Overloaded"},
	{mapstate.ErrUnsupported, "unsupported", "unsupported", http.StatusNotImplemented, "Unsupported"},
	{mapstate.ErrUnavailable, "backing_unavailable", "backing_unavailable", http.StatusServiceUnavailable, "Backing unavailable"},
	{mapstate.ErrShuttingDown, "shutting_down", "shutting_down", http.StatusServiceUnavailable, "Shutting down"},
	{mapstate.ErrDiskFull, "disk_full", "disk_full", http.StatusInsufficientStorage, "Disk full"},
	{mapstate.ErrCorrupt, "corrupt", "internal", http.StatusInternalServerError, "Stored data is damaged"},
	{ErrInternal, "internal", "internal", http.StatusInternalServerError, "Internal error"},
}

// kindOf returns the row of an error.
func kindOf(err error) *problemKind {
	for i := range problemKinds {
		if errors.Is(err, problemKinds[i].err) {
			return &problemKinds[i]
		}
	}
	return &problemKinds[len(problemKinds)-1]
}

// FieldError says which member of a request was refused, and where in it.
type FieldError struct {
	Member string
	Index  int // position in the member's array, from 0; -1: the member as a whole
	Err    error
}

func (e *FieldError) Error() string {
	if e.Index < 0 {
		return fmt.Sprintf("%s: %v", e.Member, e.Err)
	}
	return fmt.Sprintf("%s, index %d: %v", e.Member, e.Index, e.Err)
}

func (e *FieldError) Unwrap() error { return e.Err }

// batchError adds the batch that a failed request belongs to.
type batchError struct {
	txid mapstate.TxID
	err  error
}

func (e *batchError) Error() string { return e.err.Error() }

func (e *batchError) Unwrap() error { return e.err }
