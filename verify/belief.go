package verify

import (
	"reflect"
	"slices"
	"time"

	"tine/verify/oracle"
)

// lossWindow is how long after its answer a commit of an interval state may still be
// lost by a kill: the second that is promised, and time for a busy machine.
const lossWindow = 3 * time.Second

// maxDoubt is how many possibilities are kept. Where there are more, no more doubt
// is made on purpose.
const maxDoubt = 64

// belief is every oracle that fits what was seen of a state: one as long as all
// answers came, more where one was lost.
type belief struct {
	now []*oracle.Map
	// past is what a kill may take an interval state back to, oldest first.
	past     []past
	interval bool
}

// past is what the state was believed to be until a commit was answered.
type past struct {
	maps  []*oracle.Map
	until time.Time
}

func newBelief(h History) *belief {
	return &belief{now: []*oracle.Map{oracle.New(h.Spec.Kind)}, interval: h.Spec.Durability == "interval"}
}

// answered keeps what fits the answer to a step. Where nothing does, it changes
// nothing and returns what should have been answered.
func (b *belief) answered(s Step, got answer, at time.Time) (want answer, ok bool) {
	before := b.clones()
	var fit []*oracle.Map
	for _, o := range b.clones() {
		if want = apply(o, s); want.same(got) {
			fit = append(fit, o)
		}
	}
	if len(fit) == 0 {
		return want, false
	}
	b.now = fit
	b.settle()
	b.remember(s, before, at)
	return want, true
}

// lost takes in a step that was carried out, whose answer is not known.
func (b *belief) lost(s Step, at time.Time) {
	before := b.clones()
	for _, o := range b.now {
		apply(o, s)
	}
	b.remember(s, before, at)
}

// doubted takes in a step of which it is not known whether it was carried out.
func (b *belief) doubted(s Step, at time.Time) {
	before := b.clones()
	b.perhaps(func(o *oracle.Map) { apply(o, s) })
	b.remember(s, before, at)
}

// perhaps takes in a change of which it is not known whether it happened.
func (b *belief) perhaps(change func(*oracle.Map)) {
	for _, o := range b.clones() {
		change(o)
		b.now = append(b.now, o)
	}
	b.settle()
}

// dropped takes in that all open batches have been dropped.
func (b *belief) dropped() {
	for _, o := range b.now {
		o.Restart()
	}
	b.settle()
}

// restarted takes in that the server was ended, by a kill or in order, and started.
// What it came back with is from now on on disk.
func (b *belief) restarted(killed bool, at time.Time) {
	if killed {
		for _, p := range b.past {
			if at.Sub(p.until) < lossWindow {
				b.now = append(b.now, p.maps...)
			}
		}
	}
	b.past = nil
	b.dropped()
}

// keep drops the oracles that do not fit something seen, which differs says. Where
// none fits it drops nothing and returns what the first one says.
func (b *belief) keep(differs func(*oracle.Map) *Difference) *Difference {
	var fit []*oracle.Map
	var first *Difference
	for _, o := range b.now {
		switch d := differs(o); {
		case d == nil:
			fit = append(fit, o)
		case first == nil:
			first = d
		}
	}
	if len(fit) == 0 {
		return first
	}
	b.now = fit
	return nil
}

// remember notes what an interval state may be taken back to.
func (b *belief) remember(s Step, before []*oracle.Map, at time.Time) {
	if !b.interval || !s.Verb.writes() {
		return
	}
	first := slices.IndexFunc(b.past, func(p past) bool { return at.Sub(p.until) < lossWindow })
	if first < 0 {
		first = len(b.past)
	}
	b.past = append(b.past[first:], past{maps: before, until: at})
}

// settle drops oracles that are there twice.
func (b *belief) settle() {
	if len(b.now) == 1 {
		return
	}
	var distinct []*oracle.Map
	for _, o := range b.now {
		if !slices.ContainsFunc(distinct, func(d *oracle.Map) bool { return reflect.DeepEqual(d, o) }) {
			distinct = append(distinct, o)
		}
	}
	b.now = distinct
}

func (b *belief) clones() []*oracle.Map {
	all := make([]*oracle.Map, len(b.now))
	for i, o := range b.now {
		all[i] = o.Clone()
	}
	return all
}
