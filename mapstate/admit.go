package mapstate

// admit refuses a batch that is behind the partition's watermark or fenced off.
func (m *Map) admit(env Envelope, last *partition) error {
	if env.Epoch < last.Epoch {
		return &FencedError{Partition: env.Partition, Stored: last.Epoch, Got: env.Epoch}
	}
	if m.kind.Replays() != ReplayApplies && env.TxID != NoTxID && env.TxID < last.TxID {
		return &StaleTxError{Partition: env.Partition, Stored: last.TxID, Got: env.TxID}
	}
	return nil
}

// unfinished reports whether env belongs to a batch that was open, or came before
// one, and has not been committed, or whether another batch is open. An operation of it,
// alone, would be a part of a batch without the rest; unless it says that it is the
// whole, or a new writer sends it.
func (m *Map) unfinished(env Envelope, last *partition) bool {
	if env.TxID == NoTxID || last.open == NoTxID || env.Whole {
		return false
	}
	guarded := m.kind.Replays() != ReplayApplies
	if b := m.openBatch(env.Partition); b != nil && (b.txid == env.TxID || guarded && env.Epoch <= b.epoch) {
		return true
	}
	return env.Epoch <= last.Epoch && (env.TxID == last.open || env.TxID < last.open && guarded)
}

// fence refuses to end a batch for a writer that has been overtaken.
func (m *Map) fence(env Envelope) error {
	if highest := m.partition(env.Partition).Epoch; env.Epoch != 0 && env.Epoch < highest {
		return &FencedError{Partition: env.Partition, Stored: highest, Got: env.Epoch}
	}
	return nil
}
