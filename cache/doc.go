// Package cache keeps the records that were used last on the heap, in front of
// any mapstate.BackingMap.
//
// Map is write-through: what a Commit wrote is in the cache once the backing has
// taken it, and not before. Reads and commits are ordered by one lock, which a
// read holds shared and a commit alone, each for all of its keys; so a read sees
// every Commit wholly or not at all, also where it finds some keys in the cache
// and others in the backing, and what a read brings back is never older than what
// is cached. Where it is not known what the backing has, the keys are dropped and
// read again.
//
// The cache holds presences only: an absent key is asked for again, which the
// backing's filters answer cheaply, and which the next commit usually ends.
package cache
