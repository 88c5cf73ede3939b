package api_test

import (
	"bytes"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tine/api"
)

// refusal is a request and the problem it must get.
type refusal struct {
	name   string
	path   string
	body   string
	status int
	code   string
	detail string // part of it
	index  int    // -1: none
}

// requireUntouched requires that no refused request has done anything.
func (f *fixture) requireUntouched() {
	f.t.Helper()
	got := f.do(http.MethodGet, "/v1/states/opaque/entries", "")
	require.Equal(f.t, `{"entries":[]}`, got.body)
	require.Equal(f.t, `{"partitions":[]}`, f.do(http.MethodGet, "/v1/states/opaque/progress", "").body)
}

func (f *fixture) refuseAll(refusals []refusal) {
	for _, r := range refusals {
		f.t.Run(r.name, func(t *testing.T) {
			g := *f
			g.t = t
			p := g.refused("opaque/"+r.path, r.body, r.status, r.code)
			require.Contains(t, p["detail"], r.detail)
			if r.index < 0 {
				require.NotContains(t, p, "index")
			} else {
				require.EqualValues(t, r.index, p["index"])
			}
		})
	}
	f.requireUntouched()
}

func TestBodiesThatAreNotOneObjectAreRefused(t *testing.T) {
	f := start(t, api.Options{})
	bad := func(name, body, detail string, index int) refusal {
		return refusal{name, "multiPut", body, http.StatusBadRequest, "bad_request", detail, index}
	}
	f.refuseAll([]refusal{
		bad("empty", "", "there is no JSON", -1),
		bad("blank", " \n", "there is no JSON", -1),
		bad("null", "null", "want a JSON object, got null", -1),
		bad("array", `[]`, "want a JSON object, got an array", -1),
		bad("million brackets", strings.Repeat("[", 1_000_000), "got an array", -1),
		bad("number", `1`, "want a JSON object, got a number", -1),
		bad("truncated in the object", `{"keys":["a"],"values":[1]`, "cut short", -1),
		bad("truncated in a name", `{"keys":["a"],"val`, "cut short", -1),
		bad("truncated in a key", `{"values":[1],"keys":["a`, "cut short", 0),
		bad("truncated in an array", `{"keys":["a"],"values":[1`, "cut short", 1),
		bad("truncated after a comma", `{"values":[1],"keys":["a",`, "cut short", 1),
		bad("trailing object", `{"keys":["a"],"values":[1]}{}`, "follows", -1),
		bad("trailing garbage", `{"keys":["a"],"values":[1]} x`, "malformed", -1),
		bad("missing comma", `{"keys":["a" "b"],"values":[1]}`, "malformed", 1),
		bad("trailing comma", `{"keys":["a",],"values":[1]}`, "malformed", 1),
		bad("single quotes", `{'keys':[]}`, "malformed", -1),
		bad("comment", `{"keys":["a"],/* */"values":[1]}`, "malformed", -1),
		bad("leading zero", `{"keys":[01],"values":[1]}`, "malformed", 1),
		bad("NaN", `{"keys":["a"],"values":[NaN]}`, "malformed", 0),
		bad("invalid UTF-8 in a name", "{\"\xff\":1}", "not UTF-8", -1),
		bad("byte order mark", "\ufeff{}", "malformed", -1),
	})
}

