package bench

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tine/backing"
	"tine/cache"
	"tine/mapstate"
	"tine/nontx"
)

// smallBatch is what a writer that waits for the disk sends.
const smallBatch = 10

// BenchmarkIsAnFsyncSharedByEightWriters: batches of ten keys on one state that waits for the disk,
// by one writer and by eight, in process and over HTTP.
func BenchmarkIsAnFsyncSharedByEightWriters(b *testing.B) {
	const writers = 8
	m := newSynced(b)
	keys := stateKeys(b, 0, writers*smallBatch)
	updaters := sums(b)[:smallBatch]
	inProcess := func(name string, workers int) *contender {
		return &contender{name: name, workers: workers, do: func(w, n int) int {
			env := mapstate.Envelope{TxID: mapstate.TxID(n + 1), Partition: fmt.Sprint(name, w)}
			if _, err := m.Update(context.Background(), env, keys[w*smallBatch:][:smallBatch], updaters); err != nil {
				b.Error(err)
			}
			return smallBatch
		}}
	}
	b.Run("in-process", func(b *testing.B) {
		compare(b, inProcess("1-writer", 1), inProcess("8-writers", writers))
	})
	b.Run("http", func(b *testing.B) {
		url := startServer(b)
		client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: writers}}
		b.Cleanup(client.CloseIdleConnections)
		send(b, client, "PUT", url, `{"kind":"nontx","durability":"sync"}`)
		wires := make([]*wire, writers)
		for w := range wires {
			wires[w] = dial(b, url+"/multiUpdate")
		}
		overHTTP := func(name string, workers int) *contender {
			tails := make([]string, workers) // all but the txid
			for w := range tails {
				tails[w] = fmt.Sprintf(`,"partition":"%s%d","keys":[%d%s],"updater":"count"}`,
					name, w, w, strings.Repeat(fmt.Sprintf(",[%d,1]", w), smallBatch-1))
			}
			return &contender{name: name, workers: workers, do: func(w, n int) int {
				wires[w].send(b, `{"txid":`+strconv.Itoa(n+1)+tails[w])
				return smallBatch
			}}
		}
		compare(b, overHTTP("1-writer", 1), overHTTP("8-writers", writers))
	})
}

// wire is a client that takes little of the processor, which it shares with the server.
type wire struct {
	conn    net.Conn
	answers *bufio.Reader
	head    string
}

func dial(b *testing.B, url string) *wire {
	host, path, found := strings.Cut(strings.TrimPrefix(url, "http://"), "/")
	require.True(b, found, url)
	conn, err := net.Dial("tcp", host)
	require.NoError(b, err)
	b.Cleanup(func() { _ = conn.Close() })
	return &wire{conn: conn, answers: bufio.NewReader(conn), head: "POST /" + path + " HTTP/1.1\r\nHost: tine\r\nContent-Type: application/json\r\nContent-Length: "}
}

// send sends a request and takes in the whole answer, which must be a success.
func (w *wire) send(b *testing.B, body string) {
	if _, err := fmt.Fprintf(w.conn, "%s%d\r\n\r\n%s", w.head, len(body), body); err != nil {
		b.Error(err)
		return
	}
	resp, err := http.ReadResponse(w.answers, nil)
	if err != nil {
		b.Error(err)
		return
	}
	if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode != http.StatusOK {
		b.Errorf("%s: %v", resp.Status, err)
	}
	_ = resp.Body.Close() // it has been read
}

// newSynced returns a state on disk whose commits wait for it. Its kind takes any txid,
// for contenders that share keys.
func newSynced(b *testing.B) *mapstate.Map {
	db, err := backing.Open(b.TempDir(), backing.Options{Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, db.Close()) })
	state, err := db.Create("synced", nil)
	require.NoError(b, err)
	m, err := mapstate.Open(context.Background(), nontx.Kind{}, cache.New(state, cache.Options{Entries: tableKeys}), mapstate.Options{})
	require.NoError(b, err)
	b.Cleanup(func() { m.Close(mapstate.ErrShuttingDown) })
	return m
}

// BenchmarkIsAWholeBatchWithOffsetsAsFastAsAPlainOne: of 1,000 keys, on an opaque state.
func BenchmarkIsAWholeBatchWithOffsetsAsFastAsAPlainOne(b *testing.B) {
	chosen := picks(1, 256)
	keys := stateKeys(b, 0, tableKeys)
	updaters := sums(b)
	offsets := []byte(`{"topic":"words","partitions":{"0":123456789,"1":123456780}}`)
	writer := func(name string, env mapstate.Envelope) *contender {
		m, batch := newOpaque(b), make([]mapstate.Key, batchKeys)
		return &contender{name: name, workers: 1, do: func(_, n int) int {
			for i, k := range chosen[n%len(chosen)] {
				batch[i] = keys[k]
			}
			env.TxID = mapstate.TxID(n + 2)
			if _, err := m.Update(context.Background(), env, batch, updaters); err != nil {
				b.Error(err)
			}
			return batchKeys
		}}
	}
	compare(b, writer("plain", mapstate.Envelope{}), writer("whole-with-offsets", mapstate.Envelope{Whole: true, Offsets: offsets}))
}
