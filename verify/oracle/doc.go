// Package oracle says what a state must hold and answer after any history of
// requests. It knows nothing of stores, caches and concurrency, and is slow: it is
// written to be checked by eye against the table of the three kinds, and to be
// compared with the real thing, in tests and by package verify.
package oracle
