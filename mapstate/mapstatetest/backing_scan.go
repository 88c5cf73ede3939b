package mapstatetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"tine/mapstate"
)

// scan returns the records in r as key=record.
func scan(t testing.TB, b mapstate.Scanner, r mapstate.Range) []string {
	t.Helper()
	var got []string
	require.NoError(t, b.Scan(t.Context(), r, func(k mapstate.Key, record []byte) error {
		got = append(got, string(k)+"="+string(record))
		return nil
	}))
	return got
}

// requireAll checks that the records are these, as scan returns them, where the
// backing can tell.
func requireAll(t testing.TB, h Harness, want ...string) {
	t.Helper()
	if h.NoScan {
		scanIsUnsupported(t, h)
		return
	}
	require.Equal(t, want, scan(t, h.Backing, mapstate.Range{}))
}

// scanIsUnsupported is the promise of a backing that cannot scan: it says so, rather than
// leave records out.
func scanIsUnsupported(t testing.TB, h Harness) {
	t.Helper()
	err := h.Backing.Scan(t.Context(), mapstate.Range{}, func(k mapstate.Key, _ []byte) error {
		return fmt.Errorf("yield was called with %q", k)
	})
	require.ErrorIs(t, err, mapstate.ErrUnsupported)
}

// meta returns the meta entries under prefix as name=value.
func meta(t testing.TB, b mapstate.MetaReader, prefix string) []string {
	t.Helper()
	entries, err := b.Meta(t.Context(), prefix)
	require.NoError(t, err)
	var got []string
	for _, e := range entries {
		got = append(got, e.Name+"="+string(e.Value))
	}
	return got
}

// readersNeverSeeHalf has one committer write one number under many keys, while
// readers check that all keys hold one number, which never goes back.
func readersNeverSeeHalf(t *testing.T, h Harness) {
	const commits, readers, n = 150, 3, 40
	keys := make([]mapstate.Key, n)
	for i := range keys {
		keys[i] = mapstate.Key(fmt.Sprintf("key-%02d", i))
	}
	write := func(number int) {
		w := mapstate.Writes{Sync: number%10 == 0}
		for _, k := range keys {
			w.Records = append(w.Records, mapstate.Write{Key: k, Record: fmt.Appendf(nil, "%06d", number)})
		}
		d, err := h.Backing.Commit(t.Context(), w)
		require.NoError(t, err)
		require.NoError(t, d.Wait())
	}
	write(0)
	done := make(chan struct{})
	found := make(chan error, readers)
	for range readers {
		go func() { found <- readUntil(t.Context(), done, h.Backing, keys) }()
	}
	var stop sync.Once
	defer stop.Do(func() { close(done) })
	for number := 1; number <= commits; number++ {
		write(number)
	}
	stop.Do(func() { close(done) })
	for range readers {
		require.NoError(t, <-found)
	}
}

// readUntil reads keys until done, at least once, and fails on a mixed read.
func readUntil(ctx context.Context, done <-chan struct{}, b mapstate.Getter, keys []mapstate.Key) error {
	last := ""
	for {
		records, err := b.MultiGet(ctx, keys)
		if err != nil {
			return err
		}
		for i, r := range records {
			if string(r) != string(records[0]) {
				return fmt.Errorf("%s holds %s, but %s holds %s", keys[i], r, keys[0], records[0])
			}
		}
		if now := string(records[0]); now < last {
			return fmt.Errorf("read %s after %s", now, last)
		}
		last = string(records[0])
		select {
		case <-done:
			return nil
		default:
		}
	}
}

func metaOrderedByName(t *testing.T, h Harness) {
	Commit(t, h.Backing, mapstate.Writes{Meta: []mapstate.MetaWrite{
		{Name: "p/b", Value: []byte("2")},
		{Name: "", Value: []byte("0")},
		{Name: "q", Value: []byte("4")},
		{Name: "p/a", Value: []byte("1")},
		{Name: "p\xff\xff", Value: []byte("3")},
		{Name: "\xff\xff", Value: []byte("5")},
	}})
	require.Equal(t, []string{"=0", "p/a=1", "p/b=2", "p\xff\xff=3", "q=4", "\xff\xff=5"}, meta(t, h.Backing, ""))
	require.Equal(t, []string{"p/a=1", "p/b=2", "p\xff\xff=3"}, meta(t, h.Backing, "p"))
	require.Equal(t, []string{"p/b=2"}, meta(t, h.Backing, "p/b"))
	require.Equal(t, []string{"\xff\xff=5"}, meta(t, h.Backing, "\xff"))
	require.Empty(t, meta(t, h.Backing, "r"))
	Commit(t, h.Backing, mapstate.Writes{Meta: []mapstate.MetaWrite{{Name: "p/a"}, {Name: "p/b", Value: []byte("new")}, {Name: "none"}}})
	require.Equal(t, []string{"p/b=new"}, meta(t, h.Backing, "p/"))
}

