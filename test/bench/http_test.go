package bench

import (
	"bufio"
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// BenchmarkIsAnUpdateOverHTTPAsFastAsRawPebble: eight clients with disjoint keys
// and a partition each, against raw Pebble with one writer and with eight.
func BenchmarkIsAnUpdateOverHTTPAsFastAsRawPebble(b *testing.B) {
	const clients = 8
	chosen := disjointPicks(clients, 64)
	one, eight := newRawPebble(b, 1), newRawPebble(b, clients)
	url := startServer(b)
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: clients}}
	b.Cleanup(client.CloseIdleConnections)
	send(b, client, "PUT", url, `{"kind":"opaque","durability":"interval","cache":{"entries":2000000,"bytes":1073741824}}`)
	for from := 0; from < tableKeys; from += 10_000 {
		send(b, client, "POST", url+"/multiPut", putBody(from, 10_000))
	}
	bodies := make([][]string, clients) // all but the txid
	for w := range bodies {
		for _, keys := range chosen[w] {
			bodies[w] = append(bodies[w], updateBody(w, keys))
		}
	}
	compare(b,
		&contender{name: "raw-pebble-1-writer", workers: 1, do: func(_, n int) int {
			return one.update(b, 0, int64(n+2), chosen[n%clients][n%len(chosen[0])])
		}},
		&contender{name: "raw-pebble-8-writers", workers: clients, do: func(w, n int) int {
			return eight.update(b, w, int64(n+2), chosen[w][n%len(chosen[w])])
		}},
		&contender{name: "tine-http-8-clients", workers: clients, do: func(w, n int) int {
			send(b, client, "POST", url+"/multiUpdate", `{"txid":`+strconv.Itoa(n+2)+bodies[w][n%len(bodies[w])])
			return batchKeys
		}},
	)
}

// disjointPicks are batches of which each worker has its own keys.
func disjointPicks(workers, batches int) [][][]int {
	all := make([][][]int, workers)
	for w := range all {
		r := rand.New(rand.NewPCG(uint64(w), 2))
		for range batches {
			seen := make(map[int]bool)
			var keys []int
			for len(keys) < batchKeys {
				if i := r.IntN(tableKeys/workers)*workers + w; !seen[i] {
					seen[i] = true
					keys = append(keys, i)
				}
			}
			all[w] = append(all[w], keys)
		}
	}
	return all
}

func updateBody(worker int, keys []int) string {
	var body strings.Builder
	fmt.Fprintf(&body, `,"partition":"w%d","keys":[`, worker)
	for n, i := range keys {
		if n > 0 {
			body.WriteByte(',')
		}
		fmt.Fprintf(&body, `["%s"]`, keyText(i))
	}
	body.WriteString(`],"updater":"sum","args":[1` + strings.Repeat(",1", len(keys)-1) + `]}`)
	return body.String()
}

func putBody(from, n int) string {
	var body strings.Builder
	body.WriteString(`{"txid":1,"keys":[`)
	for i := range n {
		if i > 0 {
			body.WriteByte(',')
		}
		fmt.Fprintf(&body, `["%s"]`, keyText(from+i))
	}
	body.WriteString(`],"values":[0` + strings.Repeat(",0", n-1) + `]}`)
	return body.String()
}

// startServer runs the real program, as a process of its own with a heap of its own,
// and returns the address of a state on it.
func startServer(b *testing.B) string {
	program := filepath.Join(b.TempDir(), "tine")
	out, err := exec.Command("go", "build", "-o", program, "tine/cmd/tine").CombinedOutput()
	require.NoError(b, err, "%s", out)
	serve := exec.Command(program, "serve", "--listen", "127.0.0.1:0", "--data-dir", b.TempDir())
	told, err := serve.StdoutPipe()
	require.NoError(b, err)
	require.NoError(b, serve.Start())
	b.Cleanup(func() {
		require.NoError(b, serve.Process.Signal(syscall.SIGTERM))
		require.NoError(b, serve.Wait())
	})
	line, err := bufio.NewReader(told).ReadString('\n')
	require.NoError(b, err)
	_, address, found := strings.Cut(strings.TrimSpace(line), "listening on ")
	require.True(b, found, line)
	return address + "/v1/states/bench"
}

// send sends a request and takes in the whole answer, which must be a success.
func send(b *testing.B, client *http.Client, method, url, body string) {
	req, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		b.Error(err)
		return
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := client.Do(req)
	if err != nil {
		b.Error(err)
		return
	}
	defer resp.Body.Close()
	var answer bytes.Buffer
	if _, err := answer.ReadFrom(resp.Body); err != nil || resp.StatusCode >= 300 {
		b.Errorf("%s %s: %s: %v: %.300s", method, url, resp.Status, err, answer.String())
	}
}
