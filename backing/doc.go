// Package backing holds the storage engines behind mapstate.BackingMap: Pebble, an
// LSM tree in the same process, and Memcached, servers elsewhere that may forget.
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
// space; reads and deletes go on. Where it runs out all the same, of space or of file
// descriptors, what it has begun waits until there is room, and new commits are
// refused meanwhile (file disk.go). A start without room is refused.
//
// When the log or the manifest cannot be written for another reason, what they lost is
// not known until the next start: every later write is refused (Database.Err
// says why), reads go on, and the process should be restarted. The next start finds
// each commit whole or absent.
//
// # When files are damaged
//
// Tables and the manifest have checksums; the file is named by the start, or the
// read, that meets the damage. The log is read up to where a crash has cut it short,
// and the engine tells damage from such a cut only by what comes after it. So the log
// is sealed within the sync interval after the last commit, and when the database
// is closed: damage to commits before a seal refuses the start. What is not noticed is
// damage to the commits since the last seal, and the loss of a whole log out of several.
package backing
