package main

import (
	"github.com/spf13/cobra"
)

func (c *cli) getCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "get STATE KEY...",
		Short: "Read keys",
		Long: `Read keys of a state. With the txid and partition of an open batch, as that batch
sees them; with a txid otherwise, as a replay of that batch would find them.

` + keysText,
		Example: `  tine get words man dog
  tine get words '["eu","man"]' --output json
  tine get words man --txid 7`,
		Args: wants("STATE", "KEY..."),
	}
	env := takeEnvelope(cmd)
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
		entries, err := c.client().Read(ctx, args[0], e, keys)
		if err != nil {
			return err
		}
		shown := make([]entryJSON, len(entries))
		for i, entry := range entries {
			shown[i] = newEntryJSON(keys[i], entry).withFound(entry)
		}
		return c.print(map[string]any{"entries": shown}, entryTable(keys, entries))
	}
	return cmd
}
