package memcachedtest

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Server is a memcached in a process of its own, on a free port of the loopback.
type Server struct {
	Addr string

	t    testing.TB
	args []string
	cmd  *exec.Cmd
}

// Start starts a memcached with further arguments, and ends it with the test. Where
// the program is not installed the test is skipped, or fails if CI=true.
func Start(t testing.TB, args ...string) *Server {
	t.Helper()
	path, err := exec.LookPath("memcached")
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("memcached is not installed")
		}
		t.Skip("memcached is not installed")
	}
	s := &Server{t: t}
	// With port -1 it takes a free one itself, so that nobody else gets it first.
	s.args = append([]string{path, "-l", "127.0.0.1", "-p", "-1", "-U", "0", "-m", "16", "-t", "2"}, args...)
	if os.Geteuid() == 0 {
		s.args = append(s.args, "-u", "root")
	}
	t.Cleanup(s.Kill)
	ports := filepath.Join(t.TempDir(), "ports")
	s.start("MEMCACHED_PORT_FILENAME=" + ports)
	s.await(func() error {
		text, err := os.ReadFile(ports)
		if err == nil {
			_, err = fmt.Sscanf(string(text), "TCP INET: %s", &s.Addr)
		}
		return err
	})
	if !strings.Contains(s.Addr, ":") {
		s.Addr = net.JoinHostPort("127.0.0.1", s.Addr)
	}
	_, port, err := net.SplitHostPort(s.Addr)
	require.NoError(t, err)
	s.Arg("-p", port)
	s.await(s.answers)
	return s
}

// Starts starts n of them and returns them with their addresses.
func Starts(t testing.TB, n int, args ...string) (servers []*Server, addrs []string) {
	t.Helper()
	for range n {
		s := Start(t, args...)
		servers, addrs = append(servers, s), append(addrs, s.Addr)
	}
	return servers, addrs
}

// Arg adds arguments for the next start; the last of a name counts.
func (s *Server) Arg(args ...string) { s.args = append(s.args, args...) }

// Restart kills the server if it runs, and starts it again, empty, at the same address.
func (s *Server) Restart() {
	s.t.Helper()
	s.Kill()
	s.start()
	s.await(s.answers)
}

// start starts the program with what the environment has besides.
func (s *Server) start(env ...string) {
	s.t.Helper()
	s.cmd = exec.Command(s.args[0], s.args[1:]...)
	s.cmd.Stderr = os.Stderr
	s.cmd.Env = append(os.Environ(), env...)
	require.NoError(s.t, s.cmd.Start())
}

// await waits until ready has no error.
func (s *Server) await(ready func() error) {
	s.t.Helper()
	for began := time.Now(); ; time.Sleep(time.Millisecond) {
		err := ready()
		if err == nil {
			return
		}
		require.Less(s.t, time.Since(began), 30*time.Second, "%v: %v", s.args, err)
	}
}

// answers reports whether a memcached answers at the address.
func (s *Server) answers() error {
	nc, err := net.Dial("tcp", s.Addr)
	if err != nil {
		return err
	}
	defer func() { _ = nc.Close() }()
	if _, err = nc.Write([]byte("version\r\n")); err != nil {
		return err
	}
	line, err := bufio.NewReader(nc).ReadString('\n')
	if err == nil && !strings.HasPrefix(line, "VERSION ") {
		err = fmt.Errorf("it says %q", line)
	}
	return err
}

// Kill ends the server.
func (s *Server) Kill() {
	if s.cmd != nil {
		_ = s.cmd.Process.Kill()
		_ = s.cmd.Wait()
		s.cmd = nil
	}
}

// Pause stops the server's process; it goes on where it was with Continue. Its
// kernel goes on taking connections and bytes.
func (s *Server) Pause() {
	s.t.Helper()
	require.NoError(s.t, s.cmd.Process.Signal(syscall.SIGSTOP))
	require.NoError(s.t, waitForState(s.cmd.Process.Pid, 'T'))
}

// Continue has a server go on that was paused.
func (s *Server) Continue() {
	s.t.Helper()
	require.NoError(s.t, s.cmd.Process.Signal(syscall.SIGCONT))
}

// waitForState waits until the kernel says that a process is in a state.
func waitForState(pid int, state byte) error {
	for range 10_000 {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if os.IsNotExist(err) {
			return nil // another system; it has the signal
		}
		if err != nil {
			return err
		}
		var id int
		var name, got string
		if _, err := fmt.Sscan(string(stat), &id, &name, &got); err != nil {
			return err
		}
		if got[0] == state {
			return nil
		}
		time.Sleep(time.Millisecond)
	}
	return fmt.Errorf("process %d has not stopped", pid)
}
