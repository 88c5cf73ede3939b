package api_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tine/api"
)

// zeros is a run of digits that strconv alone would not take for what it is.
const zeros = 20_000

func TestKeysAreTakenExactly(t *testing.T) {
	f := start(t, api.Options{})
	thousand := "1" + strings.Repeat("0", 1000) + "e-1000"
	for literal, want := range map[string]string{
		`"man"`:                      `["man"]`,
		`["man"]`:                    `["man"]`,
		`["a","b:c"]`:                `["a","b:c"]`,
		`""`:                         `[""]`,
		`null`:                       `[null]`,
		`[true,false,null]`:          `[true,false,null]`,
		`1`:                          `[1]`,
		`1.0`:                        `[1]`,
		`1e0`:                        `[1]`,
		`10E-1`:                      `[1]`,
		`"1"`:                        `["1"]`,
		`-0`:                         `[0]`,
		`-0.0`:                       `[0]`,
		`0e99999999999999999999`:     `[0]`,
		`0.5`:                        `[0.5]`,
		`1e18`:                       `[1000000000000000000]`,
		`9007199254740993`:           `[9007199254740993]`,
		`9007199254740993.0`:         `[9007199254740993]`,
		`-9007199254740993.000e0`:    `[-9007199254740993]`,
		`0.9007199254740993e16`:      `[9007199254740993]`,
		`9223372036854775807`:        `[9223372036854775807]`,
		`9223372036854775807.0`:      `[9223372036854775807]`,
		`92233720368547758.07e+2`:    `[9223372036854775807]`,
		`-9223372036854775808`:       `[-9223372036854775808]`,
		`-9223372036854775808.0`:     `[-9223372036854775808]`,
		`9223372036854775808.0`:      `[9223372036854776000.0]`,
		`1e21`:                       `[1e+21]`,
		`5e-324`:                     `[5e-324]`,
		thousand:                     `[1]`,
		`"a\u0000b"`:                 `["a\u0000b"]`,
		`"\u00ff\u007f\ud83d\ude00"`: "[\"ÿ\x7f😀\"]",
		`"é"`:                        `["é"]`,
		`"e\u0301"`:                  "[\"e\u0301\"]",
		`[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16]`: `[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16]`,
	} {
		f.posted("opaque/multiGet", `{"keys":[`+literal+`],"detail":true}`, `{"entries":[{"key":`+want+`,"found":false,"value":null}]}`)
	}
	longest := strings.Repeat("k", 4096-2)
	require.Equal(t, http.StatusOK, f.post("opaque/multiGet", `{"keys":["`+longest+`"]}`).status)
}

func TestKeysThatAreNoneAreRefused(t *testing.T) {
	f := start(t, api.Options{})
	for _, literal := range []string{
		`[]`, `{}`, `{"a":1}`, `[[1]]`, `[{}]`, `["a",[1,2]]`, strings.Repeat("[", 1_000_000),
		`[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17]`,
		`9223372036854775808`, `-9223372036854775809`, `1e400`, `-1e400`, `1e-400`, `1e99999999999999999999`, `1e-99999999999999999999`,
		"1" + strings.Repeat("0", zeros) + "e-200000",
		"0." + strings.Repeat("0", zeros) + "1",
		`"\ud800"`, `"\udc00x"`, `"\ud83d\u0041"`, "\"\xff\"", "\"a\xc3\"", "[\"ok\",\"\xed\xa0\x80\"]",
		`"` + strings.Repeat("k", 4096-1) + `"`,
		`"` + strings.Repeat(`\u0000`, 2048) + `"`,
	} {
		p := f.refused("opaque/multiGet", `{"keys":["ok",`+literal+`]}`, http.StatusBadRequest, "invalid_key")
		require.EqualValues(t, 1, p["index"])
		require.Less(t, len(p["detail"].(string)), 300)
	}
	p := f.refused("opaque/multiGet", `{"keys":["`+strings.Repeat("k", 4096-1)+`"]}`, http.StatusBadRequest, "invalid_key")
	require.EqualValues(t, 4096, p["limit"])
}

