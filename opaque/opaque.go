// Package opaque is the state kind that is exactly once even when a replay
// brings other tuples. A record keeps the current value, the value before the
// batch that wrote last, and that batch's txid, so that a replay can start again
// from before the batch (Trident's opaque transactional state,
// https://storm.apache.org/releases/current/Trident-state.html).
package opaque

import (
	"fmt"

	"tine/mapstate"
)

// Kind is the opaque kind.
type Kind struct{}

var _ mapstate.Kind = Kind{}

// Name is "opaque".
func (Kind) Name() string { return "opaque" }

// Shares is true.
func (Kind) Shares() bool { return true }

// Replays is mapstate.ReplayRestarts.
func (Kind) Replays() mapstate.Replays { return mapstate.ReplayRestarts }

// View answers the current value, or to the batch that wrote it the one before:
// for that batch, its earlier attempt never happened.
func (Kind) View(stored mapstate.Record, x mapstate.TxID) (mapstate.Value, error) {
	switch {
	case x == mapstate.NoTxID || stored.TxID < x:
		return stored.Curr, nil
	case stored.TxID == x:
		return stored.Prev, nil
	}
	return mapstate.Value{}, &mapstate.StaleTxError{Stored: stored.TxID, Got: x}
}

// Resolve moves the current value to Prev for a new batch, and starts again from
// Prev for a replay. An un-numbered write leaves TxID and Prev as they are.
func (k Kind) Resolve(stored mapstate.Record, x mapstate.TxID) (mapstate.Resolution, error) {
	base, err := k.View(stored, x)
	if err != nil {
		return mapstate.Resolution{}, err
	}
	r := mapstate.Resolution{Base: base, Next: mapstate.Record{TxID: x, Prev: base}}
	if x == mapstate.NoTxID {
		r.Next = mapstate.Record{TxID: stored.TxID, Prev: stored.Prev}
	}
	r.Replay = x != mapstate.NoTxID && stored.TxID == x
	return r, nil
}

// version begins every stored record: version, txid, partition, current value,
// previous value, shares.
const version = 2

// AppendRecord implements mapstate.Codec.
func (Kind) AppendRecord(dst []byte, r mapstate.Record) []byte {
	dst = mapstate.AppendRecordHead(dst, version, r)
	dst = mapstate.AppendValue(dst, r.Curr)
	dst = mapstate.AppendValue(dst, r.Prev)
	return append(dst, r.Shares...)
}

// DecodeRecord implements mapstate.Codec.
func (Kind) DecodeRecord(b []byte) (mapstate.Record, error) {
	r, rest, err := mapstate.DecodeRecordHead(b, version)
	if err != nil {
		return mapstate.Record{}, fmt.Errorf("opaque record: %w", err)
	}
	if r.Curr, rest, err = mapstate.DecodeValue(rest); err != nil {
		return mapstate.Record{}, fmt.Errorf("opaque record: current value: %w", err)
	}
	if r.Prev, rest, err = mapstate.DecodeValue(rest); err != nil {
		return mapstate.Record{}, fmt.Errorf("opaque record: previous value: %w", err)
	}
	if r.Shares, err = mapstate.DecodeShares(rest); err != nil {
		return mapstate.Record{}, fmt.Errorf("opaque record: %w", err)
	}
	return r, nil
}
