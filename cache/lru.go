package cache

import (
	"strings"
	"sync"

	"tine/mapstate"
)

const (
	// none is the slot of no entry.
	none = ^uint32(0)
	// chunkSlots is how many entries are allocated at a time. Chunks never move.
	chunkSlots = 1 << 10
	// entryOverhead is what an entry takes beside its key and record: itself, its
	// place in the index, and what the allocator rounds up. Measured.
	entryOverhead = 128
)

// entry is one cached record. It owns its key and its record: those of a caller
// are parts of larger buffers, which must not be kept alive.
type entry struct {
	key        mapstate.Key
	record     []byte
	prev, next uint32 // towards the most and the least recently used; next also links free slots
}

// lru is a strict least-recently-used map of records, bounded by entries and by
// bytes. Entries refer to each other by slot, not by pointer. Each method takes
// the lock once for all of its keys.
type lru struct {
	maxEntries int
	maxBytes   int64 // 0: no bound

	mu     sync.Mutex
	index  map[mapstate.Key]uint32
	chunks [][]entry
	slots  uint32 // ever made
	free   uint32 // first free slot
	first  uint32 // most recently used
	last   uint32 // least recently used
	bytes  int64
	hits   int64
	misses int64
	found  []uint32 // where the last get found its keys
}

func newLRU(opts Options) *lru {
	return &lru{
		maxEntries: int(min(opts.Entries, int64(none))),
		maxBytes:   opts.Bytes,
		index:      make(map[mapstate.Key]uint32),
		free:       none, first: none, last: none,
	}
}

// at returns the entry of a slot.
func (l *lru) at(slot uint32) *entry { return &l.chunks[slot/chunkSlots][slot%chunkSlots] }

// get copies the records of keys to the same positions of records, all into one
// buffer, and returns the positions of the keys it does not have.
func (l *lru) get(keys []mapstate.Key, records [][]byte) (missing []int32, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.found = l.found[:0]
	total, absent := 0, 0
	for _, k := range keys {
		slot, ok := l.index[k]
		if !ok {
			slot = none
			absent++
		} else {
			total += len(l.at(slot).record)
			l.touch(slot)
		}
		l.found = append(l.found, slot)
	}
	l.hits += int64(len(keys) - absent)
	l.misses += int64(absent)
	if total > mapstate.MaxReadBytes {
		return nil, mapstate.TooMuchToRead()
	}
	if absent > 0 {
		missing = make([]int32, 0, absent)
	}
	arena := make([]byte, 0, total)
	for i, slot := range l.found {
		if slot == none {
			missing = append(missing, int32(i))
			continue
		}
		start := len(arena)
		arena = append(arena, l.at(slot).record...)
		records[i] = arena[start:len(arena):len(arena)]
	}
	return missing, nil
}

// fill stores what a read found; nil records are absent keys.
func (l *lru) fill(keys []mapstate.Key, records [][]byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, k := range keys {
		if records[i] != nil {
			l.put(k, records[i])
		}
	}
}

// apply stores and deletes as writes say.
func (l *lru) apply(writes []mapstate.Write) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range writes {
		w := &writes[i]
		switch {
		case w.Record == nil:
			l.drop(w.Key)
		case l.justFound(i, w.Key) && len(w.Record) <= cap(l.at(l.found[i]).record):
			e := l.at(l.found[i])
			e.record = append(e.record[:0], w.Record...)
		default:
			l.put(w.Key, w.Record)
		}
	}
}

// justFound reports whether the last get had this key in the same position. A
// commit usually writes what its attempt has just read, in the same order: its keys need not
// be looked up again, and are already the most recently used. A slot that has become free
// since has no record, and so no room for one.
func (l *lru) justFound(i int, k mapstate.Key) bool {
	return i < len(l.found) && l.found[i] != none && l.at(l.found[i]).key == k
}

