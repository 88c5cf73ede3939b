// Package child runs a Tine server as a child of this process, to be ended and
// started again over the same data.
package child

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Bounds of what a server takes.
const (
	startTimeout = 60 * time.Second // to say that it listens
	stopTimeout  = 60 * time.Second // to end in order
)

// Server is a server of our own on a free loopback port. One goroutine uses it.
type Server struct {
	executable string
	args       []string
	life       *life
}

// life is one process of a Server.
type life struct {
	cmd    *exec.Cmd
	url    string
	stderr *tail
	ended  chan struct{} // closed when the process has ended
}

// Start starts "executable serve" on dir, with more flags, and returns when it
// listens. Whoever starts a Server closes it.
func Start(ctx context.Context, executable, dir string, flags ...string) (*Server, error) {
	s := &Server{
		executable: executable,
		args:       append([]string{"serve", "--listen", "127.0.0.1:0", "--data-dir", dir, "--shutdown-grace", "0s"}, flags...),
	}
	return s, s.start(ctx)
}

// URL returns where the server listens now.
func (s *Server) URL() string { return s.life.url }

// Kill ends the server as kill -9 does and starts it again.
func (s *Server) Kill(ctx context.Context) error {
	s.Close()
	return s.start(ctx)
}

// Stop ends the server in order, which must succeed, and starts it again.
func (s *Server) Stop(ctx context.Context) error {
	l := s.life
	if err := l.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return fmt.Errorf("stop the server: %w: %s", err, l.stderr)
	}
	timeout := time.NewTimer(stopTimeout)
	defer timeout.Stop()
	select {
	case <-l.ended:
	case <-timeout.C:
		return fmt.Errorf("stop the server: it did not end within %s: %s", stopTimeout, l.stderr)
	case <-ctx.Done():
		return ctx.Err()
	}
	if code := l.cmd.ProcessState.ExitCode(); code != 0 {
		return fmt.Errorf("stop the server: it ended with code %d: %s", code, l.stderr)
	}
	return s.start(ctx)
}

// Close ends the server at once, as kill -9 does, and waits until it is gone. A
// second call does nothing.
func (s *Server) Close() {
	if s.life == nil {
		return
	}
	_ = s.life.cmd.Process.Kill() // an error says that it has ended
	<-s.life.ended
}

func (s *Server) start(ctx context.Context) error {
	l := &life{cmd: exec.Command(s.executable, s.args...), stderr: &tail{limit: 4 << 10}, ended: make(chan struct{})}
	l.cmd.Env = withoutSettings(os.Environ())
	l.cmd.Stderr = l.stderr
	out, err := l.cmd.StdoutPipe()
	if err == nil {
		err = l.cmd.Start()
	}
	if err != nil {
		return fmt.Errorf("start a server: %w", err)
	}
	s.life = l
	urls := make(chan string, 1)
	go func() {
		defer close(l.ended)
		watch(out, urls)
		_ = l.cmd.Wait() // how it ended is in its state
	}()
	timeout := time.NewTimer(startTimeout)
	defer timeout.Stop()
	var ok bool
	select {
	case l.url, ok = <-urls:
		if !ok {
			err = errors.New("it ended before it listened")
		}
	case <-timeout.C:
		err = fmt.Errorf("it did not listen within %s", startTimeout)
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err != nil {
		s.Close()
		return fmt.Errorf("start a server: %w: %s", err, l.stderr)
	}
	return nil
}

// watch reads a server's output until it ends, sends the address in its first line,
// and closes urls.
func watch(out io.Reader, urls chan<- string) {
	defer close(urls)
	lines := bufio.NewReader(out)
	if line, err := lines.ReadString('\n'); err == nil {
		if _, url, ok := strings.Cut(strings.TrimSpace(line), "listening on "); ok {
			urls <- url
		}
	}
	_, _ = io.Copy(io.Discard, lines) // an error is the end
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

	mu   sync.Mutex
	last []byte
}

// Write implements io.Writer.
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last = append(t.last, p...)
	t.last = t.last[max(0, len(t.last)-t.limit):]
	return len(p), nil
}

// String returns what was written last, as far as it was kept.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(string(t.last))
}
