package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"tine/api"
	"tine/mapstate"
	"tine/trident"
)

// dumped is one key of a dump.
type dumped struct {
	key        mapstate.Key
	txid       mapstate.TxID
	curr, prev mapstate.Value // no value: there is none
}

// dumpReader reads and checks a dump for a state.
type dumpReader struct {
	state   api.StateInfo
	maxSize int64
	codec   trident.Codec
	lines   map[mapstate.Key]int // where each key is
	// What all records so far could be of, should they not be values; see fits.
	couldBe []string
}

func newDumpReader(state api.StateInfo, f importFlags) *dumpReader {
	d := &dumpReader{state: state, maxSize: f.maxSize, codec: codecOf(state.Kind), lines: make(map[mapstate.Key]int)}
	if state.Kind == "nontx" && f.kindCheck {
		d.couldBe = []string{"transactional", "opaque"}
	}
	return d
}

// codecOf returns the codec of the kind of a name.
func codecOf(kind string) trident.Codec {
	replays := mapstate.ReplayApplies
	switch kind {
	case "transactional":
		replays = mapstate.ReplaySkips
	case "opaque":
		replays = mapstate.ReplayRestarts
	}
	return trident.NewCodec(replays, parseStored)
}

// parseStored is api.ParseValue, whose errors tell of no request.
func parseStored(text []byte) (mapstate.Value, error) {
	v, err := api.ParseValue(text)
	if err != nil {
		return v, errors.New(strings.TrimPrefix(err.Error(), api.ErrBadRequest.Error()+": "))
	}
	return v, nil
}

// shapeOf shows what the records of a kind look like.
func shapeOf(kind string) string {
	switch kind {
	case "transactional":
		return "[txid,value]"
	case "opaque":
		return "[txid,value,previous value]"
	}
	return "plain values"
}

// read returns all of a dump.
func (d *dumpReader) read(in io.Reader) ([]dumped, error) {
	lines := bufio.NewReaderSize(io.LimitReader(in, d.maxSize+1), 1<<16)
	var entries []dumped
	left := d.maxSize
	for n := 1; ; n++ {
		line, err := lines.ReadBytes('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		last := err != nil
		if left -= int64(len(line)); left < 0 {
			return nil, fmt.Errorf("%w; --max-size sets it", &mapstate.LimitError{What: "file (in bytes)", Got: -1, Limit: d.maxSize})
		}
		if line = bytes.TrimRight(line, "\r\n"); len(line) > 0 {
			e, err := d.entry(n, line)
			if err != nil {
				return nil, atLine(n, err)
			}
			entries = append(entries, e)
		}
		if last {
			return entries, nil
		}
	}
}

// atLine says where an error is.
func atLine(n int, err error) error {
	at := fmt.Errorf("line %d: %w", n, err)
	if _, ok := errors.AsType[usageError](err); ok {
		return usageError{at}
	}
	return at
}

// entry returns what line n stands for.
func (d *dumpReader) entry(n int, line []byte) (dumped, error) {
	key, stored, err := splitLine(line)
	if err != nil {
		return dumped{}, err
	}
	if first, twice := d.lines[key]; twice {
		return dumped{}, fmt.Errorf("key %s is in line %d already", key, first)
	}
	d.lines[key] = n
	r, err := d.codec.DecodeRecord(stored)
	if err != nil {
		return dumped{}, fmt.Errorf("key %s: %w", key, d.misfit(stored, err))
	}
	still := d.couldBe[:0]
	for _, kind := range d.couldBe {
		if _, err := codecOf(kind).DecodeRecord(stored); err == nil {
			still = append(still, kind)
		}
	}
	d.couldBe = still
	return dumped{key: key, txid: r.TxID, curr: r.Curr, prev: r.Prev}, nil
}

// misfit returns what is wrong with a record that the state's kind does not take: it is of
// another kind, or damaged.
func (d *dumpReader) misfit(stored []byte, damage error) error {
	for _, kind := range []string{"transactional", "opaque", "nontx"} {
		isArray := bytes.HasPrefix(bytes.TrimLeft(stored, " \t\r\n"), []byte("["))
		if isArray == (kind == "nontx") {
			continue
		}
		if _, err := codecOf(kind).DecodeRecord(stored); err == nil {
			return d.wrongKind("it", kind)
		}
	}
	return damage
}

// wrongKind says that records are of another kind than the state.
func (d *dumpReader) wrongKind(what, kind string) error {
	return usageError{fmt.Errorf("%s fits a state of kind %s, with records like %s; state %s is %s, with %s",
		what, kind, shapeOf(kind), d.state.Name, d.state.Kind, shapeOf(d.state.Kind))}
}

// fits returns an error if n entries, all that there are, look like records of another
// kind. They may well be values of a nontx state, but are hardly all of them.
func (d *dumpReader) fits(n int) error {
	if n == 0 || len(d.couldBe) == 0 {
		return nil
	}
	return usageError{fmt.Errorf("%w; if they are values, import them with --kind-check=false", d.wrongKind("each record", d.couldBe[0]))}
}

// splitLine returns the key of a line and its stored JSON.
func splitLine(line []byte) (mapstate.Key, []byte, error) {
	text, stored, hasTab := bytes.Cut(line, []byte("\t"))
	if line[0] == '{' && (!hasTab || jsontext.Value(line).IsValid()) {
		return splitObject(line)
	}
	switch {
	case !hasTab:
		return "", nil, errors.New(`no TAB between key and stored JSON; want that, or {"key","value"}`)
	case !utf8.Valid(text):
		return "", nil, fmt.Errorf("key %q is not UTF-8", text)
	case len(bytes.TrimSpace(stored)) == 0:
		return "", nil, fmt.Errorf("key %q has no stored JSON: it was not there, or is no string", text)
	}
	key, err := mapstate.NewKey(mapstate.String(string(text)))
	return key, stored, err
}

func splitObject(line []byte) (mapstate.Key, []byte, error) {
	var members struct {
		Key   jsontext.Value `json:"key"`
		Value jsontext.Value `json:"value"`
	}
	if err := jsonv2.Unmarshal(line, &members, jsonv2.RejectUnknownMembers(true)); err != nil {
		return "", nil, fmt.Errorf(`%w; want {"key","value"}`, recordedError(err))
	}
	if members.Key == nil || members.Value == nil {
		return "", nil, errors.New(`"key" or "value" is missing; want {"key","value"}`)
	}
	key, err := api.ParseKey(members.Key)
	if err != nil {
		return "", nil, fmt.Errorf("key %s: %w", members.Key, err)
	}
	if members.Value.Kind() != '"' {
		return key, members.Value, nil
	}
	stored, err := jsontext.AppendUnquote(nil, members.Value)
	return key, stored, err
}
