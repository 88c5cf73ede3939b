package oracle

import (
	"errors"
	"maps"
	"slices"

	"tine/mapstate"
)

// Map says what a Map of one kind must hold and answer. It is written to be
// checked by eye against the table of the three kinds, not to be fast: an
// attempt is a list of operations, run from the start on a copy of the state.
// Its methods are those of mapstate.Map.
type Map struct {
	kind    string // nontx, transactional or opaque
	keys    map[mapstate.Key]Held
	writers map[string]writerState // by partition
	open    map[string]openBatch   // by partition
}

// Held is what is stored under a key: value v, previous value p, txid t of the
// table. A tombstone has no value.
type Held struct {
	V, P   mapstate.Value
	T      mapstate.TxID
	shares []share // of the partitions that wrote it under T, in the order in which they did
}

// writerState is a partition's progress.
type writerState struct {
	txid    mapstate.TxID
	epoch   int64
	offsets []byte
	whole   bool                  // the last attempt at txid was
	listed  bool                  // it has committed something that progress tells of
	touched map[mapstate.Key]bool // by all attempts at txid
	begun   mapstate.TxID         // a batch that was open and is not committed; restarts do not forget it
}

type openBatch struct {
	env mapstate.Envelope
	log []step
}

// step is one position of a request.
type step struct {
	index  int // in its request
	key    mapstate.Key
	update mapstate.ValueUpdater // nil: put or remove
	put    mapstate.Value        // no value: remove
}

// New returns the oracle of an empty state of the kind of that name.
func New(kind string) *Map {
	return &Map{
		kind:    kind,
		keys:    map[mapstate.Key]Held{},
		writers: map[string]writerState{},
		open:    map[string]openBatch{},
	}
}

// First is the table: what the first operation of an attempt at x finds under a key,
// and what is stored there with the value still to be set. replay says that the
// stored value is the work of an earlier attempt at x; keep, that updates leave it.
func First(kind string, stored Held, x mapstate.TxID) (base mapstate.Value, next Held, replay, keep bool, err error) {
	v, p, t := stored.V, stored.P, stored.T
	switch {
	case kind == "nontx":
		return v, Held{}, false, false, nil
	case x == mapstate.NoTxID: // un-numbered: t and p stay
		return v, Held{P: p, T: t, shares: stored.shares}, false, false, nil
	case t > x:
		return v, Held{}, false, false, &mapstate.StaleTxError{Stored: t, Got: x}
	case kind == "transactional":
		return v, Held{T: x}, t == x, t == x, nil
	case t == x: // opaque, replay
		return p, Held{P: p, T: x}, true, false, nil
	default: // opaque, a new batch; absent has t = 0
		return v, Held{P: v, T: x}, false, false, nil
	}
}

// Seen is what a reader under x sees of a key.
func Seen(kind string, stored Held, x mapstate.TxID) (mapstate.Value, error) {
	switch {
	case kind != "opaque" || x == mapstate.NoTxID || stored.T < x:
		return stored.V, nil
	case stored.T == x:
		return stored.P, nil
	}
	return mapstate.Value{}, &mapstate.StaleTxError{Stored: stored.T, Got: x}
}

// attempt runs all steps of an attempt on a copy of the keys.
func (o *Map) attempt(env mapstate.Envelope, log []step) (after map[mapstate.Key]Held, res mapstate.Result, err error) {
	w := o.writers[env.Partition]
	if env.Epoch < w.epoch {
		return nil, res, &mapstate.FencedError{Partition: env.Partition, Stored: w.epoch, Got: env.Epoch}
	}
	if o.kind != "nontx" && env.TxID != mapstate.NoTxID && env.TxID < w.txid {
		return nil, res, &mapstate.StaleTxError{Partition: env.Partition, Stored: w.txid, Got: env.TxID}
	}
	after = maps.Clone(o.keys)
	own := map[mapstate.Key]*work{}
	for _, s := range log {
		k := own[s.key]
		if k == nil { // the first; another finds what the one before left
			if k, err = o.find(env, s.key); err != nil {
				return nil, res, &mapstate.KeyError{Index: s.index, Key: s.key, Err: err}
			}
			own[s.key] = k
		}
		if err = k.do(s); err != nil {
			return nil, res, &mapstate.KeyError{Index: s.index, Key: s.key, Err: err}
		}
		if s.update != nil {
			res.Values = append(res.Values, k.v)
		}
		if k.replay {
			res.Replayed++
		} else {
			res.Applied++
		}
	}
	for key, k := range own {
		if after[key], err = k.end(env.Partition); err != nil {
			return nil, res, &mapstate.KeyError{Index: k.steps[0].index, Key: key, Err: err}
		}
	}
	if o.kind == "opaque" && env.Whole && env.TxID != mapstate.NoTxID && env.TxID == w.txid {
		for key := range w.touched {
			h := after[key]
			if own[key] != nil || h.T != env.TxID {
				continue
			}
			v, has, err := h.before(env.Partition)
			if err == nil && has {
				v, err = h.after(env.Partition, v)
			}
			if err != nil || !has {
				continue // what others have done needs what this one did
			}
			if v != h.V {
				res.Restored++
			}
			h = h.with(env.Partition, nil)
			h.V = v
			after[key] = h
		}
	}
	return after, res, nil
}

