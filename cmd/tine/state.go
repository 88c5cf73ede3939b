package main

import (
	"errors"

	"github.com/spf13/cobra"

	"tine/api"
	"tine/server"
)

func (c *cli) stateCommand() *cobra.Command {
	return group("state", "Create, list, show and delete states",
		"  tine state create words --kind opaque\n  tine state list",
		c.stateCreateCommand(), c.stateListCommand(), c.stateShowCommand(), c.stateDeleteCommand())
}

func (c *cli) stateCreateCommand() *cobra.Command {
	var spec api.StateSpec
	var cache api.CacheSpec
	var memcached api.MemcachedSpec
	cmd := &cobra.Command{
		Use:   "create STATE --kind KIND",
		Short: "Create a state",
		Long: `Create a state. A state of that name with the same spec is left as it is; one with
another spec is a conflict.`,
		Example: `  tine state create words --kind opaque
  tine state create recent --kind nontx --backing memory
  tine state create clicks --kind transactional --durability interval --cache-entries 100000
  tine state create hits --kind opaque --memcached 10.0.0.1:11211,10.0.0.2:11211
  tine state create counts --kind opaque --memcached 10.0.0.1:11211 --memcached-format trident`,
		Args: wants("STATE"),
	}
	flags := cmd.Flags()
	flags.StringVar(&spec.Kind, "kind", "", "`KIND` of the state: nontx, transactional or opaque")
	flags.StringVar(&spec.Backing, "backing", "", "where entries live: pebble (default), memory or memcached")
	flags.StringVar(&spec.Durability, "durability", "", "sync (default) or interval")
	flags.Int64Var(&cache.Entries, "cache-entries", 0, "LRU in front of the backing, in entries; the server's default without it")
	flags.Var(size{&cache.Bytes}, "cache-bytes", "LRU in front of the backing, in `BYTES`; goes with --cache-entries")
	flags.StringSliceVar(&memcached.Servers, "memcached", nil, "keep entries on these memcached `SERVERS`, host:port with commas between")
	flags.StringVar(&memcached.Format, "memcached-format", "", "tine (default) or trident, the format of Storm Trident's adapter")
	flags.StringVar(&memcached.KeyPrefix, "memcached-prefix", "", "`PREFIX` of every name on memcached")
	flags.StringVar(&memcached.GlobalKey, "memcached-global-key", "", "`NAME` of the snapshot in format trident; $GLOBAL$ without it")
	flags.BoolVar(&memcached.AcceptEviction, "accept-eviction", false, "what memcached forgets may start again from nothing: do not warn of it")
	completeFlag(cmd, "kind", server.Kinds())
	completeFlag(cmd, "backing", server.Backings())
	completeFlag(cmd, "durability", server.Durabilities())
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if spec.Kind == "" {
			return usageError{errors.New("--kind is not given, want nontx, transactional or opaque")}
		}
		switch {
		case flags.Changed("cache-entries"):
			spec.Cache = &cache
		case flags.Changed("cache-bytes"):
			return usageError{errors.New("--cache-bytes goes with --cache-entries")}
		}
		if len(memcached.Servers) > 0 {
			spec.Memcached = &memcached
			if !flags.Changed("backing") {
				spec.Backing = "memcached"
			}
		}
		ctx, cancel := c.bounded(cmd)
		defer cancel()
		info, _, err := c.client().CreateState(ctx, args[0], spec)
		if err != nil {
			return err
		}
		return c.printState(info)
	}
	return cmd
}

func (c *cli) stateListCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Short:   "List all states",
		Example: "  tine state list\n  tine state list --output json",
		Args:    wants(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := c.bounded(cmd)
			defer cancel()
			states, err := c.client().States(ctx)
			if err != nil {
				return err
			}
			return c.print(map[string]any{"states": states}, stateTable(states...))
		},
	}
}

func (c *cli) stateShowCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "show STATE",
		Short:   "Show a state",
		Example: "  tine state show words\n  tine state show words --output json",
		Args:    wants("STATE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, cancel := c.bounded(cmd)
			defer cancel()
			info, err := c.client().State(ctx, args[0])
			if err != nil {
				return err
			}
			return c.printState(info)
		},
	}
}

func (c *cli) stateDeleteCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "delete STATE",
		Short:   "Delete a state with its entries and progress",
		Example: "  tine state delete words",
		Args:    wants("STATE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, cancel := c.bounded(cmd)
			defer cancel()
			if err := c.client().DeleteState(ctx, args[0]); err != nil {
				return err
			}
			return c.print(struct {
				Name    string `json:"name"`
				Deleted bool   `json:"deleted"`
			}{args[0], true}, func(t *table) { t.row("deleted") })
		},
	}
}

func (c *cli) printState(info api.StateInfo) error { return c.print(info, stateTable(info)) }

func stateTable(states ...api.StateInfo) func(*table) {
	return func(t *table) {
		t.row("NAME", "KIND", "BACKING", "DURABILITY", "CACHE", "COMMITS", "WRITTEN", "REPLAYED", "STALE")
		for _, s := range states {
			cache := any("-")
			if s.Cache != nil && s.Cache.Entries > 0 {
				cache = s.Cache.Entries
			}
			t.row(s.Name, s.Kind, s.Backing, s.Durability, cache, s.Stats.Commits, s.Stats.Keys, s.Stats.Replayed, s.Stats.Stale)
		}
	}
}
