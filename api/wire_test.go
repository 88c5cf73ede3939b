package api_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tine/api"
)

// Members may come in any order, and a later batch adds to an earlier one.
func TestMultiUpdateAnswersInTheOrderOfTheRequest(t *testing.T) {
	f := start(t, api.Options{})
	f.posted("opaque/multiUpdate", `{"txid":1,"keys":["a",["b"],"a"],"updater":"sum","args":[1,2,4]}`,
		`{"txid":1,"values":[1,2,5],"applied":3,"replayed":0,"restored":0}`)
	f.posted("opaque/multiUpdate", `{"args":[10],"return":"values","updater":{"op":"sum"},"keys":["a"],"txid":"2"}`,
		`{"txid":2,"values":[15],"applied":1,"replayed":0,"restored":0}`)
	f.posted("opaque/multiUpdate", `{"txid":2,"keys":["a"],"updater":{"arg":20,"op":"sum"}}`,
		`{"txid":2,"values":[25],"applied":0,"replayed":1,"restored":0}`)
	f.posted("opaque/multiUpdate", `{"keys":["n"],"updater":"count","return":"none"}`,
		`{"txid":null,"applied":1,"replayed":0,"restored":0}`)
	f.posted("opaque/multiUpdate", `{"keys":["n","n"],"updaters":["count",{"op":"set","arg":null}]}`,
		`{"txid":null,"values":[2,null],"applied":2,"replayed":0,"restored":0}`)
	f.posted("opaque/multiGet", `{"keys":["a","n","none"],"detail":true}`,
		`{"entries":[{"key":["a"],"found":true,"value":25,"prev":5,"txid":2},`+
			`{"key":["n"],"found":true,"value":null},{"key":["none"],"found":false,"value":null}]}`)
	f.posted("opaque/multiGet", `{"keys":["a","n","none","a"]}`, `{"values":[25,null,null,25]}`)
	f.posted("opaque/multiGet", `{"keys":["a"],"txid":2}`, `{"values":[5]}`)
}

func TestAnEmptyKeyListMovesTheWatermark(t *testing.T) {
	f := start(t, api.Options{})
	f.posted("opaque/multiUpdate", `{"txid":5,"keys":[],"updater":"sum"}`,
		`{"txid":5,"values":[],"applied":0,"replayed":0,"restored":0}`)
	p := f.refused("opaque/multiUpdate", `{"txid":4,"keys":[],"updater":"sum"}`, http.StatusConflict, "stale_txid")
	require.EqualValues(t, 4, p["txid"])
	require.EqualValues(t, 5, p["storedTxid"])
	f.refused("opaque/multiUpdate", `{"keys":[],"updater":"nope"}`, http.StatusBadRequest, "bad_request")
}

func TestOptionalMembersMayBeNull(t *testing.T) {
	f := start(t, api.Options{})
	f.posted("opaque/multiUpdate",
		`{"txid":null,"partition":null,"epoch":null,"offsets":null,"whole":null,"keys":["a"],"updater":"count","updaters":null,"args":null,"return":null}`,
		`{"txid":null,"values":[1],"applied":1,"replayed":0,"restored":0}`)
	f.posted("opaque/multiUpdate", `{"keys":["a"],"updater":"count","args":[null]}`,
		`{"txid":null,"values":[2],"applied":1,"replayed":0,"restored":0}`)
	f.posted("opaque/multiUpdate", `{"keys":["a"],"updater":"set","args":[null]}`,
		`{"txid":null,"values":[null],"applied":1,"replayed":0,"restored":0}`)
	f.posted("opaque/multiGet", `{"keys":["a"],"txid":null,"partition":null,"detail":null}`, `{"values":[null]}`)
}

func TestPutAndRemoveAnswerCounts(t *testing.T) {
	f := start(t, api.Options{})
	f.posted("opaque/multiPut", `{"txid":1,"keys":["a","b"],"values":[{"x":[1,2.50,"\u0041"]},null]}`,
		`{"txid":1,"applied":2,"replayed":0,"restored":0}`)
	f.posted("opaque/multiGet", `{"keys":["a"]}`, `{"values":[{"x":[1,2.5,"A"]}]}`)
	f.posted("opaque/multiRemove", `{"txid":2,"keys":["a"]}`, `{"txid":2,"applied":1,"replayed":0,"restored":0}`)
	f.posted("opaque/multiGet", `{"keys":["a"],"detail":true}`,
		`{"entries":[{"key":["a"],"found":false,"value":null,"prev":{"x":[1,2.5,"A"]},"txid":2}]}`)
}

