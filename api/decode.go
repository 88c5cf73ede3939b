package api

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"tine/mapstate"

	"github.com/go-json-experiment/json/jsontext"
)

// maxPartition is the longest partition name, in characters.
const maxPartition = 100

// decoder reads one JSON text in one pass and without boxing: keys are encoded
// into one arena, the text of values into another, and each arena becomes one
// string at the end, of which the keys and values are parts.
type decoder struct {
	json    *jsontext.Decoder
	maxKeys int

	keyArena  []byte
	keyEnds   []int // of each key in keyArena
	textArena []byte
	values    []draft
	args      []draft
	ops       []draftOp
	unquoted  []byte // the last string that had escapes
}

// reset makes the decoder ready for the text in r.
func (d *decoder) reset(r io.Reader, maxKeys int) {
	// Strings that are not Unicode are let through here and refused by text, which
	// knows whether it reads a key, a value or neither.
	if d.json == nil {
		d.json = jsontext.NewDecoder(r, jsontext.AllowInvalidUTF8(true))
	} else {
		d.json.Reset(r, jsontext.AllowInvalidUTF8(true))
	}
	d.maxKeys = maxKeys
	d.clear()
}

// clear forgets what was decoded, not the input.
func (d *decoder) clear() {
	d.keyArena, d.keyEnds, d.textArena = d.keyArena[:0], d.keyEnds[:0], d.textArena[:0]
	d.values, d.args, d.ops = d.values[:0], d.args[:0], d.ops[:0]
}

// release lets go of the input and of memory beyond keepBytes.
func (d *decoder) release() {
	if d.json != nil {
		d.json.Reset(strings.NewReader(""))
	}
	const keepItems = keepBytes / 64
	if cap(d.keyArena) > keepBytes || cap(d.textArena) > keepBytes || cap(d.unquoted) > keepBytes ||
		cap(d.keyEnds) > keepItems || cap(d.values) > keepItems || cap(d.args) > keepItems || cap(d.ops) > keepItems {
		*d = decoder{json: d.json}
	}
	clear(d.ops) // they hold strings
}

// object reads one JSON object and calls member for each member, before its value. The
// name is valid until the next read.
func (d *decoder) object(member func(name []byte) error) error {
	if kind := d.json.PeekKind(); kind != '{' {
		return d.wrongKind("a JSON object")
	}
	if _, err := d.json.ReadToken(); err != nil {
		return d.syntax(err)
	}
	for d.json.PeekKind() != '}' {
		name, err := d.string()
		if err != nil {
			return err
		}
		if err := member(name); err != nil {
			return err
		}
	}
	_, err := d.json.ReadToken()
	return d.syntax(err)
}

// end checks that nothing follows.
func (d *decoder) end() error {
	switch _, err := d.json.ReadToken(); {
	case errors.Is(err, io.EOF):
		return nil
	case err != nil:
		return d.syntax(err)
	}
	return fmt.Errorf("%w: something follows the JSON object", ErrBadRequest)
}

// array reads one JSON array and calls elem for each element. Errors are FieldErrors.
func (d *decoder) array(member string, elem func() error) error {
	if kind := d.json.PeekKind(); kind != '[' {
		return &FieldError{Member: member, Index: -1, Err: d.wrongKind("an array")}
	}
	if _, err := d.json.ReadToken(); err != nil {
		return d.syntax(err)
	}
	for i := 0; d.json.PeekKind() != ']'; i++ {
		if i == d.maxKeys {
			limit := &mapstate.LimitError{What: "number of " + member, Got: -1, Limit: int64(d.maxKeys)}
			return &FieldError{Member: member, Index: -1, Err: limit}
		}
		if err := elem(); err != nil {
			return &FieldError{Member: member, Index: i, Err: err}
		}
	}
	if _, err := d.json.ReadToken(); err != nil {
		return &FieldError{Member: member, Index: -1, Err: d.syntax(err)}
	}
	return nil
}

// string reads a string that is neither key nor value. It is valid until the next read.
func (d *decoder) string() ([]byte, error) {
	if kind := d.json.PeekKind(); kind != '"' {
		return nil, d.wrongKind("a string")
	}
	raw, err := d.json.ReadValue()
	if err != nil {
		return nil, d.syntax(err)
	}
	text, err := d.text(raw)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBadRequest, err)
	}
	return text, nil
}

// text returns what a raw JSON string stands for, valid until the next read.
func (d *decoder) text(raw []byte) ([]byte, error) {
	text := raw[1 : len(raw)-1]
	if bytes.IndexByte(text, '\\') >= 0 {
		var err error
		if d.unquoted, err = jsontext.AppendUnquote(d.unquoted[:0], raw); err != nil {
			return nil, fmt.Errorf("string %s is not Unicode: %w", excerpt(raw), err)
		}
		return d.unquoted, nil
	}
	if !utf8.Valid(text) {
		return nil, fmt.Errorf("string %s is not UTF-8", excerpt(raw))
	}
	return text, nil
}

// null reads a null, if one is next.
func (d *decoder) null() bool {
	if d.json.PeekKind() != 'n' {
		return false
	}
	_, err := d.json.ReadToken()
	return err == nil
}

// bool reads a boolean.
func (d *decoder) bool() (bool, error) {
	if kind := d.json.PeekKind(); kind != 't' && kind != 'f' {
		return false, d.wrongKind("a boolean")
	}
	token, err := d.json.ReadToken()
	if err != nil {
		return false, d.syntax(err)
	}
	return token.Bool(), nil
}

// wrongKind says what was wanted and what is there, unless the text is malformed.
func (d *decoder) wrongKind(want string) error {
	kind := d.json.PeekKind()
	if kind == jsontext.KindInvalid || kind == '}' || kind == ']' {
		if _, err := d.json.ReadToken(); err != nil {
			return d.syntax(err)
		}
	}
	return fmt.Errorf("%w: want %s, got %s", ErrBadRequest, want, kindName(kind))
}

// syntax describes an error of the JSON decoder; nil stays nil.
func (d *decoder) syntax(err error) error {
	if err == nil {
		return nil
	}
	syntactic, ok := errors.AsType[*jsontext.SyntacticError](err)
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("%w: the JSON is cut short at byte %d: %w", ErrBadRequest, d.json.InputOffset(), io.ErrUnexpectedEOF)
	case errors.Is(err, io.EOF):
		return fmt.Errorf("%w: there is no JSON, want a JSON object", ErrBadRequest)
	case ok && syntactic.JSONPointer != "":
		return fmt.Errorf("%w: malformed JSON at byte %d, in %s: %w", ErrBadRequest, syntactic.ByteOffset, excerpt(syntactic.JSONPointer), syntactic.Err)
	case ok:
		return fmt.Errorf("%w: malformed JSON at byte %d: %w", ErrBadRequest, syntactic.ByteOffset, syntactic.Err)
	}
	return fmt.Errorf("reading JSON: %w", err)
}

func kindName(k jsontext.Kind) string {
	switch k {
	case 'n':
		return "null"
	case 't', 'f':
		return "a boolean"
	case '"':
		return "a string"
	case '0':
		return "a number"
	case '[':
		return "an array"
	case '{':
		return "an object"
	}
	return "no JSON value"
}

// excerpt quotes the beginning of a text for a message.
func excerpt[T ~string | ~[]byte](text T) string {
	const most = 40
	if len(text) <= most {
		return string(text)
	}
	return strings.ToValidUTF8(string(text[:most]), "") + "…"
}
