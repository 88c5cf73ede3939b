package verify

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"tine/api"
	"tine/mapstate"
	"tine/verify/oracle"
)

// Difference is something that the server answered or holds and must not. It is an error.
type Difference struct {
	State    string        `json:"state"`
	Spec     api.StateSpec `json:"spec"`
	Step     int           `json:"step"` // of its history, from 1
	What     string        `json:"what"`
	Expected string        `json:"expected"`
	Got      string        `json:"got"`
}

func (d *Difference) Error() string {
	return fmt.Sprintf("state %s (%s, %s), step %d: %s: expected %s, got %s",
		d.State, d.Spec.Kind, d.Spec.Durability, d.Step, d.What, d.Expected, d.Got)
}

// view is all that a server shows of a state.
type view struct {
	entries  map[mapstate.Key]mapstate.Entry // of all keys of the pool, what protects an absent one too
	scanned  map[mapstate.Key]mapstate.Entry
	progress []mapstate.Progress
}

// check compares all that is stored.
func (r *runner) check(ctx context.Context) error {
	v, err := look(ctx, r.at.client, r.state, r.pool)
	switch {
	case err != nil && ctx.Err() != nil:
		return ctx.Err()
	case err != nil && r.site.now().life() != r.at.life():
		return r.catchUp(ctx) // which checks again
	case err != nil:
		return fmt.Errorf("read state %s: %w", r.state, err)
	}
	r.figures.KeysCompared += int64(len(v.entries) + len(v.scanned))
	r.figures.RecordsCompared += int64(len(v.progress))
	d := r.belief.keep(func(o *oracle.Map) *Difference { return r.compare(o, v) })
	if d != nil {
		return d
	}
	r.belief.settle()
	return nil
}

// finish looks at what is stored in the end.
func (r *runner) finish(ctx context.Context) error {
	if err := r.catchUp(ctx); err != nil {
		return err
	}
	return r.check(ctx)
}

// look reads a state as a whole.
func look(ctx context.Context, client *api.Client, state string, pool []mapstate.Key) (v view, err error) {
	v.entries, v.scanned = map[mapstate.Key]mapstate.Entry{}, map[mapstate.Key]mapstate.Entry{}
	if v.progress, err = client.Progress(ctx, state); err != nil {
		return v, err
	}
	if v.entries[mapstate.SnapshotKey], err = client.Snapshot(ctx, state, mapstate.Envelope{}); err != nil {
		return v, err
	}
	keys := withoutSnapshot(pool)
	entries, err := client.Read(ctx, state, mapstate.Envelope{}, keys)
	if err != nil {
		return v, err
	}
	for i, k := range keys {
		v.entries[k] = entries[i]
	}
	err = client.Scan(ctx, state, api.Listing{}, func(k mapstate.Key, e mapstate.Entry) error {
		if _, again := v.scanned[k]; again {
			return fmt.Errorf("key %s is listed twice", k)
		}
		v.scanned[k] = e
		return nil
	})
	return v, err
}

// compare says where a view is not what an oracle holds.
func (r *runner) compare(o *oracle.Map, v view) *Difference {
	held := o.Held()
	for _, k := range slices.Sorted(maps.Keys(v.entries)) {
		want := mapstate.Entry{Value: held[k].V, Prev: held[k].P, TxID: held[k].T}
		if got := v.entries[k]; got != want {
			return r.difference(nameOf(k), showEntry(want), showEntry(got))
		}
	}
	for _, k := range slices.Sorted(maps.Keys(v.scanned)) {
		want := mapstate.Entry{Value: held[k].V, Prev: held[k].P, TxID: held[k].T}
		if got := v.scanned[k]; got != want {
			return r.difference("the listing of "+nameOf(k), showEntry(want), showEntry(got))
		}
	}
	for _, k := range slices.Sorted(maps.Keys(held)) {
		if _, listed := v.scanned[k]; !listed && k != mapstate.SnapshotKey && !held[k].V.IsNone() {
			return r.difference("the listing of "+nameOf(k), "it is there", "it is not")
		}
	}
	if want := o.Progress(); !slices.EqualFunc(want, v.progress, sameProgress) {
		return r.difference("the progress", showProgress(want), showProgress(v.progress))
	}
	return nil
}

// sameProgress compares what a writer resumes from.
func sameProgress(a, b mapstate.Progress) bool {
	return a.Partition == b.Partition && a.TxID == b.TxID && a.Epoch == b.Epoch && bytes.Equal(a.Offsets, b.Offsets)
}

func nameOf(k mapstate.Key) string {
	if k == mapstate.SnapshotKey {
		return "the snapshot"
	}
	const most = 60
	name := k.String()
	if len(name) > most {
		name = strings.ToValidUTF8(name[:most], "") + "…"
	}
	return "key " + name
}

func showEntry(e mapstate.Entry) string {
	return fmt.Sprintf("%s, prev %s, txid %d", show(e.Value), show(e.Prev), e.TxID)
}

func showProgress(all []mapstate.Progress) string {
	text := []byte{'['}
	for i, p := range all {
		if i > 0 {
			text = append(text, ", "...)
		}
		text = fmt.Appendf(text, "%q: txid %d, epoch %d, offsets %s", p.Partition, p.TxID, p.Epoch, p.Offsets)
	}
	return string(append(text, ']'))
}

// asDifference returns the difference that an error is, nil if it is none.
func asDifference(err error) *Difference {
	d, _ := errors.AsType[*Difference](err)
	return d
}
