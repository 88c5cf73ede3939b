package backing

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tine/backing/memcachedtest"
	"tine/cache"
	"tine/mapstate"
	"tine/mapstate/mapstatetest"
	"tine/opaque"
	"tine/transactional"
)

// faulty is a state over one server, and what goes wrong there.
type faulty struct {
	t     *testing.T
	fake  *memcachedtest.Fake
	state *mapstate.Map
	keys  []mapstate.Key
}

// on returns a script in which the n-th command that begins with prefix goes as act
// says; with n 0 all of them do.
func on(n int, prefix string, act memcachedtest.Action) memcachedtest.Script {
	seen := 0
	return func(line string) memcachedtest.Action {
		if strings.HasPrefix(line, prefix) {
			if seen++; seen == n || n == 0 {
				return act
			}
		}
		return memcachedtest.Action{}
	}
}

// ones adds one to each key as a batch.
func (f *faulty) ones(x mapstate.TxID) error {
	ones := make([]any, len(f.keys))
	for i := range ones {
		ones[i] = 1
	}
	env := mapstate.Envelope{TxID: x, Whole: true}
	_, err := f.state.Update(context.WithoutCancel(f.t.Context()), env, f.keys, mapstatetest.Updates("sum", ones...))
	return err
}

func (f *faulty) holds(want int64) {
	f.t.Helper()
	entries, err := f.state.Read(f.t.Context(), mapstate.Envelope{}, f.keys)
	require.NoError(f.t, err)
	for i, e := range entries {
		require.Equal(f.t, mapstate.Int(want), e.Value, "key %s", f.keys[i])
	}
}

// memcachedFaults are what a server may do, by name: the command at which it does
// it, and what the error then says. Of 5,000 keys a write has five chunks.
var memcachedFaults = map[string]struct {
	n      int
	prefix string
	action memcachedtest.Action
	keys   int
	says   string
}{
	"dies in the middle of every multi-get":     {0, "get t:=", memcachedtest.Action{CutAt: 1000}, 100, "closed the connection"},
	"answers a get with an error":               {1, "get t:=", memcachedtest.Refuse("SERVER_ERROR out of memory writing get response"), 100, "out of memory"},
	"answers a get with garbage":                {1, "get t:=", memcachedtest.Refuse("VALUE t:=key-7 0 x"), 100, "VALUE t:=key-7 0 x"},
	"answers a get with another's value":        {1, "get t:=", memcachedtest.Refuse("VALUE t:=other 0 1\r\n5\r\nEND"), 100, "t:=other"},
	"answers more than it was asked for":        {1, "get t:=", memcachedtest.Action{Say: "END\r\n", Further: true}, 100, "more than it was asked for"},
	"dies between two of five chunks of a put":  {2, "mn", memcachedtest.Action{HangUp: true}, 5000, "closed the connection"},
	"dies within a chunk":                       {1500, "ms t:=", memcachedtest.Action{HangUp: true, Ignore: true}, 5000, "closed the connection"},
	"does not store one key":                    {50, "ms t:=", memcachedtest.Refuse("NS"), 100, "NS"},
	"is out of memory for one key":              {50, "ms t:=", memcachedtest.Refuse("SERVER_ERROR out of memory storing object"), 100, "out of memory"},
	"finds one key too large":                   {50, "ms t:=", memcachedtest.Refuse("SERVER_ERROR object too large for cache"), 100, "too large"},
	"does not understand one command":           {50, "ms t:=", memcachedtest.Refuse("ERROR"), 100, "ERROR"},
	"answers with a line of garbage":            {50, "ms t:=", memcachedtest.Action{Say: "\x00\x01\r\n"}, 100, `\x00\x01`},
	"ends its answer in the middle of the line": {1, "mn", memcachedtest.Action{CutAt: 1}, 100, "closed the connection"},
}

// After each fault the batch has failed, and says so; its replay, once the server is
// well again, leaves each key counted once.
func TestMemcachedFaultsAreErrorsAndReplaysRepair(t *testing.T) {
	kinds := []mapstate.Kind{opaque.Kind{}, transactional.Kind{}}
	for name, fault := range memcachedFaults {
		for _, kind := range kinds {
			for _, cached := range []bool{false, true} {
				if cached && strings.HasPrefix(fault.prefix, "get") {
					continue // the LRU has all of them, so there is no get
				}
				t.Run(name+"/"+kind.Name()+map[bool]string{true: "/cached"}[cached], func(t *testing.T) {
					f := newFaulty(t, kind, fault.keys, cached)
					f.fake.Play(on(fault.n, fault.prefix, fault.action))
					err := f.ones(2)
					require.ErrorIs(t, err, mapstate.ErrUnavailable)
					require.ErrorContains(t, err, fault.says)
					require.ErrorContains(t, err, f.fake.Addr)
					require.EqualValues(t, 1, f.state.Progress()[0].TxID)
					f.fake.Play(nil)
					require.NoError(t, f.ones(2))
					f.holds(2)
					require.NoError(t, f.ones(3))
					f.holds(3)
				})
			}
		}
	}
}

