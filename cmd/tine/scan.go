package main

import (
	"bufio"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"tine/api"
	"tine/mapstate"
)

func (c *cli) scanCommand() *cobra.Command {
	var listing api.Listing
	var limit int64
	cmd := &cobra.Command{
		Use:   "scan STATE",
		Short: "List entries in key order",
		Long: `List the entries of a state in key order, as one consistent view: a line per entry
with key and value, or with --output json an object per line.

` + keysText,
		Example: `  tine scan words
  tine scan words --prefix ma --limit 10
  tine scan words --start '["eu"]' --end '["us"]' --output json`,
		Args: wants("STATE"),
	}
	flags := cmd.Flags()
	flags.StringVar(&listing.Prefix, "prefix", "", "only keys that begin with the elements of this array, or with this text")
	flags.StringVar(&listing.Start, "start", "", "only from this `KEY` on")
	flags.StringVar(&listing.End, "end", "", "only before this `KEY`")
	flags.Int64Var(&limit, "limit", 0, "at most so many entries; 0 is all")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if limit < 0 {
			return usageError{fmt.Errorf("--limit is %d, want 0 or more", limit)}
		}
		for name, text := range map[string]string{"prefix": listing.Prefix, "start": listing.Start, "end": listing.End} {
			if _, err := parseKey(text); text != "" && err != nil {
				return usageError{fmt.Errorf("--%s: %w", name, err)}
			}
		}
		return c.scan(cmd, args[0], listing, limit)
	}
	return cmd
}

// errEnough ends a scan that has reached its limit.
var errEnough = errors.New("enough entries")

func (c *cli) scan(cmd *cobra.Command, state string, listing api.Listing, limit int64) error {
	out := bufio.NewWriter(c.out)
	n := int64(0)
	err := c.client().Scan(cmd.Context(), state, listing, func(key mapstate.Key, e mapstate.Entry) error {
		var err error
		if c.output == "json" {
			err = printJSON(out, newEntryJSON(key, e))
		} else {
			_, err = fmt.Fprintf(out, "%s\t%s\n", key, e.Value)
		}
		if n++; err == nil && n == limit {
			return errEnough
		}
		return err
	})
	if flushErr := out.Flush(); err == nil || errors.Is(err, errEnough) {
		err = flushErr
	}
	return err
}
