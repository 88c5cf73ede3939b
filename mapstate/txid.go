package mapstate

// TxID numbers a batch: 1 to 2^63-1, ascending per state, gaps allowed.
type TxID int64

// NoTxID is the TxID of an un-numbered write and of a record that no numbered
// batch has written.
const NoTxID TxID = 0
