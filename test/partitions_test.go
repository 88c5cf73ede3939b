package test

import (
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"tine/api"
	"tine/mapstate"
	"tine/mapstate/mapstatetest"
)

// manyPartitions is how many partitions are open at once.
func manyPartitions() int {
	if testing.Short() {
		return 5_000
	}
	return 100_000
}

// throng is a state of very many partitions, each with a key of its own.
type throng struct {
	m     *mapstate.Map
	names []string
	keys  []mapstate.Key
	one   []mapstate.ValueUpdater // adds one to one key
	last  mapstate.TxID           // of the batches that all were sent
}

func openThrong(t *testing.T, kind string, store mapstate.BackingMap, n int) *throng {
	t.Helper()
	m, err := mapstate.Open(t.Context(), kindNamed(kind), store, mapstate.Options{Interval: true})
	require.NoError(t, err)
	op, err := mapstate.LookupOp("count")
	require.NoError(t, err)
	c := &throng{m: m, one: []mapstate.ValueUpdater{&mapstate.Updater{Name: op.Name, Op: op.Op, Arg: mapstate.Int(1)}}}
	for i := range n {
		c.names = append(c.names, fmt.Sprintf("p%06d", i))
		c.keys = append(c.keys, mapstatetest.Key(i))
	}
	return c
}

// begin opens batch x of some partitions, each with one update.
func (c *throng) begin(t *testing.T, x mapstate.TxID, from, to int) {
	for i := from; i < to; i++ {
		env := mapstate.Envelope{TxID: x, Partition: c.names[i]}
		_, err := c.m.Begin(t.Context(), env)
		require.NoError(t, err)
		_, err = c.m.Update(t.Context(), env, c.keys[i:i+1], c.one)
		require.NoError(t, err)
	}
}

// commit commits batch x of some partitions.
func (c *throng) commit(t *testing.T, x mapstate.TxID, from, to int) {
	for i := from; i < to; i++ {
		res, err := c.m.Commit(t.Context(), mapstate.Envelope{TxID: x, Partition: c.names[i], Offsets: []byte("7")})
		require.NoError(t, err)
		require.Equal(t, 1, res.Applied)
	}
}

// requireListed requires that progress, and the state with it, list all partitions over HTTP.
func (c *throng) requireListed(t *testing.T) {
	t.Helper()
	srv := httptest.NewServer(api.New(only{&api.NamedState{Name: "s", Map: c.m}}, api.Options{Log: slog.New(slog.DiscardHandler)}))
	defer srv.Close()
	client := api.NewClient(srv.URL, &http.Client{Transport: srv.Client().Transport, Timeout: patience})
	progress, err := client.Progress(t.Context(), "s")
	require.NoError(t, err)
	require.Len(t, progress, len(c.names))
	info, err := client.State(t.Context(), "s")
	require.NoError(t, err)
	require.Len(t, info.Progress, len(c.names))
	for i, p := range progress {
		require.Equal(t, c.names[i], p.Partition)
		require.Equal(t, mapstate.TxID(1), p.TxID)
		require.Equal(t, "7", string(p.Offsets))
		require.Equal(t, c.names[i], info.Progress[i].Partition)
		require.Equal(t, mapstate.TxID(1), info.Progress[i].TxID)
	}
}

