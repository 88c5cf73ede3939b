package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"time"

	"tine/api"
	"tine/backing"
	"tine/mapstate"
)

// Bounds of a connection, beside those of Config.
const (
	readHeaderTimeout = 10 * time.Second
	idleTimeout       = 2 * time.Minute
	maxHeaderBytes    = 64 << 10
)

// listen opens the API's socket, and the admin's if there is one. Requests to the
// API get the context requests.
func (s *Server) listen(ctx, requests context.Context, states api.States, db *backing.Database) (*listeners, error) {
	l := new(listeners)
	serving := s.httpServer(requests, s.handler(states, db))
	// Also what no handler reads has to arrive; admit gives each body a time of its own.
	serving.ReadTimeout = s.cfg.BodyTimeout
	if err := l.add(ctx, "listen", s.cfg.Listen, serving); err != nil {
		return nil, err
	}
	if s.cfg.AdminListen == "" {
		return l, nil
	}
	if err := l.add(ctx, "admin-listen", s.cfg.AdminListen, s.httpServer(requests, profiles())); err != nil {
		return nil, err
	}
	return l, nil
}

// httpServer returns a server without a write timeout, which would cut streams: the API
// bounds each part of a stream instead.
func (s *Server) httpServer(requests context.Context, handler http.Handler) *http.Server {
	return &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: readHeaderTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          slog.NewLogLogger(s.opts.Log.Handler(), slog.LevelWarn),
		BaseContext:       func(net.Listener) context.Context { return requests },
	}
}

// handler returns the API.
func (s *Server) handler(states api.States, db *backing.Database) http.Handler {
	return api.New(states, api.Options{
		MaxBody:      s.cfg.MaxBodyBytes,
		MaxKeys:      s.cfg.MaxKeys,
		FlushTimeout: s.cfg.WriteTimeout,
		Log:          s.opts.Log,
		Observer:     s.metrics,
		Admit:        s.admit,
		Draining:     s.gate.isDraining,
		Ready:        func(context.Context) error { return s.readiness(db) },
		Metrics:      s.metrics.handler(),
	})
}

// readiness says why the server is not ready.
func (s *Server) readiness(db *backing.Database) error {
	switch s.phaseNow() {
	case starting:
		return errors.New("the server is starting")
	case stopping:
		return fmt.Errorf("%w: the server takes no new requests", mapstate.ErrShuttingDown)
	}
	return db.Err()
}

// admit lets a request through the gate and gives its body a time to arrive in.
func (s *Server) admit(w http.ResponseWriter, r *http.Request) (leave func(), err error) {
	size := r.ContentLength
	if size < 0 {
		size = s.cfg.MaxBodyBytes // it may become as large as that
	}
	if size > s.cfg.MaxBodyBytes {
		size = 0 // it is refused before it is read
	}
	if err := s.gate.enter(size); err != nil {
		return nil, err
	}
	if r.Body == http.NoBody {
		// There is nothing to wait for. The deadline of the connection, left alone,
		// would end a request that takes longer.
		if err := http.NewResponseController(w).SetReadDeadline(time.Time{}); err != nil {
			s.gate.leave(size)
			return nil, err
		}
	} else {
		r.Body = &timedBody{ReadCloser: r.Body, control: http.NewResponseController(w), timeout: s.cfg.BodyTimeout}
	}
	return func() { s.gate.leave(size) }, nil
}

// profiles serves /debug/pprof.
func profiles() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	return mux
}
