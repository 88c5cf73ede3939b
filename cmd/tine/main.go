// Command tine is the Tine server and its client: flags and verbs, and nothing
// that is not wiring.
package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	os.Exit(run(context.Background(), os.Args[1:], streams{in: os.Stdin, out: os.Stdout, err: os.Stderr}, os.LookupEnv))
}

// streams are the standard streams of the process.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

// run executes one command line and returns the exit code of the process.
func run(ctx context.Context, args []string, std streams, lookupEnv func(string) (string, bool)) int {
	c := &cli{streams: std, lookupEnv: lookupEnv, args: args}
	root := c.rootCommand()
	root.SetArgs(args)
	return c.report(root.ExecuteContext(ctx))
}

// interruptible returns a context that ends with the first interrupt or request to end.
func interruptible(ctx context.Context) (context.Context, context.CancelFunc) {
	return signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
}
