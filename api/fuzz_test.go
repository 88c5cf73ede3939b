package api

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

// calls are all calls that have a body.
func calls() []*call {
	return []*call{&multiGet, &multiUpdate, &multiPut, &multiRemove, &beginCommit, &commit, &abort, &snapshotUpdate, &snapshotSet}
}

func decodeRequest(c *call, body []byte) (*Request, error) {
	var d decoder
	d.reset(bytes.NewBuffer(bytes.Clone(body)), 1000)
	return d.request(c)
}

// A body that is accepted is written again as a body of the same meaning.
func FuzzDecodeRequest(f *testing.F) {
	for _, body := range []string{
		``, `null`, `[]`, `{}`, `{"keys":[]}x`,
		`{"txid":7,"partition":"p","epoch":2,"offsets":{"a":[1.50,"\u0041"]},"whole":true,"keys":["a",["b",1,1.0,-0,true,null]],"updater":"sum","args":[1,2.5]}`,
		`{"txid":"9223372036854775807","keys":[9007199254740993.0,1e18],"updaters":["count",{"op":"set","arg":null}],"return":"none"}`,
		`{"args":[null],"updater":{"op":"count"},"keys":["a"]}`,
		`{"keys":["a\u0000b","\ud83d\ude00"],"values":[{"x":{"y":[]}},"\u0000\"\\"]}`,
		`{"keys":[1],"detail":true,"txid":3}`,
		`{"value":-0.0,"txid":1}`, `{"value":null}`, `{"updater":{"op":"sum","arg":1e21}}`,
		`{"keys":["\ud800"],"values":[1e400]}`, `{"keys":[[[[[`, `{"txid":01}`, `{"keys":[1e-400]}`, `{"offsets":[[[[1]]]],"txid":1}`,
	} {
		for i := range calls() {
			f.Add(byte(i), []byte(body))
		}
	}
	f.Fuzz(func(t *testing.T, which byte, body []byte) {
		c := calls()[int(which)%len(calls())]
		req, err := decodeRequest(c, body)
		if err != nil {
			p := newProblem(err, "")
			require.Contains(t, []int{400, 413}, p.Status, err)
			return
		}
		again, err := decodeRequest(c, appendRequest(nil, c, req))
		require.NoError(t, err)
		require.Equal(t, req, again)
	})
}

// Working memory that is used again shows nothing of what it was used for.
func TestADecoderIsUsedAgain(t *testing.T) {
	var d decoder
	bodies := []string{
		`{"txid":7,"offsets":[1],"keys":["long key","b"],"updaters":["count",{"op":"set","arg":"text"}]}`,
		`{"keys":["\u0061"],"updater":"sum","args":["\u0062"]}`,
		`{"keys":["x",`,
		`{"keys":["a"],"updater":"count"}`,
		`{"keys":[],"updaters":[]}`,
	}
	var kept []*Request
	for range 2 {
		for _, body := range bodies {
			d.reset(bytes.NewBufferString(body), 1000)
			got, err := d.request(&multiUpdate)
			want, wantErr := decodeRequest(&multiUpdate, []byte(body))
			require.Equal(t, wantErr == nil, err == nil)
			if err == nil {
				require.Equal(t, want, got)
				kept = append(kept, got)
			}
			d.release()
		}
	}
	half := len(kept) / 2
	require.Equal(t, kept[:half], kept[half:])
}
