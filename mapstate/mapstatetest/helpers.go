package mapstatetest

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"

	"tine/mapstate"
)

// Key returns the key of a tuple of scalars, each as Val takes it. It panics on
// what is no key.
func Key(elems ...any) mapstate.Key {
	return must(mapstate.NewKey(Vals(elems...)...))
}

// Keys returns the keys of one element each.
func Keys(elems ...any) []mapstate.Key {
	keys := make([]mapstate.Key, len(elems))
	for i, e := range elems {
		keys[i] = Key(e)
	}
	return keys
}

// Val returns a scalar as a value: nil (null), a bool, int, int64, float64 or
// string, or a Value as it is. It panics on any other type.
func Val(x any) mapstate.Value {
	switch x := x.(type) {
	case mapstate.Value:
		return x
	case nil:
		return mapstate.Null
	case bool:
		return mapstate.Bool(x)
	case int:
		return mapstate.Int(int64(x))
	case int64:
		return mapstate.Int(x)
	case float64:
		return mapstate.Float(x)
	case string:
		return mapstate.String(x)
	}
	panic(fmt.Sprintf("mapstatetest: no value for a %T", x))
}

// Vals returns each scalar as Val does.
func Vals(xs ...any) []mapstate.Value {
	values := make([]mapstate.Value, len(xs))
	for i, x := range xs {
		values[i] = Val(x)
	}
	return values
}

// Any returns values as Key takes them.
func Any(values []mapstate.Value) []any {
	xs := make([]any, len(values))
	for i, v := range values {
		xs[i] = v
	}
	return xs
}

// JSON returns the value of JSON text, which need not be canonical. It panics on
// anything else.
func JSON(text string) mapstate.Value {
	dec := json.NewDecoder(strings.NewReader(text))
	dec.UseNumber()
	v := must(decode(dec))
	if _, err := dec.Token(); err != io.EOF {
		panic("mapstatetest: not one JSON value: " + text)
	}
	return v
}

// Update returns the named operation bound to an argument as Val takes it. It
// panics on an unknown name.
func Update(op string, arg any) *mapstate.Updater {
	return &mapstate.Updater{Name: op, Op: must(mapstate.LookupOp(op)).Op, Arg: Val(arg)}
}

// Updates returns one Update of each argument.
func Updates(op string, args ...any) []mapstate.ValueUpdater {
	updaters := make([]mapstate.ValueUpdater, len(args))
	for i, arg := range args {
		updaters[i] = Update(op, arg)
	}
	return updaters
}

func must[T any](v T, err error) T {
	if err != nil {
		panic("mapstatetest: " + err.Error())
	}
	return v
}

func decode(dec *json.Decoder) (mapstate.Value, error) {
	token, err := dec.Token()
	if err != nil {
		return mapstate.Value{}, err
	}
	switch token := token.(type) {
	case json.Delim:
		return decodeList(dec, token)
	case json.Number:
		return decodeNumber(token.String())
	}
	return Val(token), nil
}

func decodeNumber(text string) (mapstate.Value, error) {
	if strings.ContainsAny(text, ".eE") {
		f, err := strconv.ParseFloat(text, 64)
		return mapstate.Float(f), err
	}
	i, err := strconv.ParseInt(text, 10, 64)
	return mapstate.Int(i), err
}

func decodeList(dec *json.Decoder, open json.Delim) (mapstate.Value, error) {
	text := []byte{byte(open)}
	for dec.More() {
		if len(text) > 1 {
			text = append(text, ',')
		}
		if open == '{' {
			name, err := dec.Token()
			if err != nil {
				return mapstate.Value{}, err
			}
			text = append(Val(name).AppendJSON(text), ':')
		}
		element, err := decode(dec)
		if err != nil {
			return mapstate.Value{}, err
		}
		text = element.AppendJSON(text)
	}
	end, err := dec.Token()
	if err != nil {
		return mapstate.Value{}, err
	}
	text = append(text, byte(end.(json.Delim)))
	if open == '{' {
		return mapstate.Object(string(text)), nil
	}
	return mapstate.Array(string(text)), nil
}
