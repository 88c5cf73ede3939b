package verify

import (
	"fmt"
	"strings"
	"time"

	"tine/mapstate"
)

// Figures count what was done.
type Figures struct {
	Steps           int64 `json:"steps"`
	Batches         int64 `json:"batches"`        // committed for the first time
	Replays         int64 `json:"replays"`        // attempts that were the same again
	Changed         int64 `json:"changedReplays"` // attempts with the same txid and other contents
	Unnumbered      int64 `json:"unnumberedWrites"`
	LostAnswers     int64 `json:"lostAnswers"`
	Takeovers       int64 `json:"takeovers"`   // a higher epoch
	Fenced          int64 `json:"fenced"`      // calls of those who were taken over from
	Refused         int64 `json:"refused"`     // calls that had to be refused, all in all
	Unavailable     int64 `json:"unavailable"` // calls refused for a reason that passes, as overload
	LeftOut         int64 `json:"leftOut"`     // steps that were not taken: the rules leave their answer open
	Idles           int64 `json:"idles"`       // waits until open batches were dropped
	Kills           int64 `json:"kills"`
	Stops           int64 `json:"stops"`
	KeysCompared    int64 `json:"keysCompared"`
	RecordsCompared int64 `json:"recordsCompared"` // of progress
	Reads           int64 `json:"reads"`           // beside writers, none of which saw half a batch
}

// count counts an answered call.
func (f *Figures) count(s Step, got answer) {
	if got.err != nil {
		f.Refused++
		if got.reason() == mapstate.ErrFenced.Error() {
			f.Fenced++
		}
		return
	}
	switch s.Role {
	case FirstTry:
		f.Batches++
	case Replay:
		f.Replays++
	case Changed:
		f.Changed++
	case Unnumbered:
		f.Unnumbered++
	case Takeover:
		f.Takeovers++
	}
}

// add adds the figures of one state's run. Kills and stops are the server's, not a state's.
func (f *Figures) add(g Figures) {
	f.Steps += g.Steps
	f.Batches += g.Batches
	f.Replays += g.Replays
	f.Changed += g.Changed
	f.Unnumbered += g.Unnumbered
	f.LostAnswers += g.LostAnswers
	f.Takeovers += g.Takeovers
	f.Fenced += g.Fenced
	f.Refused += g.Refused
	f.Unavailable += g.Unavailable
	f.LeftOut += g.LeftOut
	f.Idles += g.Idles
	f.KeysCompared += g.KeysCompared
	f.RecordsCompared += g.RecordsCompared
}

// Report is what a verification came to.
type Report struct {
	Seed        uint64  `json:"seed"`
	Seconds     float64 `json:"seconds"`
	States      int     `json:"states"`
	Partitions  int     `json:"partitions"` // of each state
	Interrupted bool    `json:"interrupted,omitempty"`
	Figures

	// Difference is nil where every answer and everything stored was as it must be.
	Difference *Finding `json:"difference,omitempty"`
}

// Finding is a difference and the smallest history that was found to show one.
type Finding struct {
	Difference        // that the history shows
	Reproduced bool   `json:"reproduced"` // else it is a race, and the history is the tail of what happened
	Steps      int    `json:"steps"`      // of the history
	Text       string `json:"text"`       // the history, to read: one line per step
	Replay     []byte `json:"-"`          // the history, for "tine replay"

	History History `json:"-"`
}

// text returns a history as lines to read, numbered as the lines of its replay file where
// a step is one.
func (h History) text() string {
	var b strings.Builder
	line := 1 // creates the state
	for _, s := range h.Steps {
		if s.Verb.isCall() {
			line++
			fmt.Fprintf(&b, "line %d: %s %s\n", line, s.Verb, describe(s))
		} else {
			fmt.Fprintf(&b, "        %s\n", s.Verb)
		}
		if s.Fault == Cut && s.Verb.writes() {
			line++
			f := fence(s)
			fmt.Fprintf(&b, "line %d: %s %s\n", line, f.Verb, describe(f))
		}
	}
	return b.String()
}

// shownKeys is how many keys of a call are described.
const shownKeys = 4

// describe returns what a call sends and what befalls it, short.
func describe(s Step) string {
	var parts []string
	put := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	if s.Env.TxID != mapstate.NoTxID {
		put("txid %d", s.Env.TxID)
	}
	if s.Env.Partition != "" {
		put("partition %s", s.Env.Partition)
	}
	if s.Env.Epoch != 0 {
		put("epoch %d", s.Env.Epoch)
	}
	if s.Env.Whole {
		put("whole")
	}
	if s.Env.Offsets != nil {
		put("offsets %s", s.Env.Offsets)
	}
	for i, k := range s.Keys {
		if left := len(s.Keys) - i; i >= shownKeys && left > 1 {
			put("and %d keys more", left)
			break
		}
		switch {
		case s.Ops != nil && s.Ops[i].Arg.IsNone():
			put("%s %s", nameOf(k), s.Ops[i].Name)
		case s.Ops != nil:
			put("%s %s %s", nameOf(k), s.Ops[i].Name, s.Ops[i].Arg)
		case s.Values != nil:
			put("%s = %s", nameOf(k), s.Values[i])
		default:
			put("%s", nameOf(k))
		}
	}
	text := strings.Join(parts, ", ")
	switch s.Fault {
	case Lost:
		text += " (its answer was lost)"
	case Cut:
		text += " (the connection was cut)"
	case Killed:
		text += " (the server was killed meanwhile)"
	case Stopped:
		text += " (the server was stopped meanwhile)"
	}
	return text
}

// round returns a duration in seconds, as a report has it.
func round(d time.Duration) float64 { return float64(d.Milliseconds()) / 1000 }
