package mapstate

import "context"

// A removed key leaves a tombstone, a record without a value, as long as a partition
// may replay the batch that wrote it. Tombstones are listed with the keys that the
// partition's last batch touched, and go with its next batch; one that another partition
// may replay still goes into that one's list.

// sweep deletes the tombstones of the partition's last batch, now that a later
// one commits and it can no longer be replayed.
func (w *commitWriter) sweep(ctx context.Context) error {
	touches, err := loadTouches(ctx, w.m.backing, chunkPrefix(w.env.Partition))
	if err != nil {
		return err
	}
	var dead []Key
	seen := make(map[Key]bool)
	for _, t := range touches {
		if _, again := w.a.index[t.key]; t.tombstone && !again && !seen[t.key] {
			seen[t.key] = true
			dead = append(dead, t.key)
		}
	}
	return eachRecord(ctx, w.m.backing, dead, func(k Key, stored []byte) error {
		r, err := decodeStored(w.m.kind, stored)
		if err != nil || stored == nil || !r.Curr.IsNone() {
			return err // or it is gone, or was written again since
		}
		buried, err := w.bury(k, r)
		if err == nil && !buried {
			w.out.Records = append(w.out.Records, Write{Key: k})
		}
		return err
	})
}

// bury lists a tombstone under the partition that may still replay the batch that
// left it, and reports whether there is one. Who commits a later batch may not.
func (w *commitWriter) bury(k Key, r Record) (bool, error) {
	p, err := w.m.replayer(r, func(p *partition) bool { return p.Partition == w.env.Partition && w.env.TxID > r.TxID })
	if p == nil || err != nil {
		return false, err
	}
	t := touch{key: k, tombstone: true}
	if p.Partition == w.env.Partition {
		w.touched = appendTouch(w.touched, t)
		w.next.tombstones++
		return true, nil
	}
	if w.graves == nil {
		w.graves = make(map[string]*grave)
	}
	g := w.graves[p.Partition]
	if g == nil {
		g = &grave{next: *p}
		w.graves[p.Partition] = g
	}
	g.chunk = appendTouch(g.chunk, t)
	g.next.tombstones++
	return true, nil
}

// grave is what an attempt adds to the list of another partition.
type grave struct {
	next  partition // after it
	chunk []byte
}

// list adds to the lists of other partitions.
func (w *commitWriter) list() {
	for name, g := range w.graves {
		w.out.Meta = append(w.out.Meta, MetaWrite{Name: chunkName(name, g.next.chunks), Value: g.chunk})
		g.next.chunks++
		w.out.Meta = append(w.out.Meta, MetaWrite{Name: progressName(name), Value: g.next.encode()})
	}
}
