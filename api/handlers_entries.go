package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"tine/mapstate"
)

// ndjson is the media type of a stream: one JSON object a line.
const ndjson = "application/x-ndjson"

// pageBytes ends a page before its limit of entries.
const pageBytes = 16 << 20

// flushBytes is how much of a stream is written at once.
const flushBytes = 32 << 10

// errPageFull ends a scan whose page is full.
var errPageFull = errors.New("page full")

func (s *Server) listEntries(w http.ResponseWriter, r *http.Request) error {
	m, err := s.mapIn(r)
	if err != nil {
		return err
	}
	list, err := parseListing(r.URL.RawQuery)
	if err != nil {
		return err
	}
	sc := s.getScratch()
	defer s.putScratch(sc)
	if accepts(r, ndjson) {
		if list.limit != 0 {
			return &FieldError{Member: "limit", Index: -1, Err: fmt.Errorf("%w: a stream is the whole range, only a page has a limit", ErrBadRequest)}
		}
		stream := &entryStream{w: w, control: http.NewResponseController(w), timeout: s.opts.FlushTimeout, out: sc.out[:0]}
		err := stream.run(r, m, list)
		sc.out = stream.out
		return err
	}
	out, err := appendPage(r.Context(), sc.out[:0], m, list)
	if err != nil {
		return err
	}
	sc.out = out
	answer(w, http.StatusOK, "application/json", out)
	return nil
}

// accepts reports whether a request asks for a media type by its name.
func accepts(r *http.Request, media string) bool {
	for _, header := range r.Header.Values("Accept") {
		for part := range strings.SplitSeq(header, ",") {
			if got, _, err := mime.ParseMediaType(part); err == nil && got == media {
				return true
			}
		}
	}
	return false
}

// scan walks a listing.
func scan(ctx context.Context, m *mapstate.Map, list listing, yield func(mapstate.Key, mapstate.Entry) error) error {
	if list.empty {
		return nil
	}
	return m.Scan(ctx, list.within, yield)
}

// appendPage appends one page of a listing, with a cursor if more follows.
func appendPage(ctx context.Context, dst []byte, m *mapstate.Map, list listing) ([]byte, error) {
	limit := cmp.Or(list.limit, defaultPage)
	var last mapstate.Key
	n := 0
	dst = append(dst, `{"entries":[`...)
	err := scan(ctx, m, list, func(k mapstate.Key, e mapstate.Entry) error {
		if n == limit || len(dst) > pageBytes {
			return errPageFull
		}
		if n > 0 {
			dst = append(dst, ',')
		}
		n++
		last = k
		dst = appendKeyedEntry(dst, k, e)
		return nil
	})
	dst = append(dst, ']')
	switch {
	case errors.Is(err, errPageFull):
		dst = append(append(append(dst, `,"cursor":"`...), newCursor(last)...), '"')
	case err != nil:
		return nil, err
	}
	return append(dst, '}'), nil
}

// entryStream writes entries as they are scanned. A client that does not read
// stalls it for no longer than timeout, then the scan ends.
type entryStream struct {
	w       http.ResponseWriter
	control *http.ResponseController
	timeout time.Duration
	out     []byte // not yet written
	begun   bool   // something was written
}

// run streams a listing to its last line. An error before the first write is
// returned, one after it becomes the last line.
func (s *entryStream) run(r *http.Request, m *mapstate.Map, list listing) error {
	n := 0
	err := scan(r.Context(), m, list, func(k mapstate.Key, e mapstate.Entry) error {
		n++
		s.out = append(appendKeyedEntry(s.out, k, e), '\n')
		if len(s.out) < flushBytes {
			return nil
		}
		return s.flush()
	})
	switch {
	case err == nil:
		s.out = append(strconv.AppendInt(append(s.out, `{"end":true,"entries":`...), int64(n), 10), "}\n"...)
		return s.close()
	case s.begun && !errors.Is(err, errStalled):
		s.out = newProblem(err, s.w.Header().Get(requestIDHeader)).appendJSON(append(s.out, `{"error":`...))
		s.out = append(s.out, "}\n"...)
		if err := s.close(); err != nil {
			return err
		}
		return &toldError{err}
	}
	return err
}

// errStalled ends a scan whose client does not read, or is gone.
var errStalled = errors.New("the client of the stream does not read")

// flush writes what there is, within the timeout.
func (s *entryStream) flush() error {
	if !s.begun {
		s.w.Header().Set("Content-Type", ndjson)
		s.begun = true
	}
	if err := s.deadline(time.Now().Add(s.timeout)); err != nil {
		return err
	}
	_, err := s.w.Write(s.out)
	if err == nil {
		err = s.control.Flush()
	}
	if err != nil {
		return fmt.Errorf("%w: %w", errStalled, err)
	}
	s.out = s.out[:0]
	return nil
}

// close writes the rest and leaves the connection as it was.
func (s *entryStream) close() error {
	if err := s.flush(); err != nil {
		return err
	}
	return s.deadline(time.Time{})
}

// deadline bounds writes to the connection, where it is one that can be bounded.
func (s *entryStream) deadline(t time.Time) error {
	if err := s.control.SetWriteDeadline(t); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return fmt.Errorf("%w: %w", errStalled, err)
	}
	return nil
}
