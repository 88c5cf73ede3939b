package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tine/api"
)

// cli is one execution of the command: its streams and its common flags.
type cli struct {
	streams
	lookupEnv func(string) (string, bool)

	args []string // of the command line

	url     string
	output  string
	timeout time.Duration
	from    sources // of the common flags and the server's settings

	// What is being done, for errors to tell.
	verb   string
	state  string // the STATE that it is done to; "" where there is none
	called bool   // a server may have been called

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
		Version:           currentVersion().String(),
		SilenceErrors:     true,
		SilenceUsage:      true,
		PersistentPreRunE: c.start,
		RunE:              func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetIn(c.in)
	root.SetOut(c.out)
	root.SetErr(c.err)
	root.SetVersionTemplate("{{.Version}}\n")
	root.SetFlagErrorFunc(flagError)
	root.SetHelpCommand(helpCommand())
	flags := root.PersistentFlags()
	flags.StringVar(&c.url, "url", "http://127.0.0.1:7070", "`URL` of the server")
	c.output = "table"
	flags.Var(choice{&c.output, outputWords()}, "output", "`FORMAT` of the output, table or json")
	flags.DurationVar(&c.timeout, "timeout", 30*time.Second, "for the server to answer")
	completeFlag(root, "output", outputWords())
	root.AddCommand(
		c.serveCommand(),
		c.stateCommand(),
		c.getCommand(), c.updateCommand(), c.putCommand(), c.removeCommand(),
		c.beginCommand(), c.commitCommand(), c.abortCommand(),
		c.snapshotCommand(), c.scanCommand(), c.progressCommand(),
		c.replayCommand(), c.importCommand(), c.demoCommand(), c.verifyCommand(), c.versionCommand(), c.completionCommand(),
	)
	c.completeArguments(root)
	return root
}

// start completes the common flags from the environment and checks them.
func (c *cli) start(cmd *cobra.Command, args []string) error {
	c.from = make(sources)
	if err := fillFromEnv(cmd.Root().PersistentFlags(), c.lookupEnv, c.from); err != nil {
		return err
	}
	if !isServerURL(c.url) {
		return fmt.Errorf("%s is %q, want scheme, host and port alone, such as http://127.0.0.1:7070", c.from.of("url"), c.url)
	}
	c.url = strings.TrimSuffix(c.url, "/")
	if c.timeout <= 0 {
		return fmt.Errorf("%s is %s, want more than 0", c.from.of("timeout"), c.timeout)
	}
	c.verb = cmd.Name()
	if names := argumentNames(cmd); len(names) > 0 && len(args) > 0 && names[0] == "STATE" {
		c.state = args[0]
	}
	c.started = true
	return nil
}

// isServerURL reports whether text is a URL of a server, to which paths can be added.
func isServerURL(text string) bool {
	u, err := url.Parse(text)
	return err == nil && u.Host != "" && (u.Scheme == "http" || u.Scheme == "https") &&
		(u.Path == "" || u.Path == "/") && u.RawQuery == "" && u.Fragment == ""
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
	c.called = true
	return &http.Client{Transport: &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: c.timeout}).DialContext,
		TLSHandshakeTimeout:   c.timeout,
		ResponseHeaderTimeout: c.timeout,
	}}
}

// group returns a command that only holds others.
func group(use, short, example string, verbs ...*cobra.Command) *cobra.Command {
	names := make([]string, len(verbs))
	for i, verb := range verbs {
		names[i] = verb.Name()
	}
	cmd := &cobra.Command{
		Use:     use,
		Short:   short,
		Example: example,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return usageError{fmt.Errorf("missing verb behind %q: %w", cmd.CommandPath(), wantOneOf(names))}
		},
	}
	cmd.AddCommand(verbs...)
	return cmd
}
