package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestErrorsOfUsageSayWhatIsWanted(t *testing.T) {
	for args, want := range map[string]string{
		"get":                                "missing STATE, KEY; want tine get STATE KEY...",
		"update s":                           "missing OP, KEY;",
		"update s count":                     "missing KEY;",
		"remove s":                           "missing KEY;",
		"put s k":                            "missing VALUE;",
		"put s k 1 l":                        "missing VALUE for the last KEY, l;",
		"put s k -5":                         "begin with a minus go after --",
		"scan":                               "missing STATE;",
		"progress":                           "missing STATE;",
		"replay":                             "missing FILE;",
		"snapshot get":                       "missing STATE;",
		"snapshot update s":                  "missing OP;",
		"snapshot set s":                     "missing VALUE;",
		"state show":                         "missing STATE;",
		"state show a b":                     `unexpected argument "b"; want tine state show STATE`,
		"state list a":                       `unexpected argument "a"`,
		"begin s":                            "missing --txid; want tine begin STATE --txid N",
		"nosuch":                             `unknown command "nosuch"`,
		"help nosuch":                        `unknown command "nosuch"`,
		"help state nosuch":                  `unknown command "nosuch" for "tine state"`,
		"state nosuch":                       `unknown command "nosuch"`,
		"state":                              "want create, list, show or delete",
		"completion":                         "missing SHELL;",
		"completion tcsh":                    `unknown shell "tcsh", want bash, zsh, fish or powershell`,
		"get s [1,":                          `key [1, begins like JSON but is not JSON; the string is '"[1,"'`,
		`get s "k`:                           `key "k begins like JSON`,
		"update s count {":                   "key { begins like JSON",
		"put s [ 1":                          "key [ begins like JSON",
		"remove s [":                         "key [ begins like JSON",
		"scan s --prefix [":                  "--prefix: key [ begins like JSON",
		"scan s --start {":                   "--start: key { begins like JSON",
		`scan s --end "`:                     "--end: key \" begins like JSON",
		"update s sum k --arg x":             `--arg is "x": malformed JSON`,
		"update s sum k --arg=":              `--arg is ""`,
		"update s sum k --args 5":            `--args is "5", want a JSON array`,
		"update s sum k --args [1e400]":      `--args, element 0, is "1e400"`,
		"snapshot update s sum --arg x":      `--arg is "x"`,
		"snapshot set s x":                   `VALUE is "x"`,
		"put s k x":                          `VALUE is "x"`,
		"commit s --txid 1 --offsets {b":     `--offsets is "{b"`,
		"begin s --txid x":                   `--txid is "x", want an integer`,
		"begin s --txid 9223372036854775808": `want an integer of 64 bits`,
		"begin s --txid 1 --epoch x":         `--epoch is "x", want an integer`,
		"state list --output xml":            `--output is "xml", want table or json`,
		"state list --timeout soon":          `--timeout is "soon", want a duration, such as`,
		"state list --url http://h:1/v1":     `--url is "http://h:1/v1", want scheme, host and port alone`,
		"state list --url http://h:1?a=b":    `want scheme, host and port alone`,
		"replay - --keep-going=x":            `--keep-going is "x", want true or false`,
		"serve --log-level loud":             `--log-level is "loud", want debug, info, warn or error`,
		"serve --cache-bytes x":              `--cache-bytes is "x", want a number of bytes`,
		"serve --listen x":                   `--listen is "x", want host:port`,
	} {
		// Nobody listens there: what is wrong is found before a server is asked.
		o := runHere(t, map[string]string{"TINE_URL": "http://127.0.0.1:1"}, strings.Fields(args)...)
		require.Equal(t, exitUsage, o.code, "%s: %s", args, o.err)
		require.Contains(t, o.err, want, args)
		require.NotRegexp(t, `strconv|slog|yaml|time:|pflag|accepts`, o.err, args)
		require.Empty(t, o.out, args)
	}
}