func TestUnknownDuplicateAndMissingMembersAreNamed(t *testing.T) {
	f := start(t, api.Options{})
	bad := func(name, path, body, detail string) refusal {
		return refusal{name, path, body, http.StatusBadRequest, "bad_request", detail, -1}
	}
	f.refuseAll([]refusal{
		bad("unknown", "multiPut", `{"keys":[],"vals":[]}`, `unknown member "vals"; the members are keys, values, txid`),
		bad("mis-cased", "multiPut", `{"Keys":[],"values":[]}`, `unknown member "Keys"; the members are keys,`),
		bad("of another call", "multiGet", `{"keys":[],"epoch":1}`, `unknown member "epoch"; the members are keys, txid, partition, detail`),
		bad("whole of commit", "commit", `{"txid":1,"whole":true}`, `unknown member "whole"`),
		bad("duplicate", "multiPut", `{"keys":["a"],"values":[1],"keys":["b"]}`, `in /keys: duplicate object member name`),
		bad("duplicate by escape", "multiPut", `{"keys":["a"],"values":[1],"k\u0065ys":["b"]}`, "duplicate"),
		bad("no keys", "multiPut", `{"values":[]}`, `"keys" is missing`),
		bad("null keys", "multiPut", `{"keys":null,"values":[]}`, `"keys" is missing`),
		bad("no values", "multiPut", `{"keys":[]}`, `"values" is missing`),
		bad("no value", "snapshot/update", `{"txid":1}`, `"updater" is missing`),
		bad("keys no array", "multiGet", `{"keys":"a"}`, "keys: bad request: want an array, got a string"),
		bad("partition", "multiGet", `{"keys":[],"partition":1}`, "partition: bad request: want a string, got a number"),
		bad("long partition", "multiGet", `{"keys":[],"partition":"`+strings.Repeat("é", 101)+`"}`, "101 characters, the limit is 100"),
		bad("surrogate in partition", "multiGet", `{"keys":[],"partition":"\ud800"}`, "partition: bad request: string"),
		bad("detail", "multiGet", `{"keys":[],"detail":1}`, "want a boolean, got a number"),
		bad("epoch negative", "multiRemove", `{"keys":[],"epoch":-1}`, "epoch: bad request: got -1"),
		bad("epoch fraction", "multiRemove", `{"keys":[],"epoch":1.0}`, "epoch: bad request: got 1.0"),
		bad("epoch large", "multiRemove", `{"keys":[],"epoch":9223372036854775808}`, "within int64"),
		bad("whole", "multiRemove", `{"keys":[],"whole":"true"}`, "want a boolean, got a string"),
		bad("return", "multiUpdate", `{"keys":[],"updater":"count","return":"all"}`, `got "all", want "none" or "values"`),
	})
}

func TestUpdatersMustFitTheKeys(t *testing.T) {
	f := start(t, api.Options{})
	bad := func(name, body, detail string, index int) refusal {
		return refusal{name, "multiUpdate", body, http.StatusBadRequest, "bad_request", detail, index}
	}
	f.refuseAll([]refusal{
		bad("none", `{"keys":["a"]}`, "neither updater nor updaters", -1),
		bad("both", `{"keys":["a"],"updater":"count","updaters":["count"]}`, "both updater and updaters", -1),
		bad("args with updaters", `{"keys":["a"],"args":[1],"updaters":["sum"]}`, "args go with updater", -1),
		bad("arg and args", `{"keys":["a"],"args":[1],"updater":{"op":"sum","arg":1}}`, "has an arg and there are args", -1),
		bad("args short", `{"keys":["a","b"],"args":[1],"updater":"sum"}`, "1 args for 2 keys", -1),
		bad("args long", `{"keys":["a"],"args":[1,2],"updater":"sum"}`, "2 args for 1 keys", -1),
		bad("updaters long", `{"keys":[],"updaters":["count"]}`, "1 updaters for 0 keys", -1),
		bad("unknown op", `{"keys":["a"],"updater":"frobnicate"}`, `"frobnicate", known are`, -1),
		bad("unknown op among many", `{"keys":["a","b"],"updaters":["count","frobnicate"]}`, "known are", 1),
		bad("empty op", `{"keys":["a"],"updater":""}`, "name is empty", -1),
		bad("no arg", `{"keys":["a"],"updater":"sum"}`, "sum needs an arg", -1),
		bad("no arg among many", `{"keys":["a","b"],"updaters":["count","sum"]}`, "sum needs an arg", 1),
		bad("op no string", `{"keys":["a"],"updater":7}`, `want the name of an updater or {"op", "arg"}, got a number`, -1),
		bad("op missing", `{"keys":["a"],"updater":{"arg":1}}`, `"op" is missing`, -1),
		bad("op unknown member", `{"keys":["a"],"updater":{"op":"sum","args":1}}`, `unknown member "args"; the members are op, arg`, -1),
		{"values short", "multiPut", `{"keys":["a","b"],"values":[1]}`, http.StatusBadRequest, "bad_request", "1 values for 2 keys", -1},
		{"values long", "multiPut", `{"values":[1,2],"keys":["a"]}`, http.StatusBadRequest, "bad_request", "2 values for 1 keys", -1},
	})
}

