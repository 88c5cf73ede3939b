// Package verify proves exactly-once against a running server: it sends random
// histories of requests, with replays, lost answers, zombies and kills, and compares
// every answer and all that is stored with package oracle.
//
//	history.go    Step and History: what is sent, as a value
//	generate.go   histories from a seed, as writers with bad luck would send them
//	values.go     the keys, updaters and values that they are made of
//	target.go     a step as a call, on a state of the server or on the oracle
//	site.go       the server under test, which may be ended at any moment
//	belief.go     every oracle that fits what was seen: how ambiguity is settled
//	run.go        one history against one state, step by step
//	batches.go    which batches are open, and where the rules leave an answer open
//	compare.go    a state as a whole against the belief
//	readers.go    readers that must never see half a batch
//	verify.go     many histories side by side, with kills
//	find.go       the history of a difference, run again
//	shrink.go     the smallest history that still differs
//	replay.go     a history as a file for "tine replay"
//	report.go     what was done, and a history to read
//
// A request whose answer was lost may or may not have been carried out. The checker
// keeps both possibilities, as oracles, and drops each as soon as the server answers
// something that does not fit it; what each writer's progress record holds (every
// attempt has offsets of its own) nearly always decides at once. A difference is a
// moment at which no possibility is left.
package verify
