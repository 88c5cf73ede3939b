package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/spf13/cobra"

	"tine/api"
)

// cli is one execution of the command: its streams and its common flags.
type cli struct {
	streams
	lookupEnv func(string) (string, bool)

	url     string
	output  string
	timeout time.Duration

	// started says that the command line was understood: errors from then on are
	// not errors of usage.
	started bool
}

func (c *cli) rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "tine",
		Short: "A transactional state store for micro-batch sinks",
		Long: `Tine keeps the state of jobs that may replay their batches. Each batch is sent
with its transaction id, and the totals come out as if it had been processed once.

Exit codes: 0 ok, 1 error, 2 usage, 3 not found, 4 conflict, 5 unavailable.
The common flags can be given as environment variables: --url is TINE_URL.`,
		Example: `  tine serve &
  tine state create words --kind opaque
  tine update words count man dog man --txid 1
  tine scan words`,
		Args:              cobra.NoArgs,
		SilenceErrors:     true,
		SilenceUsage:      true,
		PersistentPreRunE: c.start,
		RunE:              func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	flags := root.PersistentFlags()
	flags.StringVar(&c.url, "url", "http://127.0.0.1:7070", "`URL` of the server")
	flags.StringVar(&c.output, "output", "table", "`FORMAT` of the output, table or json")
	flags.DurationVar(&c.timeout, "timeout", 30*time.Second, "for the server to answer")
	root.AddCommand(
		c.serveCommand(),
		c.stateCommand(),
		c.getCommand(), c.updateCommand(), c.putCommand(), c.removeCommand(),
		c.beginCommand(), c.commitCommand(), c.abortCommand(),
		c.snapshotCommand(), c.scanCommand(), c.progressCommand(),
		c.replayCommand(), c.demoCommand(), c.versionCommand(),
	)
	c.completeStates(root)
	return root
}

// start completes the common flags from the environment and checks them.
func (c *cli) start(cmd *cobra.Command, _ []string) error {
	if err := fillFromEnv(cmd.Root().PersistentFlags(), c.lookupEnv); err != nil {
		return err
	}
	if c.output != "table" && c.output != "json" {
		return fmt.Errorf("--output is %q, want table or json", c.output)
	}
	if u, err := url.Parse(c.url); err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return fmt.Errorf("--url is %q, want something like http://127.0.0.1:7070", c.url)
	}
	if c.timeout <= 0 {
		return fmt.Errorf("--timeout is %s, want more than 0", c.timeout)
	}
	c.started = true
	return nil
}

// client returns a client of the server that --url names.
func (c *cli) client() *api.Client {
	return api.NewClient(c.url, c.httpClient())
}

// bounded returns the context of a command whose answer is short.
func (c *cli) bounded(cmd *cobra.Command) (context.Context, context.CancelFunc) {
	return context.WithTimeout(cmd.Context(), c.timeout)
}

// httpClient bounds the wait for an answer, but not the reading of a long one.
func (c *cli) httpClient() *http.Client {
	return &http.Client{Transport: &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: c.timeout}).DialContext,
		TLSHandshakeTimeout:   c.timeout,
		ResponseHeaderTimeout: c.timeout,
	}}
}

// group returns a command that only holds others.
func group(use, short, example string, verbs ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use:     use,
		Short:   short,
		Example: example,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return usageError{fmt.Errorf("%s: name what to do; see %s --help", cmd.CommandPath(), cmd.CommandPath())}
		},
	}
	cmd.AddCommand(verbs...)
	return cmd
}
