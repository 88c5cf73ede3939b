package main

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// dumpFile writes a dump down.
func dumpFile(t *testing.T, lines ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "dump")
	require.NoError(t, os.WriteFile(path, []byte(strings.Join(lines, "\n")), 0o600))
	return path
}

// held returns all entries of a state.
func held(t *testing.T, s *serverProcess, state string) string {
	t.Helper()
	return ok(t, s, "scan", state, "--output", "json")
}

func TestAnImportedOpaqueStateGoesOn(t *testing.T) {
	s := serve(t, t.TempDir())
	ok(t, s, "state", "create", "words", "--kind", "opaque")
	require.Equal(t, "imported: keys 5, txids 3, skipped 0\n", ok(t, s, "import", "testdata/opaque.dump", "--state", "words"))
	require.Equal(t, `{"key":["apple"],"value":10,"txid":2}
{"key":["café/\t"],"value":{"n":1.0},"txid":8}
{"key":["dog"],"value":4,"prev":3,"txid":8}
{"key":["man"],"value":5,"prev":3,"txid":9}
`, held(t, s, "words"))

	// The last batch is replayed, with other tuples: it finds what was there before it.
	count := []string{"update", "words", "count", "--txid", "9", "--whole", "--output", "json"}
	require.JSONEq(t, `{"txid":9,"values":[4],"applied":0,"replayed":1,"restored":1}`, ok(t, s, append(count, "man")...))
	require.Contains(t, held(t, s, "words"), `{"key":["gone"],"value":7,`, "what it had removed is there again")
	require.JSONEq(t, `{"txid":9,"values":[4,5],"applied":1,"replayed":1,"restored":0}`, ok(t, s, append(count, "man", "dog")...))

	// The next one goes on from there.
	count[4] = "10"
	require.JSONEq(t, `{"txid":10,"values":[5,11],"applied":2,"replayed":0,"restored":0}`, ok(t, s, append(count, "man", "apple")...))
	require.Equal(t, exitConflict, tine(t, s, "update", "words", "count", "man", "--txid", "9").code)
}

func TestAnImportedTransactionalStateGoesOn(t *testing.T) {
	s := serve(t, t.TempDir())
	ok(t, s, "state", "create", "words", "--kind", "transactional")
	dump := dumpFile(t, "man\t[1,3]", "dog\t[3,4]", "apple\t[2,10]", "once\t[null,5]", "gone\t[3,null]")
	require.JSONEq(t, `{"state":"words","partition":"","keys":5,"txids":3,"skipped":0}`,
		ok(t, s, "import", dump, "--state", "words", "--output", "json"))
	require.Equal(t, `{"key":["apple"],"value":10,"txid":2}
{"key":["dog"],"value":4,"txid":3}
{"key":["man"],"value":3,"txid":1}
{"key":["once"],"value":5}
`, held(t, s, "words"))
	require.Equal(t, "[\"man\"]   4\n[\"man\"]   5\n[\"dog\"]   4\n[\"once\"]  6\napplied 3, replayed 1, restored 0\n",
		ok(t, s, "update", "words", "count", "man", "man", "dog", "once", "--txid", "3"))
	require.Equal(t, "[\"dog\"]  5\napplied 1, replayed 0, restored 0\n", ok(t, s, "update", "words", "count", "dog", "--txid", "4"))
}

func TestAnImportedNontxStateHasTheValues(t *testing.T) {
	s := serve(t, t.TempDir())
	ok(t, s, "state", "create", "words", "--kind", "nontx")
	in := `{"key":"man","value":5}
{"key":["eu","man"],"value":"\"five\""}
{"value":" [1,2] ","key":7}
{"key":"none","value":null}

{curly}` + "\t[3,{\"a\":1.0}]\r\n" + "\ttrue"
	o := tineIn(t, s, in, "import", "-", "--state", "words")
	require.Equal(t, outcome{out: "imported: keys 6, txids 0, skipped 0\n"}, o)
	require.Equal(t, `{"key":[7],"value":[1,2]}
{"key":[""],"value":true}
{"key":["eu","man"],"value":"five"}
{"key":["man"],"value":5}
{"key":["{curly}"],"value":[3,{"a":1.0}]}
`, held(t, s, "words"))
}

