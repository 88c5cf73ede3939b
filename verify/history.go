package verify

import (
	"slices"

	"tine/api"
	"tine/mapstate"
)

// Verb is what a step does.
type Verb string

// The verbs: calls by their name on the wire, and what happens to the server.
const (
	MultiUpdate Verb = "multiUpdate"
	MultiPut    Verb = "multiPut"
	MultiRemove Verb = "multiRemove"
	MultiGet    Verb = "multiGet"
	BeginCommit Verb = "beginCommit"
	Commit      Verb = "commit"
	Abort       Verb = "abort"

	Kill  Verb = "kill"  // the server is killed and started again
	Stop  Verb = "stop"  // the server is stopped in order and started again
	Idle  Verb = "idle"  // nothing is sent until open batches have been dropped
	Check Verb = "check" // all that is stored is compared
)

// isCall reports whether the verb is a call.
func (v Verb) isCall() bool {
	switch v {
	case Kill, Stop, Idle, Check:
		return false
	}
	return true
}

// writes reports whether the verb is a call that may change the state.
func (v Verb) writes() bool { return v.isCall() && v != MultiGet }

// Fault is what befalls a call.
type Fault string

// The faults.
const (
	NoFault Fault = ""
	Lost    Fault = "lost"   // the server has answered, and the connection is cut before the answer is read
	Cut     Fault = "cut"    // the connection is cut after the request was written
	Killed  Fault = "killed" // the server is killed while the request is under way, and started again
	Stopped Fault = "stopped"
)

// Role says why a writer takes a step, for the figures of the report.
type Role string

// The roles. The last step of an attempt has the one of the attempt.
const (
	Plain      Role = ""
	FirstTry   Role = "first"
	Replay     Role = "replay"  // the same again
	Changed    Role = "changed" // the same txid with other contents
	Unnumbered Role = "unnumbered"
	Stale      Role = "stale"
	Zombie     Role = "zombie" // a writer that another has taken over from
	Takeover   Role = "takeover"
)

// Step is one step of a history. It is a value: it says all that is sent, whatever
// was answered before.
type Step struct {
	Verb   Verb
	Env    mapstate.Envelope
	Keys   []mapstate.Key   // the SnapshotKey alone is the snapshot's call
	Ops    []api.Op         // multiUpdate: one per key
	Values []mapstate.Value // multiPut: one per key
	Fault  Fault
	Role   Role
}

// isSnapshot reports whether the step is a call on the value outside the map.
func (s *Step) isSnapshot() bool { return len(s.Keys) == 1 && s.Keys[0] == mapstate.SnapshotKey }

// without returns the step without its i-th key.
func (s Step) without(i int) Step {
	s.Keys = slices.Delete(slices.Clone(s.Keys), i, i+1)
	if s.Ops != nil {
		s.Ops = slices.Delete(slices.Clone(s.Ops), i, i+1)
	}
	if s.Values != nil {
		s.Values = slices.Delete(slices.Clone(s.Values), i, i+1)
	}
	return s
}

// History is what happens to one state, from its creation on. Any list of steps is
// a history: what each must be answered follows from the steps before it.
type History struct {
	Spec api.StateSpec
	// Mirror says that every write writes all keys alike, so that readers beside it
	// must always find them equal.
	Mirror bool
	Steps  []Step
}

// with returns the history with other steps.
func (h History) with(steps []Step) History {
	h.Steps = steps
	return h
}
