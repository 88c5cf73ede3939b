package main

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"tine/mapstate"
)

func TestStatesAreCreatedListedShownAndDeleted(t *testing.T) {
	s := serve(t, t.TempDir())
	ok(t, s, "state", "create", "words", "--kind", "opaque")
	ok(t, s, "state", "create", "words", "--kind", "opaque")
	ok(t, s, "state", "create", "recent", "--kind", "nontx", "--backing", "memory", "--cache-entries", "5", "--cache-bytes", "1MiB")
	require.Regexp(t, `(?s)NAME .* COMMITS +WRITTEN .*recent +nontx +memory +sync +5 .*words +opaque +pebble`, ok(t, s, "state", "list"))
	var list struct {
		States []struct{ Name, Kind string }
	}
	require.NoError(t, json.Unmarshal([]byte(ok(t, s, "state", "list", "--output", "json")), &list))
	require.Len(t, list.States, 2)
	require.Contains(t, ok(t, s, "state", "show", "words", "--output", "json"), `"atomicBatch":true`)
	require.Equal(t, "deleted\n", ok(t, s, "state", "delete", "words"))
	require.JSONEq(t, `{"name":"recent","deleted":true}`, ok(t, s, "state", "delete", "recent", "--output", "json"))
	require.NotContains(t, ok(t, s, "state", "list"), "words")
}

func TestNumberedUpdatesAreAppliedOnce(t *testing.T) {
	s := serve(t, t.TempDir())
	ok(t, s, "state", "create", "words", "--kind", "transactional")
	require.Equal(t, "[\"man\"]  1\n[\"dog\"]  1\n[\"man\"]  2\napplied 3, replayed 0, restored 0\n",
		ok(t, s, "update", "words", "count", "man", "dog", "man", "--txid", "1"))
	require.JSONEq(t, `{"txid":1,"values":[2],"applied":0,"replayed":1,"restored":0}`,
		ok(t, s, "update", "words", "count", "man", "--txid", "1", "--output", "json"))
	ok(t, s, "put", "words", "cat", "7", `["eu",1]`, `{"a":[1.0]}`)
	ok(t, s, "remove", "words", "dog")
	require.Equal(t, "[\"cat\"]\t7\n[\"eu\",1]\t{\"a\":[1.0]}\n[\"man\"]\t2\n", ok(t, s, "scan", "words"))
	require.Equal(t, "{\"key\":[\"cat\"],\"value\":7}\n", ok(t, s, "scan", "words", "--limit", "1", "--output", "json"))
	require.Equal(t, "[\"man\"]\t2\n", ok(t, s, "scan", "words", "--prefix", "m"))
	require.JSONEq(t, `{"entries":[{"key":["man"],"found":true,"value":2,"txid":1},{"key":["dog"],"found":false,"value":null,"txid":1}]}`,
		ok(t, s, "get", "words", "man", "dog", "--output", "json"))
	require.Regexp(t, `KEY +VALUE +PREV +TXID\n\["man"\] +2 +- +1\n`, ok(t, s, "get", "words", "man"))
}

func TestUpdatersTakeOneArgumentOrOnePerKey(t *testing.T) {
	s := serve(t, t.TempDir())
	ok(t, s, "state", "create", "totals", "--kind", "nontx")
	ok(t, s, "update", "totals", "sum", "eu", "us", "--arg", "2")
	require.JSONEq(t, `{"txid":null,"values":[12,4.5],"applied":2,"replayed":0,"restored":0}`,
		ok(t, s, "update", "totals", "sum", "eu", "us", "--args", "[10,2.5]", "--output", "json"))
	require.JSONEq(t, `{"txid":null,"values":[-5],"applied":1,"replayed":0,"restored":0}`,
		ok(t, s, "update", "totals", "set", "eu", "--arg", "-5", "--output", "json"))
}

func TestBatchesAreBegunCommittedAndAborted(t *testing.T) {
	s := serve(t, t.TempDir())
	ok(t, s, "state", "create", "words", "--kind", "opaque")
	require.JSONEq(t, `{"txid":7,"partition":"p0","committed":0,"replay":false}`,
		ok(t, s, "begin", "words", "--txid", "7", "--partition", "p0", "--epoch", "2", "--output", "json"))
	ok(t, s, "update", "words", "count", "man", "--txid", "7", "--partition", "p0", "--epoch", "2")
	require.Empty(t, ok(t, s, "scan", "words"), "nothing is seen before the commit")
	require.Contains(t, ok(t, s, "get", "words", "man", "--txid", "7", "--partition", "p0"), "1")
	ok(t, s, "commit", "words", "--txid", "7", "--partition", "p0", "--offsets", `{"line":12}`)
	require.Equal(t, "already committed\n", ok(t, s, "commit", "words", "--txid", "7", "--partition", "p0"))
	require.Contains(t, ok(t, s, "progress", "words", "--output", "json"), `"partition":"p0","txid":7,"epoch":2,"offsets":{"line":12}`)
	require.Regexp(t, `"p0" +7 +2 +\S+ +\{"line":12\}`, ok(t, s, "progress", "words"))

	ok(t, s, "begin", "words", "--txid", "8")
	ok(t, s, "update", "words", "count", "dog", "--txid", "8")
	require.Equal(t, "aborted\n", ok(t, s, "abort", "words", "--txid", "8"))
	ok(t, s, "begin", "words", "--txid", "8", "--partition", "p1")
	require.JSONEq(t, `{"txid":8,"partition":"p1","aborted":true}`,
		ok(t, s, "abort", "words", "--txid", "8", "--partition", "p1", "--output", "json"))
	require.Equal(t, "[\"man\"]\t1\n", ok(t, s, "scan", "words"))
}

