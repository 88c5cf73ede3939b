package test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tine/backing/memcachedtest"
)

// needProgram returns the path of a program. Without it the test is skipped, but
// not where all programs must be there.
func needProgram(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil && os.Getenv("CI") != "true" {
		t.Skipf("%s is not there", name)
	}
	require.NoError(t, err)
	return path
}

// curlScripts are the scripts of curl/ that show a kind, by name. Those that resume a
// writer have a test of their own.
func curlScripts(t *testing.T) map[string]string {
	t.Helper()
	paths, err := filepath.Glob("curl/*.sh")
	require.NoError(t, err)
	scripts := make(map[string]string)
	for _, path := range paths {
		if name := filepath.Base(path); name != "lib.sh" && !strings.HasPrefix(name, "resume") {
			scripts[name] = path
		}
	}
	require.Len(t, scripts, len(kindNames), "one for each kind")
	return scripts
}

// The scripts run against one server, as by hand with its URL, and each against
// one that it starts itself.
func TestTheScriptsOfCurlPass(t *testing.T) {
	needProgram(t, "curl")
	path := buildBinary(t)
	b := startBinary(t, path, t.TempDir())
	memcached := memcachedtest.Start(t)
	for name, script := range curlScripts(t) {
		for how, run := range map[string]struct {
			args []string
			env  string
		}{"own server": {env: "TINE=" + path}, "url": {args: []string{b.url}}, "memcached": {[]string{b.url}, "MEMCACHED=" + memcached.Addr}} {
			t.Run(name+"/"+how, func(t *testing.T) {
				t.Parallel()
				cmd := exec.Command(script, run.args...)
				cmd.Env = append(os.Environ(), run.env)
				out, err := cmd.CombinedOutput()
				require.NoError(t, err, "%s", out)
				require.Contains(t, string(out), name+": passed")
			})
		}
	}
}

// A script that could not fail would show nothing.
func TestTheScriptsOfCurlFailWithoutAServer(t *testing.T) {
	needProgram(t, "curl")
	for name, script := range curlScripts(t) {
		out, err := exec.Command(script, "http://127.0.0.1:1").CombinedOutput()
		require.Error(t, err, "%s", name)
		require.Contains(t, string(out), name+": FAILED: no server at http://127.0.0.1:1")
	}
}
