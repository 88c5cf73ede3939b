package main

import (
	"encoding/json"
	"time"

	"github.com/spf13/cobra"

	"tine/mapstate"
)

// progressJSON is the progress of one partition, as the API shows it.
type progressJSON struct {
	Partition   string          `json:"partition"`
	TxID        mapstate.TxID   `json:"txid"`
	Epoch       int64           `json:"epoch"`
	Offsets     json.RawMessage `json:"offsets"`
	CommittedAt time.Time       `json:"committedAt"`
}

func (c *cli) progressCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "progress STATE",
		Short:   "Show the last commit of every partition",
		Example: "  tine progress words\n  tine progress words --output json",
		Args:    wants("STATE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, cancel := c.bounded(cmd)
			defer cancel()
			partitions, err := c.client().Progress(ctx, args[0])
			if err != nil {
				return err
			}
			shown := make([]progressJSON, len(partitions))
			for i, p := range partitions {
				shown[i] = progressJSON{p.Partition, p.TxID, p.Epoch, p.Offsets, p.CommittedAt}
			}
			return c.print(map[string]any{"partitions": shown}, func(t *table) {
				t.row("PARTITION", "TXID", "EPOCH", "COMMITTED", "OFFSETS")
				for _, p := range shown {
					t.row(quoted(p.Partition), p.TxID, p.Epoch, p.CommittedAt.Format(time.RFC3339), orDash(p.Offsets))
				}
			})
		},
	}
}

func quoted(text string) string { return string(mapstate.AppendQuoted(nil, text)) }

func orDash(text json.RawMessage) string {
	if text == nil {
		return "-"
	}
	return string(text)
}
