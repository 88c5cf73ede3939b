package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"tine/mapstate"
)

const benchKeys = 1000

func benchBody() []byte {
	b := []byte(`{"txid":12,"keys":[`)
	for i := range benchKeys {
		b = fmt.Appendf(b, `["k%016d"],`, i)
	}
	b = append(b[:len(b)-1], `],"updater":"sum","args":[`...)
	for range benchKeys {
		b = append(b, "1,"...)
	}
	return append(b[:len(b)-1], "]}"...)
}

// What does the wire cost per key, without the state behind it?
func BenchmarkWhatDoesTheWireCostPerKey(b *testing.B) {
	body := benchBody()
	var sc scratch
	res := mapstate.Result{Values: make([]mapstate.Value, benchKeys), Applied: benchKeys}
	for i := range res.Values {
		res.Values[i] = mapstate.Int(int64(i))
	}
	b.ReportAllocs()
	b.SetBytes(int64(len(body)))
	for b.Loop() {
		sc.body.Reset()
		sc.body.Write(body)
		sc.dec.reset(&sc.body, benchKeys)
		req, err := sc.dec.request(&multiUpdate)
		require.NoError(b, err)
		_, err = req.bind(benchKeys)
		require.NoError(b, err)
		sc.out = appendResult(sc.out[:0], req.TxID, &res, true)
		sc.dec.release()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/benchKeys, "ns/key")
}

// What would encoding/json cost for the same bodies, into any and out of any?
func BenchmarkWhatWouldEncodingJSONCostPerKey(b *testing.B) {
	body := benchBody()
	var answer struct {
		TxID              int64 `json:"txid"`
		Values            []any `json:"values"`
		Applied, Replayed int
	}
	for i := range benchKeys {
		answer.Values = append(answer.Values, int64(i))
	}
	b.ReportAllocs()
	b.SetBytes(int64(len(body)))
	for b.Loop() {
		var req struct {
			TxID    json.Number `json:"txid"`
			Keys    []any       `json:"keys"`
			Updater any         `json:"updater"`
			Args    []any       `json:"args"`
		}
		d := json.NewDecoder(bytes.NewReader(body))
		d.UseNumber()
		require.NoError(b, d.Decode(&req))
		_, err := json.Marshal(&answer)
		require.NoError(b, err)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/benchKeys, "ns/key")
}

// The law behind the figures: a key, its argument and its answer are not
// allocated one by one.
func TestTheWireDoesNotAllocatePerKey(t *testing.T) {
	body := benchBody()
	var sc scratch
	res := mapstate.Result{Values: make([]mapstate.Value, benchKeys)}
	allocs := testing.AllocsPerRun(10, func() {
		sc.body.Reset()
		sc.body.Write(body)
		sc.dec.reset(&sc.body, benchKeys)
		req, err := sc.dec.request(&multiUpdate)
		require.NoError(t, err)
		_, err = req.bind(benchKeys)
		require.NoError(t, err)
		sc.out = appendResult(sc.out[:0], req.TxID, &res, true)
		sc.dec.release()
	})
	require.Less(t, allocs/benchKeys, 0.1)
}