func TestSnapshotsAreReadUpdatedAndSet(t *testing.T) {
	s := serve(t, t.TempDir())
	ok(t, s, "state", "create", "total", "--kind", "opaque")
	require.JSONEq(t, `{"found":false,"value":null}`, ok(t, s, "snapshot", "get", "total", "--output", "json"))
	require.Equal(t, "5\napplied 1, replayed 0, restored 0\n", ok(t, s, "snapshot", "update", "total", "sum", "--arg", "5", "--txid", "3"))
	require.JSONEq(t, `{"txid":3,"value":5,"applied":0,"replayed":1,"restored":0}`,
		ok(t, s, "snapshot", "update", "total", "sum", "--arg", "5", "--txid", "3", "--output", "json"))
	require.JSONEq(t, `{"found":true,"value":5,"txid":3}`, ok(t, s, "snapshot", "get", "total", "--output", "json"))
	ok(t, s, "snapshot", "set", "total", `"done"`, "--txid", "4")
	require.Regexp(t, `VALUE +PREV +TXID\n"done" +5 +4\n`, ok(t, s, "snapshot", "get", "total"))
}

func TestExitCodesTellWhatWentWrong(t *testing.T) {
	s := serve(t, t.TempDir())
	ok(t, s, "state", "create", "words", "--kind", "opaque")
	ok(t, s, "put", "words", "man", `"text"`, "--txid", "5")
	for _, c := range []struct {
		name string
		args string
		code int
		text string
	}{
		{"unknown state", "get nothing man", exitNotFound, "nothing"},
		{"delete of an unknown state", "state delete nothing", exitNotFound, "nothing"},
		{"stale batch", "update words count dog --txid 4", exitConflict, "txid 4"},
		{"another spec", "state create words --kind nontx", exitConflict, "words"},
		{"no open batch", "commit words --txid 9", exitConflict, ""},
		{"wrong type", "update words sum man --arg 1", exitError, "man"},
		{"unknown updater", "update words summ man --arg 1", exitError, "summ"},
		{"unknown backing", "state create x --kind opaque --backing memcached", exitError, "wants its servers"},
		{"unknown verb", "frobnicate", exitUsage, "frobnicate"},
		{"unknown verb of a group", "state frobnicate", exitUsage, "frobnicate"},
		{"a group alone", "state", exitUsage, "tine state"},
		{"unknown flag", "get words man --frobnicate", exitUsage, "--frobnicate"},
		{"too few arguments", "get words", exitUsage, "missing KEY;"},
		{"a key without a value", "put words man", exitUsage, "VALUE"},
		{"a value that is not JSON", "put words man text", exitUsage, "text"},
		{"a key that is no key", "get words {}", exitUsage, "{}"},
		{"no kind", "state create x", exitUsage, "--kind"},
		{"no txid", "begin words", exitUsage, "--txid"},
		{"txid 0", "update words count man --txid 0", exitUsage, "--txid"},
		{"two kinds of arguments", "update words sum man --arg 1 --args [1]", exitUsage, "args"},
		{"output", "state list --output xml", exitUsage, "xml"},
		{"url", "state list --url nowhere", exitUsage, "nowhere"},
		{"nobody there", "state list --url http://127.0.0.1:1", exitUnavailable, "127.0.0.1:1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := tine(t, s, strings.Fields(c.args)...)
			require.Equal(t, c.code, o.code, o.err)
			require.True(t, strings.HasPrefix(o.err, "tine: "), o.err)
			require.Contains(t, o.err, c.text)
			require.Empty(t, o.out)
		})
	}
}

func TestEveryCommandHasAnExample(t *testing.T) {
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		require.NotEmpty(t, cmd.Short, cmd.CommandPath())
		require.Contains(t, cmd.Example, "tine ", cmd.CommandPath())
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
	}
	walk(new(cli).rootCommand())
}

func TestVersionSaysWhichGoBuiltIt(t *testing.T) {
	require.Regexp(t, `^tine \S+ \(go1\.`, ok(t, nil, "version"))
	require.Contains(t, ok(t, nil, "version", "--output", "json"), `"go":"go1.`)
	require.Equal(t, ok(t, nil, "version"), ok(t, nil, "--version"))
}

