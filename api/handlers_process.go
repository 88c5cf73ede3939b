package api

import (
	"errors"
	"fmt"
	"net/http"

	"tine/mapstate"
)

// live says that the process serves.
func (s *Server) live(w http.ResponseWriter, _ *http.Request) error {
	answer(w, http.StatusOK, "text/plain; charset=utf-8", []byte("ok\n"))
	return nil
}

// ready says that the process takes requests.
func (s *Server) ready(w http.ResponseWriter, r *http.Request) error {
	if s.opts.Draining() {
		return fmt.Errorf("%w: the server takes no new requests", mapstate.ErrShuttingDown)
	}
	if err := s.opts.Ready(r.Context()); errors.Is(err, mapstate.ErrShuttingDown) {
		return err
	} else if err != nil {
		return fmt.Errorf("%w: %w", mapstate.ErrUnavailable, err)
	}
	answer(w, http.StatusOK, "text/plain; charset=utf-8", []byte("ok\n"))
	return nil
}

// describe serves the OpenAPI document.
func (s *Server) describe(w http.ResponseWriter, _ *http.Request) error {
	answer(w, http.StatusOK, "application/json", openAPI)
	return nil
}

func (s *Server) metrics(w http.ResponseWriter, r *http.Request) error {
	s.opts.Metrics.ServeHTTP(w, r)
	return nil
}
