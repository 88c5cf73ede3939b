package verify

import (
	"errors"
	"slices"
	"time"

	"tine/mapstate"
)

// batchID names an open batch.
type batchID struct {
	partition string
	txid      mapstate.TxID
}

// openBatch is what a runner knows of a batch that may be open.
type openBatch struct {
	epoch    int64
	used     time.Time
	staged   map[mapstate.Key]bool
	doubtful bool // it may not be open
	idle     bool // it may have been dropped since it was used
	// disturbed says that somebody else may have written what is staged. What the batch sees until
	// it commits is then not promised, and it is left to its commit.
	disturbed bool
}

func idOf(env mapstate.Envelope) batchID { return batchID{env.Partition, env.TxID} }

// batchOf returns the open batch that a step belongs to, nil if there is none. What a later
// writer sends does not belong to the batch of the one before.
func (r *runner) batchOf(s Step) *openBatch {
	if b := r.batches[idOf(s.Env)]; b != nil && s.Env.Epoch <= b.epoch {
		return b
	}
	return nil
}

// isOpenQuestion reports whether it is not promised what a step is answered.
func (r *runner) isOpenQuestion(s Step) bool {
	b := r.batchOf(s)
	if b == nil || s.Verb == BeginCommit || s.Verb == Commit || s.Verb == Abort {
		return false
	}
	return b.disturbed || s.Verb == MultiGet && r.isOvertaken(s, b)
}

// isOvertaken reports whether a batch may be one that can no longer be committed.
func (r *runner) isOvertaken(s Step, b *openBatch) bool {
	for _, o := range r.belief.now {
		for _, p := range o.Progress() {
			if p.Partition == s.Env.Partition && (p.TxID > s.Env.TxID || p.Epoch > b.epoch) {
				return true
			}
		}
	}
	return false
}

// track follows open batches through a step that was answered, or may have been carried out.
func (r *runner) track(s Step, got answer, known bool) {
	id, b := idOf(s.Env), r.batchOf(s)
	if b != nil {
		b.used, b.idle = time.Now(), false // for better or worse: the server's clock starts again, or the batch is gone
	}
	if known && got.err != nil {
		if b != nil && s.Verb == Commit && !errors.Is(got.err, mapstate.ErrUpdaterType) {
			b.doubtful = true // it was overtaken, or it was the writer
		}
		return
	}
	switch s.Verb {
	case MultiGet:
	case BeginCommit:
		if known {
			r.end(id.partition)
		}
		r.batches[id] = &openBatch{epoch: s.Env.Epoch, used: time.Now(), staged: map[mapstate.Key]bool{}, doubtful: !known}
	case Abort:
		if known {
			delete(r.batches, id)
		}
	case Commit:
		if b == nil {
			return
		}
		if known {
			delete(r.batches, id)
		}
		r.disturb(b, func(k mapstate.Key) bool { return b.staged[k] }, !known || got.res.Restored > 0)
	default:
		if b != nil {
			b.stage(s)
		}
		if b == nil || b.doubtful {
			r.disturb(b, func(k mapstate.Key) bool { return slices.Contains(s.Keys, k) }, s.Env.Whole && (!known || got.res.Restored > 0))
		}
	}
}

// end forgets the open batches of a partition.
func (r *runner) end(partition string) {
	for id := range r.batches {
		if id.partition == partition {
			delete(r.batches, id)
		}
	}
}

func (b *openBatch) stage(s Step) {
	for _, k := range s.Keys {
		b.staged[k] = true
	}
}

// disturb notes that keys were written beside the batches that are open, except one.
func (r *runner) disturb(except *openBatch, written func(mapstate.Key) bool, restored bool) {
	for _, b := range r.batches {
		if b == except {
			continue
		}
		for k := range b.staged {
			b.disturbed = b.disturbed || restored || written(k)
		}
	}
}
