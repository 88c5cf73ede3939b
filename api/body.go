package api

import (
	"bytes"
	"errors"
	"fmt"
	"mime"
	"net/http"

	"tine/mapstate"
)

// keepBytes bounds the working memory that a finished request leaves for the next.
const keepBytes = 4 << 20

// scratch is the working memory of one request, kept for the next one.
type scratch struct {
	body bytes.Buffer
	dec  decoder
	out  []byte
}

// getScratch returns working memory that putScratch may have seen before.
func (s *Server) getScratch() *scratch {
	if sc, ok := s.scratches.Get().(*scratch); ok {
		return sc
	}
	return &scratch{}
}

// putScratch takes the working memory back. Nothing of it may be in use.
func (s *Server) putScratch(sc *scratch) {
	if sc.body.Cap() > keepBytes {
		sc.body = bytes.Buffer{}
	}
	if cap(sc.out) > keepBytes {
		sc.out = nil
	}
	sc.body.Reset()
	sc.dec.release()
	s.scratches.Put(sc)
}

// readBody reads a request's body into sc, whole, and makes sc's decoder ready
// for it. A body beyond the limit is refused by its declared length, before
// anything is read, or else as soon as the limit is passed.
func (s *Server) readBody(w http.ResponseWriter, r *http.Request, sc *scratch) error {
	if err := checkContentType(r.Header.Get("Content-Type")); err != nil {
		return err
	}
	limit := s.opts.MaxBody
	if r.ContentLength > limit {
		return &mapstate.LimitError{What: "body (in bytes)", Got: r.ContentLength, Limit: limit}
	}
	if r.ContentLength > 0 {
		// The length is only a promise: what it reserves is bounded.
		sc.body.Grow(int(min(r.ContentLength, 1<<20)) + bytes.MinRead)
	}
	if _, err := sc.body.ReadFrom(http.MaxBytesReader(w, r.Body, limit)); err != nil {
		if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
			return &mapstate.LimitError{What: "body (in bytes)", Got: -1, Limit: limit}
		}
		return fmt.Errorf("%w: the body could not be read to its end: %w", ErrBadRequest, err)
	}
	sc.dec.reset(&sc.body, s.opts.MaxKeys)
	return nil
}

// checkContentType accepts JSON, and a body that does not say what it is.
func checkContentType(header string) error {
	if header == "" {
		return nil
	}
	if media, _, err := mime.ParseMediaType(header); err == nil && media == "application/json" {
		return nil
	}
	return fmt.Errorf("%w: %q, want application/json; with curl, use --json or -H 'Content-Type: application/json'",
		ErrUnsupportedMediaType, header)
}
