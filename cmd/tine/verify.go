package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"tine/cmd/tine/child"
	"tine/verify"
)

// verifyIdle is how long the server of a verification keeps an open batch that
// nobody uses. It is short, so that this can be waited for.
const verifyIdle = 2 * time.Second

// shownSteps is how many lines of a history are printed; its file has all.
const shownSteps = 40

// verification is the flags of "tine verify".
type verification struct {
	duration   time.Duration
	kills      int
	seed       int64
	dir        string
	partitions int
	history    string
}

func (c *cli) verifyCommand() *cobra.Command {
	var v verification
	cmd := &cobra.Command{
		Use:   "verify",
		Short: "Prove exactly-once on this machine, or against a server",
		Long: `Send random batches to a server that is started for this, with everything that may
go wrong: replays, replays with other contents, lost answers, connections that are
cut, zombies, batches that are left open, kill -9 and restart at random moments.
Every answer, and every key and progress record that is stored, is compared with what
the rules of the three kinds say. The exit code is 1 if anything differs; the
smallest history that shows it is then written as a file for "tine replay".

With --url a server that is running already is used, and not killed. What is
written there are states of this run's own, which are deleted afterwards.`,
		Example: `  tine verify
  tine verify --duration 10m --kills 100
  tine verify --seed 42 --dir /mnt/disk/try
  tine verify --url http://127.0.0.1:7070 --duration 30s`,
		Args: wants(),
	}
	flags := cmd.Flags()
	flags.DurationVar(&v.duration, "duration", time.Minute, "how long batches are sent")
	flags.IntVar(&v.kills, "kills", 10, "how often the server is killed; none with --url")
	flags.Int64Var(&v.seed, "seed", 0, "`NUMBER` that the batches are drawn from; a random one without it")
	flags.StringVar(&v.dir, "dir", "", "data `DIRECTORY` of the server, which must not exist and is kept; a temporary one without it")
	flags.IntVar(&v.partitions, "partitions", 3, "writers of each state")
	flags.StringVar(&v.history, "history", "", "`FILE` for the history of a difference; tine-verify-SEED.ndjson without it")
	hideInherited(cmd, "timeout")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		_, fromElsewhere := c.from["url"]
		foreign := cmd.Flags().Changed("url") && !fromElsewhere // not by an environment that was meant for other verbs
		if err := v.complete(cmd, foreign); err != nil {
			return usageError{err}
		}
		return c.verify(cmd, v, foreign)
	}
	return cmd
}

// complete fills in what is not given, and checks the rest.
func (v *verification) complete(cmd *cobra.Command, foreign bool) error {
	given := cmd.Flags().Changed
	if foreign && !given("kills") {
		v.kills = 0
	}
	if !given("seed") {
		v.seed = rand.Int64()
	}
	if v.history == "" {
		v.history = fmt.Sprintf("tine-verify-%d.ndjson", v.seed)
	}
	var problems []error
	wrong := func(is bool, format string, args ...any) {
		if is {
			problems = append(problems, fmt.Errorf(format, args...))
		}
	}
	wrong(v.duration <= 0, "--duration is %s, want more than 0", v.duration)
	wrong(v.kills < 0, "--kills is %d, want 0 or more", v.kills)
	wrong(v.seed < 0, "--seed is %d, want 0 or more", v.seed)
	wrong(v.partitions < 1 || v.partitions > 100, "--partitions is %d, want 1 to 100", v.partitions)
	wrong(foreign && v.kills > 0, "--kills is %d, but a server that --url names is not ours to kill", v.kills)
	wrong(foreign && v.dir != "", "--dir is of a server that is started for this, but --url names one that runs")
	if _, err := os.Lstat(v.dir); v.dir != "" && err == nil {
		wrong(true, "--dir %s is there already; name one that is not", v.dir)
	}
	return errors.Join(problems...)
}

// verify runs a verification and prints its report.
func (c *cli) verify(cmd *cobra.Command, v verification, foreign bool) (err error) {
	ctx, cancel := interruptible(cmd.Context())
	defer cancel()
	if err := c.announceSeed(v.seed); err != nil {
		return err
	}
	opts := verify.Options{Seed: uint64(v.seed), Duration: v.duration, Kills: v.kills, Partitions: v.partitions}
	if foreign {
		c.called = true
		opts.Server = verify.Running(c.url)
	} else {
		server, end, err := c.startVerified(ctx, v.dir)
		switch {
		case err != nil && ctx.Err() != nil:
			return errors.New("verify: interrupted before it began")
		case err != nil:
			return fmt.Errorf("verify: %w", err)
		}
		defer end()
		opts.Server, opts.BatchIdle = server, verifyIdle
	}
	bar := c.progress(v.duration.Milliseconds(), "verify")
	opts.Progress = func(done, _ time.Duration) { bar.set(int(done.Milliseconds())) }
	report, err := verify.Run(ctx, opts)
	bar.finish()
	if err != nil && report.Difference == nil {
		return fmt.Errorf("verify: %w", err) // there is no verdict
	}
	if report.Difference != nil {
		err = errors.Join(writeHistory(v.history, report), err)
	}
	if err := errors.Join(err, c.print(report, func(t *table) { fillVerified(t, report, v.history) })); err != nil {
		return fmt.Errorf("verify: %w", err)
	}
	switch {
	case report.Difference != nil:
		return fmt.Errorf("verify: %w", &report.Difference.Difference)
	case report.Interrupted:
		return errors.New("verify: interrupted; there was no difference so far")
	}
	return nil
}

// announceSeed prints the seed before anything can go wrong, out of the way of JSON.
func (c *cli) announceSeed(seed int64) error {
	out := c.out
	if c.output == "json" {
		out = c.err
	}
	_, err := fmt.Fprintf(out, "seed %d\n", seed)
	return err
}

// startVerified starts a server of our own; end ends it and removes a directory that
// was not asked for.
func (c *cli) startVerified(ctx context.Context, dir string) (server *child.Server, end func(), err error) {
	executable, err := os.Executable()
	if err != nil {
		return nil, nil, err
	}
	remove := func() {}
	if dir == "" {
		temp, err := os.MkdirTemp("", "tine-verify-")
		if err != nil {
			return nil, nil, fmt.Errorf("make a data directory: %w", err)
		}
		dir = filepath.Join(temp, "data")
		remove = func() { _ = os.RemoveAll(temp) } // a rest in the temporary directory is no reason to fail
	}
	server, err = child.Start(ctx, executable, dir, "--log-level", "error", "--batch-idle", verifyIdle.String())
	if err != nil {
		remove()
		return nil, nil, err
	}
	return server, func() { server.Close(); remove() }, nil
}

// writeHistory writes the history of a difference for "tine replay", and beside it
// what to read.
func writeHistory(path string, report verify.Report) error {
	text := fmt.Sprintf("seed %d\n%s\n\n%s", report.Seed, report.Difference.Error(), report.Difference.Text)
	return errors.Join(
		os.WriteFile(path, report.Difference.Replay, 0o600),
		os.WriteFile(path+".txt", []byte(text), 0o600),
	)
}
