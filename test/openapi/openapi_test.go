//go:build !race

package openapi

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/pb33f/libopenapi"
	validator "github.com/pb33f/libopenapi-validator"
	"github.com/stretchr/testify/require"

	"tine/server"
)

// startServer runs a server and returns its address.
func startServer(t *testing.T) string {
	cfg := server.DefaultConfig()
	cfg.Listen, cfg.DataDir, cfg.ShutdownGrace = "127.0.0.1:0", t.TempDir(), 0
	ctx, stop := context.WithCancel(context.Background())
	told, out := io.Pipe()
	done := make(chan error, 1)
	go func() { done <- server.New(cfg, server.Options{Out: out}).Run(ctx) }()
	t.Cleanup(func() {
		stop()
		require.NoError(t, <-done)
	})
	line, err := bufio.NewReader(told).ReadString('\n')
	require.NoError(t, err)
	_, address, found := strings.Cut(strings.TrimSpace(line), "listening on ")
	require.True(t, found, line)
	return address
}

func readAll(t *testing.T, resp *http.Response) []byte {
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	return text
}

func TestServerIsAsItsDocumentSays(t *testing.T) {
	url := startServer(t)
	client := &http.Client{}
	t.Cleanup(client.CloseIdleConnections)
	resp, err := client.Get(url + "/openapi.json")
	require.NoError(t, err)
	document, err := libopenapi.NewDocument(readAll(t, resp))
	require.NoError(t, err)
	v, errs := validator.NewValidator(document)
	require.Empty(t, errs)
	ok, problems := v.ValidateDocument()
	require.True(t, ok, problems)

	for _, c := range []struct {
		call, body string
		status     int
	}{
		{"PUT /v1/states/s", `{"kind":"opaque","backing":"memory","cache":{"entries":1}}`, 201},
		{"PUT /v1/states/s", `{"kind":"opaque","backing":"memory","cache":{"entries":1}}`, 200},
		{"PUT /v1/states/s", `{"kind":"nontx"}`, 409},
		{"POST /v1/states/s/multiUpdate", `{"txid":1,"offsets":[1],"keys":["a",["b",1.5,null]],"updater":"sum","args":[1,2]}`, 200},
		{"POST /v1/states/s/multiUpdate", `{"txid":2,"whole":true,"epoch":1,"keys":["a"],"updaters":[{"op":"sum","arg":1}],"return":"none"}`, 200},
		{"POST /v1/states/s/multiUpdate", `{"txid":1,"epoch":1,"keys":["a"],"updater":"count"}`, 409},
		{"POST /v1/states/s/multiPut", `{"partition":"p","keys":["x"],"values":[{"y":[]}]}`, 200},
		{"POST /v1/states/s/multiRemove", `{"txid":"3","epoch":1,"keys":["x"]}`, 200},
		{"POST /v1/states/s/multiGet", `{"keys":["a","x"]}`, 200},
		{"POST /v1/states/s/multiGet", `{"keys":["a","x"],"detail":true}`, 200},
		{"POST /v1/states/s/beginCommit", `{"txid":4,"epoch":1}`, 200},
		{"POST /v1/states/s/commit", `{"txid":4,"offsets":{"a":1}}`, 200},
		{"POST /v1/states/s/commit", `{"txid":4}`, 200},
		{"POST /v1/states/s/commit", `{"txid":5}`, 409},
		{"POST /v1/states/s/beginCommit", `{"txid":5,"epoch":1}`, 200},
		{"POST /v1/states/s/abort", `{"txid":5}`, 204},
		{"PUT /v1/states/s/snapshot", `{"txid":6,"epoch":1,"value":[1]}`, 200},
		{"POST /v1/states/s/snapshot/update", `{"txid":7,"epoch":1,"updater":{"op":"append","arg":2}}`, 200},
		{"GET /v1/states/s/snapshot?txid=7", "", 200},
		{"GET /v1/states/s/progress", "", 200},
		{"GET /v1/states/s/entries?limit=1", "", 200},
		{"GET /v1/states/s", "", 200},
		{"GET /v1/states", "", 200},
		{"GET /v1/states/none", "", 404},
		{"GET /readyz", "", 200},
		{"DELETE /v1/states/s", "", 204},
	} {
		method, path, _ := strings.Cut(c.call, " ")
		req, err := http.NewRequestWithContext(t.Context(), method, url+path, strings.NewReader(c.body))
		require.NoError(t, err)
		if c.body != "" {
			req.Header.Set("Content-Type", "application/json")
		}
		ok, problems := v.ValidateHttpRequestSync(req)
		require.True(t, ok, "%s %s: %v", c.call, c.body, problems)
		resp, err := client.Do(req)
		require.NoError(t, err)
		body := readAll(t, resp)
		require.Equal(t, c.status, resp.StatusCode, "%s %s: %s", c.call, c.body, body)
		resp.Body = io.NopCloser(bytes.NewReader(body))
		ok, problems = v.ValidateHttpResponse(req, resp)
		require.True(t, ok, "%s %s: %s: %v", c.call, c.body, body, problems)
	}
}
