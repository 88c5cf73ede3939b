package demo

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// startTimeout bounds the wait for a server to say that it listens.
const startTimeout = 30 * time.Second

// process is a server of our own, a child of this process on a loopback port.
type process struct {
	url    string
	cmd    *exec.Cmd
	stderr *tail
	stdout sync.WaitGroup
}

// startProcess starts "executable serve" on dir and a free port, and returns when
// it listens. The child is killed when ctx ends.
func startProcess(ctx context.Context, executable, dir string) (*process, error) {
	p := &process{stderr: &tail{limit: 4 << 10}}
	p.cmd = exec.CommandContext(ctx, executable, "serve",
		"--listen", "127.0.0.1:0", "--data-dir", dir, "--shutdown-grace", "0s")
	p.cmd.Env = withoutSettings(os.Environ())
	p.cmd.Stderr = p.stderr
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start a server: %w", err)
	}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start a server: %w", err)
	}
	urls := make(chan string, 1)
	p.stdout.Go(func() { watchOutput(out, urls) })
	timeout := time.NewTimer(startTimeout)
	defer timeout.Stop()
	select {
	case url, ok := <-urls:
		if ok {
			p.url = url
			return p, nil
		}
		p.kill()
		return nil, fmt.Errorf("start a server: it ended before it listened: %s", p.stderr)
	case <-timeout.C:
		p.kill()
		return nil, fmt.Errorf("start a server: it did not listen within %s: %s", startTimeout, p.stderr)
	case <-ctx.Done():
		p.kill()
		return nil, ctx.Err()
	}
}

// watchOutput reads a server's output until it ends, sends the address in its
// first line, and closes urls.
func watchOutput(out io.Reader, urls chan<- string) {
	defer close(urls)
	sent := false
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if _, url, ok := strings.Cut(lines.Text(), "listening on "); ok && !sent {
			urls <- url
			sent = true
		}
	}
}

// kill ends the server at once, as kill -9 does, and waits until it is gone. A
// second call does nothing.
func (p *process) kill() {
	if p.cmd.ProcessState != nil {
		return
	}
	// An error of Kill says that the process has ended, one of Wait how it did.
	_ = p.cmd.Process.Kill()
	p.stdout.Wait()
	_ = p.cmd.Wait()
}

// withoutSettings leaves out the variables that would configure the server.
func withoutSettings(env []string) []string {
	var kept []string
	for _, v := range env {
		if !strings.HasPrefix(v, "TINE_") {
			kept = append(kept, v)
		}
	}
	return kept
}

// tail is a Writer that keeps the last bytes written to it.
type tail struct {
	limit int
	mu    sync.Mutex
	buf   bytes.Buffer
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf.Write(p)
	if over := t.buf.Len() - t.limit; over > 0 {
		t.buf.Next(over)
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(t.buf.String())
}
