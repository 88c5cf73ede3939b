package api_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tine/api"
	"tine/mapstate"
)

// fill stores keys, each with its position as value, and requires nothing of their order.
func (f *fixture) fill(keys ...string) {
	f.t.Helper()
	values := make([]string, len(keys))
	for i := range keys {
		values[i] = fmt.Sprint(i)
	}
	got := f.post("opaque/multiPut", `{"txid":1,"keys":[`+strings.Join(keys, ",")+`],"values":[`+strings.Join(values, ",")+`]}`)
	require.Equal(f.t, http.StatusOK, got.status, got.body)
}

// listed returns the keys of one page, and its cursor.
func (f *fixture) listed(params ...string) (keys []string, cursor string) {
	f.t.Helper()
	query := url.Values{}
	for i := 0; i < len(params); i += 2 {
		query.Set(params[i], params[i+1])
	}
	got := f.do(http.MethodGet, "/v1/states/opaque/entries?"+query.Encode(), "")
	require.Equal(f.t, http.StatusOK, got.status, got.body)
	var page struct {
		Entries []struct{ Key json.RawMessage }
		Cursor  string
	}
	require.NoError(f.t, json.Unmarshal([]byte(got.body), &page))
	for _, e := range page.Entries {
		keys = append(keys, string(e.Key))
	}
	return keys, page.Cursor
}

func TestEntriesAreListedInKeyOrder(t *testing.T) {
	f := start(t, api.Options{})
	f.fill(`"b"`, `["a","b"]`, `"a"`, `2`, `true`, `null`, `-1.5`, `false`, `"1"`)
	f.post("opaque/multiUpdate", `{"txid":2,"keys":["b"],"updater":"count"}`)
	f.post("opaque/multiRemove", `{"txid":2,"keys":["1"]}`)
	f.do(http.MethodPut, "/v1/states/opaque/snapshot", `{"value":1}`)
	require.Equal(t, `{"entries":[`+
		`{"key":[null],"value":5,"txid":1},{"key":[false],"value":7,"txid":1},{"key":[true],"value":4,"txid":1},`+
		`{"key":[-1.5],"value":6,"txid":1},{"key":[2],"value":3,"txid":1},`+
		`{"key":["a"],"value":2,"txid":1},{"key":["a","b"],"value":1,"txid":1},{"key":["b"],"value":1,"prev":0,"txid":2}]}`,
		f.do(http.MethodGet, "/v1/states/opaque/entries", "").body)
}

func TestPagesCoverTheRangeOnce(t *testing.T) {
	f := start(t, api.Options{})
	var all []string
	for i := range 25 {
		all = append(all, fmt.Sprintf(`["k%02d"]`, i))
	}
	f.fill(all...)
	for _, limit := range []string{"1", "7", "24", "25", "26"} {
		var got []string
		params := []string{"limit", limit}
		for {
			keys, cursor := f.listed(params...)
			got = append(got, keys...)
			if cursor == "" {
				break
			}
			params = []string{"limit", limit, "cursor", cursor}
		}
		require.Equal(t, all, got, limit)
	}
	keys, cursor := f.listed("start", `["k03"]`, "end", "k06", "limit", "2")
	require.Equal(t, all[3:5], keys)
	keys, cursor = f.listed("start", `["k03"]`, "end", "k06", "limit", "2", "cursor", cursor)
	require.Equal(t, all[5:6], keys)
	require.Empty(t, cursor)
}

func TestAPageHasAThousandEntriesByDefault(t *testing.T) {
	f := start(t, api.Options{})
	keys := make([]string, 1001)
	for i := range keys {
		keys[i] = fmt.Sprint(i)
	}
	f.fill(keys...)
	got, cursor := f.listed()
	require.Len(t, got, 1000)
	require.NotEmpty(t, cursor)
}

