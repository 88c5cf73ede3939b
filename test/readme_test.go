package test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tine/backing/memcachedtest"
)

// readmeSteps returns the curl lines of the README, in order, and the answers that
// it prints after them.
func readmeSteps(t *testing.T) (commands, answers []string) {
	t.Helper()
	text, err := os.ReadFile("../README.md")
	require.NoError(t, err)
	for line := range strings.Lines(string(text)) {
		code, indented := strings.CutPrefix(strings.TrimRight(line, "\n"), "    ")
		switch {
		case !indented:
		case strings.HasPrefix(code, "curl "):
			commands = append(commands, code)
		case strings.HasPrefix(code, "{"):
			answers = append(answers, code)
		}
	}
	return commands, answers
}

// A reader who types what the README says sees what it prints, in that order.
func TestTheREADMEPrintsWhatAServerAnswers(t *testing.T) {
	needProgram(t, "curl")
	memcached := memcachedtest.Start(t)
	b := startBinary(t, buildBinary(t), t.TempDir())
	commands, answers := readmeSteps(t)
	require.Greater(t, len(commands), 10)
	require.Greater(t, len(answers), 8)
	for _, command := range commands {
		command = strings.ReplaceAll(command, "127.0.0.1:11311", memcached.Addr)
		cmd := exec.Command("sh", "-c", strings.Replace(command, "curl ", "curl -sS ", 1))
		cmd.Env = append(os.Environ(), "T="+b.url+"/v1/states")
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s: %s", command, out)
		if len(answers) > 0 && strings.TrimSpace(string(out)) == answers[0] {
			answers = answers[1:]
		}
	}
	require.Empty(t, answers, "printed in the README, but not answered in its order")
}
