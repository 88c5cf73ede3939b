package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"strconv"

	"tine/mapstate"

	"github.com/go-json-experiment/json"
)

// ErrIncomplete says that a stream of entries ended before its last line.
var ErrIncomplete = errors.New("the stream of entries ended before its last line")

// Listing says which entries to list. Its keys are as on the wire: a JSON array
// (Key.String gives it), a JSON scalar, or text, which is a string where it is
// not JSON. An empty one is absent.
type Listing struct {
	Prefix string // a JSON array: keys that begin with its elements; text: keys whose first element begins with it
	Start  string // the first key
	End    string // the key behind the last
}

// Page is a part of a listing.
type Page struct {
	Keys    []mapstate.Key
	Entries []mapstate.Entry // one per key
	Cursor  string           // of the next page; empty: this is the last
}

func (l Listing) query() url.Values {
	query := url.Values{}
	for name, text := range map[string]string{"prefix": l.Prefix, "start": l.Start, "end": l.End} {
		if text != "" {
			query.Set(name, text)
		}
	}
	return query
}

// Entries returns the page of a listing at a cursor, empty for the first. A limit of 0 is the server's default.
func (c *Client) Entries(ctx context.Context, state string, l Listing, limit int, cursor string) (page Page, err error) {
	query := l.query()
	if limit != 0 {
		query.Set("limit", strconv.Itoa(limit))
	}
	if cursor != "" {
		query.Set("cursor", cursor)
	}
	err = c.call(ctx, http.MethodGet, statePath(state, "/entries")+encodeQuery(query), nil, func(d *decoder) (err error) {
		page, err = d.pageAnswer()
		return err
	})
	return page, err
}

// Scan calls yield for each entry of a listing, in key order, as one consistent
// view, until yield returns an error, which it passes on. It returns nil only after the
// last line of the stream; a stream that ends before is ErrIncomplete.
func (c *Client) Scan(ctx context.Context, state string, l Listing, yield func(mapstate.Key, mapstate.Entry) error) error {
	target := statePath(state, "/entries") + encodeQuery(l.query())
	resp, err := c.send(ctx, http.MethodGet, target, nil, ndjson)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	var d decoder
	d.reset(resp.Body, math.MaxInt)
	for n := int64(0); ; n++ {
		d.clear()
		line, err := d.streamLine()
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return fmt.Errorf("%w: after %d entries", ErrIncomplete, n)
		case err != nil:
			return fmt.Errorf("GET %s: after %d entries: %w", target, n, err)
		case line.problem != nil:
			return line.problem
		case line.end && line.entries != n:
			return fmt.Errorf("%w: %d entries, the last line counts %d", ErrIncomplete, n, line.entries)
		case line.end:
			return nil
		}
		if err := yield(line.key, line.entry); err != nil {
			return err
		}
	}
}

// streamLine is one line of a stream: an entry, its end or its error.
type streamLine struct {
	key     mapstate.Key
	entry   mapstate.Entry
	end     bool
	entries int64
	problem *Problem
}

func (d *decoder) streamLine() (line streamLine, err error) {
	var e draftEntry
	if d.json.PeekKind() == 0 {
		_, err := d.json.ReadToken()
		return line, err
	}
	err = d.object(func(name []byte) (err error) {
		switch string(name) {
		case "end":
			line.end, err = d.bool()
		case "entries":
			line.entries, err = d.int()
		case "error":
			line.problem = new(Problem)
			err = json.UnmarshalDecode(d.json, line.problem)
		default:
			err = d.entryMember(name, &e)
		}
		return err
	})
	switch {
	case err != nil:
		return line, err
	case line.end || line.problem != nil:
		return line, nil
	case len(d.keyEnds) != 1:
		return line, fmt.Errorf("%w: a line is neither an entry nor the end", ErrBadRequest)
	}
	line.key, line.entry = d.keys()[0], e.in(string(d.textArena))
	return line, nil
}
