package api

import (
	"encoding/base64"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"tine/mapstate"

	"github.com/go-json-experiment/json/jsontext"
)

// Limits of a page of entries.
const (
	defaultPage = 1_000
	maxPage     = 10_000
)

// listing is what a request for entries asks for.
type listing struct {
	within mapstate.Range
	empty  bool // no key can be within
	limit  int  // entries of a page; 0: not given
}

// parseQuery parses a query strictly: parameters that are not known, or given
// twice, are refused. An empty one counts as absent.
func parseQuery(raw string, known ...string) (url.Values, error) {
	query, err := url.ParseQuery(raw)
	if err != nil {
		return nil, fmt.Errorf("%w: malformed query: %w", ErrBadRequest, err)
	}
	for name, values := range query {
		switch {
		case !slices.Contains(known, name):
			return nil, fmt.Errorf("%w: unknown query parameter %q; the parameters are %s",
				ErrBadRequest, excerpt(name), strings.Join(known, ", "))
		case len(values) > 1:
			return nil, fmt.Errorf("%w: query parameter %q is given %d times", ErrBadRequest, name, len(values))
		}
	}
	return query, nil
}

func parseListing(raw string) (listing, error) {
	var l listing
	query, err := parseQuery(raw, "prefix", "start", "end", "limit", "cursor")
	if err != nil {
		return l, err
	}
	steps := []struct {
		name  string
		apply func(text string) error
	}{
		{"prefix", l.prefix},
		{"start", l.start},
		{"end", l.end},
		{"cursor", l.cursor},
		{"limit", l.setLimit},
	}
	for _, step := range steps {
		if text := query.Get(step.name); text != "" {
			if err := step.apply(text); err != nil {
				return l, &FieldError{Member: step.name, Index: -1, Err: err}
			}
		}
	}
	l.empty = l.within.End != "" && l.within.Start >= l.within.End
	return l, nil
}

// prefix narrows the listing: text, to keys whose first element is a string that
// begins with it; a JSON array, to keys that begin with its elements.
func (l *listing) prefix(text string) error {
	key, err := parseQueryKey(text)
	if err != nil {
		return err
	}
	if isBareText(text) || strings.TrimLeft(text, " \t\r\n")[0] == '"' {
		key = key[:len(key)-1] // without the end of the string
	}
	l.from(key)
	l.until(mapstate.PrefixEnd(key))
	return nil
}

func (l *listing) start(text string) error {
	key, err := parseQueryKey(text)
	l.from(key)
	return err
}

func (l *listing) end(text string) error {
	key, err := parseQueryKey(text)
	l.until(key)
	return err
}

// cursor begins the listing behind the key that the last page ended with.
func (l *listing) cursor(text string) error {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil {
		return fmt.Errorf("%w: damaged, want it as the last page gave it", ErrBadRequest)
	}
	key, err := mapstate.ParseKey(raw)
	if err != nil {
		return fmt.Errorf("%w: damaged, want it as the last page gave it", ErrBadRequest)
	}
	l.from(key + "\x00") // nothing sorts between the two
	return nil
}

func newCursor(last mapstate.Key) string { return base64.RawURLEncoding.EncodeToString([]byte(last)) }

func (l *listing) setLimit(text string) error {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > maxPage {
		return fmt.Errorf("%w: got %q, want an integer from 1 to %d", ErrBadRequest, excerpt(text), maxPage)
	}
	l.limit = n
	return nil
}

func (l *listing) from(key mapstate.Key) { l.within.Start = max(l.within.Start, key) }

func (l *listing) until(key mapstate.Key) {
	if l.within.End == "" || key != "" && key < l.within.End {
		l.within.End = key
	}
}

// parseQueryKey returns the key that a query parameter stands for: JSON, or text that is
// not JSON and cannot be taken for its beginning, as a string.
func parseQueryKey(text string) (mapstate.Key, error) {
	if !isBareText(text) {
		return ParseKey([]byte(text))
	}
	if !utf8.ValidString(text) {
		return "", fmt.Errorf("%w: %q is not UTF-8", mapstate.ErrInvalidKey, excerpt(text))
	}
	return mapstate.NewKey(mapstate.String(text))
}

func isBareText(text string) bool {
	return !strings.ContainsRune(`[{"`, rune(text[0])) && !jsontext.Value(text).IsValid()
}