// apply returns the value that a step leaves where it finds base.
func (s step) apply(base mapstate.Value, keep bool) (mapstate.Value, error) {
	switch {
	case s.update == nil:
		return s.put, nil
	case keep:
		return base, nil
	}
	return s.update.Update(base)
}

// commit makes an attempt and keeps what it did. On an error it keeps nothing.
func (o *Map) commit(env mapstate.Envelope, log []step) (mapstate.Result, error) {
	after, res, err := o.attempt(env, log)
	if err != nil {
		return mapstate.Result{}, err
	}
	w := o.writers[env.Partition]
	w.listed = w.listed || env.TxID != mapstate.NoTxID || env.Offsets != nil || env.Epoch != w.epoch
	w.epoch = env.Epoch
	if x := env.TxID; x != mapstate.NoTxID {
		if x >= w.begun {
			w.begun = mapstate.NoTxID
		}
		w.touched = maps.Clone(w.touched)
		if x != w.txid || w.touched == nil {
			w.touched = map[mapstate.Key]bool{}
		}
		w.txid, w.whole = x, env.Whole
		for _, s := range log {
			w.touched[s.key] = true
		}
	}
	if env.Offsets != nil {
		w.offsets = env.Offsets
	}
	o.writers[env.Partition] = w
	// A removed key leaves a tombstone as long as a partition may replay the batch that left it.
	maps.DeleteFunc(after, func(_ mapstate.Key, h Held) bool {
		return h.V.IsNone() && !slices.ContainsFunc(h.shares, func(sh share) bool { return o.writers[sh.by].txid == h.T })
	})
	o.keys = after
	return res, nil
}

// request makes an attempt of one request, or stages it in the open batch.
func (o *Map) request(env mapstate.Envelope, steps []step) (mapstate.Result, error) {
	b, ok := o.batch(env)
	if !ok {
		if _, _, err := o.attempt(env, nil); err == nil && o.unfinished(env) {
			return mapstate.Result{}, mapstate.ErrNoOpenBatch
		}
		return o.commit(env, steps)
	}
	if env.Epoch < b.env.Epoch {
		return mapstate.Result{}, &mapstate.FencedError{Partition: env.Partition, Stored: b.env.Epoch, Got: env.Epoch}
	}
	_, before, err := o.attempt(b.env, b.log)
	if err != nil {
		return mapstate.Result{}, err
	}
	b.log = append(b.log[:len(b.log):len(b.log)], steps...)
	_, all, err := o.attempt(b.env, b.log)
	if err != nil {
		return mapstate.Result{}, err
	}
	if env.Offsets != nil {
		b.env.Offsets = env.Offsets
	}
	o.open[env.Partition] = b
	return mapstate.Result{
		Values:   append([]mapstate.Value(nil), all.Values[len(before.Values):]...),
		Applied:  all.Applied - before.Applied,
		Replayed: all.Replayed - before.Replayed,
	}, nil
}

// unfinished reports whether env, alone, would be half of a batch that was open
// and has not been committed, or would come in the middle of another batch: it
// neither says that it is the whole, nor comes from a new writer.
func (o *Map) unfinished(env mapstate.Envelope) bool {
	w := o.writers[env.Partition]
	b, open := o.open[env.Partition]
	switch {
	case env.TxID == mapstate.NoTxID || w.begun == mapstate.NoTxID || env.Whole:
		return false
	case open && env.TxID == b.env.TxID:
		return true
	case open && o.kind != "nontx" && env.Epoch <= b.env.Epoch:
		return true
	case env.Epoch > w.epoch:
		return false
	}
	return env.TxID == w.begun || env.TxID < w.begun && o.kind != "nontx"
}

// batch returns the open batch that env belongs to.
func (o *Map) batch(env mapstate.Envelope) (openBatch, bool) {
	b, ok := o.open[env.Partition]
	return b, ok && env.TxID != mapstate.NoTxID && b.env.TxID == env.TxID && b.env.Epoch >= env.Epoch
}

// Update applies updaters[i] to keys[i].
func (o *Map) Update(env mapstate.Envelope, keys []mapstate.Key, updaters []mapstate.ValueUpdater) (mapstate.Result, error) {
	steps := make([]step, len(keys))
	for i, k := range keys {
		steps[i] = step{index: i, key: k, update: updaters[i]}
	}
	return o.request(env, steps)
}