func TestAWholeReplayRestoresOmittedKeys(t *testing.T) {
	f := start(t, api.Options{})
	f.posted("opaque/multiPut", `{"txid":4,"keys":["a"],"values":[10]}`, `{"txid":4,"applied":1,"replayed":0,"restored":0}`)
	f.posted("opaque/multiUpdate", `{"txid":5,"whole":true,"keys":["a","b"],"updater":"sum","args":[1,1]}`,
		`{"txid":5,"values":[11,1],"applied":2,"replayed":0,"restored":0}`)
	f.posted("opaque/multiUpdate", `{"txid":5,"whole":true,"keys":["a","c"],"updater":"sum","args":[3,1]}`,
		`{"txid":5,"values":[13,1],"applied":1,"replayed":1,"restored":1}`)
	f.posted("opaque/multiGet", `{"keys":["a","b","c"]}`, `{"values":[13,null,1]}`)
}

func TestAnOpenBatchIsSeenByItselfUntilItCommits(t *testing.T) {
	f := start(t, api.Options{})
	f.posted("opaque/beginCommit", `{"txid":1,"partition":"p\"1","epoch":3}`,
		`{"txid":1,"partition":"p\"1","committed":0,"replay":false}`)
	f.posted("opaque/multiUpdate", `{"txid":1,"partition":"p\"1","epoch":3,"keys":["a"],"updater":"sum","args":[2]}`,
		`{"txid":1,"values":[2],"applied":1,"replayed":0,"restored":0}`)
	f.posted("opaque/multiGet", `{"txid":1,"partition":"p\"1","keys":["a"]}`, `{"values":[2]}`)
	f.posted("opaque/multiGet", `{"keys":["a"]}`, `{"values":[null]}`)
	f.posted("opaque/commit", `{"txid":1,"partition":"p\"1","offsets":{"at": 1.50}}`, `{"txid":1,"applied":1,"replayed":0,"restored":0}`)
	f.posted("opaque/commit", `{"txid":1,"partition":"p\"1"}`,
		`{"txid":1,"applied":0,"replayed":0,"restored":0,"alreadyCommitted":true}`)
	f.posted("opaque/multiGet", `{"keys":["a"]}`, `{"values":[2]}`)

	got := f.do(http.MethodGet, "/v1/states/opaque/progress", "")
	require.Regexp(t, `^{"partitions":\[{"partition":"p\\"1","txid":1,"epoch":3,"offsets":{"at":1.5},"committedAt":"[0-9T:.-]+Z"}\]}$`, got.body)

	p := f.refused("opaque/beginCommit", `{"txid":2,"partition":"p\"1","epoch":2}`, http.StatusConflict, "fenced")
	require.EqualValues(t, 2, p["epoch"])
	require.EqualValues(t, 3, p["storedEpoch"])
	p = f.refused("opaque/commit", `{"txid":7}`, http.StatusConflict, "no_open_batch")
	require.EqualValues(t, 7, p["txid"])
}

func TestAbortDropsTheBatchAndAnswersNothing(t *testing.T) {
	f := start(t, api.Options{})
	f.posted("opaque/beginCommit", `{"txid":1}`, `{"txid":1,"partition":"","committed":0,"replay":false}`)
	f.posted("opaque/multiUpdate", `{"txid":1,"keys":["a"],"updater":"count"}`, `{"txid":1,"values":[1],"applied":1,"replayed":0,"restored":0}`)
	got := f.post("opaque/abort", `{"txid":1}`)
	require.Equal(t, http.StatusNoContent, got.status)
	require.Empty(t, got.body)
	f.posted("opaque/multiGet", `{"keys":["a"]}`, `{"values":[null]}`)
}

