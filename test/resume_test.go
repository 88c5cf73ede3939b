package test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tine/api"
	"tine/mapstate"
)

// countedByTheShell returns how often each word of a file occurs, in the lines that
// uniq -c prints.
func countedByTheShell(t *testing.T, file string) string {
	t.Helper()
	count := exec.Command("sh", "-c",
		`tr -cs A-Za-z '\n' <"$1" | tr A-Z a-z | sed '/^$/d' | sort | uniq -c | awk '{ print $1, $2 }'`, "sh", file)
	count.Env = append(os.Environ(), "LC_ALL=C")
	out, err := count.Output()
	require.NoError(t, err)
	return string(out)
}

// countedByTine returns the same of what a state holds.
func countedByTine(t *testing.T, client *api.Client, state string) string {
	t.Helper()
	var out strings.Builder
	err := client.Scan(t.Context(), state, api.Listing{}, func(k mapstate.Key, e mapstate.Entry) error {
		word := strings.Trim(k.String(), `[]"`)
		_, err := fmt.Fprintf(&out, "%s %s\n", e.Value.AppendJSON(nil), word)
		return err
	})
	require.NoError(t, err)
	return out.String()
}

// textOf writes the first bytes of a text to a file, up to the end of a line.
func textOf(t *testing.T, size int) string {
	t.Helper()
	text, err := os.ReadFile("../cmd/tine/demo/sample.txt")
	require.NoError(t, err)
	for len(text) < size {
		text = append(text, text...)
	}
	end := size + strings.IndexByte(string(text[size:]), '\n') + 1
	file := filepath.Join(t.TempDir(), "text")
	require.NoError(t, os.WriteFile(file, text[:end], 0o600))
	return file
}

// A writer that is killed again and again, its server now and then with it, ends with
// the counts of its file, nothing lost and nothing doubled: requests that do not arrive, answers
// that do not, and requests that arrive when another writer is at work, all of them.
func TestWritersOfCurlResumeWhereTheyWereKilled(t *testing.T) {
	needProgram(t, "curl")
	path := buildBinary(t)
	for name, job := range map[string]resumedJob{
		"opaque, other batches after each kill":         {script: "resume.sh", kind: "opaque", size: 30_000, lines: 4, requests: 9, kills: 50},
		"transactional, the same batches":               {script: "resume.sh", kind: "transactional", size: 20_000, requests: 9, kills: 50},
		"opaque, open, the last batch anew":             {script: "resume_open.sh", kind: "opaque", size: 3_000, lines: 3, requests: 14, kills: 20, restores: true},
		"transactional, open, the last batch as it was": {script: "resume_open.sh", kind: "transactional", size: 3_000, requests: 14, kills: 20},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			job.run(t, path)
		})
	}
}

// resumedJob is a way to count the words of a file with a script of curl/.
type resumedJob struct {
	script   string
	kind     string
	size     int // of the file
	lines    int // batches of up to about so many; 0: each as large as the others
	requests int // a writer makes at most so many before it is killed
	kills    int
	restores bool // words move from one attempt at a batch to a later batch
}

func (j resumedJob) run(t *testing.T, path string) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	file, dir := textOf(t, j.size), t.TempDir()
	b := startBinary(t, path, dir)
	_, _, err := b.client.CreateState(t.Context(), "words", api.StateSpec{Kind: j.kind})
	require.NoError(t, err)
	s := newSaboteur(t, b)
	writer := func() *exec.Cmd {
		bytes := 80
		if j.lines > 0 {
			bytes = 1 + random.IntN(80*j.lines)
		}
		return exec.Command("curl/"+j.script, s.url+"/v1/states/words", file, strconv.Itoa(bytes))
	}
	servers := 0
	for n := range j.kills {
		next := drawStrike(random, j.requests)
		require.True(t, s.run(t, writer(), next), "the file came to its end after %d kills", n)
		if next.server {
			servers++
			b = startBinary(t, path, dir)
			s.serve(b)
		}
	}
	require.False(t, s.run(t, writer(), strike{}), "nothing was to be struck any more")
	s.settle()
	t.Logf("%d servers were killed, %d keys restored; late requests by status of their answers: %v", servers, s.restored, s.late)
	require.Equal(t, countedByTheShell(t, file), countedByTine(t, b.client, "words"))
	progress, err := b.client.Progress(t.Context(), "words")
	require.NoError(t, err)
	require.Len(t, progress, 1)
	info, err := os.Stat(file)
	require.NoError(t, err)
	require.Contains(t, string(progress[0].Offsets), fmt.Sprintf(`"offset":%d}`, info.Size()))
	require.Equal(t, j.restores, s.restored > 0, "%d keys were restored", s.restored)
}

// The README shows the writer of curl/ as it is, but for its first lines and its tabs.
func TestTheREADMEShowsTheWriterThatIsTested(t *testing.T) {
	readme, err := os.ReadFile("../README.md")
	require.NoError(t, err)
	script, err := os.ReadFile("curl/resume.sh")
	require.NoError(t, err)
	_, body, found := strings.Cut(string(script), "\nset -eu\n")
	require.True(t, found)
	var block strings.Builder
	for line := range strings.Lines("set -eu\n" + strings.ReplaceAll(body, "\t", "  ")) {
		if line != "\n" {
			block.WriteString("    ")
		}
		block.WriteString(line)
	}
	require.Contains(t, string(readme), "\n\n"+block.String())
}

// The line of the README that runs the writer counts the words of the README.
func TestTheREADMEResumesAWriter(t *testing.T) {
	needProgram(t, "curl")
	b := startBinary(t, buildBinary(t), t.TempDir())
	_, _, err := b.client.CreateState(t.Context(), "texts", api.StateSpec{Kind: "opaque"})
	require.NoError(t, err)
	readme, err := os.ReadFile("../README.md")
	require.NoError(t, err)
	_, line, found := strings.Cut(string(readme), "\n    until ")
	require.True(t, found)
	line, _, _ = strings.Cut(line, "\n")
	cmd := exec.CommandContext(t.Context(), "sh", "-c", "until "+line)
	cmd.Dir = ".."
	cmd.Env = append(os.Environ(), "T="+b.url+"/v1/states")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Equal(t, countedByTheShell(t, "../README.md"), countedByTine(t, b.client, "texts"))
}
