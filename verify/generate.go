package verify

import (
	"math/rand/v2"
	"slices"
	"strconv"

	"tine/mapstate"
)

// How often things happen.
const (
	checkEvery = 40  // steps between two looks at all that is stored
	idleEvery  = 900 // steps between two waits for open batches to be dropped
	lostOneIn  = 14  // writes whose answer is lost
	cutOneIn   = 50  // writes that are cut off
)

// generator makes the steps of one history, as its writers would send them. The same
// seed makes the same steps, as long as the same restarts are told of.
type generator struct {
	random  *rand.Rand
	kind    string
	mirror  bool
	pool    []mapstate.Key
	writers []*writer
	steps   int
	offsets int64 // of the last write; every write has its own
}

// writer is one partition's.
type writer struct {
	partition string
	epoch     int64
	txid      mapstate.TxID // of its last batch
	last      batch
	queue     []Step // what it is in the middle of
}

// form is how a batch is sent.
type form int

const (
	parts form = iota // requests with one txid
	whole             // one request that says so
	open              // between beginCommit and commit
	forms
)

// batch is what a writer sends under one txid.
type batch struct {
	txid     mapstate.TxID
	form     form
	requests []Step // without envelopes
}

func newGenerator(random *rand.Rand, h History, partitions int) *generator {
	g := &generator{random: random, kind: h.Spec.Kind, mirror: h.Mirror, pool: keyPool(h.Mirror)}
	for i := range partitions {
		w := &writer{epoch: 1}
		if i > 0 {
			w.partition = "p" + strconv.Itoa(i)
		}
		g.writers = append(g.writers, w)
	}
	return g
}

// next returns the next step.
func (g *generator) next() Step {
	g.steps++
	switch {
	case g.steps%idleEvery == 0:
		return Step{Verb: Idle}
	case g.steps%checkEvery == 0:
		return Step{Verb: Check}
	}
	w := g.writers[g.random.IntN(len(g.writers))]
	if len(w.queue) == 0 {
		g.plan(w)
	}
	s := w.queue[0]
	w.queue = w.queue[1:]
	if s.Verb.writes() && s.Role != Zombie {
		g.disturb(w, &s)
	}
	return s
}

// disturb lets something befall a write. The writer then does what a writer does that
// does not know: it sends the batch again. One that was cut off takes over from
// itself first, so that what is still under way cannot follow.
func (g *generator) disturb(w *writer, s *Step) {
	switch {
	case g.random.IntN(cutOneIn) == 0:
		s.Fault = Cut
		w.epoch = max(w.epoch, s.Env.Epoch+1)
	case g.random.IntN(lostOneIn) == 0:
		s.Fault = Lost
	default:
		return
	}
	if len(w.last.requests) > 0 {
		w.queue = g.attempt(w, w.last, Replay)
	}
}

// restarted tells of a restart of the server. Most writers begin again what they were
// in the middle of, some have not noticed.
func (g *generator) restarted() {
	for _, w := range g.writers {
		if g.random.IntN(4) > 0 && len(w.last.requests) > 0 {
			w.queue = g.attempt(w, w.last, Replay)
		}
	}
}

// plan fills the queue of a writer with what it does next.
func (g *generator) plan(w *writer) {
	switch n := g.random.IntN(100); {
	case n < 40 || w.txid == mapstate.NoTxID:
		w.txid = g.nextTxID(w)
		w.last = g.newBatch(w.txid)
		w.queue = g.attempt(w, w.last, FirstTry)
	case n < 52 || n < 67 && g.kind == "transactional":
		w.queue = g.attempt(w, w.last, Replay)
	case n < 67:
		w.last = g.changed(w.last)
		w.queue = g.attempt(w, w.last, Changed)
	case n < 75:
		s := g.request()
		s.Env = g.envelope(w, mapstate.NoTxID)
		s.Role = Unnumbered
		w.queue = []Step{s}
	case n < 78:
		b := g.newBatch(max(1, w.txid-1-mapstate.TxID(g.random.Int64N(3))))
		w.queue = g.attempt(w, b, Stale)
	case n < 82:
		g.planZombie(w)
	case n < 85:
		w.epoch++
		w.queue = g.attempt(w, w.last, Takeover)
	case n < 89: // whether it was committed or not
		w.queue = []Step{{Verb: Commit, Env: g.envelope(w, w.txid)}}
	case n < 92: // a batch that is left open
		b := g.newBatch(w.txid + mapstate.TxID(g.random.Int64N(2)))
		b.form = open
		steps := g.attempt(w, b, Plain)
		w.queue = steps[:len(steps)-1]
	case n < 94:
		s := Step{Verb: Abort, Env: g.envelope(w, w.txid)}
		s.Env.Offsets = nil
		w.queue = []Step{s}
	default:
		w.queue = []Step{g.read(w)}
	}
}

