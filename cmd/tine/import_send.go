package main

import (
	"context"
	"fmt"

	"tine/api"
	"tine/mapstate"
)

// maxChunkBytes bounds the keys and values of a request, so that its JSON, in which a byte
// may take six, stays below what servers take.
const maxChunkBytes = 8 << 20

// importer sends the entries of a dump to a state.
//
// Entries go in ascending order of their txids, as they were written, so that the
// progress of the partition tells how far it came. Whatever was sent can be sent again.
type importer struct {
	client    *api.Client
	state     api.StateInfo
	partition string
	chunk     int            // keys of a request
	done      func(sent int) // tells how many entries are there
}

// send puts entries, which are sorted by txid, into the state.
func (i *importer) send(ctx context.Context, entries []dumped) error {
	for sent := 0; sent < len(entries); {
		n := i.chunkOf(entries[sent:])
		if err := i.sendChunk(ctx, entries[sent:sent+n]); err != nil {
			return err
		}
		sent += n
		i.done(sent)
	}
	return nil
}

// chunkOf returns how many entries go together.
func (i *importer) chunkOf(entries []dumped) int {
	bytes := 0
	for n, e := range entries {
		bytes += len(e.key) + len(e.curr.Text()) + len(e.prev.Text())
		if n == i.chunk || n > 0 && bytes > maxChunkBytes {
			return n
		}
	}
	return len(entries)
}

// sendChunk sends entries of ascending txids.
func (i *importer) sendChunk(ctx context.Context, entries []dumped) error {
	if i.state.Kind == "opaque" {
		if err := i.layDown(ctx, entries); err != nil {
			return err
		}
	}
	for len(entries) > 0 {
		n := 1
		for n < len(entries) && entries[n].txid == entries[0].txid {
			n++
		}
		if err := i.write(ctx, entries[0].txid, entries[:n], func(e dumped) mapstate.Value { return e.curr }); err != nil {
			return err
		}
		entries = entries[n:]
	}
	return nil
}

// layDown makes the previous values of numbered entries the current ones, or removes what
// is there where there was none. The batch that follows then makes them the previous ones.
// It is un-numbered, so it may be done again after that batch.
func (i *importer) layDown(ctx context.Context, entries []dumped) error {
	numbered := entries
	for len(numbered) > 0 && numbered[0].txid == mapstate.NoTxID {
		numbered = numbered[1:]
	}
	return i.write(ctx, mapstate.NoTxID, numbered, func(e dumped) mapstate.Value { return e.prev })
}

// write stores one value of each entry under txid x, or removes the key where it has none.
func (i *importer) write(ctx context.Context, x mapstate.TxID, entries []dumped, valueOf func(dumped) mapstate.Value) error {
	var put, remove []mapstate.Key
	var values []mapstate.Value
	for _, e := range entries {
		if v := valueOf(e); v.IsNone() {
			remove = append(remove, e.key)
		} else {
			put, values = append(put, e.key), append(values, v)
		}
	}
	env := mapstate.Envelope{TxID: x, Partition: i.partition}
	if len(put) > 0 {
		if _, err := i.client.MultiPut(ctx, i.state.Name, env, put, values); err != nil {
			return fmt.Errorf("put under txid %d: %w", x, err)
		}
	}
	if len(remove) > 0 {
		if _, err := i.client.MultiRemove(ctx, i.state.Name, env, remove); err != nil {
			return fmt.Errorf("remove under txid %d: %w", x, err)
		}
	}
	return nil
}
