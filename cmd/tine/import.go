package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"tine/api"
	"tine/mapstate"
)

// importFlags are the flags of the import.
type importFlags struct {
	state, format, partition string
	kindCheck, checkOnly     bool
	chunk                    int
	maxSize                  int64
}

func formatWords() []string { return []string{"trident-json"} }

func (c *cli) importCommand() *cobra.Command {
	f := importFlags{format: formatWords()[0], maxSize: 1 << 30}
	cmd := &cobra.Command{
		Use:   "import FILE --state STATE",
		Short: "Take over the state of a Storm Trident job",
		Long: `Put the records that a Storm Trident state has left in Redis, or elsewhere, into a
state of the same kind, each with its txid and, on an opaque state, its previous value.
So the job can go on with its next batch, or with a replay of its last one.

FILE has a key and its stored JSON on each line, in either form; - is the standard input:

  man<TAB>[3,6,4]
  {"key":"man","value":[3,6,4]}

The text before the TAB is the key, a string; "key" can be any key, such as ["eu","man"].
A "value" that is a string holds the stored JSON: "[3,6,4]". A stored null is no value. A dump
of Redis strings, without keys that have line breaks, and one of a Redis hash are made by

  redis-cli --scan --pattern 'words:*' >keys &&
    tr '\n' '\0' <keys | xargs -0 -n 500 redis-cli --raw MGET | paste keys - >dump
  redis-cli --raw HGETALL words | paste - - >dump

Stop the job first. The whole file is checked before anything is sent: it is held in memory,
with some 400 bytes for each key, and must not be larger than --max-size. It goes in
ascending order of txids, at least a request for each, those that were never numbered first.
If it is interrupted, run it again: it goes on where --partition of the state stands, and what
is below is skipped. So do not split a dump, and do not run it again once the job has gone
on. On a nontx state nothing is numbered, and nothing skipped.`,
		Example: `  tine state create words --kind opaque
  tine import dump --state words --check
  tine import dump --state words
  redis-cli --raw HGETALL words | paste - - | tine import - --state words`,
		Args: wants("FILE"),
	}
	flags := cmd.Flags()
	flags.StringVar(&f.state, "state", "", "the `STATE` to put the records into, required")
	flags.Var(choice{&f.format, formatWords()}, "format", "of the stored JSON, trident-json")
	flags.StringVar(&f.partition, "partition", "", "partition that the job goes on as: its replay of the last batch must find itself")
	flags.BoolVar(&f.kindCheck, "kind-check", true, "for a nontx state: refuse a file of what looks like records of another kind")
	flags.BoolVar(&f.checkOnly, "check", false, "only check the file, and tell what would be done")
	flags.IntVar(&f.chunk, "chunk", 10_000, "keys of a request, at most")
	flags.Var(size{&f.maxSize}, "max-size", "of the file")
	completeFlag(cmd, "format", formatWords())
	c.completeState(cmd, "state")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if f.state == "" {
			return usageError{fmt.Errorf("missing --state; want %s", usage(cmd))}
		}
		if f.chunk < 1 {
			return usageError{fmt.Errorf("--chunk is %d, want 1 or more", f.chunk)}
		}
		return c.importFile(cmd, args[0], f)
	}
	return cmd
}

// completeState offers the names of the states as values of a flag, which cmd has.
func (c *cli) completeState(cmd *cobra.Command, name string) {
	complete := func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		return c.stateWords(cmd), cobra.ShellCompDirectiveNoFileComp
	}
	if err := cmd.RegisterFlagCompletionFunc(name, complete); err != nil {
		panic(err)
	}
}

// importJSON is what an import did, or would do.
type importJSON struct {
	State     string `json:"state"`
	Partition string `json:"partition"`
	Checked   bool   `json:"checked,omitempty"` // nothing was sent
	Keys      int    `json:"keys"`              // sent
	TxIDs     int    `json:"txids"`             // of them
	Skipped   int    `json:"skipped"`           // keys below the partition's progress
}

func (c *cli) importFile(cmd *cobra.Command, name string, f importFlags) error {
	c.state = f.state
	client := c.client()
	ctx, cancel := c.bounded(cmd)
	defer cancel()
	state, err := client.State(ctx, f.state)
	if err != nil {
		return err
	}
	entries, err := c.readDump(name, state, f)
	if err != nil {
		return err
	}
	slices.SortStableFunc(entries, func(a, b dumped) int { return cmp.Compare(a.txid, b.txid) })
	skipped := behind(entries, state, f.partition)
	entries = entries[skipped:]
	if !f.checkOnly {
		bar := c.progress(int64(len(entries)), "import")
		defer bar.finish()
		i := importer{client: client, state: state, partition: f.partition, chunk: f.chunk, done: bar.set}
		if err := i.send(cmd.Context(), entries); err != nil {
			return err
		}
	}
	return c.printImport(importJSON{
		State: f.state, Partition: f.partition, Checked: f.checkOnly,
		Keys: len(entries), TxIDs: txidsOf(entries), Skipped: skipped,
	})
}

func (c *cli) readDump(name string, state api.StateInfo, f importFlags) ([]dumped, error) {
	in, size, closeInput, err := c.openInput(name)
	if err != nil {
		return nil, err
	}
	defer closeInput()
	if name == "-" {
		name = "standard input"
	}
	bar := c.progress(size, "check")
	defer bar.finish()
	d := newDumpReader(state, f)
	entries, err := d.read(bar.reader(in))
	if err == nil {
		err = d.fits(len(entries))
	}
	if _, ok := errors.AsType[usageError](err); ok {
		return nil, usageError{fmt.Errorf("%s: %w", name, err)}
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return entries, nil
}

// behind returns how many entries, sorted by txid, are below the progress of a partition. An
// earlier import has sent them: it was there in the same order.
func behind(entries []dumped, state api.StateInfo, partition string) int {
	if state.Kind == "nontx" { // a txid there is a label
		return 0
	}
	for _, p := range state.Progress {
		if p.Partition == partition {
			n, _ := slices.BinarySearchFunc(entries, p.TxID, func(e dumped, x mapstate.TxID) int { return cmp.Compare(e.txid, x) })
			return n
		}
	}
	return 0
}

// txidsOf counts the txids of entries, which are sorted by them.
func txidsOf(entries []dumped) (n int) {
	last := mapstate.NoTxID
	for _, e := range entries {
		if e.txid != last {
			n, last = n+1, e.txid
		}
	}
	return n
}

func (c *cli) printImport(done importJSON) error {
	return c.print(done, func(t *table) {
		verb := "imported"
		if done.Checked {
			verb = "checked"
		}
		t.row(fmt.Sprintf("%s: keys %d, txids %d, skipped %d", verb, done.Keys, done.TxIDs, done.Skipped))
	})
}