func TestCompletionKnowsTheStates(t *testing.T) {
	require.Contains(t, ok(t, nil, "completion", "bash"), "tine")
	s := serve(t, t.TempDir())
	ok(t, s, "state", "create", "words", "--kind", "opaque")
	for _, verb := range [][]string{{"get"}, {"snapshot", "set"}, {"state", "delete"}} {
		args := append(append([]string{"__complete"}, verb...), "")
		require.Contains(t, tine(t, s, args...).out, "words\topaque\n")
	}
	require.NotContains(t, tine(t, s, "__complete", "state", "create", "").out, "words")
	require.NotContains(t, tine(t, s, "__complete", "get", "words", "").out, "words", "a key is nobody's to know")
}

func TestCompletionOffersTheWordsOfFlagsAndArguments(t *testing.T) {
	for args, want := range map[string][]string{
		"state create s --kind":       {"nontx", "transactional", "opaque"},
		"state create s --backing":    {"pebble", "memory", "memcached"},
		"state create s --durability": {"sync", "interval"},
		"get --output":                {"table", "json"},
		"serve --log-format":          {"text", "json"},
		"serve --log-level":           {"debug", "info", "warn", "error"},
		"completion":                  {"bash", "zsh", "fish", "powershell"},
		"update words":                opWords(),
		"snapshot update words":       opWords(),
	} {
		o := runHere(t, nil, append(append([]string{"__complete"}, strings.Fields(args)...), "")...)
		require.Equal(t, strings.Join(want, "\n")+"\n:4\n", o.out, args)
	}
}

func TestOfferedUpdatersAreAllThatThereAre(t *testing.T) {
	_, err := mapstate.LookupOp("")
	require.ErrorContains(t, err, "known are "+strings.Join(opWords(), ", "))
	for _, name := range opWords() {
		op, err := mapstate.LookupOp(name)
		require.NoError(t, err)
		require.Equal(t, name, op.Name)
	}
	for _, name := range opWords() {
		require.Contains(t, new(cli).updateCommand().Long, name)
	}
}

func TestHelpShowsOnlyFlagsThatAreUsed(t *testing.T) {
	for verb, want := range map[string][]string{
		"serve": nil, "completion": nil, "help": nil, "version": {"--output"}, "demo": {"--output"},
		"get": {"--url", "--output", "--timeout"}, "state list": {"--url", "--output", "--timeout"},
	} {
		o := runHere(t, nil, append(strings.Fields(verb), "--help")...)
		require.Zero(t, o.code)
		_, flags, found := strings.Cut(o.out, "\nFlags:\n") // the examples are above
		require.True(t, found, verb)
		for _, flag := range []string{"--url", "--output", "--timeout"} {
			require.Equal(t, slices.Contains(want, flag), strings.Contains(flags, flag+" "), "%s of %s", flag, verb)
		}
	}
}

func TestTxIDIsSaidToBeRequiredWhereItIs(t *testing.T) {
	for _, verb := range []string{"begin", "commit", "abort"} {
		out := runHere(t, nil, verb, "--help").out
		require.NotContains(t, out, "un-numbered", verb)
		require.Contains(t, out, "required", verb)
	}
	require.Contains(t, runHere(t, nil, "update", "--help").out, "un-numbered without it")
}

func TestCommonFlagsComeFromTheEnvironment(t *testing.T) {
	o := runHere(t, map[string]string{"TINE_URL": "http://127.0.0.1:1", "TINE_TXID": "x"}, "state", "list")
	require.Equal(t, exitUnavailable, o.code)
	o = runHere(t, map[string]string{"TINE_OUTPUT": "json"}, "version")
	require.Contains(t, o.out, `{"version"`)
	o = runHere(t, map[string]string{"TINE_TIMEOUT": "soon"}, "version")
	require.Equal(t, exitUsage, o.code)
	require.Contains(t, o.err, "TINE_TIMEOUT")
}

func TestKeysAreJSONOrElseStrings(t *testing.T) {
	for arg, want := range map[string]string{
		"man": `["man"]`, "": `[""]`, "two words": `["two words"]`, "half]": `["half]"]`, " [1]": `[1]`, "café": `["café"]`,
		"42": `[42]`, "1.0": `[1]`, `"42"`: `["42"]`, "true": `[true]`, "null": `[null]`,
		`["eu",1,null]`: `["eu",1,null]`,
	} {
		key, err := parseKey(arg)
		require.NoError(t, err, arg)
		require.Equal(t, want, key.String(), arg)
	}
	for _, arg := range []string{"[]", "{}", "[[1]]", `[{"a":1}]`, "9223372036854775808", "\xff", `["a",1e400]`, "[1,", "{", `"a`} {
		_, err := parseKey(arg)
		require.ErrorAs(t, err, new(usageError), arg)
	}
}
