package main

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"tine/cmd/tine/demo"
)

// demoTop is how many words the table of the demo has.
const demoTop = 10

func (c *cli) demoCommand() *cobra.Command {
	var input string
	var batchWords int
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Count words while everything goes wrong",
		Long: `Count the words of a text, in batches, in an opaque and a transactional state of a
server that is started for this on a free loopback port. Every batch is sent twice,
some first with other contents, some answers are lost, and half way through the
server is killed with a batch in flight and started again. Then all totals are
compared with a direct count. The exit code is 1 if any differs.`,
		Example: `  tine demo
  tine demo --input book.txt --batch-words 500
  tine demo --output json`,
		Args: wants(),
	}
	cmd.Flags().StringVar(&input, "input", "", "`FILE` of text; a built-in sample without it")
	cmd.Flags().IntVar(&batchWords, "batch-words", 1000, "words in a batch")
	hideInherited(cmd, "url", "timeout")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if batchWords < 1 {
			return usageError{fmt.Errorf("--batch-words is %d, want 1 or more", batchWords)}
		}
		text := demo.Sample()
		if input != "" {
			var err error
			if text, err = os.ReadFile(input); err != nil {
				return err
			}
			if len(demo.Words(text)) == 0 {
				return fmt.Errorf("--input %s has no words; a word is a run of the letters a to z", input)
			}
		}
		return c.demo(cmd, text, batchWords)
	}
	return cmd
}

func (c *cli) demo(cmd *cobra.Command, text []byte, batchWords int) error {
	executable, err := os.Executable()
	if err != nil {
		return err
	}
	ctx, cancel := interruptible(cmd.Context())
	defer cancel()
	total := len(demo.Words(text))
	bar := c.progress(int64((total+batchWords-1)/batchWords), "batches")
	report, err := demo.Run(ctx, demo.Options{
		Text:       text,
		BatchWords: batchWords,
		Executable: executable,
		Progress:   func(done, _ int) { bar.set(done) },
	})
	bar.finish()
	if ctx.Err() != nil {
		return errors.Join(errors.New("interrupted"), ctx.Err())
	}
	if err != nil {
		return fmt.Errorf("demo: %w", err)
	}
	if err := c.print(report, func(t *table) { fillReport(t, report) }); err != nil {
		return err
	}
	if !report.Equal {
		return fmt.Errorf("demo: %d totals differ from the direct count", len(report.Differences))
	}
	return nil
}

func fillReport(t *table, r demo.Report) {
	words := slices.SortedFunc(maps.Keys(r.Counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(r.Counts[b], r.Counts[a]), cmp.Compare(a, b))
	})
	t.row("WORD", "COUNT")
	for _, word := range words[:min(demoTop, len(words))] {
		t.row(word, r.Counts[word])
	}
	t.row()
	t.row("words", r.Words)
	t.row("distinct", r.Distinct)
	t.row("batches", r.Batches)
	t.row("sent twice", r.Faults.Duplicates)
	t.row("first sent with other contents", r.Faults.WrongAttempts)
	t.row("answers lost", r.Faults.LostAnswers)
	t.row("kill -9 and restart", r.Faults.Kills)
	t.row()
	for _, line := range r.Differences[:min(demoTop, len(r.Differences))] {
		t.row(line)
	}
	verdict := "All totals of both states are equal to the direct count."
	if !r.Equal {
		verdict = "WRONG: the states differ from the direct count."
	}
	t.row(verdict)
}
