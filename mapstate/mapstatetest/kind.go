package mapstatetest

import (
	"bytes"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"tine/mapstate"
	"tine/verify/oracle"
)

// TestKind checks that a kind keeps its records and follows the table of the
// three kinds.
func TestKind(t *testing.T, kind mapstate.Kind) {
	records := recordsOf(kind)
	t.Run("NameIsAKindOfTheTable", func(t *testing.T) {
		require.Contains(t, []string{"nontx", "transactional", "opaque"}, kind.Name())
	})
	t.Run("RecordsRoundTrip", func(t *testing.T) { testRoundTrip(t, kind, records) })
	t.Run("DamagedRecordsAreCorrupt", func(t *testing.T) { testDamage(t, kind, records) })
	t.Run("ResolveFollowsTheTable", func(t *testing.T) { testResolve(t, kind, records) })
	t.Run("ViewFollowsTheTable", func(t *testing.T) { testView(t, kind, records) })
	if kind.Replays() != mapstate.ReplayApplies {
		t.Run("AnAttemptRepeatedChangesNothing", func(t *testing.T) { testRepeat(t, kind, records) })
	}
}

const maxTxID = mapstate.TxID(math.MaxInt64)

// recordsOf returns every shape of record that a kind can hold, without the
// members that it does not.
func recordsOf(kind mapstate.Kind) []mapstate.Record {
	values := []mapstate.Value{
		{}, mapstate.Null, Val(true), Val(math.MinInt64), Val(-0.5), Val(""), Val("é\x00\""),
		JSON(`[1,[2.0,null]]`), JSON(`{"a":{"b":9223372036854775807}}`),
	}
	var records []mapstate.Record
	seen := map[mapstate.Record]bool{}
	for _, x := range []mapstate.TxID{mapstate.NoTxID, 1, 5, maxTxID} {
		for _, curr := range values {
			for _, prev := range values {
				r := kept(kind, mapstate.Record{TxID: x, Curr: curr, Prev: prev})
				if r.TxID == mapstate.NoTxID {
					r.Prev = mapstate.Value{} // there was no batch to be before of
				}
				if isTombstone := r.Curr.IsNone(); isTombstone && r.TxID == mapstate.NoTxID || seen[r] {
					continue
				}
				seen[r] = true
				records = append(records, r)
			}
		}
	}
	return records
}

// kept returns r without the members that a kind does not keep.
func kept(kind mapstate.Kind, r mapstate.Record) mapstate.Record {
	switch kind.Name() {
	case "nontx":
		return mapstate.Record{Curr: r.Curr}
	case "transactional":
		return mapstate.Record{TxID: r.TxID, Curr: r.Curr}
	}
	return r
}

func testRoundTrip(t *testing.T, kind mapstate.Kind, records []mapstate.Record) {
	version := kind.AppendRecord(nil, records[0])[0]
	for _, r := range records {
		b := kind.AppendRecord([]byte("before"), r)
		require.True(t, bytes.HasPrefix(b, []byte("before")), "AppendRecord appends")
		b = b[len("before"):]
		require.Equal(t, version, b[0], "a record begins with its version")
		got, err := kind.DecodeRecord(b)
		require.NoError(t, err, show(r))
		require.Equal(t, r, got)
		clear(b)
		require.Equal(t, r, got, "DecodeRecord keeps the bytes")
	}
}

func testDamage(t *testing.T, kind mapstate.Kind, records []mapstate.Record) {
	for _, r := range records {
		b := kind.AppendRecord(nil, r)
		for n := range b {
			_, err := kind.DecodeRecord(b[:n])
			require.ErrorIs(t, err, mapstate.ErrCorrupt, "%d of the %d bytes of %s", n, len(b), show(r))
		}
		_, err := kind.DecodeRecord(append(bytes.Clone(b), 0))
		require.ErrorIs(t, err, mapstate.ErrCorrupt, "%s and a byte more", show(r))
		for _, version := range []byte{0, b[0] + 1, 0xFF} {
			_, err = kind.DecodeRecord(append([]byte{version}, b[1:]...))
			require.ErrorIs(t, err, mapstate.ErrCorrupt, "version %d", version)
		}
		for i := range b {
			for _, flip := range []byte{0x01, 0x02, 0x04, 0x80, 0xFF} {
				damaged := bytes.Clone(b)
				damaged[i] ^= flip
				got, err := kind.DecodeRecord(damaged)
				if err != nil {
					require.ErrorIs(t, err, mapstate.ErrCorrupt)
					continue
				}
				require.GreaterOrEqual(t, got.TxID, mapstate.NoTxID, "% x", damaged)
			}
		}
	}
}