// planZombie has a writer that was taken over from send a batch.
func (g *generator) planZombie(w *writer) {
	if w.epoch == 1 {
		w.epoch++
		w.queue = g.attempt(w, w.last, Takeover)
		return
	}
	old := *w
	old.epoch--
	w.queue = g.attempt(&old, g.newBatch(w.txid+1), Zombie)
	for i := range w.queue {
		w.queue[i].Role = Zombie
	}
}

// nextTxID returns the txid of a writer's next batch, which is often one that another
// writer has begun.
func (g *generator) nextTxID(w *writer) mapstate.TxID {
	var top mapstate.TxID
	for _, other := range g.writers {
		top = max(top, other.txid)
	}
	switch n := g.random.IntN(10); {
	case w.txid < top && n < 7:
		return top
	case n == 9:
		return top + 1 + mapstate.TxID(g.random.Int64N(5))
	}
	return w.txid + 1
}

func (g *generator) newBatch(x mapstate.TxID) batch {
	b := batch{txid: x, form: form(g.random.IntN(int(forms)))}
	n := 1 + g.random.IntN(3)
	if b.form == whole {
		n = 1
	}
	for range n {
		b.requests = append(b.requests, g.request())
	}
	return b
}

// changed returns a batch with other contents: other requests, or fewer, or fewer keys.
func (g *generator) changed(b batch) batch {
	n := g.random.IntN(len(b.requests))
	b.requests = slices.Clone(b.requests)
	keys := len(b.requests[n].Keys)
	switch c := g.random.IntN(3); {
	case c == 0 && keys > 1 && !g.mirror:
		b.requests[n] = b.requests[n].without(g.random.IntN(keys))
	case c == 1 && len(b.requests) > 1:
		b.requests = slices.Delete(b.requests, n, n+1)
	default:
		b.requests[n] = g.request()
	}
	return b
}

// attempt returns the steps of an attempt at a batch.
func (g *generator) attempt(w *writer, b batch, role Role) []Step {
	var steps []Step
	if b.form == open {
		begin := Step{Verb: BeginCommit, Env: g.envelope(w, b.txid)}
		begin.Env.Offsets = nil
		steps = append(steps, begin)
	}
	for _, s := range b.requests {
		s.Env = g.envelope(w, b.txid)
		s.Env.Whole = b.form == whole
		steps = append(steps, s)
		if b.form == open && g.random.IntN(4) == 0 {
			s = g.read(w)
			s.Env.TxID = b.txid
			steps = append(steps, s)
		}
	}
	if b.form == open {
		steps = append(steps, Step{Verb: Commit, Env: g.envelope(w, b.txid)})
	}
	steps[len(steps)-1].Role = role
	return steps
}

func (g *generator) envelope(w *writer, x mapstate.TxID) mapstate.Envelope {
	g.offsets++
	return mapstate.Envelope{TxID: x, Partition: w.partition, Epoch: w.epoch, Offsets: strconv.AppendInt(nil, g.offsets, 10)}
}

// request returns one write, without its envelope.
func (g *generator) request() Step {
	n := g.random.IntN(20)
	s := Step{Verb: MultiUpdate, Keys: g.keys(g.random.IntN(25) == 0)}
	switch {
	case n < 3:
		s.Verb = MultiPut
	case n < 5 && !s.isSnapshot():
		s.Verb = MultiRemove
	case n == 5 && !g.mirror && !s.isSnapshot() && len(s.Keys) > 0:
		s.Keys = s.Keys[:1] // of two reasons to refuse a request either may be told
		s.Ops = append(s.Ops, misfit())
		return s
	}
	for i, k := range s.Keys {
		switch {
		case i > 0 && g.mirror && s.Verb == MultiUpdate:
			s.Ops = append(s.Ops, s.Ops[0])
		case i > 0 && g.mirror && s.Verb == MultiPut:
			s.Values = append(s.Values, s.Values[0])
		case s.Verb == MultiUpdate:
			s.Ops = append(s.Ops, drawOp(g.random, g.family(k)))
		case s.Verb == MultiPut:
			s.Values = append(s.Values, drawValue(g.random, g.family(k)))
		}
	}
	return s
}

// read returns a read, under the txid of a writer's last batch or none.
func (g *generator) read(w *writer) Step {
	s := Step{Verb: MultiGet, Keys: g.keys(false)}
	s.Env.Partition = w.partition
	if g.random.IntN(2) == 0 {
		s.Env.TxID = w.txid
	}
	return s
}

// keys draws the keys of a call, some of them twice; often enough they are the snapshot's.
func (g *generator) keys(none bool) []mapstate.Key {
	if g.mirror {
		return g.pool
	}
	keys := []mapstate.Key{}
	if none {
		return keys
	}
	for range 1 + g.random.IntN(4) {
		k := g.pool[g.random.IntN(len(g.pool))]
		if k == mapstate.SnapshotKey {
			return []mapstate.Key{k}
		}
		keys = append(keys, k)
	}
	return keys
}

func (g *generator) family(k mapstate.Key) family {
	if g.mirror {
		return integers
	}
	return family(slices.Index(g.pool, k)) % families
}
