package main

import (
	"github.com/spf13/cobra"

	"tine/api"
	"tine/mapstate"
)

func (c *cli) snapshotCommand() *cobra.Command {
	return group("snapshot", "Read and write a state's single value",
		"  tine snapshot update total sum --arg 5 --txid 3\n  tine snapshot get total",
		c.snapshotGetCommand(), c.snapshotUpdateCommand(), c.snapshotSetCommand())
}

func (c *cli) snapshotGetCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "get STATE",
		Short:   "Read the value",
		Example: "  tine snapshot get total\n  tine snapshot get total --txid 3",
		Args:    wants("STATE"),
	}
	env := takeEnvelope(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		e, err := env.value()
		if err != nil {
			return err
		}
		ctx, cancel := c.bounded(cmd)
		defer cancel()
		entry, err := c.client().Snapshot(ctx, args[0], e)
		if err != nil {
			return err
		}
		return c.print(newEntryJSON(mapstate.SnapshotKey, entry).withFound(entry), func(t *table) {
			t.row("VALUE", "PREV", "TXID")
			t.row(cell(entry.Value), cell(entry.Prev), txidCell(entry.TxID))
		})
	}
	return cmd
}

func (c *cli) snapshotUpdateCommand() *cobra.Command {
	var arg string
	cmd := &cobra.Command{
		Use:     "update STATE OP",
		Short:   "Apply an updater to the value",
		Example: "  tine snapshot update total count\n  tine snapshot update total sum --arg 5 --txid 3",
		Args:    wants("STATE", "OP"),
	}
	cmd.Flags().StringVar(&arg, "arg", "", "argument of the updater, `JSON`")
	env := takeEnvelope(cmd, "epoch", "offsets", "whole")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		op := api.Op{Name: args[1]}
		if cmd.Flags().Changed("arg") {
			var err error
			if op.Arg, err = parseValue("--arg", arg); err != nil {
				return err
			}
		}
		e, err := env.value()
		if err != nil {
			return err
		}
		ctx, cancel := c.bounded(cmd)
		defer cancel()
		res, err := c.client().UpdateSnapshot(ctx, args[0], e, op)
		if err != nil {
			return err
		}
		return c.printSnapshotResult(e.TxID, res)
	}
	return cmd
}

// printSnapshotResult prints what an update of a snapshot did, and the value.
func (c *cli) printSnapshotResult(x mapstate.TxID, res mapstate.Result) error {
	shown := newResultJSON(x, res)
	for _, v := range res.Values { // it is one
		shown.Value = v.AppendJSON(nil)
	}
	return c.print(shown, func(t *table) {
		for _, v := range res.Values {
			t.row(cell(v))
		}
		t.row(resultCell(res))
	})
}

func (c *cli) snapshotSetCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "set STATE VALUE",
		Short:   "Store the value",
		Example: "  tine snapshot set total 0\n  tine snapshot set total '{\"rows\":12}' --txid 4",
		Args:    wants("STATE", "VALUE"),
	}
	env := takeEnvelope(cmd, "epoch", "offsets", "whole")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		v, err := parseValue("VALUE", args[1])
		if err != nil {
			return err
		}
		e, err := env.value()
		if err != nil {
			return err
		}
		ctx, cancel := c.bounded(cmd)
		defer cancel()
		res, err := c.client().SetSnapshot(ctx, args[0], e, v)
		return c.printResult(e.TxID, nil, res, err)
	}
	return cmd
}