func TestRangesAreGivenAsKeysOrText(t *testing.T) {
	f := start(t, api.Options{})
	f.fill(`["ab"]`, `["ab",1]`, `["abc"]`, `["a"]`, `["ac"]`, `["a\u0000"]`, `["",1]`, `[1,"x"]`, `[10]`, `[true]`, `["1"]`)
	for _, c := range []struct {
		params []string
		want   []string
	}{
		{[]string{"prefix", "ab"}, []string{`["ab"]`, `["ab",1]`, `["abc"]`}},
		{[]string{"prefix", `"ab"`}, []string{`["ab"]`, `["ab",1]`, `["abc"]`}},
		{[]string{"prefix", `["ab"]`}, []string{`["ab"]`, `["ab",1]`}},
		{[]string{"prefix", `["ab",1]`}, []string{`["ab",1]`}},
		{[]string{"prefix", "a\x00"}, []string{`["a\u0000"]`}},
		{[]string{"prefix", "1"}, []string{`[1,"x"]`}},
		{[]string{"prefix", `"1"`}, []string{`["1"]`}},
		{[]string{"prefix", "true"}, []string{`[true]`}},
		{[]string{"prefix", "tru"}, nil},
		{[]string{"prefix", `""`}, []string{`["",1]`, `["1"]`, `["a"]`, `["a\u0000"]`, `["ab"]`, `["ab",1]`, `["abc"]`, `["ac"]`}},
		{[]string{"prefix", `[""]`}, []string{`["",1]`}},
		{[]string{"start", "ab", "end", "abc"}, []string{`["ab"]`, `["ab",1]`}},
		{[]string{"start", `["ab",1]`, "end", ""}, []string{`["ab",1]`, `["abc"]`, `["ac"]`}},
		{[]string{"end", "10"}, []string{`[true]`, `[1,"x"]`}},
		{[]string{"prefix", "ab", "start", "abc"}, []string{`["abc"]`}},
		{[]string{"prefix", "ab", "end", `["ab",1]`}, []string{`["ab"]`}},
		{[]string{"start", "b", "end", "a"}, nil},
		{[]string{"start", "a", "end", "a"}, nil},
		{[]string{"prefix", "ab", "start", "ac"}, nil},
	} {
		got, _ := f.listed(c.params...)
		require.Equal(t, c.want, got, c.params)
	}
}

func TestListingsThatMakeNoSenseAreRefused(t *testing.T) {
	f := start(t, api.Options{})
	for query, code := range map[string]string{
		"limit=0": "bad_request", "limit=10001": "bad_request", "limit=-1": "bad_request", "limit=1e3": "bad_request",
		"limit=x": "bad_request", "Limit=1": "bad_request", "from=a": "bad_request", "limit=1&limit=1": "bad_request",
		"cursor=!": "bad_request", "cursor=YQ": "bad_request", "cursor=BQ": "bad_request", "prefix=%zz": "bad_request", "a;b": "bad_request",
		"prefix=[": "bad_request", "start=[1,": "bad_request", "start=[1]x": "bad_request", "prefix=%22ab": "bad_request",
		"end={}": "invalid_key", "start=[]": "invalid_key", "start=[[1]]": "invalid_key", "start=1e400": "invalid_key",
		"end=9223372036854775808": "invalid_key", "prefix=%ff": "invalid_key", "start=%22%5cud800%22": "invalid_key",
		"prefix=" + strings.Repeat("k", 4096): "invalid_key",
	} {
		got := f.do(http.MethodGet, "/v1/states/opaque/entries?"+query, "")
		require.Equal(t, http.StatusBadRequest, got.status, query)
		require.Equal(t, code, got.problem(t)["code"], query)
	}
}

func TestAStreamEndsWithItsCount(t *testing.T) {
	f := start(t, api.Options{})
	f.fill(`"a"`, `"b"`, `"c"`)
	got := f.do(http.MethodGet, "/v1/states/opaque/entries?start=b", "", "Accept", "text/html, application/x-ndjson;q=0.9")
	require.Equal(t, "application/x-ndjson", got.header.Get("Content-Type"))
	require.Equal(t, `{"key":["b"],"value":1,"txid":1}`+"\n"+`{"key":["c"],"value":2,"txid":1}`+"\n"+`{"end":true,"entries":2}`+"\n", got.body)
	got = f.do(http.MethodGet, "/v1/states/opaque/entries?limit=1", "", "Accept", "application/x-ndjson")
	require.Equal(t, "bad_request", got.problem(t)["code"])
	got = f.do(http.MethodGet, "/v1/states/opaque/entries?start=d", "", "Accept", "application/x-ndjson")
	require.Equal(t, `{"end":true,"entries":0}`+"\n", got.body)
}

