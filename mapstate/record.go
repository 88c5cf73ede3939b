package mapstate

import (
	"encoding/binary"
	"fmt"
	"math"
)

// Record is what a kind keeps under one key, decoded. Which members a kind
// stores is its own affair: nontx keeps Curr alone, transactional leaves Prev out.
type Record struct {
	TxID TxID  // the batch that wrote last, NoTxID if none was numbered
	Curr Value // no value: a tombstone, the key was removed
	Prev Value // before the batch TxID; no value: there was none

	Partition PartitionID // that wrote first under TxID
	Shares    string      // what further partitions did under TxID; see share
}

// Codec turns records into bytes and back. The bytes begin with a version.
type Codec interface {
	// AppendRecord appends the stored form of r.
	AppendRecord(dst []byte, r Record) []byte
	// DecodeRecord decodes all of b, or fails with ErrCorrupt. It does not keep b.
	DecodeRecord(b []byte) (Record, error)
}

// Rules say what a batch finds under a key and what it leaves there. They are
// pure. A key that is not stored is the zero Record. The txid x may be NoTxID.
type Rules interface {
	// View returns what a reader that works under x sees, or a StaleTxError.
	View(stored Record, x TxID) (Value, error)
	// Resolve returns what the first operation of an attempt at x finds, or a
	// StaleTxError. A stored record with txid x is an earlier attempt's of the same
	// partition. It leaves Partition and Shares of Next alone.
	Resolve(stored Record, x TxID) (Resolution, error)
}

// Resolution is what the first operation of an attempt finds under a key.
type Resolution struct {
	// Base is the value that an updater gets.
	Base Value
	// Next is the record to write; its Curr is still to be set.
	Next Record
	// Replay says that the stored record is already the work of an earlier
	// attempt at this batch.
	Replay bool
	// Keep says that updaters leave the stored record as it is and answer Base.
	// A put or a remove writes all the same.
	Keep bool
}

// Replays says what a batch that is attempted again does to a key.
type Replays uint8

const (
	// ReplayApplies: it is applied again. A txid is a label, nothing is refused.
	ReplayApplies Replays = iota
	// ReplaySkips: its updates are skipped; the tuples must be the same.
	ReplaySkips
	// ReplayRestarts: it starts from the value before the batch; the tuples may differ.
	ReplayRestarts
)

// Kind is one kind of state.
type Kind interface {
	Codec
	Rules
	// Name is the kind's name on the wire.
	Name() string
	// Shares reports whether records keep Partition and Shares. Without, the partitions of
	// a batch must not touch each other's keys: a record with the batch's txid is taken for
	// an earlier attempt's, whoever wrote it.
	Shares() bool
	// Replays is what sets the kinds apart.
	Replays() Replays
}

// AppendRecordHead appends what the records of the numbered kinds begin with: a
// version byte, the txid and the partition as uvarints.
func AppendRecordHead(dst []byte, version byte, r Record) []byte {
	dst = append(dst, version)
	dst = binary.AppendUvarint(dst, uint64(r.TxID))
	return binary.AppendUvarint(dst, uint64(r.Partition))
}

// DecodeRecordHead decodes what AppendRecordHead appends, of the version given, and
// returns what follows.
func DecodeRecordHead(b []byte, version byte) (Record, []byte, error) {
	if len(b) == 0 || b[0] != version {
		return Record{}, nil, fmt.Errorf("%w: unknown version", ErrCorrupt)
	}
	x, n := binary.Uvarint(b[1:])
	if n <= 0 || x > math.MaxInt64 {
		return Record{}, nil, fmt.Errorf("%w: bad txid", ErrCorrupt)
	}
	b = b[1+n:]
	p, n := binary.Uvarint(b)
	if n <= 0 || p > math.MaxUint32 {
		return Record{}, nil, fmt.Errorf("%w: bad partition", ErrCorrupt)
	}
	return Record{TxID: TxID(x), Partition: PartitionID(p)}, b[n:], nil
}
