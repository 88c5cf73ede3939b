package main

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"tine/api"
	"tine/mapstate"
)

func (c *cli) updateCommand() *cobra.Command {
	var arg, args string
	cmd := &cobra.Command{
		Use:   "update STATE OP KEY...",
		Short: "Apply an updater to keys",
		Long: `Apply an updater (append, avg, concat, count, first, max, merge, min, set, sum,
union) to keys, in order. Its argument is --arg for all keys, or --args with one per key.

` + keysText,
		Example: `  tine update words count man dog man --txid 3
  tine update totals sum eu us --args '[10,2.5]' --txid 3 --whole
  tine update users merge alice --arg '{"age":30}'`,
		Args: wants("STATE", "OP", "KEY..."),
	}
	cmd.Flags().StringVar(&arg, "arg", "", "argument of the updater for every key, `JSON`")
	cmd.Flags().StringVar(&args, "args", "", "arguments of the updater, one per key, a `JSON` array")
	env := takeEnvelope(cmd, "epoch", "offsets", "whole")
	cmd.RunE = func(cmd *cobra.Command, words []string) error {
		keys, err := parseKeys(words[2:])
		if err != nil {
			return err
		}
		req := api.Request{Keys: keys, Updater: api.Op{Name: words[1]}}
		if req.Envelope, err = env.value(); err != nil {
			return err
		}
		one, each := cmd.Flags().Changed("arg"), cmd.Flags().Changed("args")
		if one && each {
			return usageError{errors.New("--arg is for all keys and --args has one per key, want one of them")}
		}
		if one {
			if req.Updater.Arg, err = parseValue("--arg", arg); err != nil {
				return err
			}
		}
		if each {
			if req.Args, err = parseValues("--args", args); err != nil {
				return err
			}
		}
		ctx, cancel := c.bounded(cmd)
		defer cancel()
		res, err := c.client().MultiUpdate(ctx, words[0], req)
		return c.printResult(req.TxID, keys, res, err)
	}
	return cmd
}

func (c *cli) putCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "put STATE KEY VALUE [KEY VALUE]...",
		Short: "Store values",
		Long:  "Store values, which are JSON, under keys, in order.\n\n" + keysText,
		Example: `  tine put words man 3 dog 4
  tine put users alice '{"age":30}' --txid 7
  tine put words man -- -5`,
		Args: wantsPairs,
	}
	env := takeEnvelope(cmd, "epoch", "offsets", "whole")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		var keys []mapstate.Key
		var values []mapstate.Value
		for i := 1; i < len(args); i += 2 {
			key, err := parseKey(args[i])
			if err != nil {
				return err
			}
			value, err := parseValue("VALUE", args[i+1])
			if err != nil {
				return err
			}
			keys, values = append(keys, key), append(values, value)
		}
		e, err := env.value()
		if err != nil {
			return err
		}
		ctx, cancel := c.bounded(cmd)
		defer cancel()
		res, err := c.client().MultiPut(ctx, args[0], e, keys, values)
		return c.printResult(e.TxID, nil, res, err)
	}
	return cmd
}

func (c *cli) removeCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "remove STATE KEY...",
		Short: "Remove keys",
		Long:  "Remove keys.\n\n" + keysText,
		Example: `  tine remove words man dog
  tine remove words man --txid 8`,
		Args: wants("STATE", "KEY..."),
	}
	env := takeEnvelope(cmd, "epoch", "offsets", "whole")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		keys, err := parseKeys(args[1:])
		if err != nil {
			return err
		}
		e, err := env.value()
		if err != nil {
			return err
		}
		ctx, cancel := c.bounded(cmd)
		defer cancel()
		res, err := c.client().MultiRemove(ctx, args[0], e, keys)
		return c.printResult(e.TxID, nil, res, err)
	}
	return cmd
}

// resultJSON is what a write did, as the API shows it.
type resultJSON struct {
	TxID             *mapstate.TxID    `json:"txid"`
	Value            json.RawMessage   `json:"value,omitempty"`  // of a snapshot
	Values           []json.RawMessage `json:"values,omitempty"` // of keys
	Applied          int               `json:"applied"`
	Replayed         int               `json:"replayed"`
	Restored         int               `json:"restored"`
	AlreadyCommitted bool              `json:"alreadyCommitted,omitempty"`
}

// newResultJSON returns a result without its values.
func newResultJSON(x mapstate.TxID, res mapstate.Result) resultJSON {
	shown := resultJSON{Applied: res.Applied, Replayed: res.Replayed, Restored: res.Restored, AlreadyCommitted: res.AlreadyCommitted}
	if x != mapstate.NoTxID {
		shown.TxID = &x
	}
	return shown
}

// printResult prints what a write did, or returns its error. The values of the result,
// if any, belong to keys.
func (c *cli) printResult(x mapstate.TxID, keys []mapstate.Key, res mapstate.Result, err error) error {
	if err != nil {
		return err
	}
	shown := newResultJSON(x, res)
	for _, v := range res.Values {
		shown.Values = append(shown.Values, v.AppendJSON(nil))
	}
	return c.print(shown, func(t *table) {
		for i, v := range res.Values {
			t.row(keys[i], cell(v))
		}
		t.row(resultCell(res))
	})
}

// resultCell shows in a table what a write did.
func resultCell(res mapstate.Result) string {
	if res.AlreadyCommitted {
		return "already committed"
	}
	return fmt.Sprintf("applied %d, replayed %d, restored %d", res.Applied, res.Replayed, res.Restored)
}