func TestAnImportLeavesNothingOfWhatWasThereBefore(t *testing.T) {
	s := serve(t, t.TempDir())
	ok(t, s, "state", "create", "words", "--kind", "opaque")
	ok(t, s, "put", "words", "man", "100", "dog", "100", "--txid", "1", "--partition", "other")
	ok(t, s, "import", dumpFile(t, "man\t[3,6,null]", "dog\t[2,4,1]"), "--state", "words")
	require.Equal(t, `{"key":["dog"],"value":4,"prev":1,"txid":2}`+"\n"+`{"key":["man"],"value":6,"txid":3}`+"\n", held(t, s, "words"))
	o := tine(t, s, "import", dumpFile(t, "man\t[1,6,null]"), "--state", "words", "--partition", "p1")
	require.Equal(t, exitConflict, o.code)
	require.Contains(t, o.err, "man")
}

// failing passes requests on to a server, and cuts the connection of the write that it is told
// to, before it is carried out or after.
type failing struct {
	proxy  *httputil.ReverseProxy
	writes atomic.Int64 // still to pass
	after  bool
}

func (f *failing) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost || f.writes.Add(-1) != 0 {
		f.proxy.ServeHTTP(w, r)
		return
	}
	if f.after {
		f.proxy.ServeHTTP(httptest.NewRecorder(), r)
	}
	panic(http.ErrAbortHandler)
}

func TestAnImportThatIsCutOffAtAnyRequestGoesOn(t *testing.T) {
	s := serve(t, t.TempDir())
	target, err := url.Parse(s.url)
	require.NoError(t, err)
	f := &failing{proxy: httputil.NewSingleHostReverseProxy(target)}
	proxy := httptest.NewServer(f)
	defer proxy.Close()
	through := &serverProcess{url: proxy.URL}
	args := func(state string) []string {
		return []string{"import", "testdata/opaque.dump", "--state", state, "--chunk", "2"}
	}
	ok(t, s, "state", "create", "whole", "--kind", "opaque")
	ok(t, s, args("whole")...)
	want := held(t, s, "whole")
	for _, f.after = range []bool{false, true} {
		cuts := 0
		for ; ; cuts++ {
			ok(t, s, "state", "create", "cut", "--kind", "opaque")
			f.writes.Store(int64(cuts + 1))
			o := tine(t, through, args("cut")...)
			if o.code == exitOK {
				break
			}
			require.Equal(t, exitUnavailable, o.code, o.err)
			ok(t, s, args("cut")...)
			require.Equal(t, want, held(t, s, "cut"), "cut at write %d, after it: %t", cuts, f.after)
			// Again, when all is there: the last group once more.
			require.Equal(t, "imported: keys 2, txids 1, skipped 3\n", ok(t, s, args("cut")...))
			require.Equal(t, want, held(t, s, "cut"))
			require.Contains(t, ok(t, s, "update", "cut", "count", "man", "gone", "--txid", "9"), "[\"man\"]   4\n[\"gone\"]  8\n", "the replay finds itself")
			ok(t, s, "state", "delete", "cut")
		}
		ok(t, s, "state", "delete", "cut")
		require.Greater(t, cuts, 6, "there were few writes to cut off")
	}
}

func TestACheckSendsNothing(t *testing.T) {
	s := serve(t, t.TempDir())
	ok(t, s, "state", "create", "words", "--kind", "opaque")
	require.Equal(t, "checked: keys 5, txids 3, skipped 0\n", ok(t, s, "import", "testdata/opaque.dump", "--state", "words", "--check"))
	require.Empty(t, held(t, s, "words"))
	ok(t, s, "update", "words", "count", "man", "--txid", "8", "--partition", "p1")
	require.JSONEq(t, `{"state":"words","partition":"p1","checked":true,"keys":4,"txids":2,"skipped":1}`,
		ok(t, s, "import", "testdata/opaque.dump", "--state", "words", "--check", "--partition", "p1", "--output", "json"))
}

