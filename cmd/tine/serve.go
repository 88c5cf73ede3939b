package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"tine/server"
)

func (c *cli) serveCommand() *cobra.Command {
	config := server.DefaultConfig()
	var path string
	var printConfig bool
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run the server",
		Long: `Run the server until it is told to stop by SIGINT or SIGTERM. A second signal
ends it at once.

Every flag can also be given as an environment variable (--data-dir is
TINE_DATA_DIR) or as a key of the YAML file that --config names. A flag wins over
the environment, the environment over the file.`,
		Example: `  tine serve
  tine serve --listen 127.0.0.1:7070 --data-dir ./tine-data
  TINE_LOG_FORMAT=json tine serve --config tine.yaml
  tine serve --print-config > tine.yaml`,
		Args: wants(),
	}
	names := serveFlags(cmd.Flags(), &config)
	cmd.Flags().StringVar(&path, "config", "", "read settings from this YAML `FILE`, flag names as keys")
	cmd.Flags().BoolVar(&printConfig, "print-config", false, "print the effective configuration as YAML and exit")
	completeFlag(cmd, "log-format", []string{"text", "json"})
	completeFlag(cmd, "log-level", levelWords())
	hideInherited(cmd, "url", "output", "timeout")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := fillFromEnv(cmd.Flags(), c.lookupEnv, c.from); err != nil {
			return usageError{err}
		}
		if path != "" {
			if err := fillFromFile(cmd.Flags(), path, names, c.from); err != nil {
				return usageError{err}
			}
		}
		if err := config.Validate(); err != nil {
			return usageError{fmt.Errorf("invalid configuration: %w", c.from.attribute(err))}
		}
		if printConfig {
			return printSettings(c.out, cmd.Flags(), names)
		}
		return c.serve(cmd, config)
	}
	return cmd
}

// serve runs a server until a signal comes.
func (c *cli) serve(cmd *cobra.Command, config server.Config) error {
	ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// From the first signal on, the next one has its default effect: it ends the process.
	defer context.AfterFunc(ctx, stop)()
	return server.New(config, server.Options{
		Out:     c.out,
		Log:     newLogger(c.err, config),
		Version: currentVersion().Version,
	}).Run(ctx)
}

// serveFlags binds the members of config to flags and returns their names, in
// the order in which they are printed.
func serveFlags(flags *pflag.FlagSet, config *server.Config) []string {
	own := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	own.SortFlags = false
	own.StringVar(&config.Listen, "listen", config.Listen, "`ADDRESS` of the API; port 0 takes a free one")
	own.StringVar(&config.AdminListen, "admin-listen", config.AdminListen, "`ADDRESS` of /debug/pprof; off if empty")
	own.StringVar(&config.DataDir, "data-dir", config.DataDir, "`DIRECTORY` of the stored states")
	own.Int64Var(&config.CacheEntries, "cache-entries", config.CacheEntries, "default LRU of a state, in `ENTRIES`; 0 is none")
	own.Var(size{&config.CacheBytes}, "cache-bytes", "default LRU of a state, in `BYTES`")
	own.Var(size{&config.BlockCacheBytes}, "block-cache-bytes", "Pebble's block cache, in `BYTES`")
	own.Var(size{&config.MemTableBytes}, "memtable-bytes", "Pebble's memtable, in `BYTES`")
	own.DurationVar(&config.SyncInterval, "sync-interval", config.SyncInterval, "until commits of an interval state are on disk, at most")
	own.Var(size{&config.MinFreeBytes}, "min-free-bytes", "refuse commits while the disk has less `BYTES`")
	own.Var(size{&config.MaxBodyBytes}, "max-body-bytes", "largest request body, in `BYTES`")
	own.IntVar(&config.MaxKeys, "max-keys", config.MaxKeys, "most keys in one request")
	own.IntVar(&config.MaxRequests, "max-requests", config.MaxRequests, "most requests under way at once")
	own.Var(size{&config.MaxInFlightBytes}, "max-in-flight-bytes", "most `BYTES` of request bodies under way at once; one of unknown length counts as the largest")
	own.DurationVar(&config.BatchIdle, "batch-idle", config.BatchIdle, "until an open batch that nobody uses is dropped")
	own.DurationVar(&config.BodyTimeout, "body-timeout", config.BodyTimeout, "for a request body to arrive")
	own.DurationVar(&config.WriteTimeout, "write-timeout", config.WriteTimeout, "for a client to take the next part of a stream")
	own.DurationVar(&config.ShutdownGrace, "shutdown-grace", config.ShutdownGrace, "from failing /readyz to refusing requests")
	own.DurationVar(&config.ShutdownTimeout, "shutdown-timeout", config.ShutdownTimeout, "for requests under way to finish")
	own.StringVar(&config.LogFormat, "log-format", config.LogFormat, "`FORMAT` of the log on stderr, text or json")
	own.Var(level{&config.LogLevel}, "log-level", "least `LEVEL` that is logged: debug, info, warn or error")
	var names []string
	own.VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	flags.AddFlagSet(own)
	flags.SortFlags = false
	return names
}
