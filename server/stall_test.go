package server

import (
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tine/mapstate"
	"tine/mapstate/mapstatetest"
)

// raw sends bytes to the server over a connection of their own.
func (r *running) raw(t *testing.T, request string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(r.url, "http://"))
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	_, err = io.WriteString(conn, request)
	require.NoError(t, err)
	return conn
}

func TestABodyThatNobodyReadsIsCutOff(t *testing.T) {
	cfg := testConfig(t)
	cfg.BodyTimeout = 50 * time.Millisecond
	r := start(t, cfg)
	r.createState(t, "s")
	for _, target := range []string{"POST /v1/states/nope/multiGet", "GET /livez", "GET /v1/states/s/entries", "PATCH /v1/states/s"} {
		conn := r.raw(t, target+" HTTP/1.1\r\nHost: tine\r\nContent-Length: 1000\r\n\r\n")
		_, err := io.ReadAll(conn) // until the server closes the connection
		require.NoError(t, err, target)
	}
}

func TestAClientThatDoesNotReadHoldsNobodyUp(t *testing.T) {
	cfg := testConfig(t)
	cfg.MaxRequests, cfg.WriteTimeout = 1, 50*time.Millisecond
	r := start(t, cfg)
	r.createState(t, "s")
	_, err := r.api().MultiPut(t.Context(), "s", mapstate.Envelope{}, mapstatetest.Keys("k"), mapstatetest.Vals(strings.Repeat("x", 1<<20-100)))
	require.NoError(t, err)
	body := `{"keys":["k"` + strings.Repeat(`,"k"`, 15) + `]}` // 16 MiB, more than the sockets hold
	r.raw(t, fmt.Sprintf("POST /v1/states/s/multiGet HTTP/1.1\r\nHost: tine\r\nContent-Length: %d\r\n\r\n%s", len(body), body))
	require.Eventually(t, func() bool {
		_, err := r.api().States(t.Context())
		return err == nil
	}, time.Minute, 10*time.Millisecond)
}

func TestASlowScanHoldsUpNoOtherState(t *testing.T) {
	cfg := testConfig(t)
	cfg.WriteTimeout = time.Second
	r := start(t, cfg)
	r.createState(t, "slow")
	value := mapstatetest.Val(strings.Repeat("x", 1<<20-100))
	for i := range 24 {
		_, err := r.api().MultiPut(t.Context(), "slow", mapstate.Envelope{}, mapstatetest.Keys(i), []mapstate.Value{value})
		require.NoError(t, err)
	}
	scan := r.raw(t, "GET /v1/states/slow/entries HTTP/1.1\r\nHost: tine\r\nAccept: application/x-ndjson\r\n\r\n")
	first := make([]byte, 1)
	_, err := scan.Read(first) // the scan is under way, and nobody reads on
	require.NoError(t, err)

	deleted := make(chan error, 1)
	go func() { deleted <- r.api().DeleteState(t.Context(), "slow") }()
	status, _ := r.get(t, "/metrics")
	require.Equal(t, 200, status)
	require.NoError(t, <-deleted, "the scan is cut short")
}