func TestABadLineIsNamedAndNothingIsSent(t *testing.T) {
	s := serve(t, t.TempDir())
	ok(t, s, "state", "create", "words", "--kind", "opaque")
	for line, want := range map[string]string{
		"dog":                              "no TAB",
		"dog\t":                            "no stored JSON",
		"dog\t[3,6":                        "cut short",
		"dog\t[-3,6,4]":                    "txid: -3 is negative",
		"dog\t[3,6,4] 5":                   "follows the array",
		"dog\t[3,6,4,1]":                   "4 elements, want 3",
		"dog\t[3,9223372036854775808,4]":   "outside int64",
		"dog\tman":                         "not JSON: invalid character",
		"man\t[3,6,4]":                     `key ["man"] is in line 1 already`,
		`{"key":"man","value":[3,6,4]}`:    `key ["man"] is in line 1 already`,
		"\xff\t[3,6,4]":                    "UTF-8",
		strings.Repeat("x", 5000) + "\t[]": "4096",
		`{"key":"dog"}`:                    `"key" or "value" is missing`,
		`{"key":"dog","value":"man"}`:      "not JSON: invalid character",
		`{"key":{},"value":[3,6,4]}`:       "key {}",
		`{"key":"dog","val":[3,6,4]}`:      `unknown member "val"`,
		`{"key":"dog","value":[3,6,4]`:     "unexpected EOF",
		`{"key":"dog","value":1} {}`:       "",
	} {
		path := dumpFile(t, "man\t[3,6,4]", "", line, "cat\t[3,6,4]")
		o := tine(t, s, "import", path, "--state", "words")
		require.Equal(t, exitError, o.code, "%s: %s", line, o.err)
		require.Contains(t, o.err, path+": line 3: ", line)
		require.Contains(t, o.err, want, line)
		require.NotRegexp(t, `\bGo\b|main\.|json:|bad request`, o.err, line)
		require.Empty(t, o.out)
		require.Empty(t, held(t, s, "words"), line)
	}
	o := tineIn(t, s, "man", "import", "-", "--state", "words")
	require.Contains(t, o.err, "standard input: line 1: ")
	o = tine(t, s, "import", "testdata/opaque.dump", "--state", "words", "--max-size", "50")
	require.Equal(t, exitError, o.code)
	require.Contains(t, o.err, "the limit is 50; --max-size sets it")
}

func TestAnImportIntoAnotherKindSaysWhichFits(t *testing.T) {
	s := serve(t, t.TempDir())
	for _, kind := range []string{"nontx", "transactional", "opaque"} {
		ok(t, s, "state", "create", kind, "--kind", kind)
	}
	for _, c := range []struct{ state, dump, fits string }{
		{"opaque", "man\t[3,6]", "transactional"},
		{"opaque", `{"key":"man","value":"5"}`, "nontx"},
		{"opaque", "man\t\"text\"", "nontx"},
		{"transactional", "man\t[3,6,4]", "opaque"},
		{"transactional", "man\t5", "nontx"},
		{"nontx", "man\t[3,6]\ndog\t[4,null]", "transactional"},
		{"nontx", "man\t[3,6,4]", "opaque"},
	} {
		o := tineIn(t, s, c.dump, "import", "-", "--state", c.state)
		require.Equal(t, exitUsage, o.code, o.err)
		require.Contains(t, o.err, "fits a state of kind "+c.fits)
		require.Contains(t, o.err, "state "+c.state+" is "+c.state)
		require.Empty(t, held(t, s, c.state))
	}
	o := tineIn(t, s, "man\t[3,6]", "import", "-", "--state", "nontx", "--kind-check=false")
	require.Equal(t, "imported: keys 1, txids 0, skipped 0\n", o.out, o.err)
	o = tineIn(t, s, "man\t[3,6]\ndog\t5", "import", "-", "--state", "nontx")
	require.Equal(t, "imported: keys 2, txids 0, skipped 0\n", o.out, o.err)
}

func TestAnImportSaysWhatItMisses(t *testing.T) {
	s := serve(t, t.TempDir())
	for args, want := range map[string]struct {
		code int
		text string
	}{
		"import testdata/opaque.dump":                             {exitUsage, "missing --state"},
		"import --state words":                                    {exitUsage, "missing FILE"},
		"import testdata/opaque.dump --state none":                {exitNotFound, `no state "none"`},
		"import testdata/opaque.dump --state words --format csv":  {exitUsage, "trident-json"},
		"import testdata/opaque.dump --state words --chunk 0":     {exitUsage, "--chunk"},
		"import testdata/opaque.dump --state words --max-size -1": {exitUsage, "--max-size"},
	} {
		o := tine(t, s, strings.Fields(args)...)
		require.Equal(t, want.code, o.code, o.err)
		require.Contains(t, o.err, want.text)
	}
}
