package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"tine/mapstate"
)

func (c *cli) beginCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "begin STATE --txid N",
		Short: "Open a batch",
		Long: `Open a batch. Operations with its txid and partition are staged until "tine commit";
nobody else sees them before. Opening it again drops what was staged.`,
		Example: `  tine begin words --txid 7
  tine begin words --txid 7 --partition p0 --epoch 2`,
		Args: wants("STATE"),
	}
	env := takeBatch(cmd, "epoch")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		e, err := env.numbered()
		if err != nil {
			return err
		}
		ctx, cancel := c.bounded(cmd)
		defer cancel()
		begun, err := c.client().BeginCommit(ctx, args[0], e)
		if err != nil {
			return err
		}
		return c.print(struct {
			TxID      mapstate.TxID `json:"txid"`
			Partition string        `json:"partition"`
			Committed mapstate.TxID `json:"committed"`
			Replay    bool          `json:"replay"`
		}{e.TxID, e.Partition, begun.Committed, begun.Replay}, func(t *table) {
			t.row(fmt.Sprintf("begun %d, last committed %v, replay %t", e.TxID, txidCell(begun.Committed), begun.Replay))
		})
	}
	return cmd
}

func (c *cli) commitCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "commit STATE --txid N",
		Short: "Commit an open batch",
		Long: `Commit an open batch in one atomic step, as durable as the state is. Committing it
again after a lost answer does nothing and says so.`,
		Example: `  tine commit words --txid 7
  tine commit words --txid 7 --offsets '{"file":"part-0","line":1200}'`,
		Args: wants("STATE"),
	}
	env := takeBatch(cmd, "epoch", "offsets")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		e, err := env.numbered()
		if err != nil {
			return err
		}
		ctx, cancel := c.bounded(cmd)
		defer cancel()
		res, err := c.client().Commit(ctx, args[0], e)
		return c.printResult(e.TxID, nil, res, err)
	}
	return cmd
}

func (c *cli) abortCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "abort STATE --txid N",
		Short: "Drop an open batch",
		Long:  "Drop an open batch with everything staged in it.",
		Example: `  tine abort words --txid 7
  tine abort words --txid 7 --partition p0`,
		Args: wants("STATE"),
	}
	env := takeBatch(cmd, "epoch")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		e, err := env.numbered()
		if err != nil {
			return err
		}
		ctx, cancel := c.bounded(cmd)
		defer cancel()
		if err := c.client().Abort(ctx, args[0], e); err != nil {
			return err
		}
		return c.print(struct {
			TxID      mapstate.TxID `json:"txid"`
			Partition string        `json:"partition"`
			Aborted   bool          `json:"aborted"`
		}{e.TxID, e.Partition, true}, func(t *table) { t.row("aborted") })
	}
	return cmd
}
