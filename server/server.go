package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"tine/backing"
)

// Options of a Server. The zero value works.
type Options struct {
	Out     io.Writer    // gets one line with the address once the server listens; nil: nowhere
	Log     *slog.Logger // nil: nothing is logged
	Version string       // for the metrics
}

// Server is one Tine server.
type Server struct {
	cfg     Config
	opts    Options
	gate    *gate
	metrics *metrics
	phase   atomic.Int32 // a phase
}

// phase is how far a server is in its life.
type phase int32

const (
	starting phase = iota
	serving
	stopping
)

func (s *Server) phaseNow() phase { return phase(s.phase.Load()) }

// New returns a server that has not been started. Run checks cfg.
func New(cfg Config, opts Options) *Server {
	if opts.Out == nil {
		opts.Out = io.Discard
	}
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	return &Server{
		cfg:     cfg,
		opts:    opts,
		gate:    newGate(cfg.MaxRequests, cfg.MaxInFlightBytes),
		metrics: newMetrics(opts.Version),
	}
}

// Run serves until ctx ends, and then stops in order. It returns nil after an
// orderly stop: everything acknowledged is on disk. Requests that do not finish in
// time are cut off, which the log tells. It is called once.
func (s *Server) Run(ctx context.Context) (err error) {
	// Start, 1: nothing is touched before the whole configuration is known to be good.
	if err := s.cfg.Validate(); err != nil {
		return fmt.Errorf("invalid configuration: %w", err)
	}

	// Start, 2: the database. It locks the data directory: from here on it is ours.
	db, err := s.openDatabase()
	if err != nil {
		return err
	}
	defer func() { err = s.stopped(errors.Join(err, closing("database", db.Close()))) }() // Stop, 6

	// Start, 3: the states, each with its progress.
	states, err := OpenRegistry(ctx, db, s.cfg)
	if err != nil {
		return err
	}
	defer states.Close() // Stop, 5
	states.log = s.opts.Log
	s.metrics.registry.MustRegister(newStateCollector(states), newDatabaseCollector(db), newGateCollector(s.gate), newMemcachedCollector(states))

	// Start, 4: the listeners. Requests get a context of their own: the end of ctx
	// does not end the requests under way.
	requests, cancelRequests := context.WithCancel(context.WithoutCancel(ctx))
	defer cancelRequests()
	listeners, err := s.listen(ctx, requests, states, db)
	if err != nil {
		return err
	}

	// Start, 5: serve. Whoever reads the address finds the server ready.
	failed := listeners.serve()
	s.phase.Store(int32(serving))
	s.announce(listeners, len(states.List()))

	select {
	case <-ctx.Done():
	case err = <-failed:
	}

	// Stop, 1: fail readiness, so that whoever sends work here looks elsewhere.
	s.phase.Store(int32(stopping))
	s.opts.Log.Info("stopping", "grace", s.cfg.ShutdownGrace, "timeout", s.cfg.ShutdownTimeout)
	if err == nil {
		time.Sleep(s.cfg.ShutdownGrace)
	}

	// Stop, 2 and 3: refuse new requests and let those under way finish, until the time is up.
	bounded, done := context.WithTimeout(context.WithoutCancel(ctx), s.cfg.ShutdownTimeout)
	defer done()
	if !s.drain(bounded) {
		cancelRequests()
	}

	// Stop, 4: close the listeners, and end what waits for room on the disk; then the
	// states and the database, as deferred above.
	cut, closeErr := listeners.close(bounded)
	if cut > 0 {
		s.opts.Log.Warn("connections were cut off, their requests had not finished in time", "connections", cut, "timeout", s.cfg.ShutdownTimeout)
	}
	db.GiveUp()
	return errors.Join(err, closing("listeners", closeErr))
}

// announce says where the server is to be found, and what it stands on.
func (s *Server) announce(l *listeners, states int) {
	if _, err := fmt.Fprintf(s.opts.Out, "tine: listening on http://%s\n", l.address()); err != nil {
		s.opts.Log.Warn("the address could not be printed", "error", err)
	}
	dir, err := filepath.Abs(s.cfg.DataDir)
	if err != nil {
		dir = s.cfg.DataDir // there is no working directory to name
	}
	attrs := []any{"address", l.address(), "dataDir", dir, "states", states}
	if admin := l.adminAddress(); admin != "" {
		attrs = append(attrs, "adminAddress", admin)
	}
	s.opts.Log.Info("ready", attrs...)
}

// openDatabase opens the database in the data directory, which it makes.
func (s *Server) openDatabase() (*backing.Database, error) {
	if err := os.MkdirAll(s.cfg.DataDir, 0o750); err != nil {
		return nil, fmt.Errorf("make the data directory: %w", err)
	}
	db, err := backing.Open(s.cfg.DataDir, backing.Options{
		CacheBytes:    s.cfg.BlockCacheBytes,
		MemTableBytes: s.cfg.MemTableBytes,
		SyncInterval:  s.cfg.SyncInterval,
		MinFreeBytes:  s.cfg.MinFreeBytes,
		Logger:        s.opts.Log,
	})
	if err != nil {
		return nil, fmt.Errorf("open the database: %w", err)
	}
	return db, nil
}

// drain refuses new requests and waits for those under way; it reports whether all
// have finished before ctx ends.
func (s *Server) drain(ctx context.Context) bool {
	select {
	case <-s.gate.drain():
		return true
	case <-ctx.Done():
		return false
	}
}

// stopped says in the log that the server has stopped in order, and returns err, which
// tells of any other end.
func (s *Server) stopped(err error) error {
	if err == nil {
		s.opts.Log.Info("stopped")
	}
	return err
}

func closing(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("close the %s: %w", what, err)
}
