// Package demo shows what Tine is for: it counts the words of a text in batches,
// through a server of its own, while nearly everything goes wrong that can, and
// compares every total with a direct count.
package demo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"tine/mapstate"
)

// Options of Run.
type Options struct {
	Text       []byte // whose words are counted
	BatchWords int    // words in a batch
	Executable string // the tine binary, to start servers with
	// Progress is called after each batch; nil is nobody.
	Progress func(done, total int)
}

// Report is what a demonstration came to.
type Report struct {
	Words    int              `json:"words"`
	Distinct int              `json:"distinct"`
	Batches  int              `json:"batches"`
	Faults   Faults           `json:"faults"`
	Equal    bool             `json:"equal"`  // every total of both states is the direct count
	Counts   map[string]int64 `json:"counts"` // the totals, as the opaque state has them

	// Differences says where a state is wrong, one line per key.
	Differences []string `json:"differences,omitempty"`
}

// The states of the demonstration.
const (
	stateOpaque        = "words-opaque"
	stateTransactional = "words-transactional"
)

// Run sends the words of a text to a server that it starts on a loopback port and
// a temporary directory, with faults, and reports whether the totals are right. The
// server is gone and the directory removed when Run returns, also on an error and
// when ctx ends.
func Run(ctx context.Context, opts Options) (report Report, err error) {
	if opts.BatchWords < 1 {
		return report, fmt.Errorf("a batch has %d words, want 1 or more", opts.BatchWords)
	}
	dir, err := os.MkdirTemp("", "tine-demo-")
	if err != nil {
		return report, fmt.Errorf("make a data directory: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	w := &writer{executable: opts.Executable, dir: filepath.Join(dir, "data")}
	defer w.stop() // before the directory goes
	if err := w.start(ctx); err != nil {
		return report, err
	}
	if err := w.createStates(ctx); err != nil {
		return report, err
	}

	words := Words(opts.Text)
	batches := schedule(words, opts.BatchWords)
	for i, b := range batches {
		if err := w.send(ctx, b); err != nil {
			return report, fmt.Errorf("batch %d: %w", b.txid, err)
		}
		if opts.Progress != nil {
			opts.Progress(i+1, len(batches))
		}
	}

	report = Report{Words: len(words), Batches: len(batches), Faults: w.faults}
	return report, w.compare(ctx, Count(words), &report)
}

// compare fills in what the states hold, and where that is not what is wanted.
func (w *writer) compare(ctx context.Context, want map[string]int64, report *Report) error {
	for _, state := range []string{stateTransactional, stateOpaque} {
		counts, err := w.totals(ctx, state)
		if err != nil {
			return fmt.Errorf("read the totals of %s: %w", state, err)
		}
		report.Differences = append(report.Differences, differences(state, want, counts)...)
		report.Counts = counts
	}
	report.Distinct = len(want)
	report.Equal = len(report.Differences) == 0
	return nil
}

// wordKey returns the key of a word.
func wordKey(word string) mapstate.Key {
	return mapstate.Key(mapstate.AppendKeyString(nil, word))
}
