package backing

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"

	"tine/mapstate"
	"tine/mapstate/mapstatetest"
)

// crashes is a file system that is copied, as a crash of the machine would leave
// it, before every k-th write: half of what is not synced is lost.
type crashes struct {
	mem   *vfs.MemFS
	acked atomic.Int64 // the last commit whose Wait has returned

	mu     sync.Mutex
	rnd    *rand.Rand
	writes int
	found  []crash
}

type crash struct {
	fs    *vfs.MemFS
	acked int64
}

func (c *crashes) wrap(every int) vfs.FS {
	return errorfs.Wrap(reuseFS{c.mem, &c.mu}, errorfs.InjectorFunc(func(op errorfs.Op) error {
		c.mu.Lock()
		defer c.mu.Unlock()
		if op.Kind.ReadOrWrite() != errorfs.OpIsWrite {
			return nil
		}
		if c.writes++; c.writes%every == 0 {
			acked := c.acked.Load() // before the copy, which may hold more
			c.found = append(c.found, crash{acked: acked, fs: c.mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 50, RNG: c.rnd})})
		}
		return nil
	}))
}

// reuseFS keeps copies away while a file is reused: MemFS takes its lock for copies
// twice then, and a copy that waits in between would stop both.
type reuseFS struct {
	*vfs.MemFS
	mu *sync.Mutex
}

// ReuseForWrite implements vfs.FS.
func (r reuseFS) ReuseForWrite(from, to string, category vfs.DiskWriteCategory) (vfs.File, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.MemFS.ReuseForWrite(from, to, category)
}

func TestACrashAtAnyWriteLeavesEachCommitWholeOrAbsent(t *testing.T) {
	const commits, keys = 60, 50
	c := &crashes{mem: vfs.NewCrashableMem(), rnd: rand.New(rand.NewPCG(1, 2))}
	opts := quiet(c.wrap(2))
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
			c.acked.Store(n)
		}
	}
	require.Positive(t, d.Metrics().Flushes, "the crashes meet flushes as well")
	require.NoError(t, d.Close())
	require.NotEmpty(t, c.found)
	opened := 0
	for _, crash := range c.found {
		if n, ok := commitAfter(t, crash, keys); ok {
			opened++
			require.GreaterOrEqual(t, n, crash.acked)
		}
	}
	require.Greater(t, opened, len(c.found)/2)
}

// commitAfter returns the number of the commit that all keys and the meta entry
// hold after a crash, not ok where the crash was before the state was created.
func commitAfter(t *testing.T, c crash, keys int) (n int64, ok bool) {
	t.Helper()
	d, err := Open("data", quiet(c.fs))
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
