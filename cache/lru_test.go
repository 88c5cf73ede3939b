package cache

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tine/mapstate"
)

// order returns the cached keys, most recently used first, and checks the links.
func (l *lru) order(t testing.TB) []mapstate.Key {
	t.Helper()
	keys := []mapstate.Key{}
	bytes := int64(0)
	prev := none
	for slot := l.first; slot != none; slot = l.at(slot).next {
		e := l.at(slot)
		require.Equal(t, prev, e.prev)
		require.Equal(t, slot, l.index[e.key])
		keys = append(keys, e.key)
		bytes += e.size()
		prev = slot
	}
	require.Equal(t, prev, l.last)
	require.Len(t, l.index, len(keys))
	require.Equal(t, l.bytes, bytes)
	return keys
}

func put(l *lru, keys ...mapstate.Key) {
	for _, k := range keys {
		l.apply([]mapstate.Write{{Key: k, Record: []byte("record of " + k)}})
	}
}

func get(l *lru, keys ...mapstate.Key) [][]byte {
	records := make([][]byte, len(keys))
	l.get(keys, records)
	return records
}

func TestLRUEvictsTheLeastRecentlyUsed(t *testing.T) {
	l := newLRU(Options{Entries: 3})
	put(l, "a", "b", "c")
	require.Equal(t, []mapstate.Key{"c", "b", "a"}, l.order(t))
	get(l, "a")
	put(l, "b") // written again
	require.Equal(t, []mapstate.Key{"b", "a", "c"}, l.order(t))
	put(l, "d")
	require.Equal(t, []mapstate.Key{"d", "b", "a"}, l.order(t))
	get(l, "a", "b")
	require.Equal(t, []mapstate.Key{"b", "a", "d"}, l.order(t))
	l.fill([]mapstate.Key{"e", "absent"}, [][]byte{[]byte("1"), nil})
	require.Equal(t, []mapstate.Key{"e", "b", "a"}, l.order(t))
	l.apply([]mapstate.Write{{Key: "b"}, {Key: "absent"}})
	require.Equal(t, []mapstate.Key{"e", "a"}, l.order(t), "deleted keys leave")
	put(l, "f", "g")
	require.Equal(t, []mapstate.Key{"g", "f", "e"}, l.order(t))
	l.clear()
	require.Empty(t, l.order(t))
	put(l, "h")
	require.Equal(t, []mapstate.Key{"h"}, l.order(t))
}

func TestLRUEvictsUntilItsBytesFit(t *testing.T) {
	entry := func(record int) int64 { return entryOverhead + 1 + int64(record) }
	set := func(l *lru, k mapstate.Key, n int) {
		l.apply([]mapstate.Write{{Key: k, Record: make([]byte, n)}})
	}
	l := newLRU(Options{Entries: 100, Bytes: 3 * entry(100)})
	set(l, "a", 100)
	set(l, "b", 100)
	set(l, "c", 100)
	require.Equal(t, 3*entry(100), l.stats().Bytes)
	require.Equal(t, []mapstate.Key{"c", "b", "a"}, l.order(t))
	set(l, "d", 1)
	require.Equal(t, []mapstate.Key{"d", "c", "b"}, l.order(t))
	set(l, "d", 200+entryOverhead)
	require.Equal(t, []mapstate.Key{"d", "c"}, l.order(t), "a record that grows makes room as well")
	set(l, "e", 300+2*(entryOverhead+1))
	require.Equal(t, []mapstate.Key{"e"}, l.order(t), "just fits alone")
	set(l, "e", 301+2*(entryOverhead+1))
	require.Empty(t, l.order(t), "larger than the whole: not cached, and the older record is gone")
	set(l, "f", 1)
	set(l, "huge", 10_000)
	require.Equal(t, []mapstate.Key{"f"}, l.order(t), "and evicts nothing")
}

