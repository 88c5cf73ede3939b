package main

import (
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// bar is a progress bar on stderr; nil where that is not a terminal.
type bar struct{ bar *progressbar.ProgressBar }

// progress starts a bar that counts to total; -1 is an unknown total.
func (c *cli) progress(total int64, what string) bar {
	f, ok := c.err.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return bar{}
	}
	return bar{progressbar.NewOptions64(total,
		progressbar.OptionSetWriter(f),
		progressbar.OptionSetDescription(what),
		progressbar.OptionThrottle(100*time.Millisecond),
		progressbar.OptionSetSpinnerChangeInterval(0), // only moves when there is progress
		progressbar.OptionClearOnFinish(),
	)}
}

// reader returns r, counting its bytes.
func (b bar) reader(r io.Reader) io.Reader {
	if b.bar == nil {
		return r
	}
	return io.TeeReader(r, b.bar)
}

// set shows that done of the total is done.
func (b bar) set(done int) {
	if b.bar != nil {
		_ = b.bar.Set(done) // a bar that cannot be drawn is no reason to stop
	}
}

// finish removes the bar.
func (b bar) finish() {
	if b.bar != nil {
		_ = b.bar.Finish()
	}
}
