package verify_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tine/server"
)

// ours is a whole server of this process that may be ended. A kill is an orderly
// stop here; kills of a process are in the tests of the command.
type ours struct {
	config server.Config
	url    string
	cancel context.CancelFunc
	ended  chan error
}

func startOurs(t *testing.T) *ours {
	config := server.DefaultConfig()
	config.Listen = "127.0.0.1:0"
	config.DataDir = t.TempDir()
	config.BlockCacheBytes = 8 << 20
	config.MemTableBytes = 1 << 20
	config.ShutdownGrace = 0
	config.BatchIdle = time.Second
	s := &ours{config: config}
	require.NoError(t, s.start())
	t.Cleanup(func() { require.NoError(t, s.stop()) })
	return s
}

func (s *ours) start() error {
	ctx, cancel := context.WithCancel(context.Background())
	lines, out := io.Pipe()
	ended := make(chan error, 1)
	srv := server.New(s.config, server.Options{Out: out})
	go func() {
		err := srv.Run(ctx)
		out.CloseWithError(errors.Join(io.ErrUnexpectedEOF, err))
		ended <- err
	}()
	line, err := bufio.NewReader(lines).ReadString('\n')
	s.cancel, s.ended = cancel, ended
	_, s.url, _ = strings.Cut(strings.TrimSpace(line), "listening on ")
	return err
}

func (s *ours) stop() error {
	s.cancel()
	return <-s.ended
}

func (s *ours) URL() string { return s.url }

func (s *ours) Kill(ctx context.Context) error { return s.Stop(ctx) }

func (s *ours) Stop(context.Context) error { return errors.Join(s.stop(), s.start()) }
