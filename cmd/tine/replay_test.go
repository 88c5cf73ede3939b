package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const recording = `{"method":"PUT","path":"/v1/states/w","body":{"kind":"opaque"},"expectStatus":201}

{"method":"POST","path":"/v1/states/w/multiUpdate","body":{"txid":2,"keys":["a"],"updater":"count"}}
{"method":"POST","path":"/v1/states/w/multiUpdate","body":{"txid":1,"keys":["a"],"updater":"count"},"expectStatus":409}
{"method":"GET","path":"/livez"}
{"method":"DELETE","path":"/v1/states/w"}`

func TestReplaySendsEveryLineInOrder(t *testing.T) {
	s := serve(t, t.TempDir())
	path := filepath.Join(t.TempDir(), "requests.ndjson")
	require.NoError(t, os.WriteFile(path, []byte(recording), 0o600))
	lines := strings.Split(strings.TrimSpace(ok(t, s, "replay", path)), "\n")
	require.Len(t, lines, 5)
	require.Contains(t, lines[0], `{"line":1,"status":201,"body":{"name":"w"`)
	require.JSONEq(t, `{"line":3,"status":200,"body":{"txid":2,"values":[1],"applied":1,"replayed":0,"restored":0}}`, lines[1])
	require.Contains(t, lines[2], `{"line":4,"status":409,"body":{`)
	require.JSONEq(t, `{"line":5,"status":200,"body":"ok"}`, lines[3])
	require.JSONEq(t, `{"line":6,"status":204}`, lines[4])
}

func TestReplayStopsAtTheFirstUnexpectedAnswer(t *testing.T) {
	s := serve(t, t.TempDir())
	in := `{"method":"GET","path":"/v1/states/none"}
{"method":"GET","path":"/livez","expectStatus":201}
{"method":"GET","path":"/livez"}
`
	o := tineIn(t, s, in, "replay", "-")
	require.Equal(t, exitError, o.code)
	require.Contains(t, o.err, "line 1: GET /v1/states/none: status 404, want 2xx")
	require.Contains(t, o.err, "none", "the server's detail")
	require.Equal(t, 1, strings.Count(o.out, "\n"))

	o = tineIn(t, s, in, "replay", "-", "--keep-going")
	require.Equal(t, exitError, o.code)
	require.Contains(t, o.err, "line 1:")
	require.Contains(t, o.err, "line 2: GET /livez: status 200, want 201")
	require.Equal(t, 3, strings.Count(o.out, "\n"))
}

func TestReplayIsStrictAboutItsLines(t *testing.T) {
	s := serve(t, t.TempDir())
	for _, line := range []string{
		`not JSON`, `{}`, `[]`, `{"method":"GET"}`, `{"method":"get","path":"/livez"}`,
		`{"method":"GET","path":"livez"}`, `{"method":"GET","path":"http://example.org/"}`,
		`{"method":"GET","path":"/livez","status":200}`, `{"method":"GET","method":"PUT","path":"/livez"}`,
		`{"method":"GET","path":"/livez","expectStatus":1000}`, `{"Method":"GET","path":"/livez"}`,
		`{"method":"GET","path":"/livez"} {}`, `{"method":5}`, `{"method":"GET","path":"/livez","expectStatus":"200"}`,
	} {
		o := tineIn(t, s, `{"method":"GET","path":"/livez"}`+"\n"+line, "replay", "-", "--keep-going")
		require.Equal(t, exitError, o.code, line)
		require.Contains(t, o.err, "line 2:", line)
		require.NotRegexp(t, `\bGo\b|main\.|json:|jsontext`, o.err, line)
		require.Equal(t, 1, strings.Count(o.out, "\n"), line)
	}
}
