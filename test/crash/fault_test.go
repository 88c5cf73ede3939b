package crash

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tine/backing/backingtest"
	"tine/mapstate"
	"tine/verify/oracle"
)

// patience bounds waits for what must happen; it decides nothing but how long a
// broken test hangs.
const patience = 30 * time.Second

// fault is one write that fails: it is not carried out, or it is and fails all the
// same.
type fault struct {
	at   int
	late bool
	err  error
}

func (f fault) String() string { return fmt.Sprintf("%v at write %d, late: %t", f.err, f.at, f.late) }

// strike returns the fault as it befalls a disk; struck tells of it.
func (f fault) strike(struck *atomic.Pointer[backingtest.Write]) backingtest.Strike {
	return func(w backingtest.Write) (instead, after error) {
		switch {
		case w.N != f.at:
			return nil, nil
		case f.late:
			struck.Store(&w)
			return nil, f.err
		}
		struck.Store(&w)
		return f.err, nil
	}
}

// TestAWriteThatFailsIsNeverTakenForDone has one write of a history fail, in turns
// each of them. What the store says from then on is true: what it answers is what it holds after
// a restart, and the writer who does again what failed ends where it should.
func TestAWriteThatFailsIsNeverTakenForDone(t *testing.T) {
	for seed := range uint64(seeds()) {
		for _, err := range []error{syscall.EIO, syscall.ENOSPC, syscall.EMFILE} {
			t.Run(fmt.Sprint(seed, err), func(t *testing.T) {
				t.Parallel()
				j, struck, ended := newJob(t, seed, unitsPerState), 0, 0
				for at := 1; ; at += faultStride() {
					f := fault{at: at, late: (at+int(seed))%2 == 0 && errors.Is(err, syscall.EIO), err: err}
					befell, lost := j.runFaulty(t, f)
					if befell == nil {
						break
					}
					struck++
					if lost {
						ended++
					}
				}
				require.Greater(t, struck, 20)
				t.Logf("%d writes failed; after %d of them the store took no more writes", struck, ended)
			})
		}
	}
}

// faulty is a job under way on a disk that befalls a fault.
type faulty struct {
	*job
	*store
	disk   *backingtest.Disk
	struck atomic.Pointer[backingtest.Write]
	at     map[string]int // units done
	lost   bool           // the store took no more writes and was opened again
}

// runFaulty works the job off on a disk that befalls a fault.
func (j *job) runFaulty(t *testing.T, f fault) (befell *backingtest.Write, lost bool) {
	t.Helper()
	r := &faulty{job: j, disk: backingtest.NewDisk(), at: make(map[string]int)}
	r.disk.OnWrite(f.strike(&r.struck))
	var err error
	if r.store, err = openStore(r.disk, j.scripts); err != nil {
		require.NotNil(t, r.struck.Load(), "%v", err)
		r.restart(t)
	}
	for _, sc := range j.order {
		r.unit(t, sc, sc.units[r.at[sc.name]])
		r.at[sc.name]++
	}
	j.requireHeld(t, r.store, r.at)
	err = r.close()
	if r.store = nil; err == nil {
		r.store, err = openStore(r.disk, j.scripts)
	}
	if err != nil {
		require.NotNil(t, r.struck.Load(), "%v", err)
		r.restart(t)
	}
	j.requireHeld(t, r.store, r.at)
	if err := r.close(); err != nil {
		require.NotNil(t, r.struck.Load(), "%v", err)
		r.lost = true
	}
	return r.struck.Load(), r.lost
}

// unit does a unit, and again until it is done.
func (r *faulty) unit(t *testing.T, sc *script, u unit) {
	t.Helper()
	for ended := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		err := r.do(sc, u)
		if err == nil {
			return
		}
		require.NotNil(t, r.struck.Load(), "%s, unit %d: %v", sc.name, u.at, err)
		require.True(t, time.Now().Before(ended), "%s, unit %d: still %v", sc.name, u.at, err)
		if r.db.Err() != nil {
			r.requireTrue(t, sc)
			r.restart(t)
		}
		if r.isDone(t, sc, u) {
			return
		}
	}
}

// isDone reports whether a unit that has failed is done, and must not be done again.
func (r *faulty) isDone(t *testing.T, sc *script, u unit) bool {
	t.Helper()
	switch {
	case u.deed == create:
		return r.open(sc) == nil
	case u.deed == remove:
		_, err := r.db.State(sc.name)
		if err != nil {
			delete(r.maps, sc.name)
		}
		return errors.Is(err, mapstate.ErrUnknownState)
	case sc.kind != "nontx" && u.env.TxID != mapstate.NoTxID:
		return false // that it may be done twice is what it is numbered for
	}
	return r.locate(t, sc, u.at-1, u.at) == u.at
}

// requireTrue checks that a store that takes no more writes refuses them, and that what it
// reads is what it has answered.
func (r *faulty) requireTrue(t *testing.T, failed *script) {
	t.Helper()
	for _, sc := range r.scripts {
		m := r.maps[sc.name]
		if m == nil || sc == failed && sc.name == "deleted" {
			continue // its deletion may have been under way
		}
		_, err := m.Put(background, mapstate.Envelope{Partition: "another"}, allKeys[:1], []mapstate.Value{mapstate.Int(1)})
		require.True(t, errors.Is(err, mapstate.ErrUnavailable) || errors.Is(err, mapstate.ErrDiskFull), "%v", err)
		high := r.at[sc.name]
		if sc == failed {
			high++
		}
		got, err := r.content(sc)
		require.NoError(t, err, "it still reads")
		require.True(t, slices.ContainsFunc(sc.models[r.at[sc.name]:high+1], func(model *oracle.Map) bool {
			return model != nil && reflect.DeepEqual(contentOf(model).entries, got.entries)
		}), "%s after unit %d", sc.name, r.at[sc.name])
	}
}

// restart opens a store from what is on its disk when it is killed, and does again what was not waited
// for and is lost.
func (r *faulty) restart(t *testing.T) {
	t.Helper()
	r.lost = true
	r.disk.OnWrite(nil)
	if r.store != nil {
		_ = r.close() // it has said already what was wrong
	}
	r.disk = r.disk.Crash(100, rand.New(rand.NewPCG(1, 1))) // the operating system still has what was written
	var err error
	r.store, err = openStore(r.disk, r.scripts)
	require.NoError(t, err, "after %+v", r.struck.Load())
	for _, sc := range r.scripts {
		if !sc.interval {
			continue
		}
		for n := r.locate(t, sc, 0, min(r.at[sc.name]+1, len(sc.units))); n < r.at[sc.name]; n++ {
			require.NoError(t, r.do(sc, sc.units[n]))
		}
	}
}