// Put stores values[i] under keys[i].
func (o *Map) Put(env mapstate.Envelope, keys []mapstate.Key, values []mapstate.Value) (mapstate.Result, error) {
	steps := make([]step, len(keys))
	for i, k := range keys {
		steps[i] = step{index: i, key: k, put: values[i]}
	}
	return o.request(env, steps)
}

// Remove removes keys.
func (o *Map) Remove(env mapstate.Envelope, keys []mapstate.Key) (mapstate.Result, error) {
	return o.Put(env, keys, make([]mapstate.Value, len(keys)))
}

// Read returns the value of each key as env sees it, no value where there is none.
func (o *Map) Read(env mapstate.Envelope, keys []mapstate.Key) ([]mapstate.Value, error) {
	staged := map[mapstate.Key]*work{}
	if b, ok := o.batch(env); ok {
		if _, _, err := o.attempt(b.env, b.log); err != nil {
			return nil, err
		}
		for _, k := range keys {
			if found, err := o.find(b.env, k); err == nil {
				staged[k] = found
			}
		}
		for _, s := range b.log {
			if k := staged[s.key]; k != nil {
				if err := k.do(s); err != nil {
					return nil, err
				}
			}
		}
	}
	values := make([]mapstate.Value, len(keys))
	for i, k := range keys {
		if staged[k] != nil {
			values[i] = staged[k].v
			continue
		}
		var err error
		if values[i], err = Seen(o.kind, o.keys[k], env.TxID); err != nil {
			return nil, &mapstate.KeyError{Index: i, Key: k, Err: err}
		}
	}
	return values, nil
}

// Begin opens a batch for the partition of env, dropping one that is open.
func (o *Map) Begin(env mapstate.Envelope) (mapstate.Begun, error) {
	if _, _, err := o.attempt(env, nil); err != nil {
		return mapstate.Begun{}, err
	}
	env.Whole = true
	o.open[env.Partition] = openBatch{env: env}
	w := o.writers[env.Partition]
	w.begun, w.epoch = env.TxID, env.Epoch
	o.writers[env.Partition] = w
	last := w.txid
	return mapstate.Begun{Committed: last, Replay: last == env.TxID}, nil
}

// Commit commits the open batch of env. Epoch 0 is not compared.
func (o *Map) Commit(env mapstate.Envelope) (mapstate.Result, error) {
	b, ok := o.batch(env)
	if ok && (env.Epoch == 0 || env.Epoch == b.env.Epoch) {
		if env.Offsets != nil {
			b.env.Offsets = env.Offsets
		}
		o.open[env.Partition] = b
		res, err := o.commit(b.env, b.log)
		if err == nil || errors.Is(err, mapstate.ErrStaleTx) || errors.Is(err, mapstate.ErrFenced) {
			delete(o.open, env.Partition) // if refused, then since it was overtaken and can never be committed
		}
		res.Values = nil
		return res, err
	}
	if err := o.fenced(env); err != nil {
		return mapstate.Result{}, err
	}
	_, open := o.open[env.Partition]
	if w := o.writers[env.Partition]; !open && env.TxID != mapstate.NoTxID && env.TxID == w.txid && w.whole && env.TxID != w.begun {
		return mapstate.Result{AlreadyCommitted: true}, nil
	}
	return mapstate.Result{}, mapstate.ErrNoOpenBatch
}

// Abort drops the open batch of env. Epoch 0 is not compared.
func (o *Map) Abort(env mapstate.Envelope) error {
	if err := o.fenced(env); err != nil {
		return err
	}
	if _, ok := o.batch(env); !ok {
		return mapstate.ErrNoOpenBatch
	}
	delete(o.open, env.Partition)
	return nil
}

// fenced refuses to end a batch for a writer that another has taken over from.
func (o *Map) fenced(env mapstate.Envelope) error {
	highest := o.writers[env.Partition].epoch
	if env.Epoch != 0 && env.Epoch < highest {
		return &mapstate.FencedError{Partition: env.Partition, Stored: highest, Got: env.Epoch}
	}
	return nil
}

// Restart drops all open batches, as a server does that stops. That they were begun
// is not forgotten.
func (o *Map) Restart() { clear(o.open) }

// Held returns what is stored under each key, tombstones included.
func (o *Map) Held() map[mapstate.Key]Held { return maps.Clone(o.keys) }

// Progress returns the progress of every partition that has some, in order of name.
// It does not know the time.
func (o *Map) Progress() []mapstate.Progress {
	all := []mapstate.Progress{}
	for _, name := range slices.Sorted(maps.Keys(o.writers)) {
		w := o.writers[name]
		if w.listed {
			all = append(all, mapstate.Progress{Partition: name, TxID: w.txid, Epoch: w.epoch, Offsets: w.offsets})
		}
	}
	return all
}

// Clone returns a copy that goes its own way.
func (o *Map) Clone() *Map {
	return &Map{kind: o.kind, keys: maps.Clone(o.keys), writers: maps.Clone(o.writers), open: maps.Clone(o.open)}
}
