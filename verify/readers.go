package verify

import (
	"context"
	"fmt"
	"slices"

	"tine/api"
	"tine/mapstate"
)

// readMirror reads a mirrored state until done is closed or ctx ends, beside its
// writers and through restarts, and fails with a *Difference if it sees half a batch.
// It returns how often it read.
func readMirror(ctx context.Context, s *site, state string, h History, done <-chan struct{}) (reads int64, err error) {
	keys := keyPool(true)
	for ; ; reads++ {
		select {
		case <-done:
			return reads, nil
		case <-ctx.Done():
			return reads, ctx.Err()
		default:
		}
		now := s.now()
		if now.err != nil {
			return reads, now.err
		}
		read := readAtOnce
		if reads%4 == 0 {
			read = readListing
		}
		values, err := read(ctx, now.client, state, keys)
		switch {
		case err != nil && ctx.Err() != nil:
			return reads, ctx.Err()
		case err != nil && (!isKnown(err) && s.now().life() != now.life()):
			continue // ended meanwhile
		case err != nil:
			return reads, fmt.Errorf("read state %s: %w", state, err)
		case slices.ContainsFunc(values, func(v mapstate.Value) bool { return v != values[0] }):
			return reads, &Difference{
				State: state, Spec: h.Spec, What: "a read of all keys beside their writers",
				Expected: "all alike, since every batch writes all keys alike", Got: fmt.Sprint(found(values)),
			}
		}
	}
}

func readAtOnce(ctx context.Context, client *api.Client, state string, keys []mapstate.Key) ([]mapstate.Value, error) {
	return client.MultiGet(ctx, state, mapstate.Envelope{}, keys)
}

func readListing(ctx context.Context, client *api.Client, state string, keys []mapstate.Key) ([]mapstate.Value, error) {
	values := make([]mapstate.Value, len(keys))
	err := client.Scan(ctx, state, api.Listing{}, func(k mapstate.Key, e mapstate.Entry) error {
		i := slices.Index(keys, k)
		if i < 0 {
			return fmt.Errorf("the listing has key %s, which nobody wrote", k)
		}
		values[i] = e.Value
		return nil
	})
	return values, err
}
