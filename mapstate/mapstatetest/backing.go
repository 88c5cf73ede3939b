package mapstatetest

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tine/mapstate"
)

// Harness is one empty BackingMap under test.
type Harness struct {
	Backing mapstate.BackingMap
	// NoScan says that Scan is ErrUnsupported.
	NoScan bool
	// Torn is mapstate.Options.Torn.
	Torn bool
	// Reopen takes the backing away, as a crash or a stop would, and returns what is
	// there at the next start; Backing is not used after it. Nil: nothing survives.
	Reopen func() mapstate.BackingMap
}

// TestBacking checks every promise of mapstate.BackingMap. Each check opens a
// backing of its own; open registers its clean-up with t.
func TestBacking(t *testing.T, open func(t testing.TB) Harness) {
	checks := []struct {
		name  string
		check func(*testing.T, Harness)
	}{
		{"GetAnswersInTheOrderOfKeys", getAnswersInOrder},
		{"GetOfNoKeysIsEmpty", getOfNoKeys},
		{"GetOfManyKeysFindsEach", getOfManyKeys},
		{"GetLeavesTheOuterSliceToTheCaller", getLeavesOuterSlice},
		{"CommitReplacesAndDeletes", commitReplacesAndDeletes},
		{"CommitOfNothingSucceeds", commitOfNothing},
		{"CommitLeavesItsSlicesToTheCaller", commitLeavesSlices},
		{"KeysAreAnyBytes", keysAreAnyBytes},
		{"RecordsMayBeLarge", recordsMayBeLarge},
		{"AReadIsBoundedInBytes", readIsBounded},
		{"ReadersNeverSeeHalfACommit", readersNeverSeeHalf},
		{"WaitsMayFinishInAnyOrder", waitsInAnyOrder},
		{"MetaIsOrderedAndFilteredByPrefix", metaOrderedByName},
		{"MetaIsApartFromRecords", metaApartFromRecords},
		{"MetaBelongsToTheCaller", metaBelongsToCaller},
		{"ACancelledContextIsAnError", cancelledContext},
		{"ReopenFindsWhatWasSynced", reopenFindsSynced},
	}
	scanChecks := []struct {
		name  string
		check func(*testing.T, Harness)
	}{
		{"ScanFollowsKeyOrderWithinItsRange", scanFollowsOrder},
		{"ScanLeavesOutTheSnapshotKey", scanLeavesOutSnapshot},
		{"ScanDoesNotSeeWritesMadeDuringIt", scanIsConsistent},
		{"ScanPassesOnTheErrorOfYield", scanPassesOnError},
		{"ScanStopsWhenItsContextIsDone", scanStopsWithContext},
	}
	for _, c := range checks {
		t.Run(c.name, func(t *testing.T) { c.check(t, open(t)) })
	}
	for _, c := range scanChecks {
		t.Run(c.name, func(t *testing.T) {
			h := open(t)
			if h.NoScan {
				scanIsUnsupported(t, h)
				return
			}
			c.check(t, h)
		})
	}
}

// Commit commits w and waits for it.
func Commit(t testing.TB, b mapstate.Committer, w mapstate.Writes) {
	t.Helper()
	d, err := b.Commit(t.Context(), w)
	require.NoError(t, err)
	require.NoError(t, d.Wait())
}

// Put commits records given as pairs of key and record.
func Put(t testing.TB, b mapstate.Committer, pairs ...string) {
	t.Helper()
	var w mapstate.Writes
	for i := 0; i < len(pairs); i += 2 {
		w.Records = append(w.Records, mapstate.Write{Key: mapstate.Key(pairs[i]), Record: []byte(pairs[i+1])})
	}
	Commit(t, b, w)
}

// Get reads the records of keys as strings, "" where there is none.
func Get(t testing.TB, b mapstate.Getter, keys ...mapstate.Key) []string {
	t.Helper()
	records, err := b.MultiGet(t.Context(), keys)
	require.NoError(t, err)
	require.Len(t, records, len(keys))
	got := make([]string, len(records))
	for i, r := range records {
		require.False(t, r != nil && len(r) == 0, "the record of %q is empty, not nil", keys[i])
		got[i] = string(r)
	}
	return got
}

func getAnswersInOrder(t *testing.T, h Harness) {
	Put(t, h.Backing, "a", "1", "b", "2", "c", "3")
	require.Equal(t, []string{"3", "", "1", "3", "", "2", "1"}, Get(t, h.Backing, "c", "x", "a", "c", "x", "b", "a"))
	require.Equal(t, []string{"3", "", "1", "3", "", "2", "1"}, Get(t, h.Backing, "c", "x", "a", "c", "x", "b", "a"), "read again")
	require.Equal(t, []string{""}, Get(t, h.Backing, "aa"))
}

