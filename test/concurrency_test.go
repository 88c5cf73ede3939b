package test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"tine/api"
	"tine/mapstate"
	"tine/mapstate/mapstatetest"
)

// crowd is how many clients write at once.
const crowd = 32

// counters returns n keys.
func counters(n int) []mapstate.Key {
	keys := make([]mapstate.Key, n)
	for i := range keys {
		keys[i] = mapstatetest.Key("counter", i)
	}
	return keys
}

// startOpaque starts a server with one opaque state s.
func startOpaque(t *testing.T, durability string) *api.Client {
	t.Helper()
	p := startProcess(t, testConfig(t.TempDir()))
	client := api.NewClient(p.url, p.http)
	spec := api.StateSpec{Kind: "opaque", Durability: durability, Cache: &api.CacheSpec{Entries: 3}}
	_, _, err := client.CreateState(t.Context(), "s", spec)
	require.NoError(t, err)
	return client
}

// increment returns a request that adds one to each key.
func increment(env mapstate.Envelope, keys []mapstate.Key) api.Request {
	return api.Request{Envelope: env, Keys: keys, Updater: api.Op{Name: "count"}, NoValues: true}
}

// requireTotals requires that each key holds total.
func requireTotals(t *testing.T, client *api.Client, keys []mapstate.Key, total int) {
	t.Helper()
	values, err := client.MultiGet(t.Context(), "s", mapstate.Envelope{}, keys)
	require.NoError(t, err)
	for i, v := range values {
		require.Equal(t, mapstate.Int(int64(total)), v, "%s", keys[i])
	}
}

// inCrowd runs write for each client at once.
func inCrowd(t *testing.T, write func(ctx context.Context, n int) error) {
	t.Helper()
	clients, ctx := errgroup.WithContext(t.Context())
	for n := range crowd {
		clients.Go(func() error { return write(ctx, n) })
	}
	require.NoError(t, clients.Wait())
}

func TestConcurrentUnnumberedSumsAreExact(t *testing.T) {
	client, keys := startOpaque(t, "interval"), counters(8)
	const requests = 20
	inCrowd(t, func(ctx context.Context, n int) error {
		for i := range requests {
			// Each client begins with another key.
			from := (n + i) % len(keys)
			request := increment(mapstate.Envelope{}, append(keys[from:len(keys):len(keys)], keys[:from]...))
			if _, err := client.MultiUpdate(ctx, "s", request); err != nil {
				return err
			}
		}
		return nil
	})
	requireTotals(t, client, keys, crowd*requests)
}

// Each client is a partition that sends numbered batches to keys of its own, one
// in three twice with other tuples, and un-numbered ones to keys of all.
func TestConcurrentPartitionsLoseNothing(t *testing.T) {
	client, shared := startOpaque(t, "sync"), counters(4)
	const batches = 6
	inCrowd(t, func(ctx context.Context, n int) error {
		own := []mapstate.Key{mapstatetest.Key("own", n), mapstatetest.Key("own", n, "again")}
		for x := 1; x <= batches; x++ {
			env := mapstate.Envelope{TxID: mapstate.TxID(x), Partition: fmt.Sprint("p", n)}
			if (n+x)%3 == 0 {
				// The first attempt counts double, and is replaced by the second.
				if _, err := client.MultiUpdate(ctx, "s", increment(env, append(own[:2:2], own...))); err != nil {
					return err
				}
			}
			if _, err := client.MultiUpdate(ctx, "s", increment(env, own)); err != nil {
				return err
			}
			unnumbered := mapstate.Envelope{Partition: env.Partition}
			if _, err := client.MultiUpdate(ctx, "s", increment(unnumbered, shared)); err != nil {
				return err
			}
		}
		return nil
	})
	requireTotals(t, client, shared, crowd*batches)
	for n := range crowd {
		requireTotals(t, client, []mapstate.Key{mapstatetest.Key("own", n), mapstatetest.Key("own", n, "again")}, batches)
	}
	progress, err := client.Progress(t.Context(), "s")
	require.NoError(t, err)
	require.Len(t, progress, crowd)
	for _, p := range progress {
		require.Equal(t, mapstate.TxID(batches), p.TxID)
	}
}

// Open batches of all partitions, begun before any is committed, on the same keys
// and under one txid: each commit builds on those before it.
func TestConcurrentOpenBatchesBuildOnEachOther(t *testing.T) {
	client, keys := startOpaque(t, "interval"), counters(8)
	const batches = 3
	for x := 1; x <= batches; x++ {
		var begun sync.WaitGroup
		begun.Add(crowd)
		inCrowd(t, func(ctx context.Context, n int) error {
			env := mapstate.Envelope{TxID: mapstate.TxID(x), Partition: fmt.Sprint("p", n)}
			err := stage(ctx, client, env, keys)
			begun.Done()
			begun.Wait()
			if err != nil {
				return err
			}
			_, err = client.Commit(ctx, "s", env)
			return err
		})
		requireTotals(t, client, keys, crowd*x)
	}
}

// stage opens a batch and adds one to each key in it.
func stage(ctx context.Context, client *api.Client, env mapstate.Envelope, keys []mapstate.Key) error {
	if _, err := client.BeginCommit(ctx, "s", env); err != nil {
		return err
	}
	_, err := client.MultiUpdate(ctx, "s", increment(env, keys))
	return err
}

// Writers that are behind name one key that is ahead of them among fresh ones.
func TestConcurrentStaleWritersChangeNothing(t *testing.T) {
	client, keys := startOpaque(t, "interval"), counters(4)
	ahead := mapstate.Envelope{TxID: 100, Partition: "ahead"}
	_, err := client.MultiUpdate(t.Context(), "s", increment(ahead, keys))
	require.NoError(t, err)
	inCrowd(t, func(ctx context.Context, n int) error {
		fresh := mapstatetest.Key("fresh", n)
		for x := 1; x <= 5; x++ {
			env := mapstate.Envelope{TxID: mapstate.TxID(x), Partition: fmt.Sprint("p", n)}
			_, err := client.MultiUpdate(ctx, "s", increment(env, []mapstate.Key{fresh, keys[n%len(keys)]}))
			if problem := reason(err); problem != fmt.Sprintf("stale txid for %s at 1", keys[n%len(keys)]) {
				return fmt.Errorf("partition p%d, txid %d: %s", n, x, problem)
			}
		}
		return nil
	})
	requireTotals(t, client, keys, 1)
	for n := range crowd {
		entries, err := client.Read(t.Context(), "s", mapstate.Envelope{}, []mapstate.Key{mapstatetest.Key("fresh", n)})
		require.NoError(t, err)
		require.Equal(t, []mapstate.Entry{{}}, entries)
	}
	progress, err := client.Progress(t.Context(), "s")
	require.NoError(t, err)
	require.Len(t, progress, 1, "a refused batch leaves no progress")
}
