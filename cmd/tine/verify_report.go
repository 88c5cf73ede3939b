package main

import (
	"strings"

	"tine/verify"
)

// fillVerified puts the report of a verification into a table.
func fillVerified(t *table, r verify.Report, history string) {
	t.row("states", r.States)
	t.row("writers of each", r.Partitions)
	t.row("steps", r.Steps)
	t.row("batches", r.Batches)
	t.row("replays", r.Replays)
	t.row("replays with other contents", r.Changed)
	t.row("un-numbered writes", r.Unnumbered)
	t.row("answers lost", r.LostAnswers)
	t.row("kill -9 and restart", r.Kills)
	t.row("stop and restart", r.Stops)
	t.row("open batches left idle", r.Idles)
	t.row("higher epochs", r.Takeovers)
	t.row("zombies fenced", r.Fenced)
	t.row("refused as they must be", r.Refused)
	t.row("keys compared", r.KeysCompared)
	t.row("progress records compared", r.RecordsCompared)
	t.row("reads beside writers", r.Reads)
	t.row("refused for a while, as busy", r.Unavailable)
	t.row("left out, the rules leave them open", r.LeftOut)
	t.row("seconds", r.Seconds)
	t.row()
	switch {
	case r.Difference != nil:
		fillDifference(t, r.Difference, history)
	case r.Interrupted:
		t.row("No difference so far.")
	default:
		t.row("No difference: every answer and all that is stored is as if each batch had been processed once.")
	}
}

func fillDifference(t *table, d *verify.Finding, history string) {
	t.row("DIFFERENCE in state " + d.State + " (" + d.Spec.Kind + ", " + d.Spec.Durability + "): " + d.What)
	t.row("  expected  " + d.Expected)
	t.row("  got       " + d.Got)
	t.row()
	if d.Reproduced {
		t.row("The smallest history that shows it is in " + history + ", for tine replay:")
	} else {
		t.row("It did not show again when the history ran alone: it is a race. The last steps are in " + history + ":")
	}
	lines := strings.Split(strings.TrimSpace(d.Text), "\n")
	if over := len(lines) - shownSteps; over > 0 {
		t.row("...")
		lines = lines[over:]
	}
	for _, line := range lines {
		t.row(line)
	}
}
