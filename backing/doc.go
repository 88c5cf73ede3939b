// Package backing holds the storage engines behind mapstate.BackingMap: today
// Pebble, an LSM tree in the same process.
//
// One Database is one data directory. It holds many states and their catalog:
//
//	id(4)  space(1)  rest              value
//	0      'f'                         version of this layout
//	0      'n'                         the next free id
//	0      's'       name              id(4), spec
//	id     1         meta name         meta value
//	id     2         encoded key       record
//
// Ids are big-endian, begin at 1 and are never given twice, so that creating a
// state and deleting one (a range delete of its id) are one atomic write each,
// and nothing of a deleted state can come back under a new one.
//
// # Durability
//
// A Commit with Sync is in the write-ahead log and visible when Commit returns;
// Durable.Wait waits for the fsync, which concurrent commits share. A Commit
// without it is synced by one timer, which is armed only while something is
// unsynced: an idle database does nothing.
//
// # When the disk fails
//
// Commits are refused with mapstate.ErrDiskFull while less than
// Options.MinFreeBytes is left, so that the engine itself does not run out of
// space; reads and deletes go on. When the log cannot be written, what it lost
// is not known until the next start: every later write is refused (Database.Err
// says why), reads go on, and the process should be restarted. A failure that
// the engine calls fatal, such as a manifest that cannot be written, ends the
// process with a panic that cannot be recovered: the engine would go on with its
// locks held. The next start finds each commit whole or absent.
package backing