func TestTxIDsAreIntegersFromOne(t *testing.T) {
	f := start(t, api.Options{})
	for _, txid := range []string{"0", "-1", "1.5", "1.0", "1e3", "9223372036854775808", `"07"`, `"0"`, `"+7"`, `"-7"`, `" 7"`, `""`,
		`"7x"`, `"1e3"`, `"9223372036854775808"`, `"\u0037"`, "true", "[1]", "{}", strings.Repeat("[", 1_000_000)} {
		p := f.refused("opaque/multiRemove", `{"keys":[],"txid":`+txid+`}`, http.StatusBadRequest, "invalid_txid")
		require.Contains(t, p["detail"], "got ", txid)
	}
	for _, call := range []string{"beginCommit", "commit", "abort"} {
		for _, body := range []string{`{}`, `{"txid":null}`, `{"txid":0}`} {
			f.refused("opaque/"+call, body, http.StatusBadRequest, "invalid_txid")
		}
	}
	f.requireUntouched()
	for _, txid := range []string{"1", `"7"`, " 8 ", "9223372036854775807"} {
		want := strings.Trim(txid, `" `)
		f.posted("opaque/multiRemove", `{"keys":[],"txid":`+txid+`}`, `{"txid":`+want+`,"applied":0,"replayed":0,"restored":0}`)
	}
}

func TestOversizeIsRefusedWithItsLimit(t *testing.T) {
	f := start(t, api.Options{MaxBody: 4 << 20, MaxKeys: 3})
	large := func(p map[string]any, limit int) {
		t.Helper()
		require.EqualValues(t, limit, p["limit"])
	}
	body := `{"keys":[]` + strings.Repeat(" ", 4<<20) + `}`
	large(f.refused("opaque/multiGet", body, http.StatusRequestEntityTooLarge, "too_large"), 4<<20)

	// Without a length the limit is found while reading.
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, f.url+"/v1/states/opaque/multiGet", io.MultiReader(strings.NewReader(body)))
	require.NoError(t, err)
	resp, err := f.http.Do(req)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, http.StatusRequestEntityTooLarge, resp.StatusCode)

	large(f.refused("opaque/multiGet", `{"keys":[1,2,3,4]}`, http.StatusRequestEntityTooLarge, "too_large"), 3)
	large(f.refused("opaque/multiPut", `{"values":[1,2,3,4],"keys":[]}`, http.StatusRequestEntityTooLarge, "too_large"), 3)
	large(f.refused("opaque/multiUpdate", `{"updater":"sum","args":[1,2,3,4],"keys":[]}`, http.StatusRequestEntityTooLarge, "too_large"), 3)
	large(f.refused("opaque/multiUpdate", `{"updaters":["count","count","count","count"],"keys":[]}`, http.StatusRequestEntityTooLarge, "too_large"), 3)

	most := strings.Repeat("x", 1<<20)
	p := f.refused("opaque/multiPut", `{"values":[1,"`+most+`"],"keys":["a","b"]}`, http.StatusRequestEntityTooLarge, "too_large")
	large(p, 1<<20)
	require.Equal(t, []any{"b"}, p["key"])
	require.EqualValues(t, 1, p["index"])
	large(f.refused("opaque/multiRemove", `{"keys":[],"offsets":"`+most+`"}`, http.StatusRequestEntityTooLarge, "too_large"), 1<<20)
	f.requireUntouched()
	fits := most[:1<<20-4] // a type byte and a length of three bytes come before it
	require.Equal(t, http.StatusOK, f.post("opaque/multiPut", `{"values":["`+fits+`"],"keys":["a"]}`).status)
	f.refused("opaque/multiPut", `{"values":["`+fits+`x"],"keys":["a"]}`, http.StatusRequestEntityTooLarge, "too_large")
}

// The default limit, with a body that is one byte over it and is never read.
func TestTheDefaultBodyLimitIs64MiB(t *testing.T) {
	f := start(t, api.Options{})
	body := append(bytes.Repeat([]byte(" "), 64<<20-len(`{"keys":[]}`)), `{"keys":[]}`...)
	post := func(body []byte) int {
		resp, err := f.http.Post(f.url+"/v1/states/opaque/multiGet", "application/json", bytes.NewReader(body))
		if err != nil {
			return http.StatusRequestEntityTooLarge // the server closed the connection on the body
		}
		require.NoError(t, resp.Body.Close())
		return resp.StatusCode
	}
	require.Equal(t, http.StatusOK, post(body))
	require.Equal(t, http.StatusRequestEntityTooLarge, post(append(body, ' ')))
}

