package mapstate

import "context"

// Over a backing that may tear a Commit (Options.Torn), an attempt that fails half way
// leaves some of its keys written and its partition's progress as it was. Its replay
// repairs the keys that it touches again; that it may also take back those that it
// does not, the keys are noted before the first of them is written:
//
//	"w" len partition chunk   the keys that unfinished attempts at partition.pending may have written
//
// The commit of the batch, or of a later one, drops the note.

func intentPrefix(name string) string { return metaPrefix('w', name) }

// intend notes the attempt's keys, and the partition's id if it is new: records name
// it. The note is as durable as the commit is to be.
func (w *commitWriter) intend(ctx context.Context) error {
	m := w.m
	noted := *w.last
	noted.id = w.next.id
	var meta []MetaWrite
	if noted.pending != w.env.TxID {
		kept := min(1, len(w.touched)) // chunk 0 is written anew
		meta = w.dropIntents(meta, kept)
		noted.pending, noted.intents = w.env.TxID, 0
	}
	if len(w.touched) > 0 {
		meta = append(meta, MetaWrite{Name: numbered(intentPrefix(w.env.Partition), noted.intents), Value: w.touched})
		noted.intents++
	}
	meta = append(meta, MetaWrite{Name: progressName(w.env.Partition), Value: noted.encode()})
	if err := ctx.Err(); err != nil {
		return err
	}
	durable, err := m.backing.Commit(context.WithoutCancel(ctx), Writes{Meta: meta, Sync: !m.opts.Interval})
	if err != nil {
		m.wrote(err)
		return err
	}
	m.publish(noted)
	if err := durable.Wait(); err != nil {
		m.notSynced(err)
		return err
	}
	w.last = &noted
	return nil
}

// dropIntents adds the removal of the note to meta, from a chunk on.
func (w *commitWriter) dropIntents(meta []MetaWrite, from int) []MetaWrite {
	for n := from; n < w.last.intents; n++ {
		meta = append(meta, MetaWrite{Name: numbered(intentPrefix(w.env.Partition), n)})
	}
	return meta
}

// resumes reports whether an earlier attempt at this batch may be there in part.
func (w *commitWriter) resumes() bool {
	return w.env.TxID != NoTxID && w.last.pending == w.env.TxID
}

// earlier returns the keys that earlier attempts at this batch touched, whether they
// were committed or left unfinished.
func (w *commitWriter) earlier(ctx context.Context) ([]touch, error) {
	var all []touch
	if w.env.TxID == w.last.TxID {
		var err error
		if all, err = loadTouches(ctx, w.m.backing, chunkPrefix(w.env.Partition)); err != nil {
			return nil, err
		}
	}
	if !w.resumes() {
		return all, nil
	}
	unfinished, err := loadTouches(ctx, w.m.backing, intentPrefix(w.env.Partition))
	return append(all, unfinished...), err
}

// carry lists the keys of unfinished attempts with those of this one, which is a part
// of the batch and does not take them back.
func (w *commitWriter) carry(ctx context.Context) error {
	unfinished, err := loadTouches(ctx, w.m.backing, intentPrefix(w.env.Partition))
	if err != nil {
		return err
	}
	for _, t := range unfinished {
		if _, again := w.a.index[t.key]; again {
			continue
		}
		w.touched = appendTouch(w.touched, t)
		if t.tombstone {
			w.next.tombstones++
		}
	}
	return nil
}
