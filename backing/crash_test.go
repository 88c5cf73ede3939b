package backing

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"tine/backing/backingtest"
	"tine/mapstate"
	"tine/mapstate/mapstatetest"
)

// crash is what a crash of the machine leaves of a disk.
type crash struct {
	disk  *backingtest.Disk
	acked int64 // the last commit whose Wait had returned
}

func TestACrashAtAnyWriteLeavesEachCommitWholeOrAbsent(t *testing.T) {
	const commits, keys = 60, 50
	disk, rnd := backingtest.NewDisk(), rand.New(rand.NewPCG(1, 2))
	var acked atomic.Int64
	var mu sync.Mutex
	var found []crash
	disk.OnWrite(func(w backingtest.Write) (instead, after error) {
		mu.Lock()
		defer mu.Unlock()
		if w.N%2 == 0 {
			acked := acked.Load() // before the copy, which may hold more
			found = append(found, crash{acked: acked, disk: disk.Crash(50, rnd)})
		}
		return nil, nil
	})
	opts := quiet(disk)
	opts.MemTableBytes = minMemTableBytes // so that there are flushes and compactions
	d := open(t, "data", opts)
	p, err := d.Create("s", nil)
	require.NoError(t, err)
	for n := int64(1); n <= commits; n++ {
		// Of some blocks each, so that a crash may tear the two apart.
		w := mapstate.Writes{Sync: n%3 != 0, Meta: []mapstate.MetaWrite{{Name: "n", Value: fmt.Appendf(nil, "%d %08000d", n, 0)}}}
		for i := range keys {
			w.Records = append(w.Records, mapstate.Write{Key: mapstate.Key(fmt.Sprint(i)), Record: fmt.Appendf(nil, "%d%0*d", n, 100, 0)})
		}
		mapstatetest.Commit(t, p, w)
		if w.Sync {
			acked.Store(n)
		}
	}
	require.Positive(t, d.Metrics().Flushes, "the crashes meet flushes as well")
	require.NoError(t, d.Close())
	require.NotEmpty(t, found)
	opened := 0
	for _, crash := range found {
		if n, ok := commitAfter(t, crash, keys); ok {
			opened++
			require.GreaterOrEqual(t, n, crash.acked)
		}
	}
	require.Greater(t, opened, len(found)/2)
}

// commitAfter returns the number of the commit that all keys and the meta entry
// hold after a crash, not ok where the crash was before the state was created.
func commitAfter(t *testing.T, c crash, keys int) (n int64, ok bool) {
	t.Helper()
	d, err := Open("data", quiet(c.disk))
	require.NoError(t, err)
	defer func() { require.NoError(t, d.Close()) }()
	p, err := d.State("s")
	if c.acked == 0 && err != nil {
		require.ErrorIs(t, err, mapstate.ErrUnknownState)
		return 0, false
	}
	require.NoError(t, err)
	meta, err := p.Meta(t.Context(), "n")
	require.NoError(t, err)
	if len(meta) > 0 {
		_, err = fmt.Sscan(string(meta[0].Value), &n)
		require.NoError(t, err)
	}
	found := 0
	want := fmt.Sprintf("%d%0*d", n, 100, 0)
	require.NoError(t, p.Scan(t.Context(), mapstate.Range{}, func(k mapstate.Key, record []byte) error {
		found++
		require.Equal(t, want, string(record), "key %q beside commit %d", k, n)
		return nil
	}))
	if n > 0 {
		require.Equal(t, keys, found)
	}
	return n, true
}