// fillLarge stores n entries of 1,000 bytes.
func (f *fixture) fillLarge(n int) {
	f.t.Helper()
	keys := make([]mapstate.Key, n)
	values := make([]mapstate.Value, n)
	for i := range keys {
		keys[i] = mapstate.Key(mapstate.AppendKeyInt(nil, int64(i)))
		values[i] = mapstate.String(strings.Repeat("v", 1000))
	}
	_, err := f.client.MultiPut(f.t.Context(), "opaque", mapstate.Envelope{}, keys, values)
	require.NoError(f.t, err)
}

func TestAnErrorWithinAStreamIsItsLastLine(t *testing.T) {
	f := start(t, api.Options{})
	f.fillLarge(1000)
	f.states.scans["opaque"].after.Store(500)
	got := f.do(http.MethodGet, "/v1/states/opaque/entries", "", "Accept", "application/x-ndjson")
	require.Equal(t, http.StatusOK, got.status)
	lines := strings.Split(strings.TrimSpace(got.body), "\n")
	require.Len(t, lines, 500)
	require.NotContains(t, got.body, `"end"`)
	var last struct{ Error api.Problem }
	require.NoError(t, json.Unmarshal([]byte(lines[499]), &last))
	require.Equal(t, "backing_unavailable", last.Error.Code)
	require.NotEmpty(t, last.Error.RequestID)

	n := 0
	err := f.client.Scan(t.Context(), "opaque", api.Listing{}, func(mapstate.Key, mapstate.Entry) error { n++; return nil })
	require.ErrorIs(t, err, mapstate.ErrUnavailable)
	require.Equal(t, 499, n)
}

func TestAnErrorBeforeTheFirstWriteIsAProblem(t *testing.T) {
	f := start(t, api.Options{})
	f.fill(`"a"`, `"b"`)
	f.states.scans["opaque"].after.Store(2)
	for _, accept := range []string{"application/x-ndjson", "application/json"} {
		got := f.do(http.MethodGet, "/v1/states/opaque/entries", "", "Accept", accept)
		require.Equal(t, http.StatusServiceUnavailable, got.status)
		require.Equal(t, "backing_unavailable", got.problem(t)["code"])
	}
}

// observed is an Observer that passes on what it is told.
type observed chan string

func (o observed) ObserveRequest(method, route string, status int, took time.Duration) {
	o <- fmt.Sprint(method, " ", route, " ", status, " ", took >= 0)
}

func TestAClientThatDoesNotReadCannotHoldAScan(t *testing.T) {
	told := make(observed, 100)
	f := start(t, api.Options{FlushTimeout: 50 * time.Millisecond, Observer: told})
	f.fillLarge(40_000) // more than the buffers of a connection take
	<-told
	conn, err := net.Dial("tcp", strings.TrimPrefix(f.url, "http://"))
	require.NoError(t, err)
	defer func() { _ = conn.Close() }()
	_, err = io.WriteString(conn, "GET /v1/states/opaque/entries HTTP/1.1\r\nHost: tine\r\nAccept: application/x-ndjson\r\n\r\n")
	require.NoError(t, err)
	require.Equal(t, "GET /v1/states/{state}/entries 200 true", <-told)
	// What did arrive does not pass for a whole stream.
	text, err := io.ReadAll(conn)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		require.ErrorContains(t, err, "reset")
	}
	require.NotContains(t, string(text), `"end":true`)
}

func TestAStreamLeavesTheConnectionUsable(t *testing.T) {
	f := start(t, api.Options{FlushTimeout: time.Hour})
	f.fillLarge(200)
	conn, err := net.Dial("tcp", strings.TrimPrefix(f.url, "http://"))
	require.NoError(t, err)
	defer func() { _ = conn.Close() }()
	reader := bufio.NewReader(conn)
	for range 2 {
		_, err = io.WriteString(conn, "GET /v1/states/opaque/entries HTTP/1.1\r\nHost: tine\r\nAccept: application/x-ndjson\r\n\r\n")
		require.NoError(t, err)
		resp, err := http.ReadResponse(reader, nil)
		require.NoError(t, err)
		body, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.True(t, bytes.HasSuffix(body, []byte(`{"end":true,"entries":200}`+"\n")))
	}
}
