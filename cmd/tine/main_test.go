package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// binaryVariable tells the tests where TestMain has built the command.
const binaryVariable = "TINE_TEST_BINARY"

func TestMain(m *testing.M) {
	code, err := buildAndRun(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(code)
}

// buildAndRun builds the command once, for all tests.
func buildAndRun(m *testing.M) (code int, err error) {
	dir, err := os.MkdirTemp("", "tine-test-")
	if err != nil {
		return 0, err
	}
	defer func() { err = os.RemoveAll(dir) }()
	binary := filepath.Join(dir, "tine")
	if out, err := exec.Command("go", "build", "-o", binary, ".").CombinedOutput(); err != nil {
		return 0, fmt.Errorf("build the command: %w\n%s", err, out)
	}
	if err := os.Setenv(binaryVariable, binary); err != nil {
		return 0, err
	}
	return m.Run(), nil
}

// outcome is what a process left behind.
type outcome struct {
	code     int
	out, err string
}

// tine runs the binary to its end, with a server's URL if there is one.
func tine(t *testing.T, s *serverProcess, args ...string) outcome {
	t.Helper()
	return tineIn(t, s, "", args...)
}

// tineIn is tine with a standard input.
func tineIn(t *testing.T, s *serverProcess, in string, args ...string) outcome {
	t.Helper()
	cmd := command(t, args...)
	if s != nil {
		cmd.Env = append(cmd.Env, "TINE_URL="+s.url)
	}
	var out, stderr bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(in), &out, &stderr
	err := cmd.Run()
	if cmd.ProcessState == nil {
		require.NoError(t, err)
	}
	return outcome{code: cmd.ProcessState.ExitCode(), out: out.String(), err: stderr.String()}
}

// command is the binary with an environment that has nothing of Tine's.
func command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Getenv(binaryVariable), args...)
	cmd.Env = []string{"HOME=" + t.TempDir(), "PATH=" + os.Getenv("PATH")}
	return cmd
}

// ok runs the binary, which must succeed, and returns its output.
func ok(t *testing.T, s *serverProcess, args ...string) string {
	t.Helper()
	o := tine(t, s, args...)
	require.Zero(t, o.code, o.err)
	require.Empty(t, o.err)
	return o.out
}

// serverProcess is "tine serve" as a process.
type serverProcess struct {
	url    string
	cmd    *exec.Cmd
	ended  chan struct{} // closed when the process has ended
	mu     sync.Mutex
	stderr bytes.Buffer
}

// serve starts a server on a directory and a free port; it is killed when the
// test ends.
func serve(t *testing.T, dir string, args ...string) *serverProcess {
	t.Helper()
	s := &serverProcess{ended: make(chan struct{})}
	s.cmd = command(t, append([]string{"serve", "--listen", "127.0.0.1:0", "--data-dir", dir, "--shutdown-grace", "0s"}, args...)...)
	s.cmd.Stderr = lockedWriter{&s.mu, &s.stderr}
	out, err := s.cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, s.cmd.Start())
	lines := bufio.NewReader(out)
	line, err := lines.ReadString('\n')
	go func() {
		defer close(s.ended)
		_, _ = io.Copy(io.Discard, lines)
		_ = s.cmd.Wait() // the tests look at ProcessState
	}()
	t.Cleanup(s.kill)
	require.NoError(t, err, s.log())
	_, url, found := strings.Cut(strings.TrimSpace(line), "listening on ")
	require.True(t, found, line)
	s.url = url
	return s
}

// kill is kill -9, and waits.
func (s *serverProcess) kill() {
	_ = s.cmd.Process.Kill() // it may have ended
	<-s.ended
}

// signal sends a signal.
func (s *serverProcess) signal(t *testing.T, sig os.Signal) {
	t.Helper()
	require.NoError(t, s.cmd.Process.Signal(sig))
}

// exit waits for the process and returns its exit code.
func (s *serverProcess) exit(t *testing.T) int {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	select {
	case <-s.ended:
		return s.cmd.ProcessState.ExitCode()
	case <-ctx.Done():
		require.Fail(t, "the server does not end", s.log())
		return 0
	}
}

func (s *serverProcess) log() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stderr.String()
}

type lockedWriter struct {
	mu *sync.Mutex
	w  io.Writer
}

func (l lockedWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}
