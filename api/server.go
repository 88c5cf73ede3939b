package api

import (
	"context"
	_ "embed"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/gorilla/mux"
)

// Defaults of Options.
const (
	DefaultMaxBody      = 64 << 20 // bytes
	DefaultMaxKeys      = 1_000_000
	DefaultFlushTimeout = 30 * time.Second
)

// openAPI describes every route.
//
//go:embed openapi.json
var openAPI []byte

// Options of a Server. The zero value works; a limit of 0 or less is its default.
type Options struct {
	MaxBody      int64         // bytes of a request's body
	MaxKeys      int           // keys, values, args or updaters of a request
	FlushTimeout time.Duration // for a client to read an answer, and a second more for each 4 MiB, or a part of a stream

	// Log gets a line for each request; nil is slog.Default.
	Log *slog.Logger
	// Observer is told of each request; nil is nobody.
	Observer Observer
	// Admit is asked before a request under /v1 is served. It may refuse it with an
	// error, and bound what is read of its body. The function it returns, if any, is
	// called once the request has been answered. Nil admits every request.
	Admit func(w http.ResponseWriter, r *http.Request) (leave func(), err error)
	// Draining says that new requests under /v1 are refused with ErrShuttingDown,
	// and that the server is not ready; nil is never.
	Draining func() bool
	// Ready says why the server is not ready, with ErrShuttingDown while it stops, nil
	// when it is; nil is always ready.
	Ready func(context.Context) error
	// Metrics serves /metrics; without it there is no such route.
	Metrics http.Handler
}

// Observer is told of requests. It may be called concurrently.
type Observer interface {
	// ObserveRequest is called once a request has been answered. The route is its template,
	// such as /v1/states/{state}/multiGet, or "none" where no route matched; the
	// status is 499 where the client went away before the answer.
	ObserveRequest(method, route string, status int, took time.Duration)
}

func (o Options) withDefaults() Options {
	if o.MaxBody <= 0 {
		o.MaxBody = DefaultMaxBody
	}
	if o.MaxKeys <= 0 {
		o.MaxKeys = DefaultMaxKeys
	}
	if o.FlushTimeout <= 0 {
		o.FlushTimeout = DefaultFlushTimeout
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.Admit == nil {
		o.Admit = func(http.ResponseWriter, *http.Request) (func(), error) { return nil, nil }
	}
	if o.Draining == nil {
		o.Draining = func() bool { return false }
	}
	if o.Ready == nil {
		o.Ready = func(context.Context) error { return nil }
	}
	return o
}

// Server serves a registry of states over HTTP. It starts no goroutine.
type Server struct {
	states    States
	opts      Options
	router    *mux.Router
	scratches sync.Pool // of *scratch
}

var _ http.Handler = (*Server)(nil)

// New returns a Server of states.
func New(states States, opts Options) *Server {
	s := &Server{states: states, opts: opts.withDefaults()}
	s.router = s.newRouter()
	return s
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.router.ServeHTTP(w, r) }
