package api

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"regexp"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"tine/mapstate"

	"github.com/gorilla/mux"
)

// requestIDHeader carries a request's id, from the client if it sent a sane one.
const requestIDHeader = "X-Request-Id"

// statusClientGone is what the log and the metrics call a request whose client left.
const statusClientGone = 499

// handler serves a request: it writes the whole answer, or nothing and returns
// an error, which becomes a problem.
type handler func(w http.ResponseWriter, r *http.Request) error

// toldError is an error that the answer already tells of.
type toldError struct{ err error }

func (e *toldError) Error() string { return e.err.Error() }

func (e *toldError) Unwrap() error { return e.err }

// adapt makes an http.Handler: it gives the request its id, writes the problem of an error,
// and tells the log and the observer.
func (s *Server) adapt(route string, h handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		start := time.Now()
		id := requestID(r)
		w.Header().Set(requestIDHeader, id)
		rec := &recorder{ResponseWriter: w, timeout: s.opts.FlushTimeout}
		rec.deadline(time.Time{}) // that of the answer before, on the same connection
		leave, err := s.admit(rec, r)
		if leave != nil {
			defer leave()
		}
		if err == nil {
			err = s.serve(h, rec, r, id)
		}
		cut := false
		if err != nil {
			cut = s.fail(rec, r, err, id)
		}
		took := time.Since(start)
		s.log(r, rec, err, id, took)
		if s.opts.Observer != nil {
			s.opts.Observer.ObserveRequest(r.Method, route, rec.status, took)
		}
		if cut {
			panic(http.ErrAbortHandler) // the client must not take half an answer for a whole one
		}
	})
}

// serve calls the handler. A panic becomes ErrInternal, and is logged with its stack here,
// where the stack is.
func (s *Server) serve(h handler, w http.ResponseWriter, r *http.Request, id string) (err error) {
	defer func() {
		p := recover()
		if p == nil {
			return
		}
		if abort, ok := p.(error); ok && errors.Is(abort, http.ErrAbortHandler) {
			panic(p)
		}
		s.opts.Log.ErrorContext(r.Context(), "panic", "panic", p, "requestId", id, "stack", string(debug.Stack()))
		err = fmt.Errorf("%w: panic: %v", ErrInternal, p)
	}()
	return h(w, r)
}

// admit refuses requests for data that the server cannot take now. Probes, metrics and
// the document pass: they must answer when it has too much to do.
func (s *Server) admit(w http.ResponseWriter, r *http.Request) (leave func(), err error) {
	if !strings.HasPrefix(r.URL.Path, "/v1/") {
		return nil, nil
	}
	if leave, err = s.opts.Admit(w, r); err == nil && s.opts.Draining() {
		err = fmt.Errorf("%w: the server takes no new requests", mapstate.ErrShuttingDown)
	}
	return leave, err
}

// fail answers with a problem. It reports whether it is too late for that.
func (s *Server) fail(rec *recorder, r *http.Request, err error, id string) (cut bool) {
	if _, told := errors.AsType[*toldError](err); told {
		return false
	}
	switch {
	case rec.status != 0:
		return true
	case errors.Is(err, context.Canceled) && r.Context().Err() != nil:
		rec.status = statusClientGone
		return true
	}
	p := newProblem(err, id)
	body := p.appendJSON(nil)
	if p.Status == http.StatusTooManyRequests {
		rec.Header().Set("Retry-After", "1")
	}
	answer(rec, p.Status, "application/problem+json", body)
	return false
}

func (s *Server) log(r *http.Request, rec *recorder, err error, id string, took time.Duration) {
	level := slog.LevelInfo
	refused := errors.Is(err, mapstate.ErrShuttingDown) || errors.Is(err, mapstate.ErrOverloaded)
	if rec.status >= http.StatusInternalServerError && !refused {
		level = slog.LevelError
	}
	if !s.opts.Log.Enabled(r.Context(), level) {
		return
	}
	attrs := []slog.Attr{
		slog.String("method", r.Method),
		slog.String("path", r.URL.Path),
		slog.Int("status", rec.status),
		slog.Int64("bytes", rec.bytes),
		slog.Duration("took", took),
		slog.String("requestId", id),
	}
	if state := mux.Vars(r)["state"]; state != "" {
		attrs = append(attrs, slog.String("state", state))
	}
	if err != nil {
		attrs = append(attrs, slog.String("error", err.Error()))
	}
	s.opts.Log.LogAttrs(r.Context(), level, "request", attrs...)
}

// saneID is what a client may call a request.
var saneID = regexp.MustCompile(`^[A-Za-z0-9._:-]{1,100}$`)

func requestID(r *http.Request) string {
	if id := r.Header.Get(requestIDHeader); saneID.MatchString(id) {
		return id
	}
	return strconv.FormatUint(rand.Uint64()|1<<63, 16) // always 16 digits
}

// recorder notes what was answered, and bounds the time that the client may take to
// read it.
type recorder struct {
	http.ResponseWriter
	timeout time.Duration
	status  int // 0: nothing yet
	bytes   int64
}

func (rec *recorder) WriteHeader(status int) {
	if rec.status == 0 {
		rec.status = status
		size, _ := strconv.Atoi(rec.Header().Get("Content-Length")) // 0 for a stream, which bounds each part
		rec.deadline(time.Now().Add(rec.timeout + time.Duration(size)*time.Second>>22))
	}
	rec.ResponseWriter.WriteHeader(status)
}

// deadline bounds writes to the connection, where it is one that can be bounded.
func (rec *recorder) deadline(t time.Time) {
	_ = http.NewResponseController(rec.ResponseWriter).SetWriteDeadline(t)
}

func (rec *recorder) Write(b []byte) (int, error) {
	if rec.status == 0 {
		rec.WriteHeader(http.StatusOK)
	}
	n, err := rec.ResponseWriter.Write(b)
	rec.bytes += int64(n)
	return n, err
}

// Unwrap lets http.ResponseController reach the connection.
func (rec *recorder) Unwrap() http.ResponseWriter { return rec.ResponseWriter }

// answer writes a whole answer, and ends it with a newline, for those who read it
// on a terminal. That the client is gone is not an error of the handler.
func answer(w http.ResponseWriter, status int, contentType string, body []byte) {
	if len(body) == 0 || body[len(body)-1] != '\n' {
		body = append(body, '\n')
	}
	h := w.Header()
	h.Set("Content-Type", contentType)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body)
}
