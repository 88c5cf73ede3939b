package trident

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"tine/mapstate"
)

// Codec turns the records of one kind into Trident's JSON and back.
type Codec struct {
	elements int // of the array that a record is; 0: it is the bare value
	parse    func([]byte) (mapstate.Value, error)
}

var _ mapstate.Codec = Codec{}

// NewCodec returns the codec of the kind whose replays are such. parse returns the value
// that a JSON text stands for: it must refuse what is not one JSON value, and numbers that
// would have to be rounded; it must not keep the text.
func NewCodec(replays mapstate.Replays, parse func([]byte) (mapstate.Value, error)) Codec {
	c := Codec{parse: parse}
	switch replays {
	case mapstate.ReplaySkips:
		c.elements = 2
	case mapstate.ReplayRestarts:
		c.elements = 3
	}
	return c
}

// AppendRecord implements mapstate.Codec. It writes the txid of a record that no
// numbered batch has written as 0. Storm writes null there, which it cannot read.
func (c Codec) AppendRecord(dst []byte, r mapstate.Record) []byte {
	if c.elements == 0 {
		return appendValue(dst, r.Curr)
	}
	dst = strconv.AppendInt(append(dst, '['), int64(r.TxID), 10)
	dst = appendValue(append(dst, ','), r.Curr)
	if c.elements == 3 {
		dst = appendValue(append(dst, ','), r.Prev)
	}
	return append(dst, ']')
}

// DecodeRecord implements mapstate.Codec. It takes any white space and any escapes that
// JSON has. A null is no value. A txid that is null or 0 is none, and without a txid
// there is no previous value.
func (c Codec) DecodeRecord(b []byte) (mapstate.Record, error) {
	r, err := c.decode(b)
	if err != nil {
		// The cause is told, not wrapped: no request is at fault.
		return mapstate.Record{}, fmt.Errorf("trident record: %w: %s", mapstate.ErrCorrupt, err.Error())
	}
	return r, nil
}

func (c Codec) decode(b []byte) (r mapstate.Record, err error) {
	if c.elements == 0 {
		r.Curr, err = c.value(b)
		return r, err
	}
	parts, err := split(b, c.elements)
	if err != nil {
		return r, err
	}
	if r.TxID, err = c.txid(parts[0]); err != nil {
		return r, fmt.Errorf("txid: %w", err)
	}
	if r.Curr, err = c.value(parts[1]); err != nil {
		return r, fmt.Errorf("value: %w", err)
	}
	if c.elements == 3 {
		prev, err := c.value(parts[2])
		if err != nil {
			return r, fmt.Errorf("previous value: %w", err)
		}
		if r.TxID != mapstate.NoTxID {
			r.Prev = prev
		}
	}
	return r, nil
}

// value returns the value of a JSON text, none for null.
func (c Codec) value(text []byte) (mapstate.Value, error) {
	v, err := c.parse(text)
	if v.Type() == mapstate.TypeNull {
		v = mapstate.Value{}
	}
	return v, err
}

// txid returns the txid of a JSON text. Storm takes any number and cuts it to an integer;
// here it must be one, though it may be written as a float, as other tools do.
func (c Codec) txid(text []byte) (mapstate.TxID, error) {
	v, err := c.value(text)
	if err != nil || v.IsNone() {
		return mapstate.NoTxID, err
	}
	i, ok := v.AsInt()
	if f, isNumber := v.AsFloat(); isNumber && !ok {
		// Beyond 2^53 it is not known which integer a float was.
		if f != math.Trunc(f) || math.Abs(f) > 1<<53 {
			return 0, fmt.Errorf("%s is no integer that can be told exactly", v)
		}
		i, ok = int64(f), true
	}
	switch {
	case !ok:
		return 0, fmt.Errorf("it is %s, want a number or null", v.Type())
	case i < 0:
		return 0, fmt.Errorf("%d is negative, the first is 1", i)
	}
	return mapstate.TxID(i), nil
}

// split returns the texts of the elements of a JSON array of n, at most 3.
func split(b []byte, n int) (parts [3][]byte, err error) {
	d := jsontext.NewDecoder(bytes.NewBuffer(b))
	if kind := d.PeekKind(); kind != '[' && kind != 0 {
		return parts, fmt.Errorf("it is not an array, want one of %d elements", n)
	}
	if _, err := d.ReadToken(); err != nil {
		return parts, syntax(err)
	}
	got := 0
	for ; d.PeekKind() != ']'; got++ {
		text, err := d.ReadValue()
		if err != nil {
			return parts, syntax(err)
		}
		if got < n { // the text is the decoder's until its next call
			end := d.InputOffset()
			parts[got] = b[end-int64(len(text)) : end]
		}
	}
	if got != n {
		return parts, fmt.Errorf("it is an array of %d elements, want %d", got, n)
	}
	if _, err := d.ReadToken(); err != nil {
		return parts, syntax(err)
	}
	switch _, err := d.ReadToken(); {
	case err == nil:
		return parts, errors.New("something follows the array")
	case !errors.Is(err, io.EOF):
		return parts, syntax(err)
	}
	return parts, nil
}

// syntax returns an error of the tokenizer in plain words.
func syntax(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("the JSON is cut short")
	}
	return fmt.Errorf("not JSON: %s", strings.TrimPrefix(err.Error(), "jsontext: "))
}
