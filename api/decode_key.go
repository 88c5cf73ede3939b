package api

import (
	"bytes"
	"fmt"
	"math"

	"tine/mapstate"
)

// key reads one key, an array of scalars or a bare scalar, into the arena.
func (d *decoder) key() error {
	start := len(d.keyArena)
	if d.json.PeekKind() != '[' {
		if err := d.keyElement(); err != nil {
			return err
		}
		return d.endKey(start)
	}
	if _, err := d.json.ReadToken(); err != nil {
		return d.syntax(err)
	}
	n := 0
	for ; d.json.PeekKind() != ']'; n++ {
		if n == mapstate.MaxKeyElements {
			return fmt.Errorf("%w: more than %d elements", mapstate.ErrInvalidKey, mapstate.MaxKeyElements)
		}
		if err := d.keyElement(); err != nil {
			return err
		}
	}
	if _, err := d.json.ReadToken(); err != nil {
		return d.syntax(err)
	}
	if n == 0 {
		return fmt.Errorf("%w: no elements, want 1 to %d", mapstate.ErrInvalidKey, mapstate.MaxKeyElements)
	}
	return d.endKey(start)
}

func (d *decoder) endKey(start int) error {
	if n := len(d.keyArena) - start; n > mapstate.MaxKeyBytes {
		limit := &mapstate.LimitError{What: "encoded key (in bytes)", Got: int64(n), Limit: mapstate.MaxKeyBytes}
		return fmt.Errorf("%w: %w", mapstate.ErrInvalidKey, limit)
	}
	d.keyEnds = append(d.keyEnds, len(d.keyArena))
	return nil
}

func (d *decoder) keyElement() (err error) {
	switch kind := d.json.PeekKind(); kind {
	case '"':
		raw, err := d.json.ReadValue()
		if err != nil {
			return d.syntax(err)
		}
		text, err := d.text(raw)
		if err != nil {
			return fmt.Errorf("%w: %w", mapstate.ErrInvalidKey, err)
		}
		d.keyArena = mapstate.AppendKeyString(d.keyArena, text)
		return nil
	case '0':
		raw, err := d.json.ReadValue()
		if err != nil {
			return d.syntax(err)
		}
		d.keyArena, err = appendKeyNumber(d.keyArena, raw)
		return err
	case 'n', 't', 'f':
		if _, err := d.json.ReadToken(); err != nil {
			return d.syntax(err)
		}
		scalar := mapstate.Null
		if kind != 'n' {
			scalar = mapstate.Bool(kind == 't')
		}
		d.keyArena, err = mapstate.AppendKeyElement(d.keyArena, scalar)
		return err
	case '[', '{':
		return fmt.Errorf("%w: an element is a string, number, boolean or null, not %s", mapstate.ErrInvalidKey, kindName(kind))
	}
	return d.wrongKind("a key")
}

// keys returns the keys that were read. They share one string.
func (d *decoder) keys() []mapstate.Key {
	arena := mapstate.Key(d.keyArena)
	keys := make([]mapstate.Key, len(d.keyEnds))
	start := 0
	for i, end := range d.keyEnds {
		keys[i] = arena[start:end]
		start = end
	}
	return keys
}

// ParseKey returns the key that a JSON text stands for, an array of scalars or one
// scalar, by the rules of a request.
func ParseKey(text []byte) (mapstate.Key, error) {
	var d decoder
	d.reset(bytes.NewBuffer(text), math.MaxInt)
	if err := d.key(); err != nil {
		return "", err
	}
	if err := d.end(); err != nil {
		return "", err
	}
	return d.keys()[0], nil
}