func TestLRUAgreesWithADumbOne(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	l := newLRU(Options{Entries: 2 * chunkSlots})
	records := make(map[mapstate.Key]string)
	var recent []mapstate.Key // least recently used first
	use := func(k mapstate.Key) {
		for i, r := range recent {
			if r == k {
				recent = append(recent[:i], recent[i+1:]...)
				break
			}
		}
		recent = append(recent, k)
	}
	for range 20_000 {
		k := mapstate.Key(fmt.Sprint(rnd.IntN(3 * chunkSlots)))
		switch rnd.IntN(10) {
		case 0:
			l.apply([]mapstate.Write{{Key: k}})
			if _, ok := records[k]; ok {
				use(k)
				recent = recent[:len(recent)-1]
				delete(records, k)
			}
		case 1, 2:
			record, ok := records[k]
			got := get(l, k)[0]
			require.Equal(t, ok, got != nil)
			require.Equal(t, record, string(got))
			if ok {
				use(k)
			}
		default:
			records[k] = strings.Repeat("r", 1+rnd.IntN(100))
			l.apply([]mapstate.Write{{Key: k, Record: []byte(records[k])}})
			use(k)
			if len(recent) > 2*chunkSlots {
				delete(records, recent[0])
				recent = recent[1:]
			}
		}
	}
	got := l.order(t)
	require.Len(t, got, len(recent))
	for i, k := range recent {
		require.Equal(t, k, got[len(got)-1-i])
	}
}

func TestLRUKeepsNothingOfItsCallersAndGivesNothingOfItsOwn(t *testing.T) {
	l := newLRU(Options{Entries: 10})
	record := []byte("record")
	l.apply([]mapstate.Write{{Key: "k", Record: record}})
	copy(record, "XXXXXX")
	got := get(l, "k")[0]
	require.Equal(t, "record", string(got))
	l.apply([]mapstate.Write{{Key: "k", Record: []byte("other!")}})
	require.Equal(t, "record", string(got), "a later write in place does not reach it")
}

// heap returns the bytes of live objects.
func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func TestLRUHoldsAnEntryInFewBytesAndCountsThem(t *testing.T) {
	const entries = 100_000
	before := heap()
	l := newLRU(Options{Entries: entries})
	writes := make([]mapstate.Write, 1000)
	padding := strings.Repeat("the rest of a request's body ", 30_000)
	for first := 0; first < 2*entries; first += len(writes) {
		var body strings.Builder
		for i := range writes {
			fmt.Fprintf(&body, "%018d", first+i)
		}
		body.WriteString(padding) // which the keys must not keep alive
		for i := range writes {
			writes[i] = mapstate.Write{Key: mapstate.Key(body.String()[i*18 : (i+1)*18]), Record: []byte("a record of 20 bytes")}
		}
		l.apply(writes)
	}
	clear(writes)
	perEntry := (heap() - before) / entries
	counted := l.stats().Bytes / entries
	require.EqualValues(t, entries, l.stats().Entries)
	t.Logf("%d bytes an entry, %d counted", perEntry, counted)
	require.Less(t, perEntry, int64(188), "1,000,000 entries in 180 MiB")
	require.InEpsilon(t, perEntry, counted, 0.25)
	runtime.KeepAlive(l)
}

func TestLRUDoesNotAllocateForHitsAndOverwrites(t *testing.T) {
	l := newLRU(Options{Entries: 1000})
	writes := make([]mapstate.Write, 1000)
	keys := make([]mapstate.Key, len(writes))
	for i := range writes {
		keys[i] = mapstate.Key(fmt.Sprint(i))
		writes[i] = mapstate.Write{Key: keys[i], Record: []byte("a record of 20 bytes")}
	}
	l.apply(writes)
	records := make([][]byte, len(keys))
	l.get(keys, records)
	require.Zero(t, testing.AllocsPerRun(10, func() { l.apply(writes) }))
	require.LessOrEqual(t, testing.AllocsPerRun(10, func() { l.get(keys, records) }), 1.0, "the buffer of a call")
}