func getOfNoKeys(t *testing.T, h Harness) {
	Put(t, h.Backing, "a", "1")
	require.Empty(t, Get(t, h.Backing))
}

func getOfManyKeys(t *testing.T, h Harness) {
	const n = 5000
	var w mapstate.Writes
	var keys []mapstate.Key
	var want []string
	for i := range n {
		k := mapstate.Key(fmt.Sprintf("key-%d", i*7919%n)) // neither sorted nor reversed
		keys, want = append(keys, k, k+"-absent"), append(want, "record of "+string(k), "")
		w.Records = append(w.Records, mapstate.Write{Key: k, Record: []byte("record of " + string(k))})
	}
	Commit(t, h.Backing, w)
	require.Equal(t, want, Get(t, h.Backing, keys...))
	require.Equal(t, want, Get(t, h.Backing, keys...), "read again")
}

func getLeavesOuterSlice(t *testing.T, h Harness) {
	Put(t, h.Backing, "a", "1", "b", "2")
	keys := []mapstate.Key{"a", "b"}
	records, err := h.Backing.MultiGet(t.Context(), keys)
	require.NoError(t, err)
	held := records[1]
	records[0], records[1] = []byte("mine"), nil
	keys[0] = "other"
	require.Equal(t, []string{"1", "2"}, Get(t, h.Backing, "a", "b"))
	Put(t, h.Backing, "b", "9")
	Put(t, h.Backing, "c", "3")
	require.Equal(t, "2", string(held), "a record that was read does not change")
}

func commitReplacesAndDeletes(t *testing.T, h Harness) {
	Put(t, h.Backing, "a", "1", "b", "2", "c", "3")
	require.Equal(t, []string{"1", "2", "3"}, Get(t, h.Backing, "a", "b", "c"))
	Commit(t, h.Backing, mapstate.Writes{Records: []mapstate.Write{
		{Key: "c", Record: []byte("a longer record than before")},
		{Key: "a"},
		{Key: "never there"},
	}})
	require.Equal(t, []string{"", "2", "a longer record than before", ""}, Get(t, h.Backing, "a", "b", "c", "never there"))
	Put(t, h.Backing, "a", "again", "c", "s")
	require.Equal(t, []string{"again", "2", "s"}, Get(t, h.Backing, "a", "b", "c"))
	requireAll(t, h, "a=again", "b=2", "c=s")
}

func commitOfNothing(t *testing.T, h Harness) {
	Commit(t, h.Backing, mapstate.Writes{})
	Commit(t, h.Backing, mapstate.Writes{Sync: true})
	requireAll(t, h)
}

func commitLeavesSlices(t *testing.T, h Harness) {
	buf := []byte("record")
	w := mapstate.Writes{
		Records: []mapstate.Write{{Key: "z", Record: buf}, {Key: "a", Record: buf[:3]}},
		Meta:    []mapstate.MetaWrite{{Name: "m", Value: buf[3:]}},
		Sync:    true,
	}
	d, err := h.Backing.Commit(t.Context(), w)
	require.NoError(t, err)
	require.Equal(t, mapstate.Key("z"), w.Records[0].Key, "Commit left the order of records alone")
	copy(buf, "XXXXXX")
	w.Records[0], w.Records[1], w.Meta[0] = mapstate.Write{}, mapstate.Write{}, mapstate.MetaWrite{}
	require.NoError(t, d.Wait())
	require.Equal(t, []string{"rec", "record"}, Get(t, h.Backing, "a", "z"))
	require.Equal(t, []string{"m=ord"}, meta(t, h.Backing, ""))
}

func keysAreAnyBytes(t *testing.T, h Harness) {
	keys := []mapstate.Key{mapstate.SnapshotKey, "\x00", "\x00\x00", "\x00\xff", "\x01", "a\x00b", "ab", "\xfe", "\xff", "\xff\xff",
		mapstate.Key(strings.Repeat("\xff", mapstate.MaxKeyBytes))}
	var w mapstate.Writes
	var want []string
	for i, k := range keys {
		want = append(want, fmt.Sprint("record ", i))
		w.Records = append(w.Records, mapstate.Write{Key: k, Record: []byte(want[i])})
	}
	slices.Reverse(w.Records)
	Commit(t, h.Backing, w)
	require.Equal(t, want, Get(t, h.Backing, keys...))
	var all []string
	for i, k := range keys[1:] {
		all = append(all, string(k)+"="+want[i+1])
	}
	requireAll(t, h, all...)
}

