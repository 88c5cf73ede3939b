package test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"tine/api"
	"tine/mapstate"
	"tine/mapstate/mapstatetest"
)

// races is how often a race is run; each run is a batch of its own.
const races = 30

// atOnce runs all functions at once and waits for them.
func atOnce(t *testing.T, all ...func(ctx context.Context) error) {
	t.Helper()
	start := make(chan struct{})
	var g errgroup.Group
	for _, f := range all {
		g.Go(func() error {
			<-start
			return f(t.Context())
		})
	}
	close(start)
	require.NoError(t, g.Wait())
}

// addTo adds n to one key.
func addTo(ctx context.Context, client *api.Client, env mapstate.Envelope, key mapstate.Key, n int64) error {
	request := api.Request{Envelope: env, Keys: []mapstate.Key{key}, Updater: api.Op{Name: "sum", Arg: mapstate.Int(n)}, NoValues: true}
	_, err := client.MultiUpdate(ctx, "s", request)
	return err
}

// batchOf opens a batch, adds the amounts to one key, each in a request of its own,
// and commits it.
func batchOf(ctx context.Context, client *api.Client, env mapstate.Envelope, key mapstate.Key, amounts ...int64) error {
	if _, err := client.BeginCommit(ctx, "s", env); err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	return finish(ctx, client, env, key, amounts...)
}

// finish does the same in a batch that is open.
func finish(ctx context.Context, client *api.Client, env mapstate.Envelope, key mapstate.Key, amounts ...int64) error {
	for _, n := range amounts {
		if err := addTo(ctx, client, env, key, n); err != nil {
			return fmt.Errorf("update: %w", err)
		}
	}
	if _, err := client.Commit(ctx, "s", env); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	return nil
}

// unless returns an error that is none of those which may be.
func unless(err error, mayBe ...error) error {
	for _, target := range mayBe {
		if errors.Is(err, target) {
			return nil
		}
	}
	return err
}

// A writer is replaced between its begin and its commit, and goes on. Whoever comes
// first, the batch ends as its successor's, whole and without the zombie's work. On an
// opaque state the two may differ in what they send.
func TestAZombieAddsNothingToTheBatchOfItsSuccessor(t *testing.T) {
	client, key := startOpaque(t, "interval"), mapstatetest.Key("total")
	for x := mapstate.TxID(1); x <= races; x++ {
		zombie := mapstate.Envelope{TxID: x, Epoch: 2 * int64(x)}
		successor := mapstate.Envelope{TxID: x, Epoch: zombie.Epoch + 1}
		_, err := client.BeginCommit(t.Context(), "s", zombie)
		require.NoError(t, err)
		require.NoError(t, addTo(t.Context(), client, zombie, key, 1000))
		atOnce(t, func(ctx context.Context) error {
			refused := unless(addTo(ctx, client, zombie, key, 1000), mapstate.ErrFenced, mapstate.ErrNoOpenBatch)
			_, err := client.Commit(ctx, "s", zombie) // also where the update was refused
			return errors.Join(refused, unless(err, mapstate.ErrFenced, mapstate.ErrNoOpenBatch))
		}, func(ctx context.Context) error {
			return batchOf(ctx, client, successor, key, 1, 1)
		})
		requireTotals(t, client, []mapstate.Key{key}, 2*int(x))

		_, err = client.BeginCommit(t.Context(), "s", zombie)
		require.ErrorIs(t, err, mapstate.ErrFenced)
		require.ErrorIs(t, addTo(t.Context(), client, zombie, key, 1000), mapstate.ErrFenced)
		later := mapstate.Envelope{TxID: x + 1, Epoch: zombie.Epoch, Whole: true}
		require.ErrorIs(t, addTo(t.Context(), client, later, key, 1000), mapstate.ErrFenced)
		requireTotals(t, client, []mapstate.Key{key}, 2*int(x))
	}
}

// The answer to a commit is late, and it is sent again: one of them applies, all succeed.
func TestACommitThatIsSentTwiceAtOnceAppliesOnce(t *testing.T) {
	for _, durability := range []string{"sync", "interval"} {
		client, key := startOpaque(t, durability), mapstatetest.Key("total")
		for x := mapstate.TxID(1); x <= races; x++ {
			env := mapstate.Envelope{TxID: x}
			require.NoError(t, stage(t.Context(), client, env, []mapstate.Key{key}))
			var results [3]mapstate.Result
			commits := make([]func(context.Context) error, len(results))
			for i := range commits {
				commits[i] = func(ctx context.Context) (err error) {
					results[i], err = client.Commit(ctx, "s", env)
					return err
				}
			}
			atOnce(t, commits...)
			applied, already := 0, 0
			for _, r := range results {
				applied += r.Applied
				if r.AlreadyCommitted {
					already++
				}
			}
			require.Equal(t, 1, applied, "%v", results)
			require.Equal(t, len(results)-1, already, "%v", results)
			requireTotals(t, client, []mapstate.Key{key}, int(x))
		}
	}
}

// A writer begins its next batch while the one before is still open and on its way to a
// commit. The earlier one is there whole, if its commit was answered, or not at all.
func TestABeginEndsTheOpenBatchBeforeIt(t *testing.T) {
	client, key := startOpaque(t, "interval"), mapstatetest.Key("total")
	committed := 0
	for x := mapstate.TxID(1); x <= 2*races; x += 2 {
		earlier, later := mapstate.Envelope{TxID: x}, mapstate.Envelope{TxID: x + 1}
		require.NoError(t, stage(t.Context(), client, earlier, []mapstate.Key{key}))
		atOnce(t, func(ctx context.Context) error {
			err := finish(ctx, client, earlier, key, 1)
			if err == nil {
				committed += 2
			}
			return unless(err, mapstate.ErrNoOpenBatch, mapstate.ErrStaleTx)
		}, func(ctx context.Context) error {
			return batchOf(ctx, client, later, key, 1)
		})
		committed++
		requireTotals(t, client, []mapstate.Key{key}, committed)
		require.ErrorIs(t, addTo(t.Context(), client, earlier, key, 1), mapstate.ErrStaleTx)
	}
}

// All partitions of one txid are open at once and commit to one key in any order. Then
// each replays its part with another amount, some as one request, which replaces its own
// part and no other. The next txid builds on that.
func TestPartitionsReplayTheirOwnPartsOfAKey(t *testing.T) {
	const partitions = 8
	client, key := startOpaque(t, "interval"), mapstatetest.Key("total")
	total := int64(0)
	for x := mapstate.TxID(1); x <= 5; x++ {
		first := make([]func(context.Context) error, partitions)
		again := make([]func(context.Context) error, partitions)
		var firstAmount, amount int64
		for p := range partitions {
			env := mapstate.Envelope{TxID: x, Partition: fmt.Sprint("p", p)}
			a, b := rand.Int64N(1000), rand.Int64N(1000)
			firstAmount, amount = firstAmount+a, amount+b
			_, err := client.BeginCommit(t.Context(), "s", env)
			require.NoError(t, err)
			first[p] = func(ctx context.Context) error { return finish(ctx, client, env, key, a) }
			again[p] = func(ctx context.Context) error { return batchOf(ctx, client, env, key, b) }
			if p%2 == 0 {
				env.Whole = true
				again[p] = func(ctx context.Context) error { return addTo(ctx, client, env, key, b) }
			}
		}
		atOnce(t, first...)
		requireTotals(t, client, []mapstate.Key{key}, int(total+firstAmount))
		atOnce(t, again...)
		total += amount
		requireTotals(t, client, []mapstate.Key{key}, int(total))
	}
}
