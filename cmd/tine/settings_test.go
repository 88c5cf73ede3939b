package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// effective runs "serve --print-config" with an environment and a file.
func effective(t *testing.T, env map[string]string, file string, args ...string) outcome {
	t.Helper()
	args = append([]string{"serve", "--print-config"}, args...)
	if file != "" {
		path := filepath.Join(t.TempDir(), "tine.yaml")
		require.NoError(t, os.WriteFile(path, []byte(file), 0o600))
		args = append(args, "--config", path)
	}
	return runHere(t, env, args...)
}

// runHere executes a command line in this process.
func runHere(t *testing.T, env map[string]string, args ...string) outcome {
	t.Helper()
	var out, stderr bytes.Buffer
	lookup := func(name string) (string, bool) { v, ok := env[name]; return v, ok }
	code := run(context.Background(), args, streams{in: new(bytes.Buffer), out: &out, err: &stderr}, lookup)
	return outcome{code, out.String(), stderr.String()}
}

func TestFlagWinsOverEnvironmentOverFileOverDefault(t *testing.T) {
	env := map[string]string{"TINE_LISTEN": "env:1", "TINE_MAX_KEYS": "11", "TINE_SYNC_INTERVAL": ""}
	file := "listen: file:2\nmax-keys: 22\ndata-dir: /file\nsync-interval: 20ms\ncache-bytes: 1GiB\n"
	o := effective(t, env, file, "--listen", "flag:3")
	require.Zero(t, o.code, o.err)
	for _, line := range []string{
		"listen: flag:3\n",            // flag, environment and file
		"max-keys: 11\n",              // environment and file
		"data-dir: /file\n",           // file
		"sync-interval: 20ms\n",       // an empty variable is none
		"cache-bytes: 1GiB\n",         // file
		"block-cache-bytes: 256MiB\n", // default
	} {
		require.Contains(t, o.out, line)
	}
}

func TestPrintedConfigurationIsAConfigurationFile(t *testing.T) {
	first := effective(t, nil, "", "--listen", "127.0.0.1:1", "--log-level", "warn", "--admin-listen", "", "--data-dir", "a: b # c")
	require.Zero(t, first.code, first.err)
	second := effective(t, nil, first.out)
	require.Zero(t, second.code, second.err)
	require.Equal(t, first.out, second.out)
}

func TestConfigurationFileIsStrict(t *testing.T) {
	for name, c := range map[string]struct{ file, text string }{
		"unknown key":   {"listen: a:1\nlisten-on: b:2\n", `line 2: unknown key "listen-on"`},
		"not a setting": {"print-config: true\n", `unknown key "print-config"`},
		"wrong type":    {"max-keys: many\n", `line 1: max-keys is "many", want an integer`},
		"a list":        {"listen: [a, b]\n", "line 1: listen wants a single value"},
		"nothing":       {"listen:\n", "listen wants a single value"},
		"twice":         {"listen: a:1\nlisten: b:2\n", "line 2: listen is given twice"},
		"a list of all": {"- listen\n", "want lines of the form KEY: VALUE"},
		"two documents": {"listen: a:1\n---\nlisten: b:2\n", "more than one document"},
	} {
		t.Run(name, func(t *testing.T) {
			o := effective(t, nil, c.file)
			require.Equal(t, exitUsage, o.code)
			require.Contains(t, o.err, c.text)
			require.Empty(t, o.out)
		})
	}
}

func TestAnEmptyConfigurationFileSetsNothing(t *testing.T) {
	require.Equal(t, effective(t, nil, "").out, effective(t, nil, "# nothing\n").out)
}

func TestBadSettingsAreReportedTogether(t *testing.T) {
	o := effective(t, map[string]string{"TINE_MAX_KEYS": "x", "TINE_CACHE_BYTES": "y"}, "")
	require.Equal(t, exitUsage, o.code)
	require.Contains(t, o.err, "TINE_MAX_KEYS")
	require.Contains(t, o.err, "TINE_CACHE_BYTES")

	o = effective(t, nil, "", "--listen", "nowhere", "--log-format", "xml")
	require.Equal(t, exitUsage, o.code)
	require.Contains(t, o.err, `--listen is "nowhere"`)
	require.Contains(t, o.err, `--log-format is "xml"`)
}

func TestABadSettingNamesWhereItCameFrom(t *testing.T) {
	o := effective(t, map[string]string{"TINE_LOG_FORMAT": "xml"}, "data-dir: x\nlisten: nowhere\n", "--max-keys", "0")
	require.Equal(t, exitUsage, o.code)
	require.Contains(t, o.err, `environment variable TINE_LOG_FORMAT is "xml"`)
	require.Regexp(t, `configuration file \S+tine.yaml, line 2: listen is "nowhere"`, o.err)
	require.Contains(t, o.err, `--max-keys is 0, want at least 1`)

	o = runHere(t, map[string]string{"TINE_URL": "nowhere"}, "version")
	require.Equal(t, exitUsage, o.code)
	require.Contains(t, o.err, `environment variable TINE_URL is "nowhere"`)
	o = effective(t, nil, "log-level: loud\n")
	require.Contains(t, o.err, `line 1: log-level is "loud", want debug, info, warn or error`)
}

func TestSizesAreNumbersOrHaveAUnit(t *testing.T) {
	for text, want := range map[string]int64{"0": 0, "7": 7, "2KiB": 2 << 10, "3 MiB": 3 << 20, "1GiB": 1 << 30} {
		var got int64
		require.NoError(t, size{&got}.Set(text), text)
		require.Equal(t, want, got)
		again := int64(-1)
		require.NoError(t, size{&again}.Set(size{&got}.String()))
		require.Equal(t, want, again, "it reads what it prints")
	}
	for _, text := range []string{"", "-1", "1.5MiB", "1MB", "MiB", "9007199254740992GiB"} {
		var got int64
		require.Error(t, size{&got}.Set(text), text)
	}
}
