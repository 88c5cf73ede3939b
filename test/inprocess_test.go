package test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tine/api"
	"tine/mapstate"
	"tine/server"
)

// process is a server of this process, with all that a server has, on a free port.
type process struct {
	url    string
	http   *http.Client
	cancel context.CancelFunc
	ended  chan struct{} // closed when Run has returned
	err    error         // of Run, once ended
}

// testConfig returns the configuration of a small server over dir.
func testConfig(dir string) server.Config {
	config := server.DefaultConfig()
	config.Listen = "127.0.0.1:0"
	config.DataDir = dir
	config.BlockCacheBytes = 8 << 20
	config.MemTableBytes = 1 << 20
	config.ShutdownGrace = 0
	return config
}

// startProcess starts a server and waits until it listens. At the end of the
// test it is stopped, which must be in order.
func startProcess(t testing.TB, config server.Config) *process {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	lines, out := io.Pipe()
	p := &process{
		http:   &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}},
		cancel: cancel,
		ended:  make(chan struct{}),
	}
	srv := server.New(config, server.Options{Out: out})
	go func() {
		defer close(p.ended)
		p.err = srv.Run(ctx)
		out.CloseWithError(errors.Join(errors.New("the server did not start"), p.err))
	}()
	address, err := readAddress(lines)
	require.NoError(t, err)
	p.url = address
	t.Cleanup(func() { require.NoError(t, p.stop()) })
	return p
}

// readAddress reads the line that a server prints once it listens, and returns
// its URL.
func readAddress(from io.Reader) (string, error) {
	var line strings.Builder
	for one := make([]byte, 1); ; {
		if _, err := io.ReadFull(from, one); err != nil {
			return "", err
		}
		if one[0] == '\n' {
			break
		}
		line.Write(one)
	}
	_, address, ok := strings.Cut(line.String(), "listening on ")
	if !ok {
		return "", errors.New("no address in the line " + line.String())
	}
	return address, nil
}

// stop stops the server and waits for it. Every call returns what Run did.
func (p *process) stop() error {
	p.cancel()
	p.http.CloseIdleConnections()
	<-p.ended
	return p.err
}

// patience bounds waits for what must happen; it decides nothing but how long a
// broken test hangs.
const patience = 30 * time.Second

// awaitRefusal waits until a server that stops refuses new requests.
func (p *process) awaitRefusal(t testing.TB) {
	t.Helper()
	client := api.NewClient(p.url, p.http)
	require.Eventually(t, func() bool {
		return errors.Is(client.Ready(t.Context()), mapstate.ErrShuttingDown)
	}, patience, time.Millisecond)
}
