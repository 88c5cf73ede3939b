// Package mapstate is Tine's vocabulary: keys, values, transaction ids,
// updaters, the rules a state kind must give, and Map, which applies them.
//
// A state is a map of Key to Value under one kind's rules. Writers send batches
// numbered by a TxID; a batch may be attempted many times, and the state ends
// as if it had been attempted once. The parts, from the wire inwards:
//
//	Key, Value      what travels: tuples of scalars, JSON-shaped values, neither boxed
//	ValueUpdater    (stored value or nothing) -> new value
//	Map             one state: its owner, its open batches, its progress
//	attempt         the overlay of one attempt at a batch: what it found, what it will write
//	Kind            record codec and per-key rules (packages opaque, transactional, nontx)
//	BackingMap      where records live: bytes in, bytes out, one atomic Commit
//
// The batch protocol is Storm Trident's (https://storm.apache.org/releases/current/Trident-state.html),
// with its known faults repaired: an attempt writes each key once, together with
// the progress of its writer, in one atomic write.
//
// The package imports the standard library only.
package mapstate