// txidsAround returns no txid, and one below, at and above that of a record.
func txidsAround(r mapstate.Record) []mapstate.TxID {
	around := []mapstate.TxID{mapstate.NoTxID}
	for _, x := range []mapstate.TxID{r.TxID - 1, r.TxID, r.TxID + 1, 1, maxTxID} {
		if x > 0 {
			around = append(around, x)
		}
	}
	return around
}

// withAbsent adds the zero Record, of a key that is not stored.
func withAbsent(records []mapstate.Record) []mapstate.Record {
	return append([]mapstate.Record{{}}, records...)
}

func testResolve(t *testing.T, kind mapstate.Kind, records []mapstate.Record) {
	for _, r := range withAbsent(records) {
		for _, x := range txidsAround(r) {
			name := fmt.Sprintf("%s under %d", show(r), x)
			got, err := kind.Resolve(r, x)
			base, next, replay, keep, wantErr := oracle.First(kind.Name(), oracle.Held{V: r.Curr, P: r.Prev, T: r.TxID}, x)
			if wantErr != nil {
				requireStale(t, err, r.TxID, x)
				continue
			}
			require.NoError(t, err, name)
			require.Equal(t, base, got.Base, name)
			require.Equal(t, replay, got.Replay, name)
			require.Equal(t, keep, got.Keep, name)
			got.Next.Curr = Val("new")
			require.Equal(t, mapstate.Record{TxID: next.T, Curr: Val("new"), Prev: next.P}, kept(kind, got.Next), name)
		}
	}
}

func testView(t *testing.T, kind mapstate.Kind, records []mapstate.Record) {
	for _, r := range withAbsent(records) {
		for _, x := range txidsAround(r) {
			name := fmt.Sprintf("%s under %d", show(r), x)
			got, err := kind.View(r, x)
			want, wantErr := oracle.Seen(kind.Name(), oracle.Held{V: r.Curr, P: r.Prev, T: r.TxID}, x)
			if wantErr != nil {
				requireStale(t, err, r.TxID, x)
				continue
			}
			require.NoError(t, err, name)
			require.Equal(t, want, got, name)
		}
	}
}

// testRepeat holds the law of the numbered kinds: to apply an update at x to what
// it left at x leaves the same record, through the codec too.
func testRepeat(t *testing.T, kind mapstate.Kind, records []mapstate.Record) {
	update := func(r mapstate.Record, x mapstate.TxID) mapstate.Record {
		found, err := kind.Resolve(r, x)
		require.NoError(t, err)
		if found.Keep {
			return r
		}
		found.Next.Curr = mapstate.String(found.Base.String() + "+")
		stored, err := kind.DecodeRecord(kind.AppendRecord(nil, found.Next))
		require.NoError(t, err)
		return stored
	}
	for _, r := range withAbsent(records) {
		if r.TxID == maxTxID {
			continue
		}
		x := r.TxID + 1
		once := update(r, x)
		require.Equal(t, mapstate.String(r.Curr.String()+"+"), once.Curr)
		require.Equal(t, once, update(once, x))
	}
}

func requireStale(t *testing.T, err error, stored, got mapstate.TxID) {
	t.Helper()
	require.ErrorIs(t, err, mapstate.ErrStaleTx)
	var stale *mapstate.StaleTxError
	require.ErrorAs(t, err, &stale)
	require.Equal(t, stored, stale.Stored)
	require.Equal(t, got, stale.Got)
}

func show(r mapstate.Record) string {
	value := func(v mapstate.Value) string {
		if v.IsNone() {
			return "nothing"
		}
		return v.String()
	}
	return fmt.Sprintf("%s, prev %s, @%d", value(r.Curr), value(r.Prev), r.TxID)
}

// FuzzRecord feeds damaged records to a kind's codec: what it takes must encode to
// something that means the same, what it does not take is corrupt.
func FuzzRecord(f *testing.F, kind mapstate.Kind) {
	for i, r := range recordsOf(kind) {
		if i%7 == 0 { // a seed of each shape is enough
			f.Add(kind.AppendRecord(nil, r))
		}
	}
	f.Fuzz(func(t *testing.T, stored []byte) {
		r, err := kind.DecodeRecord(stored)
		if err != nil {
			require.ErrorIs(t, err, mapstate.ErrCorrupt)
			return
		}
		again, err := kind.DecodeRecord(kind.AppendRecord(nil, r))
		require.NoError(t, err)
		require.Equal(t, r, again)
		require.GreaterOrEqual(t, r.TxID, mapstate.NoTxID)
	})
}