func TestTheSnapshotFollowsTheRulesOfItsKind(t *testing.T) {
	f := start(t, api.Options{})
	get := func(query string) string {
		return f.do(http.MethodGet, "/v1/states/opaque/snapshot"+query, "").body
	}
	require.Equal(t, `{"found":false,"value":null}`, get(""))
	f.posted("opaque/snapshot/update", `{"txid":1,"updater":{"op":"sum","arg":2.0}}`,
		`{"txid":1,"value":2.0,"applied":1,"replayed":0,"restored":0}`)
	got := f.do(http.MethodPut, "/v1/states/opaque/snapshot", `{"txid":2,"value":null}`)
	require.Equal(t, `{"txid":2,"applied":1,"replayed":0,"restored":0}`, got.body)
	require.Equal(t, `{"found":true,"value":null,"prev":2.0,"txid":2}`, get(""))
	require.Equal(t, `{"found":true,"value":2.0,"prev":2.0,"txid":2}`, get("?txid=2&partition=x"))
	p := f.do(http.MethodGet, "/v1/states/opaque/snapshot?txid=1", "").problem(t)
	require.Equal(t, "stale_txid", p["code"])
	require.NotContains(t, p, "key")
	for _, query := range []string{"?txid=0", "?txid=01", "?txid=x", "?tx=1", "?txid=1&txid=2", "?partition=" + strings.Repeat("p", 101)} {
		require.Equal(t, http.StatusBadRequest, f.do(http.MethodGet, "/v1/states/opaque/snapshot"+query, "").status, query)
	}
}

func TestUpdaterErrorsNameTheKey(t *testing.T) {
	f := start(t, api.Options{})
	f.post("opaque/multiPut", `{"keys":["text","most"],"values":["x",9223372036854775807]}`)
	p := f.refused("opaque/multiUpdate", `{"keys":["ok",["text"]],"updater":{"op":"sum","arg":1}}`, http.StatusUnprocessableEntity, "updater_type")
	require.Equal(t, []any{"text"}, p["key"])
	require.EqualValues(t, 1, p["index"])
	p = f.refused("opaque/multiUpdate", `{"txid":3,"keys":["most"],"updater":"count"}`, http.StatusUnprocessableEntity, "updater_overflow")
	require.Equal(t, []any{"most"}, p["key"])
	require.EqualValues(t, 3, p["txid"])
	f.posted("opaque/multiGet", `{"keys":["ok"]}`, `{"values":[null]}`)
}

func TestStatesAreCreatedShownListedAndDeleted(t *testing.T) {
	f := start(t, api.Options{})
	put := func(name, body string) answer { return f.do(http.MethodPut, "/v1/states/"+name, body) }
	created := put("my.state", `{"kind":"opaque","backing":"memory","cache":{"entries":5},"durability":"interval"}`)
	require.Equal(t, http.StatusCreated, created.status, created.body)
	require.Equal(t, "/v1/states/my.state", created.header.Get("Location"))
	require.Equal(t, `{"name":"my.state","kind":"opaque","backing":"memory","cache":{"entries":5,"bytes":0},"durability":"interval",`+
		`"capabilities":{"atomicBatch":true,"durable":false,"scan":true,"evicts":false},"progress":[],`+
		`"stats":{"commits":0,"keys":0,"replayed":0,"restored":0,"stale":0,"openBatches":0,"waiting":0,`+
		`"cache":{"entries":1,"bytes":2,"hits":3,"misses":4}}}`, created.body)
	again := put("my.state", `{"kind":"opaque"}`)
	require.Equal(t, http.StatusOK, again.status)
	require.Equal(t, created.body, again.body)
	require.Equal(t, "state_exists", put("my.state", `{"kind":"nontx"}`).problem(t)["code"])

	for _, body := range []string{``, `{}`, `{"kind":null}`, `{"kind":"opaque","kind":"opaque"}`, `{"Kind":"opaque"}`, `{"kind":1}`,
		`{"kind":"opaque","memcached":{"ttl":1}}`, `{"kind":"opaque","backing":"memcached"}`, `{"kind":"odd"}`, `{"kind":"opaque"}{}`,
		`{"kind":"opaque","cache":{"entries":-1}}`, `{"kind":"opaque","cache":{"entries":1.0}}`, `{"kind":"opaque","cache":[]}`,
		`{"kind":"opaque","cache":{"size":1}}`} {
		got := put("fresh", body)
		require.Equal(t, http.StatusBadRequest, got.status, body)
		require.Equal(t, "bad_request", got.problem(t)["code"], body)
	}

	require.Contains(t, f.do(http.MethodGet, "/v1/states", "").body, `{"states":[{"name":"my.state",`)
	require.Equal(t, again.body, f.do(http.MethodGet, "/v1/states/my.state", "").body)
	require.Equal(t, http.StatusNoContent, f.do(http.MethodDelete, "/v1/states/my.state", "").status)
	for _, method := range []string{http.MethodDelete, http.MethodGet} {
		require.Equal(t, "unknown_state", f.do(method, "/v1/states/my.state", "").problem(t)["code"])
	}
}