// readIsBounded asks for one large record so often that the answer would be a gigabyte.
func readIsBounded(t *testing.T, h Harness) {
	large := bytes.Repeat([]byte{1}, 1<<20)
	Commit(t, h.Backing, mapstate.Writes{Records: []mapstate.Write{{Key: "k", Record: large}}})
	for range 2 { // from the store and from a cache that has read it
		_, err := h.Backing.MultiGet(context.Background(), slices.Repeat([]mapstate.Key{"k"}, 1100))
		require.ErrorIs(t, err, mapstate.ErrTooLarge)
		records, err := h.Backing.MultiGet(context.Background(), []mapstate.Key{"k", "k"})
		require.NoError(t, err)
		require.Equal(t, [][]byte{large, large}, records)
	}
}

func recordsMayBeLarge(t *testing.T, h Harness) {
	large := bytes.Repeat([]byte("0123456789abcdef"), 1<<16) // 1 MiB
	w := mapstate.Writes{Sync: true}
	var keys []mapstate.Key
	for i := range 12 {
		keys = append(keys, mapstate.Key(fmt.Sprintf("large-%02d", i)))
		w.Records = append(w.Records, mapstate.Write{Key: keys[i], Record: large[:len(large)-i]})
	}
	Commit(t, h.Backing, w)
	for i, got := range Get(t, h.Backing, keys...) {
		require.True(t, got == string(large[:len(large)-i]), "record %d is not what was written", i)
	}
}

func waitsInAnyOrder(t *testing.T, h Harness) {
	var waits []mapstate.Durable
	for i := range 20 {
		d, err := h.Backing.Commit(t.Context(), mapstate.Writes{
			Records: []mapstate.Write{{Key: "k", Record: fmt.Append(nil, i)}},
			Sync:    i%3 != 0,
		})
		require.NoError(t, err)
		require.Equal(t, []string{fmt.Sprint(i)}, Get(t, h.Backing, "k"), "visible when Commit returns, before Wait")
		waits = append(waits, d)
	}
	failed := make(chan error, len(waits))
	for _, d := range slices.Backward(waits) {
		go func() { failed <- d.Wait() }()
	}
	for range waits {
		require.NoError(t, <-failed)
	}
}

func cancelledContext(t *testing.T, h Harness) {
	Put(t, h.Backing, "a", "1")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := h.Backing.MultiGet(ctx, []mapstate.Key{"a"})
	require.ErrorIs(t, err, context.Canceled)
	_, err = h.Backing.Meta(ctx, "")
	require.ErrorIs(t, err, context.Canceled)
	err = h.Backing.Scan(ctx, mapstate.Range{}, func(mapstate.Key, []byte) error { return nil })
	require.ErrorIs(t, err, context.Canceled)
	_, err = h.Backing.Commit(ctx, mapstate.Writes{Records: []mapstate.Write{{Key: "a", Record: []byte("2")}, {Key: "b", Record: []byte("2")}}})
	require.ErrorIs(t, err, context.Canceled)
	require.Contains(t, [][]string{{"1", ""}, {"2", "2"}}, Get(t, h.Backing, "a", "b"), "nothing of it, or all")
}

func reopenFindsSynced(t *testing.T, h Harness) {
	if h.Reopen == nil {
		return
	}
	Put(t, h.Backing, "gone", "0", "a", "0")
	Commit(t, h.Backing, mapstate.Writes{
		Records: []mapstate.Write{{Key: "gone"}, {Key: "a", Record: []byte("1")}, {Key: mapstate.SnapshotKey, Record: []byte("s")}},
		Meta:    []mapstate.MetaWrite{{Name: "m", Value: []byte("2")}},
		Sync:    true,
	})
	reopened := h.Reopen()
	require.Equal(t, []string{"", "1", "s"}, Get(t, reopened, "gone", "a", mapstate.SnapshotKey))
	require.Equal(t, []string{"m=2"}, meta(t, reopened, ""))
	Put(t, reopened, "b", "3")
	require.Equal(t, []string{"", "1", "3"}, Get(t, reopened, "gone", "a", "b"))
	requireAll(t, Harness{Backing: reopened, NoScan: h.NoScan}, "a=1", "b=3")
}