func TestValuesComeBackAsTheyWere(t *testing.T) {
	f := start(t, api.Options{})
	deepest := strings.Repeat("[", 100) + strings.Repeat("]", 100)
	thousand := strings.Repeat("0", 1000)
	for literal, want := range map[string]string{
		`null`:                                `null`,
		`true`:                                `true`,
		`-0`:                                  `0`,
		`-0.0`:                                `-0.0`,
		`1`:                                   `1`,
		`1.0`:                                 `1.0`,
		`2.50`:                                `2.5`,
		`1e0`:                                 `1.0`,
		`1e21`:                                `1e+21`,
		`9007199254740993`:                    `9007199254740993`,
		`9223372036854775807`:                 `9223372036854775807`,
		`-9223372036854775808`:                `-9223372036854775808`,
		`9223372036854775808.0`:               `9223372036854776000.0`,
		`1.7976931348623157e308`:              `1.7976931348623157e+308`,
		`0.` + thousand + `1e1001`:            `1.0`,
		`0.0e-99999`:                          `0.0`,
		`"\u0000\n\"\\\/\u00e9é\ud83d\ude00"`: `"\u0000\n\"\\/éé😀"`,
		`"e\u0301"`:                           "\"e\u0301\"",
		`[]`:                                  `[]`,
		`{}`:                                  `{}`,
		`{ "b" : [ 1 , -0 , 1.50 , "\u0041" , { } , [ ] , null , true ] , "a\u0062" : { "" : false } }`: `{"b":[1,0,1.5,"A",{},[],null,true],"ab":{"":false}}`,
		deepest: deepest,
	} {
		got := f.post("opaque/multiPut", `{"keys":["k"],"values":[`+literal+`]}`)
		require.Equal(t, http.StatusOK, got.status, got.body)
		f.posted("opaque/multiGet", `{"keys":["k"]}`, `{"values":[`+want+`]}`)
		got = f.post("opaque/multiUpdate", `{"keys":["k"],"updater":{"op":"set","arg":`+literal+`}}`)
		require.Equal(t, `{"txid":null,"values":[`+want+`],"applied":1,"replayed":0,"restored":0}`, got.body)
		got = f.do(http.MethodPut, "/v1/states/opaque/snapshot", `{"value":`+literal+`}`)
		require.Equal(t, http.StatusOK, got.status, got.body)
		require.Equal(t, `{"found":true,"value":`+want+`}`, f.do(http.MethodGet, "/v1/states/opaque/snapshot", "").body)
	}
}

func TestValuesThatCannotBeHeldAreRefused(t *testing.T) {
	f := start(t, api.Options{})
	for _, literal := range []string{
		`9223372036854775808`, `-9223372036854775809`, `100000000000000000000000`, `1e400`, `-1e400`, `1e-400`, `[1,[1e400]]`,
		`{"a":{"b":9223372036854775808}}`, `[1e-400]`,
		"\"\xff\"", `"\ud800"`, `["\udfff"]`, "{\"\xff\":1}", `{"\ud800":1}`,
		strings.Repeat("[", 101) + strings.Repeat("]", 101),
		strings.Repeat(`{"a":`, 101) + "1" + strings.Repeat("}", 101),
		strings.Repeat("[", 1_000_000) + strings.Repeat("]", 1_000_000),
	} {
		for body, path := range map[string]string{
			`{"keys":["k"],"values":[` + literal + `]}`:                      "opaque/multiPut",
			`{"values":[` + literal + `],"keys":["k"]}`:                      "opaque/multiPut",
			`{"keys":["k"],"updater":"set","args":[` + literal + `]}`:        "opaque/multiUpdate",
			`{"keys":["k"],"updaters":[{"op":"set","arg":` + literal + `}]}`: "opaque/multiUpdate",
			`{"updater":{"op":"set","arg":` + literal + `}}`:                 "opaque/snapshot/update",
			`{"keys":[],"offsets":` + literal + `}`:                          "opaque/multiRemove",
		} {
			p := f.refused(path, body, http.StatusBadRequest, "invalid_value")
			require.Less(t, len(p["detail"].(string)), 300)
		}
	}
	p := f.refused("opaque/multiPut", `{"keys":[],"values":[1,`+strings.Repeat("[", 101)+`]}`, http.StatusBadRequest, "invalid_value")
	require.EqualValues(t, 100, p["limit"])
	require.EqualValues(t, 1, p["index"])
	f.refused("opaque/multiPut", `{"keys":["k"],"values":[{"a":1,"a":2}]}`, http.StatusBadRequest, "bad_request")
	f.requireUntouched()
}
