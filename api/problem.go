package api

import (
	"errors"
	"strings"

	"tine/mapstate"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// problemType is the prefix of the type member of problems.
const problemType = "urn:tine:problem:"

// Problem is the answer to a request that failed: an RFC 9457 problem. The
// client returns it as an error; its Unwrap gives the mapstate error it stands
// for, so that errors.Is and errors.As work on both sides of the wire.
type Problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"`
	Code   string `json:"code"`

	Key         jsontext.Value `json:"key,omitempty"`         // as a JSON array
	Index       *int           `json:"index,omitempty"`       // position in the request, from 0
	Partition   *string        `json:"partition,omitempty"`   // whose watermark or epoch is ahead
	TxID        mapstate.TxID  `json:"txid,omitzero"`         // what the request brought
	StoredTxID  mapstate.TxID  `json:"storedTxid,omitzero"`   // what is stored
	Epoch       *int64         `json:"epoch,omitempty"`       // what the request brought
	StoredEpoch *int64         `json:"storedEpoch,omitempty"` // what is stored
	Limit       int64          `json:"limit,omitzero"`        // that was exceeded
	RequestID   string         `json:"requestId,omitempty"`
}

// newProblem describes err.
func newProblem(err error, requestID string) *Problem {
	kind := kindOf(err)
	p := &Problem{
		Type:      problemType + kind.name,
		Title:     kind.title,
		Status:    kind.status,
		Detail:    err.Error(),
		Code:      kind.code,
		RequestID: requestID,
	}
	if errors.Is(kind.err, ErrInternal) {
		p.Detail = "internal error; the server's log has more under this request id"
		return p
	}
	if e, ok := errors.AsType[*batchError](err); ok {
		p.TxID = e.txid
	}
	if e, ok := errors.AsType[*FieldError](err); ok && e.Index >= 0 {
		p.Index = &e.Index
	}
	if e, ok := errors.AsType[*mapstate.KeyError](err); ok && e.Key != mapstate.SnapshotKey {
		p.Index, p.Key = &e.Index, e.Key.AppendJSON(nil)
	}
	if e, ok := errors.AsType[*mapstate.StaleTxError](err); ok {
		p.TxID, p.StoredTxID, p.Partition = e.Got, e.Stored, &e.Partition
	}
	if e, ok := errors.AsType[*mapstate.FencedError](err); ok {
		p.Epoch, p.StoredEpoch, p.Partition = &e.Got, &e.Stored, &e.Partition
	}
	if e, ok := errors.AsType[*mapstate.LimitError](err); ok {
		p.Limit = e.Limit
	}
	return p
}

// appendJSON appends the problem as JSON on one line. Text that is not UTF-8, as an
// error may quote it, is mended.
func (p *Problem) appendJSON(dst []byte) []byte {
	text, err := json.Marshal(p, jsontext.AllowInvalidUTF8(true))
	if err != nil {
		panic("api: a problem cannot be encoded: " + err.Error())
	}
	return append(dst, text...)
}

// Error says what was wrong, as the server put it.
func (p *Problem) Error() string {
	if p.Detail == "" {
		return p.Title
	}
	return p.Detail
}

// Unwrap returns the error the problem stands for: a sentinel, or a KeyError,
// StaleTxError, FencedError or LimitError with the fields that travelled.
func (p *Problem) Unwrap() error {
	err := p.cause()
	if len(p.Key) == 0 || p.Index == nil {
		return err
	}
	key, keyErr := ParseKey(p.Key)
	if keyErr != nil {
		return err
	}
	return &mapstate.KeyError{Index: *p.Index, Key: key, Err: err}
}

func (p *Problem) cause() error {
	switch err := p.sentinel(); {
	case errors.Is(err, mapstate.ErrStaleTx):
		return &mapstate.StaleTxError{Partition: deref(p.Partition), Stored: p.StoredTxID, Got: p.TxID}
	case errors.Is(err, mapstate.ErrFenced):
		return &mapstate.FencedError{Partition: deref(p.Partition), Stored: deref(p.StoredEpoch), Got: deref(p.Epoch)}
	case errors.Is(err, mapstate.ErrTooLarge):
		return &mapstate.LimitError{What: "request", Got: -1, Limit: p.Limit}
	default:
		return err
	}
}

// sentinel finds the table's error by type, which is the finer one, else by code.
func (p *Problem) sentinel() error {
	for _, name := range []string{strings.TrimPrefix(p.Type, problemType), p.Code} {
		for i := range problemKinds {
			if problemKinds[i].name == name {
				return problemKinds[i].err
			}
		}
	}
	return ErrInternal
}

func deref[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}
