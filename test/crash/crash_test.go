package crash

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"tine/backing/backingtest"
)

// job is scripts in the order in which one writer works them off.
type job struct {
	scripts []*script
	order   []*script // whose unit is next
}

// newJob writes a script for each kind, for commits that are not waited for and
// for a state that is deleted half way.
func newJob(t *testing.T, seed uint64, units int) *job {
	rnd := rand.New(rand.NewPCG(seed, 7))
	j := new(job)
	for _, s := range [][2]string{{"nontx", "nontx"}, {"transactional", "transactional"}, {"opaque", "opaque"}, {"interval", "opaque"}, {"deleted", "transactional"}} {
		sc := writeScript(t, rnd, s[0], s[1], units)
		sc.interval = sc.name == "interval"
		j.scripts = append(j.scripts, sc)
		for range sc.units {
			j.order = append(j.order, sc)
		}
	}
	rnd.Shuffle(len(j.order), func(a, b int) { j.order[a], j.order[b] = j.order[b], j.order[a] })
	return j
}

// position is how many units of each script are done: begun, answered, and on disk
// if the machine crashes.
type position struct {
	begun, answered, durable map[string]int
}

// progress follows a position from several goroutines.
type progress struct {
	mu  sync.Mutex
	pos position
}

func newProgress() *progress {
	return &progress{pos: position{begun: make(map[string]int), answered: make(map[string]int), durable: make(map[string]int)}}
}

// begin notes that the next unit of sc has begun.
func (p *progress) begin(sc *script) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pos.begun[sc.name]++
}

// answer notes that it was answered. What is on disk brings all before it there:
// the log is one.
func (p *progress) answer(sc *script) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pos.answered[sc.name]++
	u := sc.units[p.pos.answered[sc.name]-1]
	if !sc.interval || u.deed == create {
		for name, n := range p.pos.answered {
			p.pos.durable[name] = n
		}
	}
}

func (p *progress) durable() map[string]int {
	return p.copy(func() map[string]int { return p.pos.durable })
}
func (p *progress) begun() map[string]int {
	return p.copy(func() map[string]int { return p.pos.begun })
}

func (p *progress) copy(which func() map[string]int) map[string]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := make(map[string]int)
	for name, n := range which() {
		all[name] = n
	}
	return all
}

// cut is the disk after a crash, and what it may hold.
type cut struct {
	write           backingtest.Write
	disk            *backingtest.Disk
	least, furthest map[string]int // units of each script
}

// run works the job off on a disk, and has it cut before every so many writes.
func (j *job) run(t *testing.T, rnd *rand.Rand, every int) (cuts []cut, writes int) {
	disk, done := backingtest.NewDisk(), newProgress()
	var mu sync.Mutex
	disk.OnWrite(func(w backingtest.Write) (instead, after error) {
		mu.Lock()
		defer mu.Unlock()
		if w.N%every == 0 {
			c := cut{write: w, least: done.durable()}
			// All that is not synced is lost, or half of it.
			c.disk = disk.Crash(rnd.IntN(2)*50, rnd)
			c.furthest = done.begun()
			cuts = append(cuts, c)
		}
		return nil, nil
	})
	s, err := openStore(disk, j.scripts)
	require.NoError(t, err)
	at := make(map[string]int)
	for _, sc := range j.order {
		done.begin(sc)
		require.NoError(t, s.do(sc, sc.units[at[sc.name]]), "%s, unit %d", sc.name, at[sc.name]+1)
		done.answer(sc)
		at[sc.name]++
	}
	require.Positive(t, s.db.Metrics().Flushes, "the crashes meet flushes as well")
	j.requireHeld(t, s, at)
	require.NoError(t, s.close())
	disk.OnWrite(nil)
	return cuts, disk.Writes()
}

// requireHeld checks what every state holds after so many units.
func (j *job) requireHeld(t *testing.T, s *store, at map[string]int) {
	t.Helper()
	for _, sc := range j.scripts {
		got, err := s.content(sc)
		require.NoError(t, err)
		if want := contentOf(sc.models[at[sc.name]]); !reflect.DeepEqual(want, got) {
			require.Failf(t, "another content", "%s after unit %d: %v", sc.name, at[sc.name], want.differences(got))
		}
	}
}

// locate returns after how many units, from low to high, a state holds what it does.
func (s *store) locate(t *testing.T, sc *script, low, high int) int {
	t.Helper()
	got, err := s.content(sc)
	require.NoError(t, err)
	for n := low; n <= high; n++ {
		if reflect.DeepEqual(contentOf(sc.models[n]), got) || n < len(sc.units) && reflect.DeepEqual(sc.begun(n), got) {
			return n
		}
	}
	require.Failf(t, "torn or lost", "%s holds what it did after none of the units %d to %d: %v",
		sc.name, low, high, contentOf(sc.models[high]).differences(got))
	return 0
}

// resume finds out where each state stands, does again what may have been done without an
// answer, and then the rest.
func (j *job) resume(t *testing.T, s *store, least, furthest map[string]int) {
	t.Helper()
	at := make(map[string]int)
	for _, sc := range j.scripts {
		n := s.locate(t, sc, least[sc.name], furthest[sc.name])
		at[sc.name] = n
		if n > least[sc.name] {
			s.again(t, sc, sc.units[n-1])
		}
	}
	seen := make(map[string]int)
	for _, sc := range j.order {
		if seen[sc.name]++; seen[sc.name] > at[sc.name] {
			require.NoError(t, s.do(sc, sc.units[at[sc.name]]), "%s, unit %d", sc.name, at[sc.name]+1)
			at[sc.name]++
		}
	}
	j.requireHeld(t, s, at)
}

// again does once more what was done without an answer, as the kind demands: on nontx the
// progress says that it must not be.
func (s *store) again(t *testing.T, sc *script, u unit) {
	t.Helper()
	if u.deed == create || u.deed == remove || u.deed == abort || sc.kind == "nontx" {
		return
	}
	if u.deed == open {
		res, err := s.maps[sc.name].Commit(background, u.env)
		require.NoError(t, err)
		require.True(t, res.AlreadyCommitted)
	}
	require.NoError(t, s.do(sc, u))
	got, err := s.content(sc)
	require.NoError(t, err)
	require.Equal(t, contentOf(sc.models[u.at]), got, "%s, unit %d done twice", sc.name, u.at)
}

func TestACrashAtAnyWriteLosesNothingAndTheWriterGoesOn(t *testing.T) {
	for seed := range uint64(seeds()) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			j := newJob(t, seed, unitsPerState)
			cuts, writes := j.run(t, rand.New(rand.NewPCG(seed, 8)), stride())
			require.NotEmpty(t, cuts)
			for _, c := range cuts {
				s, err := openStore(c.disk, j.scripts)
				require.NoError(t, err, "after a crash before write %+v", c.write)
				j.resume(t, s, c.least, c.furthest)
				require.NoError(t, s.close())
			}
			t.Logf("crashed before %d of %d writes", len(cuts), writes)
		})
	}
}