// newFaulty opens a state over a fake server and commits batch 1.
func newFaulty(t *testing.T, kind mapstate.Kind, keys int, cached bool, change ...func(*MemcachedOptions)) *faulty {
	f := &faulty{t: t, fake: memcachedtest.NewFake(t)}
	f.keys, _ = manyWrites(keys, "")
	var store mapstate.BackingMap = newMemcached(t, mapstate.NewMemory(), []string{f.fake.Addr}, change...)
	if cached {
		store = cache.New(store, cache.Options{Entries: 1 << 20})
	}
	var err error
	f.state, err = mapstate.Open(t.Context(), kind, store, mapstate.Options{Torn: true})
	require.NoError(t, err)
	t.Cleanup(func() { f.state.Close(mapstate.ErrShuttingDown) })
	require.NoError(t, f.ones(1))
	return f
}

// A connection that ends under a read may have ended before: the read is done again.
func TestMemcachedReadsAgainWhereAConnectionHasEnded(t *testing.T) {
	f := newFaulty(t, opaque.Kind{}, 100, false)
	f.fake.Play(on(1, "get t:=", memcachedtest.Action{CutAt: 1000}))
	require.NoError(t, f.ones(2))
	f.holds(2)
}

// A read that is not answered in time is an error; its late answer is no other
// request's.
func TestMemcachedLateAnswersAreNobodys(t *testing.T) {
	f := newFaulty(t, opaque.Kind{}, 10, false, hasty)
	late := make(chan struct{})
	f.fake.Play(on(1, "get t:=", memcachedtest.Action{Wait: late}))
	err := f.ones(2)
	require.ErrorIs(t, err, mapstate.ErrUnavailable)
	require.ErrorContains(t, err, "no answer within")
	close(late)
	f.fake.Play(nil)
	f.holds(1)
	require.NoError(t, f.ones(2))
	f.holds(2)
}

// A write that is not answered in time holds the server up until it is known what has
// become of it: it could still be applied, over newer values.
func TestMemcachedAWriteInDoubtHoldsTheServerUp(t *testing.T) {
	f := newFaulty(t, opaque.Kind{}, 10, true, hasty)
	late := make(chan struct{})
	f.fake.Play(on(5, "ms t:=", memcachedtest.Action{Wait: late}))
	err := f.ones(2)
	require.ErrorIs(t, err, mapstate.ErrUnavailable)
	require.ErrorContains(t, err, "will be known when it answers")
	f.fake.Play(nil)
	for range 2 {
		err = f.ones(2)
		require.ErrorIs(t, err, mapstate.ErrUnavailable)
		require.ErrorContains(t, err, "has not answered a write")
		_, err = f.state.Read(t.Context(), mapstate.Envelope{}, f.keys)
		require.ErrorIs(t, err, mapstate.ErrUnavailable)
	}
	close(late)
	require.Eventually(t, func() bool { return f.ones(2) == nil }, time.Minute, time.Millisecond)
	f.holds(2)
}

// A server that is stopped in the middle of batches, and goes on, has taken each once.
func TestMemcachedAStoppedServerTakesEachBatchOnce(t *testing.T) {
	server := memcachedtest.Start(t)
	m := newMemcached(t, mapstate.NewMemory(), []string{server.Addr}, hasty)
	state, err := mapstate.Open(t.Context(), opaque.Kind{}, cache.New(m, cache.Options{Entries: 1 << 20}), mapstate.Options{Torn: true})
	require.NoError(t, err)
	defer state.Close(mapstate.ErrShuttingDown)
	f := &faulty{t: t, state: state}
	f.keys, _ = manyWrites(3000, "")
	for x := range mapstate.TxID(5) {
		server.Pause()
		err := f.ones(x + 1)
		require.ErrorIs(t, err, mapstate.ErrUnavailable)
		server.Continue()
		require.Eventually(t, func() bool { return f.ones(x+1) == nil }, time.Minute, time.Millisecond)
		f.holds(int64(x + 1))
	}
}

// Close does not wait for a server that never answers.
func TestMemcachedClosesWithAWriteInDoubt(t *testing.T) {
	f := newFaulty(t, opaque.Kind{}, 10, true, hasty)
	f.fake.Play(on(5, "ms t:=", memcachedtest.Action{Wait: make(chan struct{})}))
	require.ErrorIs(t, f.ones(2), mapstate.ErrUnavailable)
}

func TestMemcachedTwoServersCannotWriteUnderOnePrefix(t *testing.T) {
	server := memcachedtest.Start(t)
	ours := newMemcached(t, mapstate.NewMemory(), []string{server.Addr})
	require.NoError(t, ours.Claim(t.Context()))
	theirs := newMemcached(t, mapstate.NewMemory(), []string{server.Addr}, func(o *MemcachedOptions) { o.Owner = "another" })
	for _, err := range []error{theirs.Claim(t.Context()), commitOne(t, theirs)} {
		require.ErrorIs(t, err, mapstate.ErrUnavailable)
		for _, text := range []string{"test", "another", "t:$owner", server.Addr} {
			require.ErrorContains(t, err, text)
		}
	}
	require.NoError(t, theirs.Release(t.Context()), "the mark of another stays")
	require.NoError(t, commitOne(t, ours))
	require.NoError(t, ours.Release(t.Context()))
	require.NoError(t, commitOne(t, theirs))
	server.Restart() // it forgets the mark as well
	require.NoError(t, commitOne(t, theirs))
	require.ErrorIs(t, ours.Claim(t.Context()), mapstate.ErrUnavailable)
}

func commitOne(t *testing.T, m *Memcached) error {
	_, err := m.Commit(t.Context(), record("k", "v"))
	return err
}
