package oracle

import (
	"slices"

	"tine/mapstate"
)

// share is what one partition did to a key under one txid. A replay of the
// partition replaces its share and leaves those of the others.
type share struct {
	by    string
	steps []step
}

// of returns the share of a partition, nil if it has none.
func (h Held) of(partition string) *share {
	for i := range h.shares {
		if h.shares[i].by == partition {
			return &h.shares[i]
		}
	}
	return nil
}

// Sharers returns the partitions that wrote the key under T, in the order in which their
// work counts: a replay keeps its partition's place.
func (h Held) Sharers() []string {
	names := make([]string, len(h.shares))
	for i, sh := range h.shares {
		names[i] = sh.by
	}
	return names
}

// before returns what the shares before a partition's leave, and whether it has one.
func (h Held) before(partition string) (v mapstate.Value, has bool, err error) {
	v = h.P
	for _, sh := range h.shares {
		if sh.by == partition {
			return v, true, nil
		}
		if v, err = sh.apply(v); err != nil {
			return v, false, err
		}
	}
	return h.V, false, nil
}

// after returns what the shares after a partition's leave where that leaves v.
func (h Held) after(partition string, v mapstate.Value) (mapstate.Value, error) {
	behind := false
	for _, sh := range h.shares {
		if behind {
			var err error
			if v, err = sh.apply(v); err != nil {
				return v, err
			}
		}
		behind = behind || sh.by == partition
	}
	return v, nil
}

func (sh share) apply(v mapstate.Value) (mapstate.Value, error) {
	for _, s := range sh.steps {
		var err error
		if v, err = s.apply(v, false); err != nil {
			return v, err
		}
	}
	return v, nil
}

// with returns h with another share of a partition, in the place of the one it has.
func (h Held) with(partition string, steps []step) Held {
	h.shares = slices.Clone(h.shares)
	for i := range h.shares {
		if h.shares[i].by == partition {
			h.shares[i].steps = steps
			return h
		}
	}
	if len(h.shares) == 1 { // what the first has left is what is there now
		h.shares[0].steps = []step{{put: h.V}}
	}
	h.shares = append(h.shares, share{by: partition, steps: steps})
	return h
}

// work is what an attempt does to one key.
type work struct {
	found  Held           // what was stored
	next   Held           // what is to be stored, its value still to be set
	v      mapstate.Value // what the next step finds
	steps  []step
	replay bool
	keep   bool // updates are skipped
	skip   bool // everything is
	shares bool // it is a numbered attempt's, and shares are kept
}

// do does a step.
func (k *work) do(s step) (err error) {
	if k.skip {
		return nil
	}
	k.v, err = s.apply(k.v, k.keep)
	k.keep = k.keep && s.update != nil
	k.steps = append(slices.Clip(k.steps), s)
	return err
}

// end returns what is to be stored when all steps are done.
func (k *work) end(partition string) (h Held, err error) {
	switch {
	case k.skip:
		return k.found, nil
	case !k.shares:
		h = k.next
		h.V = k.v
		return h, nil
	}
	h = k.next.with(partition, k.steps) // whose value is what was there
	h.V, err = h.after(partition, k.v)
	return h, err
}

// find is First, and the law of keys that several partitions touch under one txid:
// the first time, a partition builds upon what the others did; when it replays, it
// does so in the place that it had, and those after it are done again.
func (o *Map) find(env mapstate.Envelope, key mapstate.Key) (*work, error) {
	stored := o.keys[key]
	base, next, replay, keep, err := First(o.kind, stored, env.TxID)
	if err != nil {
		return nil, err
	}
	k := &work{found: stored, next: next, v: base, replay: replay, keep: keep}
	k.shares = o.kind != "nontx" && env.TxID != mapstate.NoTxID
	if !k.shares || stored.T != env.TxID {
		return k, nil
	}
	k.next = stored
	mine := stored.of(env.Partition) != nil
	switch {
	case !mine:
		k.v, k.replay, k.keep = stored.V, false, false
	case o.kind == "transactional":
		k.skip = len(stored.shares) > 1
	default:
		k.v, _, err = stored.before(env.Partition)
	}
	return k, err
}
