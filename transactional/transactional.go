// Package transactional is the state kind that is exactly once when a replay
// brings the same tuples as the batch did. A record keeps the value and the txid
// of the batch that wrote last; an update by that batch again is skipped
// (Trident's transactional state,
// https://storm.apache.org/releases/current/Trident-state.html).
package transactional

import (
	"fmt"

	"tine/mapstate"
)

// Kind is the transactional kind.
type Kind struct{}

var _ mapstate.Kind = Kind{}

// Name is "transactional".
func (Kind) Name() string { return "transactional" }

// Shares is true.
func (Kind) Shares() bool { return true }

// Replays is mapstate.ReplaySkips.
func (Kind) Replays() mapstate.Replays { return mapstate.ReplaySkips }

// View answers the stored value, to every reader.
func (Kind) View(stored mapstate.Record, _ mapstate.TxID) (mapstate.Value, error) {
	return stored.Curr, nil
}

// Resolve lets a new batch start from the stored value, and a replay keep it. An
// un-numbered write leaves TxID as it is.
func (Kind) Resolve(stored mapstate.Record, x mapstate.TxID) (mapstate.Resolution, error) {
	r := mapstate.Resolution{Base: stored.Curr, Next: mapstate.Record{TxID: x}}
	switch {
	case x == mapstate.NoTxID:
		r.Next.TxID = stored.TxID
	case stored.TxID == x:
		r.Replay, r.Keep = true, true
	case stored.TxID > x:
		return mapstate.Resolution{}, &mapstate.StaleTxError{Stored: stored.TxID, Got: x}
	}
	return r, nil
}

// version begins every stored record: version, txid, partition, value, shares.
const version = 2

// AppendRecord implements mapstate.Codec.
func (Kind) AppendRecord(dst []byte, r mapstate.Record) []byte {
	dst = mapstate.AppendRecordHead(dst, version, r)
	dst = mapstate.AppendValue(dst, r.Curr)
	return append(dst, r.Shares...)
}

// DecodeRecord implements mapstate.Codec.
func (Kind) DecodeRecord(b []byte) (mapstate.Record, error) {
	r, rest, err := mapstate.DecodeRecordHead(b, version)
	if err != nil {
		return mapstate.Record{}, fmt.Errorf("transactional record: %w", err)
	}
	if r.Curr, rest, err = mapstate.DecodeValue(rest); err != nil {
		return mapstate.Record{}, fmt.Errorf("transactional record: value: %w", err)
	}
	if r.Shares, err = mapstate.DecodeShares(rest); err != nil {
		return mapstate.Record{}, fmt.Errorf("transactional record: %w", err)
	}
	return r, nil
}
