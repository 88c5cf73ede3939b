package mapstatetest

import (
	"context"
	"sync"

	"tine/mapstate"
)

// Moment is where in a Commit a Fault strikes.
type Moment int

// The moments of a Commit.
const (
	BeforeWrite Moment = iota // Commit fails and has written nothing
	AfterWrite                // Commit fails, but everything is written
	InWait                    // Commit succeeds, its Durable fails
	HalfWay                   // Commit fails, every other record is written, and no meta entry
)

// Fault is a BackingMap that fails on order. Calls are counted from the order
// on, the next one is number 1; one order of each sort is kept, and it strikes
// once.
type Fault struct {
	mapstate.BackingMap

	mu     sync.Mutex
	get    order
	commit order
	moment Moment
}

// order is a fault to come.
type order struct {
	left int // calls until it strikes, 0: none
	err  error
}

// next counts one call and returns the error it is to fail with.
func (o *order) next() error {
	if o.left == 0 {
		return nil
	}
	o.left--
	if o.left > 0 {
		return nil
	}
	return o.err
}

var _ mapstate.BackingMap = (*Fault)(nil)

// NewFault returns a Fault over next that passes everything on.
func NewFault(next mapstate.BackingMap) *Fault { return &Fault{BackingMap: next} }

// FailGet makes the n-th MultiGet from now fail with err.
func (f *Fault) FailGet(n int, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.get = order{left: n, err: err}
}

// FailCommit makes the n-th Commit from now fail with err at the moment given.
func (f *Fault) FailCommit(n int, at Moment, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.commit, f.moment = order{left: n, err: err}, at
}

// MultiGet implements mapstate.Getter.
func (f *Fault) MultiGet(ctx context.Context, keys []mapstate.Key) ([][]byte, error) {
	f.mu.Lock()
	err := f.get.next()
	f.mu.Unlock()
	if err != nil {
		return nil, err
	}
	return f.BackingMap.MultiGet(ctx, keys)
}

// Commit implements mapstate.Committer.
func (f *Fault) Commit(ctx context.Context, w mapstate.Writes) (mapstate.Durable, error) {
	f.mu.Lock()
	fault, at := f.commit.next(), f.moment
	f.mu.Unlock()
	if fault != nil && at == BeforeWrite {
		return nil, fault
	}
	if fault != nil && at == HalfWay {
		w.Records, w.Meta = everyOther(w.Records), nil
	}
	d, err := f.BackingMap.Commit(ctx, w)
	if fault == nil || err != nil {
		return d, err
	}
	if at == InWait {
		return failedWait{next: d, err: fault}, nil
	}
	if err := d.Wait(); err != nil {
		return nil, err
	}
	return nil, fault
}

func everyOther(all []mapstate.Write) []mapstate.Write {
	half := make([]mapstate.Write, 0, len(all)/2)
	for i := 1; i < len(all); i += 2 {
		half = append(half, all[i])
	}
	return half
}

// failedWait waits for a write and says that it failed all the same.
type failedWait struct {
	next mapstate.Durable
	err  error
}

func (d failedWait) Wait() error {
	if err := d.next.Wait(); err != nil {
		return err
	}
	return d.err
}