// heapInUse returns the bytes of what is reachable.
func heapInUse() int64 {
	runtime.GC()
	runtime.GC() // what pools keep outlives one
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

// Every partition has a batch open at the same time. A batch takes as much memory
// beside a hundred thousand others as beside none, and its commit gives most of it back.
func TestVeryManyPartitionsAreOpenAtOnce(t *testing.T) {
	n := manyPartitions()
	store := createState(t, openDatabase(t, t.TempDir(), nil))
	c := openThrong(t, "opaque", store, n)
	before := heapInUse()
	c.begin(t, 1, 0, n/2)
	half := heapInUse()
	c.begin(t, 1, n/2, n)
	all := heapInUse()
	require.Equal(t, int64(n), c.m.Stats().Open)
	require.Empty(t, c.m.Progress())

	c.commit(t, 1, 0, n)
	require.Zero(t, c.m.Stats().Open)
	after := heapInUse()
	each := func(bytes int64, of int) int64 { return bytes / int64(of) }
	t.Logf("heap per open batch: %d bytes in the first half, %d in the second; per committed partition: %d",
		each(half-before, n/2), each(all-half, n-n/2), each(after-before, n))
	require.Less(t, all-half, 2*(half-before))
	require.Less(t, each(all-before, n), int64(4<<10))
	require.Less(t, 2*(after-before), all-before)

	c.requireListed(t)
	values, err := c.m.Read(t.Context(), mapstate.Envelope{}, c.keys)
	require.NoError(t, err)
	for i, e := range values {
		require.Equal(t, mapstate.Entry{Value: mapstate.Int(1), TxID: 1}, e, "%s", c.names[i])
	}
	c.m.Close(mapstate.ErrShuttingDown)
	c = openThrong(t, "opaque", store, n)
	c.requireListed(t)
	c.m.Close(mapstate.ErrShuttingDown)
}

// Batches that are all idle are all dropped, and the next ones of their partitions are as any.
func TestIdleBatchesOfVeryManyPartitionsAreDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := manyPartitions()
		c := openThrong(t, "transactional", mapstate.NewMemory(), n)
		c.begin(t, 1, 0, n)
		time.Sleep(59 * time.Second)
		c.begin(t, 2, 0, 1) // these are not idle
		_, err := c.m.Read(t.Context(), mapstate.Envelope{TxID: 1, Partition: c.names[1]}, c.keys[:1])
		require.NoError(t, err)
		synctest.Wait()
		require.Equal(t, int64(n), c.m.Stats().Open)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		require.Equal(t, int64(2), c.m.Stats().Open)
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Zero(t, c.m.Stats().Open)

		_, err = c.m.Commit(t.Context(), mapstate.Envelope{TxID: 1, Partition: c.names[2]})
		require.ErrorIs(t, err, mapstate.ErrNoOpenBatch)
		require.Empty(t, c.m.Progress())
		c.begin(t, 3, 0, n)
		c.commit(t, 3, 0, n)
		require.Len(t, c.m.Progress(), n)
		c.m.Close(mapstate.ErrShuttingDown)
	})
}

// A commit does not look at all partitions of its state: it costs no more than a few
// times as much beside very many as beside few. The best of several rounds is
// compared, each of which takes both in turn.
func TestCommitsAreAsFastBesideVeryManyPartitions(t *testing.T) {
	for _, kind := range kindNames {
		t.Run(kind, func(t *testing.T) {
			few, many := seatedThrong(t, kind, 10), seatedThrong(t, kind, manyPartitions())
			const rounds, most = 7, 50 // more where the machine is busy with something else
			for name, batch := range map[string]func(*throng, mapstate.TxID){
				"update": func(c *throng, x mapstate.TxID) { c.begin(t, x, 0, 10); c.commit(t, x, 0, 10) },
				"remove": func(c *throng, x mapstate.TxID) { c.remove(t, x, 0) },
				"whole replay": func(c *throng, x mapstate.TxID) {
					c.remove(t, x, 0)
					c.remove(t, x, 1)
				},
				"un-numbered remove": func(c *throng, x mapstate.TxID) { c.remove(t, mapstate.NoTxID, 0) },
			} {
				best := map[*throng]time.Duration{few: math.MaxInt64, many: math.MaxInt64}
				for n := 0; n < rounds || n < most && best[many] >= 10*best[few]; n++ {
					for _, c := range []*throng{few, many} {
						c.last++
						start := time.Now()
						batch(c, c.last)
						best[c] = min(best[c], time.Since(start))
					}
				}
				t.Logf("%s: %v beside few, %v beside %d", name, best[few], best[many], len(many.names))
				require.Less(t, best[many], 10*best[few], name)
			}
		})
	}
}

// seatedThrong returns a throng of which each partition has committed batch 1.
func seatedThrong(t *testing.T, kind string, n int) *throng {
	c := openThrong(t, kind, createState(t, openDatabase(t, t.TempDir(), nil)), n)
	t.Cleanup(func() { c.m.Close(mapstate.ErrShuttingDown) })
	c.begin(t, 1, 0, n)
	c.commit(t, 1, 0, n)
	c.last = 1
	return c
}

// remove removes a key of each of the first partitions, shifted by so many, as a whole batch.
func (c *throng) remove(t *testing.T, x mapstate.TxID, shift int) {
	for i := range 10 {
		k := (i + shift) % 10
		_, err := c.m.Remove(t.Context(), mapstate.Envelope{TxID: x, Partition: c.names[i], Whole: true}, c.keys[k:k+1])
		require.NoError(t, err)
	}
}