func metaApartFromRecords(t *testing.T, h Harness) {
	Commit(t, h.Backing, mapstate.Writes{
		Records: []mapstate.Write{{Key: "same", Record: []byte("record")}},
		Meta:    []mapstate.MetaWrite{{Name: "same", Value: []byte("meta")}, {Name: "other", Value: []byte("meta")}},
	})
	require.Equal(t, []string{"record", ""}, Get(t, h.Backing, "same", "other"))
	requireAll(t, h, "same=record")
	require.Equal(t, []string{"other=meta", "same=meta"}, meta(t, h.Backing, ""))
	Commit(t, h.Backing, mapstate.Writes{Records: []mapstate.Write{{Key: "same"}}})
	require.Equal(t, []string{"other=meta", "same=meta"}, meta(t, h.Backing, ""))
}

func metaBelongsToCaller(t *testing.T, h Harness) {
	Commit(t, h.Backing, mapstate.Writes{Meta: []mapstate.MetaWrite{{Name: "m", Value: []byte("kept")}}})
	entries, err := h.Backing.Meta(t.Context(), "")
	require.NoError(t, err)
	require.Len(t, entries, 1)
	copy(entries[0].Value, "mine")
	require.Equal(t, []string{"m=kept"}, meta(t, h.Backing, ""))
}

func scanFollowsOrder(t *testing.T, h Harness) {
	Put(t, h.Backing, "c", "3", "a", "1", "b\xff", "2", "b", "2", "d", "4")
	for _, c := range []struct {
		r    mapstate.Range
		want []string
	}{
		{mapstate.Range{}, []string{"a=1", "b=2", "b\xff=2", "c=3", "d=4"}},
		{mapstate.Range{Start: "b"}, []string{"b=2", "b\xff=2", "c=3", "d=4"}},
		{mapstate.Range{End: "c"}, []string{"a=1", "b=2", "b\xff=2"}},
		{mapstate.Range{Start: "b", End: mapstate.PrefixEnd("b")}, []string{"b=2", "b\xff=2"}},
		{mapstate.Range{Start: "bb", End: "cc"}, []string{"b\xff=2", "c=3"}},
		{mapstate.Range{Start: "b", End: "b"}, nil},
		{mapstate.Range{Start: "d", End: "a"}, nil},
		{mapstate.Range{Start: "e"}, nil},
	} {
		require.Equal(t, c.want, scan(t, h.Backing, c.r), "%+v", c.r)
	}
}

func scanLeavesOutSnapshot(t *testing.T, h Harness) {
	Put(t, h.Backing, string(mapstate.SnapshotKey), "snapshot", "a", "1")
	require.Equal(t, []string{"a=1"}, scan(t, h.Backing, mapstate.Range{}))
	require.Equal(t, []string{"a=1"}, scan(t, h.Backing, mapstate.Range{Start: mapstate.SnapshotKey, End: "b"}))
	require.Equal(t, []string{"snapshot"}, Get(t, h.Backing, mapstate.SnapshotKey))
}

func scanIsConsistent(t *testing.T, h Harness) {
	Put(t, h.Backing, "a", "1", "b", "2", "c", "3")
	var got []string
	require.NoError(t, h.Backing.Scan(t.Context(), mapstate.Range{}, func(k mapstate.Key, record []byte) error {
		if len(got) == 0 {
			Commit(t, h.Backing, mapstate.Writes{Records: []mapstate.Write{
				{Key: "b", Record: []byte("new")}, {Key: "bb", Record: []byte("new")}, {Key: "c"},
			}})
		}
		got = append(got, string(k)+"="+string(record))
		return nil
	}))
	require.Equal(t, []string{"a=1", "b=2", "c=3"}, got)
	require.Equal(t, []string{"a=1", "b=new", "bb=new"}, scan(t, h.Backing, mapstate.Range{}))
}

func scanPassesOnError(t *testing.T, h Harness) {
	Put(t, h.Backing, "a", "1", "b", "2", "c", "3")
	calls := 0
	err := h.Backing.Scan(t.Context(), mapstate.Range{}, func(mapstate.Key, []byte) error {
		calls++
		if calls == 2 {
			return errStop
		}
		return nil
	})
	require.Equal(t, errStop, err, "as yield returned it")
	require.Equal(t, 2, calls)
}

func scanStopsWithContext(t *testing.T, h Harness) {
	const n = 3000
	var w mapstate.Writes
	for i := range n {
		w.Records = append(w.Records, mapstate.Write{Key: mapstate.Key(fmt.Sprintf("%05d", i)), Record: []byte("r")})
	}
	Commit(t, h.Backing, w)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	calls := 0
	err := h.Backing.Scan(ctx, mapstate.Range{}, func(mapstate.Key, []byte) error {
		cancel()
		calls++
		return nil
	})
	require.ErrorIs(t, err, context.Canceled)
	require.Less(t, calls, n, "long before the end")
}

// errStop is what a check's yield stops a scan with.
var errStop = errors.New("stop")
