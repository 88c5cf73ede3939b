package api

import (
	"bytes"
	"fmt"
	"math"

	"tine/mapstate"

	"github.com/go-json-experiment/json/jsontext"
)

// draft is a value whose text, if it has one, still lies in the text arena.
type draft struct {
	value      mapstate.Value // with empty text
	start, end int
}

// in returns the value, given what has become of the arena.
func (f draft) in(arena string) mapstate.Value {
	switch f.value.Type() {
	case mapstate.TypeString:
		return mapstate.String(arena[f.start:f.end])
	case mapstate.TypeArray:
		return mapstate.Array(arena[f.start:f.end])
	case mapstate.TypeObject:
		return mapstate.Object(arena[f.start:f.end])
	}
	return f.value
}

// value reads one JSON value, in canonical form.
func (d *decoder) value() (draft, error) {
	start := len(d.textArena)
	switch kind := d.json.PeekKind(); kind {
	case '[', '{':
		if err := d.composite(); err != nil {
			return draft{}, err
		}
		v := mapstate.Array("")
		if kind == '{' {
			v = mapstate.Object("")
		}
		return draft{v, start, len(d.textArena)}, nil
	case '"':
		raw, err := d.json.ReadValue()
		if err != nil {
			return draft{}, d.syntax(err)
		}
		text, err := d.text(raw)
		if err != nil {
			return draft{}, fmt.Errorf("%w: %w", mapstate.ErrInvalidValue, err)
		}
		d.textArena = append(d.textArena, text...)
		return draft{mapstate.String(""), start, len(d.textArena)}, nil
	case '0':
		v, err := d.number()
		return draft{value: v}, err
	case 'n', 't', 'f':
		if _, err := d.json.ReadToken(); err != nil {
			return draft{}, d.syntax(err)
		}
		if kind == 'n' {
			return draft{value: mapstate.Null}, nil
		}
		return draft{value: mapstate.Bool(kind == 't')}, nil
	}
	return draft{}, d.wrongKind("a value")
}

func (d *decoder) number() (mapstate.Value, error) {
	raw, err := d.json.ReadValue()
	if err != nil {
		return mapstate.Value{}, d.syntax(err)
	}
	v, err := parseNumber(raw)
	if err != nil {
		return mapstate.Value{}, fmt.Errorf("%w: %w", mapstate.ErrInvalidValue, err)
	}
	return v, nil
}

// composite appends the canonical text of an array or object to the text arena.
// It goes token by token, without recursion, and stops at the depth limit.
func (d *decoder) composite() error {
	outside := d.json.StackDepth()
	for {
		kind := d.json.PeekKind()
		if kind != ']' && kind != '}' && d.json.StackDepth() > outside {
			d.separate()
		}
		switch kind {
		case '[', '{':
			if d.json.StackDepth()-outside == mapstate.MaxValueDepth {
				limit := &mapstate.LimitError{What: "depth", Got: -1, Limit: mapstate.MaxValueDepth}
				return fmt.Errorf("%w: %w", mapstate.ErrInvalidValue, limit)
			}
			if err := d.punctuation(kind); err != nil {
				return err
			}
		case ']', '}':
			if err := d.punctuation(kind); err != nil {
				return err
			}
			if d.json.StackDepth() == outside {
				return nil
			}
		default:
			if err := d.scalar(kind); err != nil {
				return err
			}
		}
	}
}

func (d *decoder) punctuation(kind jsontext.Kind) error {
	if _, err := d.json.ReadToken(); err != nil {
		return d.syntax(err)
	}
	d.textArena = append(d.textArena, byte(kind))
	return nil
}

// separate appends what stands before the next name or value of an array or object.
func (d *decoder) separate() {
	switch kind, n := d.json.StackIndex(d.json.StackDepth()); {
	case n == 0:
	case kind == '{' && n%2 == 1:
		d.textArena = append(d.textArena, ':')
	default:
		d.textArena = append(d.textArena, ',')
	}
}

// scalar appends the canonical text of a scalar, or of a member's name.
func (d *decoder) scalar(kind jsontext.Kind) error {
	switch kind {
	case '"':
		raw, err := d.json.ReadValue()
		if err != nil {
			return d.syntax(err)
		}
		text, err := d.text(raw)
		if err != nil {
			return fmt.Errorf("%w: %w", mapstate.ErrInvalidValue, err)
		}
		if len(text) == len(raw)-2 { // no escapes
			d.textArena = append(d.textArena, raw...)
			return nil
		}
		d.textArena = mapstate.AppendQuoted(d.textArena, string(text))
		return nil
	case '0':
		v, err := d.number()
		if err != nil {
			return err
		}
		d.textArena = v.AppendJSON(d.textArena)
		return nil
	}
	raw, err := d.json.ReadValue()
	if err != nil {
		return d.syntax(err)
	}
	d.textArena = append(d.textArena, raw...)
	return nil
}

// valuesOf returns the values of drafts.
func valuesOf(drafts []draft, arena string) []mapstate.Value {
	values := make([]mapstate.Value, len(drafts))
	for i, f := range drafts {
		values[i] = f.in(arena)
	}
	return values
}

// ParseValue returns the value that a JSON text stands for, under the rules of request
// bodies: numbers are never rounded into range, and limits are held.
func ParseValue(text []byte) (mapstate.Value, error) {
	var d decoder
	d.reset(bytes.NewBuffer(text), math.MaxInt)
	f, err := d.value()
	if err != nil {
		return mapstate.Value{}, err
	}
	if err := d.end(); err != nil {
		return mapstate.Value{}, err
	}
	v := f.in(string(d.textArena))
	return v, v.CheckSize()
}
