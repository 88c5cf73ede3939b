// Package nontx is the non-transactional state kind: a record is the bare value,
// and a replay is applied again. It suits writes that may be repeated, such as
// set, max or union.
package nontx

import (
	"fmt"

	"tine/mapstate"
)

// Kind is the non-transactional kind.
type Kind struct{}

var _ mapstate.Kind = Kind{}

// Name is "nontx".
func (Kind) Name() string { return "nontx" }

// Shares is false: a txid is a label here.
func (Kind) Shares() bool { return false }

// Replays is mapstate.ReplayApplies.
func (Kind) Replays() mapstate.Replays { return mapstate.ReplayApplies }

// View answers the stored value.
func (Kind) View(stored mapstate.Record, _ mapstate.TxID) (mapstate.Value, error) {
	return stored.Curr, nil
}

// Resolve starts from the stored value, whatever the txid.
func (Kind) Resolve(stored mapstate.Record, _ mapstate.TxID) (mapstate.Resolution, error) {
	return mapstate.Resolution{Base: stored.Curr}, nil
}

// version begins every stored record: version, value.
const version = 1

// AppendRecord implements mapstate.Codec.
func (Kind) AppendRecord(dst []byte, r mapstate.Record) []byte {
	return mapstate.AppendValue(append(dst, version), r.Curr)
}

// DecodeRecord implements mapstate.Codec.
func (Kind) DecodeRecord(b []byte) (mapstate.Record, error) {
	if len(b) == 0 || b[0] != version {
		return mapstate.Record{}, fmt.Errorf("nontx record: %w: unknown version", mapstate.ErrCorrupt)
	}
	v, rest, err := mapstate.DecodeValue(b[1:])
	if err != nil {
		return mapstate.Record{}, fmt.Errorf("nontx record: value: %w", err)
	}
	if len(rest) > 0 {
		return mapstate.Record{}, fmt.Errorf("nontx record: %w: %d bytes left over", mapstate.ErrCorrupt, len(rest))
	}
	return mapstate.Record{Curr: v}, nil
}