// forget drops the keys of writes.
func (l *lru) forget(writes []mapstate.Write) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range writes {
		l.drop(writes[i].Key)
	}
}

// clear drops everything.
func (l *lru) clear() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.index = make(map[mapstate.Key]uint32)
	l.chunks, l.slots, l.bytes, l.found = nil, 0, 0, nil
	l.free, l.first, l.last = none, none, none
}

// stats returns the figures so far.
func (l *lru) stats() Stats {
	l.mu.Lock()
	defer l.mu.Unlock()
	return Stats{Entries: int64(len(l.index)), Bytes: l.bytes, Hits: l.hits, Misses: l.misses}
}

// put stores a copy of record as the most recently used.
func (l *lru) put(k mapstate.Key, record []byte) {
	if l.maxBytes > 0 && entryOverhead+int64(len(k)+len(record)) > l.maxBytes {
		l.drop(k)
		return
	}
	slot, ok := l.index[k]
	if ok {
		e := l.at(slot)
		l.bytes -= e.size()
		e.record = overwrite(e.record, record)
		l.bytes += e.size()
		l.touch(slot)
	} else {
		slot = l.insert(k, record)
	}
	for l.maxBytes > 0 && l.bytes > l.maxBytes && l.last != slot {
		l.remove(l.last)
	}
}

// insert adds a key that is not there, in the place of the least recently used
// one where the cache is full, whose buffer it takes over.
func (l *lru) insert(k mapstate.Key, record []byte) uint32 {
	var buffer []byte
	if len(l.index) >= l.maxEntries {
		buffer = l.remove(l.last)
	}
	slot := l.newSlot()
	e := l.at(slot)
	e.key = mapstate.Key(strings.Clone(string(k)))
	e.record = overwrite(buffer, record)
	l.index[e.key] = slot
	l.bytes += e.size()
	l.pushFront(slot)
	return slot
}

// drop removes a key that may be there.
func (l *lru) drop(k mapstate.Key) {
	if slot, ok := l.index[k]; ok {
		l.remove(slot)
	}
}

// remove removes an entry and returns its buffer.
func (l *lru) remove(slot uint32) []byte {
	e := l.at(slot)
	buffer := e.record
	l.bytes -= e.size()
	l.unlink(slot)
	delete(l.index, e.key)
	*e = entry{next: l.free}
	l.free = slot
	return buffer
}

// newSlot returns a free slot, making a chunk of them where there is none.
func (l *lru) newSlot() uint32 {
	if l.free != none {
		slot := l.free
		l.free = l.at(slot).next
		return slot
	}
	if l.slots%chunkSlots == 0 {
		l.chunks = append(l.chunks, make([]entry, chunkSlots))
	}
	l.slots++
	return l.slots - 1
}

// touch makes an entry the most recently used.
func (l *lru) touch(slot uint32) {
	if l.first != slot {
		l.unlink(slot)
		l.pushFront(slot)
	}
}

func (l *lru) pushFront(slot uint32) {
	e := l.at(slot)
	e.prev, e.next = none, l.first
	if l.first != none {
		l.at(l.first).prev = slot
	} else {
		l.last = slot
	}
	l.first = slot
}

func (l *lru) unlink(slot uint32) {
	e := l.at(slot)
	if e.prev != none {
		l.at(e.prev).next = e.next
	} else {
		l.first = e.next
	}
	if e.next != none {
		l.at(e.next).prev = e.prev
	} else {
		l.last = e.prev
	}
}

// size is what an entry counts against the bound of bytes.
func (e *entry) size() int64 { return entryOverhead + int64(len(e.key)+cap(e.record)) }

// overwrite returns a buffer that holds record: the one given where it is neither
// too small nor far too large, else a new one.
func overwrite(buffer, record []byte) []byte {
	if n := len(record); n > cap(buffer) || cap(buffer) > 2*n+32 {
		buffer = make([]byte, 0, n)
	}
	return append(buffer[:0], record...)
}
