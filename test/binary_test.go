package test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tine/api"
)

// buildBinary builds the command and returns its path.
func buildBinary(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("the binary is built and run in the long tests only")
	}
	path := filepath.Join(t.TempDir(), "tine")
	out, err := exec.Command("go", "build", "-o", path, "tine/cmd/tine").CombinedOutput()
	require.NoError(t, err, "%s", out)
	return path
}

// binary is a server in a process of its own.
type binary struct {
	url    string
	client *api.Client
	http   *http.Client

	cmd    *exec.Cmd
	stdout io.Reader
	log    bytes.Buffer // what it says on stderr; to be read once it has ended
	wait   func() error // for its end; any call returns what came
}

// launchBinary starts the server over dir, with flags beside the usual ones, and
// does not wait for it.
func launchBinary(t *testing.T, path, dir string, flags ...string) *binary {
	t.Helper()
	usual := []string{"serve", "--listen", "127.0.0.1:0", "--data-dir", dir, "--log-level", "error"}
	b := &binary{
		cmd:  exec.Command(path, append(usual, flags...)...),
		http: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 16}, Timeout: patience},
	}
	b.cmd.Stderr = &b.log
	stdout, err := b.cmd.StdoutPipe()
	require.NoError(t, err)
	b.stdout = stdout
	b.wait = sync.OnceValue(b.cmd.Wait)
	require.NoError(t, b.cmd.Start())
	t.Cleanup(b.kill)
	return b
}

// startBinary does the same and waits until the server listens.
func startBinary(t *testing.T, path, dir string, flags ...string) *binary {
	t.Helper()
	b := launchBinary(t, path, dir, flags...)
	url, err := readAddress(b.stdout)
	if err != nil {
		b.kill()
		require.NoError(t, err, "%s", &b.log)
	}
	b.url = url
	b.client = api.NewClient(b.url, b.http)
	return b
}

// kill ends the process at once. A second call does nothing.
func (b *binary) kill() {
	_ = b.cmd.Process.Kill() // it has ended already
	_ = b.wait()             // it was killed
	b.http.CloseIdleConnections()
}

// killWithin kills the process after a delay, or when it listens, if that comes before.
func (b *binary) killWithin(delay time.Duration) {
	listens := make(chan struct{})
	go func() {
		defer close(listens)
		_, _ = readAddress(b.stdout) // or it was killed
	}()
	select {
	case <-listens:
	case <-time.After(delay):
	}
	b.kill()
	<-listens
}

// terminate asks the process to end, waits until it has, and returns its exit code.
func (b *binary) terminate() (code int, err error) {
	if err := b.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return 0, err
	}
	// The process does not close connections that are idle at our end at once.
	b.http.CloseIdleConnections()
	err = b.wait()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return exit.ExitCode(), nil
	}
	return 0, err
}