func TestAServerThatIsDownIsNamedWithWhatToDo(t *testing.T) {
	for _, args := range [][]string{{"state", "list"}, {"scan", "s"}, {"get", "s", "k"}} {
		o := runHere(t, nil, append(args, "--url", "http://127.0.0.1:1/")...)
		require.Equal(t, exitUnavailable, o.code)
		require.Contains(t, o.err, `tine: no server answers at http://127.0.0.1:1 (connect: connection refused)`)
		require.Contains(t, o.err, `"tine serve"`)
		require.Contains(t, o.err, "--url")
	}
	o := tineIn(t, nil, `{"method":"GET","path":"/livez"}`, "replay", "-", "--url", "http://127.0.0.1:1")
	require.Equal(t, exitUnavailable, o.code)
	require.Contains(t, o.err, "tine: line 1: no server answers at http://127.0.0.1:1 ")
}

func TestAServerThatDoesNotAnswerInTimeIsToldWithTheFlag(t *testing.T) {
	hung := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-hung }))
	defer server.Close()
	defer close(hung)
	for _, args := range [][]string{{"state", "list"}, {"scan", "s"}} {
		o := runHere(t, nil, append(args, "--url", server.URL, "--timeout", "20ms")...)
		require.Equal(t, exitUnavailable, o.code)
		require.Equal(t, "tine: the server at "+server.URL+" did not answer within 20ms; --timeout sets how long to wait\n", o.err)
	}
}

func TestAServerThatHangsUpIsUnavailable(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	defer server.Close()
	o := runHere(t, nil, "state", "list", "--url", server.URL)
	require.Equal(t, exitUnavailable, o.code)
	require.Equal(t, "tine: the server at "+server.URL+" gave no answer: EOF\n", o.err)
}

func TestAnUnknownStateIsToldWithTheVerbThatCreatesIt(t *testing.T) {
	s := serve(t, t.TempDir())
	for _, args := range []string{"state show nope", "get nope k", "scan nope", "begin nope --txid 1", "snapshot get nope"} {
		o := tine(t, s, strings.Fields(args)...)
		require.Equal(t, exitNotFound, o.code)
		require.Equal(t, "tine: there is no state \"nope\"; create it with \"tine state create nope --kind KIND\" (unknown_state)\n", o.err, args)
	}
	o := tine(t, s, "state", "delete", "nope")
	require.Equal(t, exitNotFound, o.code)
	require.NotContains(t, o.err, "create")
}

func TestErrorsAreJSONWhereTheOutputIs(t *testing.T) {
	s := serve(t, t.TempDir())
	ok(t, s, "state", "create", "words", "--kind", "opaque")
	for _, c := range []struct {
		args string
		exit int
		code string
	}{
		{"get nope k --output json", exitNotFound, "unknown_state"},
		{"commit words --txid 9 --output=json", exitConflict, "no_open_batch"},
		{"get words --output json", exitUsage, ""},
		{"get words k --nosuch --output json", exitUsage, ""},
		{"nosuch --output json", exitUsage, ""},
		{"state list --output json --url http://127.0.0.1:1", exitUnavailable, ""},
	} {
		o := tine(t, s, strings.Fields(c.args)...)
		require.Equal(t, c.exit, o.code, c.args)
		require.Empty(t, o.out)
		require.Equal(t, 1, strings.Count(o.err, "\n"), o.err)
		var told struct{ Error, Code string }
		require.NoError(t, json.Unmarshal([]byte(o.err), &told), o.err)
		require.NotEmpty(t, told.Error)
		require.Equal(t, c.code, told.Code)
	}
	o := runHere(t, map[string]string{"TINE_OUTPUT": "json"}, "nosuch")
	require.JSONEq(t, `{"error":"unknown command \"nosuch\" for \"tine\""}`, o.err)
	o = tine(t, s, "commit", "words", "--txid", "9")
	require.True(t, strings.HasSuffix(o.err, " (no_open_batch)\n"), o.err)
}

func TestAFullDiskIsUnavailable(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusInsufficientStorage)
		_, _ = io.WriteString(w, `{"type":"urn:tine:problem:disk_full","status":507,"detail":"no space","code":"disk_full"}`)
	}))
	defer server.Close()
	o := runHere(t, nil, "put", "s", "k", "1", "--url", server.URL)
	require.Equal(t, exitUnavailable, o.code)
	require.Equal(t, "tine: no space (disk_full)\n", o.err)
}
