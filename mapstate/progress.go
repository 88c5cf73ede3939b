package mapstate

import "time"

// Progress is where one partition's writer stands: what its last committed
// attempt was, written in the same atomic step as that attempt's records.
type Progress struct {
	Partition   string
	TxID        TxID
	Epoch       int64
	Offsets     []byte // JSON as the writer gave it; nil if never given
	CommittedAt time.Time
}