func TestAMillionKeysAreTheDefaultLimit(t *testing.T) {
	f := start(t, api.Options{})
	keys := strings.Repeat("1,", 1_000_000)
	got := f.post("opaque/multiGet", `{"keys":[`+keys[:len(keys)-1]+`]}`)
	require.Equal(t, http.StatusOK, got.status)
	require.Equal(t, 1_000_000, strings.Count(got.body, "null"))
	p := f.refused("opaque/multiGet", `{"keys":[`+keys+`1]}`, http.StatusRequestEntityTooLarge, "too_large")
	require.EqualValues(t, 1_000_000, p["limit"])
}

func TestContentTypesOtherThanJSONAreRefused(t *testing.T) {
	f := start(t, api.Options{})
	for contentType, status := range map[string]int{
		"":                                  http.StatusOK,
		"application/json":                  http.StatusOK,
		"Application/JSON; charset=utf-8":   http.StatusOK,
		"application/x-www-form-urlencoded": http.StatusUnsupportedMediaType,
		"text/plain":                        http.StatusUnsupportedMediaType,
		"application/":                      http.StatusUnsupportedMediaType,
	} {
		var headers []string
		if contentType != "" {
			headers = []string{"Content-Type", contentType}
		}
		got := f.do(http.MethodPost, "/v1/states/opaque/multiGet", `{"keys":[]}`, headers...)
		require.Equal(t, status, got.status, contentType)
		if status != http.StatusOK {
			p := got.problem(t)
			require.Equal(t, "unsupported_media_type", p["code"])
			require.Contains(t, p["detail"], "--json")
		}
	}
}

func TestWrongMethodsAndPathsAreTold(t *testing.T) {
	f := start(t, api.Options{})
	for path, allow := range map[string]string{
		"/v1/states":                        "GET",
		"/v1/states/opaque":                 "DELETE, GET, PUT",
		"/v1/states/opaque/multiGet":        "POST",
		"/v1/states/opaque/snapshot":        "GET, PUT",
		"/v1/states/opaque/snapshot/update": "POST",
		"/livez":                            "GET",
	} {
		got := f.do(http.MethodPatch, path, "")
		require.Equal(t, http.StatusMethodNotAllowed, got.status, path)
		require.Equal(t, allow, got.header.Get("Allow"), path)
		require.Equal(t, "method_not_allowed", got.problem(t)["code"])
	}
	for _, path := range []string{"/", "/v1", "/v1/states/", "/v1/states/opaque/", "/v1/states/opaque/multiget", "/v1/states/opaque/entries/x", "/metrics", "/v2/states"} {
		got := f.do(http.MethodGet, path, "")
		require.Equal(t, http.StatusNotFound, got.status, path)
		require.Equal(t, "not_found", got.problem(t)["code"])
	}
}

func TestStateNamesAreChecked(t *testing.T) {
	f := start(t, api.Options{})
	longest := "a" + strings.Repeat("-", 99)
	for _, name := range []string{"a", "0", "A.b_c-d", longest, "a%2Eb"} {
		require.Equal(t, http.StatusCreated, f.do(http.MethodPut, "/v1/states/"+name, `{"kind":"nontx"}`).status, name)
	}
	for _, name := range []string{".a", "-", "_", "a%2Fb", "a%20b", "%C3%A9", longest + "x", "a%00", "a%0A", "%2e%2e"} {
		for _, call := range [][2]string{{http.MethodPut, ""}, {http.MethodGet, ""}, {http.MethodDelete, ""}, {http.MethodGet, "/entries"}, {http.MethodPost, "/multiGet"}} {
			got := f.do(call[0], "/v1/states/"+name+call[1], `{"kind":"nontx"}`)
			require.Equal(t, http.StatusBadRequest, got.status, strconv.Quote(name))
			p := got.problem(t)
			require.Equal(t, "bad_request", p["code"])
			require.Contains(t, p["detail"], "[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
		}
	}
	f.refused("nowhere/multiGet", `{"keys":[]}`, http.StatusNotFound, "unknown_state")
}
