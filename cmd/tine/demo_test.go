package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"tine/cmd/tine/demo"
)

// countIndependently counts words as the documentation says they are counted, without the
// code of the demo.
func countIndependently(text string) map[string]int64 {
	counts := make(map[string]int64)
	for _, word := range strings.FieldsFunc(text, func(r rune) bool {
		return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ", r)
	}) {
		counts[strings.ToLower(word)]++
	}
	return counts
}

// runDemo runs the demo on a text and returns its report.
func runDemo(t *testing.T, text string, args ...string) demo.Report {
	t.Helper()
	path := filepath.Join(t.TempDir(), "text")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	var report demo.Report
	out := ok(t, nil, append([]string{"demo", "--output", "json", "--input", path}, args...)...)
	require.NoError(t, json.Unmarshal([]byte(out), &report))
	return report
}

func TestDemoCountsATextExactly(t *testing.T) {
	text, err := os.ReadFile("testdata/words.txt")
	require.NoError(t, err)
	want := countIndependently(string(text))
	report := runDemo(t, string(text), "--batch-words", "20")
	require.True(t, report.Equal)
	require.Equal(t, want, report.Counts)
	require.Equal(t, len(want), report.Distinct)
	require.Equal(t, (report.Words+19)/20, report.Batches)
	require.Equal(t, report.Batches, report.Faults.Duplicates)
	require.NotZero(t, report.Faults.WrongAttempts)
	require.NotZero(t, report.Faults.LostAnswers)
	require.Equal(t, 1, report.Faults.Kills)
}

func TestDemoCountsALargeTextExactly(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var text strings.Builder
	for range 30_000 {
		// Few words are frequent and many are rare, as in a language.
		n := int(random.ExpFloat64() * 300)
		fmt.Fprintf(&text, "%s%c", strings.NewReplacer("0", "a", "1", "B", "2", "c", "3", "D", "4", "e").Replace(fmt.Sprint(n)),
			[]rune{' ', '\n', '-', 'é', '9'}[random.IntN(5)])
	}
	report := runDemo(t, text.String())
	require.True(t, report.Equal)
	require.Equal(t, countIndependently(text.String()), report.Counts)
}

func TestDemoRefusesATextWithoutWords(t *testing.T) {
	path := filepath.Join(t.TempDir(), "text")
	require.NoError(t, os.WriteFile(path, []byte(" 1 2 3 "), 0o600))
	o := tine(t, nil, "demo", "--input", path)
	require.Equal(t, exitError, o.code)
	require.Contains(t, o.err, path+" has no words")
	require.Empty(t, o.out)
}

func TestDemoShowsTheTopWordsAndTheVerdict(t *testing.T) {
	out := ok(t, nil, "demo")
	require.Regexp(t, `(?s)^WORD +COUNT\nthe +\d+\n.*kill -9 and restart +1\n.*All totals of both states are equal to the direct count\.\n$`, out)
}

func TestInterruptedDemoLeavesNothingBehind(t *testing.T) {
	temp := t.TempDir()
	path := filepath.Join(temp, "text")
	require.NoError(t, os.WriteFile(path, []byte(strings.Repeat("so many words ", 200_000)), 0o600))
	cmd := command(t, "demo", "--input", path, "--batch-words", "10")
	cmd.Env = append(cmd.Env, "TMPDIR="+temp)
	require.NoError(t, cmd.Start())
	eventually(t, func() bool { return len(demoDirs(t, temp)) == 1 })
	require.NoError(t, cmd.Process.Signal(os.Interrupt))
	require.Error(t, cmd.Wait())
	require.Equal(t, exitError, cmd.ProcessState.ExitCode())
	require.Empty(t, demoDirs(t, temp))
	for _, line := range processesWith(t, temp) {
		require.Fail(t, "a server is left", line)
	}
}

func demoDirs(t *testing.T, temp string) []string {
	t.Helper()
	dirs, err := filepath.Glob(filepath.Join(temp, "tine-demo-*"))
	require.NoError(t, err)
	return dirs
}

// processesWith returns the command lines that name a directory.
func processesWith(t *testing.T, dir string) []string {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	require.NoError(t, err)
	var lines []string
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err == nil && strings.Contains(string(text), dir) {
			lines = append(lines, strings.ReplaceAll(string(text), "\x00", " "))
		}
	}
	return lines
}

func TestDemoLeavesNoGoroutine(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	var done []int
	report, err := demo.Run(t.Context(), demo.Options{
		Text:       demo.Sample(),
		BatchWords: 700,
		Executable: os.Getenv(binaryVariable),
		Progress:   func(n, total int) { done = append(done, n, total) },
	})
	require.NoError(t, err)
	require.True(t, report.Equal)
	require.Equal(t, report.Batches, done[len(done)-1])
	require.Equal(t, report.Batches, done[len(done)-2])
}

func TestDemoTellsWhyItsServerDoesNotStart(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	t.Setenv("TMPDIR", t.TempDir())
	_, err := demo.Run(t.Context(), demo.Options{Text: demo.Sample(), BatchWords: 1, Executable: "/bin/false"})
	require.ErrorContains(t, err, "start a server")
	require.Empty(t, demoDirs(t, os.TempDir()))
}
