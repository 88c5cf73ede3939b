// Package backingtest holds a disk on which anything may go wrong at any write,
// for tests of what stands on one.
package backingtest
