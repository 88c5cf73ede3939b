package main

import (
	"bytes"
	"encoding/json"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tine/verify"
)

// verified runs "tine verify" in a temporary directory and returns its report.
func verified(t *testing.T, temp string, args ...string) (verify.Report, outcome) {
	t.Helper()
	cmd := command(t, append([]string{"verify", "--output", "json"}, args...)...)
	cmd.Dir = temp
	cmd.Env = append(cmd.Env, "TMPDIR="+temp)
	var out, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &stderr
	_ = cmd.Run() // the exit code tells
	var report verify.Report
	require.NoError(t, json.Unmarshal(out.Bytes(), &report), "%s%s", &out, &stderr)
	return report, outcome{code: cmd.ProcessState.ExitCode(), out: out.String(), err: stderr.String()}
}

func TestVerifyFindsNoDifferenceThroughKills(t *testing.T) {
	if testing.Short() {
		t.Skip("a server is killed and started again")
	}
	temp := t.TempDir()
	report, o := verified(t, temp, "--duration", "4s", "--kills", "3", "--seed", "7")
	require.Zero(t, o.code, o.out+o.err)
	require.Equal(t, "seed 7\n", o.err)
	require.EqualValues(t, 7, report.Seed)
	require.EqualValues(t, 3, report.Kills)
	require.EqualValues(t, 1, report.Stops)
	require.Nil(t, report.Difference)
	require.NotZero(t, report.Batches)
	require.NotZero(t, report.Replays)
	requireNothingLeft(t, temp)
}

// requireNothingLeft checks that neither files nor processes of a run are left in a directory.
func requireNothingLeft(t *testing.T, dir string) {
	t.Helper()
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left)
	require.Empty(t, processesWith(t, dir))
}

func TestVerifyOfARunningServerDeletesWhatItMade(t *testing.T) {
	s := serve(t, t.TempDir())
	o := tine(t, nil, "verify", "--url", s.url, "--duration", "1s", "--partitions", "2")
	require.Zero(t, o.code, o.out+o.err)
	require.Regexp(t, `(?s)^seed \d+\nstates +8\nwriters of each +2\n.*kill -9 and restart +0\n.*\nNo difference: [^\n]*\n$`, o.out)
	require.Empty(t, o.err)
	require.Empty(t, states(t, s))
}

func TestVerifyRefusesFlagsThatCannotBe(t *testing.T) {
	dir := t.TempDir()
	for flag, args := range map[string][]string{
		"--duration":   {"--duration", "0s"},
		"--kills":      {"--kills", "-1"},
		"--partitions": {"--partitions", "0"},
		"--seed":       {"--seed", "many"},
		"--dir":        {"--dir", dir},
		"--url":        {"--url", "http://127.0.0.1:1", "--dir", filepath.Join(dir, "new")},
		"not ours":     {"--url", "http://127.0.0.1:1", "--kills", "1"},
	} {
		o := tine(t, nil, append([]string{"verify"}, args...)...)
		require.Equal(t, exitUsage, o.code, "%v", args)
		require.Contains(t, o.err, flag)
		require.Empty(t, o.out)
	}
}

func TestInterruptedVerifyTellsWhatWasDoneAndLeavesNothingBehind(t *testing.T) {
	temp := t.TempDir()
	cmd := command(t, "verify", "--duration", "1h", "--kills", "0")
	cmd.Env = append(cmd.Env, "TMPDIR="+temp)
	var out, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &stderr
	require.NoError(t, cmd.Start())
	eventually(t, func() bool { // many batches are in the log
		logs, err := filepath.Glob(filepath.Join(temp, "tine-verify-*", "data", "*.log"))
		if err != nil || len(logs) == 0 {
			return false
		}
		info, err := os.Stat(logs[len(logs)-1])
		return err == nil && info.Size() > 64<<10
	})
	require.NoError(t, cmd.Process.Signal(os.Interrupt))
	require.Error(t, cmd.Wait())
	require.Equal(t, exitError, cmd.ProcessState.ExitCode(), stderr.String())
	require.Contains(t, stderr.String(), "interrupted")
	require.Regexp(t, `(?s)batches +[1-9].*No difference so far`, out.String())
	requireNothingLeft(t, temp)
}

// miscounting is a server in front of another one that says of replays that they were none.
func miscounting(t *testing.T, target string) string {
	u, err := url.Parse(target)
	require.NoError(t, err)
	proxy := httputil.NewSingleHostReverseProxy(u)
	proxy.ModifyResponse = func(resp *http.Response) error {
		if !strings.HasSuffix(resp.Request.URL.Path, "/multiUpdate") {
			return nil
		}
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			return err
		}
		body = bytes.Replace(body, []byte(`"replayed":1`), []byte(`"replayed":0`), 1)
		resp.Body = io.NopCloser(bytes.NewReader(body))
		return nil
	}
	proxy.ErrorLog = log.New(io.Discard, "", 0)
	server := httptest.NewServer(proxy)
	t.Cleanup(server.Close)
	return server.URL
}

func TestVerifyWritesTheHistoryOfADifferenceForReplay(t *testing.T) {
	s := serve(t, t.TempDir())
	wrong := miscounting(t, s.url)
	temp := t.TempDir()
	report, o := verified(t, temp, "--url", wrong, "--duration", "30s", "--seed", "3")
	require.Equal(t, exitError, o.code, o.err)
	require.Contains(t, o.err, "expected")
	d := report.Difference
	require.NotNil(t, d)
	require.True(t, d.Reproduced)
	require.LessOrEqual(t, d.Steps, 4)
	require.Contains(t, d.Expected, "replayed 1")
	require.Contains(t, d.Got, "replayed 0")

	file := filepath.Join(temp, "tine-verify-3.ndjson")
	beside, err := os.ReadFile(file + ".txt")
	require.NoError(t, err)
	require.Contains(t, string(beside), d.Expected)
	answers := ok(t, s, "replay", file)
	require.Equal(t, strings.Count(readFile(t, file), "\n"), strings.Count(answers, "\n"))
	require.Contains(t, answers, `"replayed":1`)

	shown := tine(t, nil, "verify", "--url", wrong, "--duration", "30s", "--history", filepath.Join(temp, "other"))
	require.Equal(t, exitError, shown.code)
	require.Contains(t, shown.out, "DIFFERENCE")
	require.Contains(t, shown.out, "line 3: ")
	require.FileExists(t, filepath.Join(temp, "other"))
	require.Equal(t, []string{d.State}, states(t, s), "what the replay made, and nothing else")
}

// states returns the names of a server's states.
func states(t *testing.T, s *serverProcess) (names []string) {
	t.Helper()
	var list struct{ States []struct{ Name string } }
	require.NoError(t, json.Unmarshal([]byte(ok(t, s, "state", "list", "--output", "json")), &list))
	for _, state := range list.States {
		names = append(names, state.Name)
	}
	return names
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(text)
}

func TestVerifyTellsThatThereIsNoServer(t *testing.T) {
	s := serve(t, t.TempDir())
	s.kill()
	o := tine(t, nil, "verify", "--url", s.url, "--seed", strconv.Itoa(1))
	require.Equal(t, exitUnavailable, o.code, o.err)
	require.Equal(t, "seed 1\n", o.out, "there is no verdict")
}
