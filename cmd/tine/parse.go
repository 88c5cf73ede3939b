package main

import (
	"encoding/json"
	"fmt"

	"tine/api"
	"tine/mapstate"
)

// keysText says how keys are written, for the help of the verbs that take them.
const keysText = `A KEY is a JSON array or scalar; anything else is a string: man, 42, '["eu","man"]'.
Write '"42"' for the string. Arguments that begin with a minus go after --.`

// parseKey returns the key that an argument stands for: JSON, else a string.
func parseKey(arg string) (mapstate.Key, error) {
	elements := []json.RawMessage{json.RawMessage(arg)}
	switch {
	case !json.Valid([]byte(arg)):
		return newKey(arg, mapstate.String(arg))
	case arg[0] == '[':
		if err := json.Unmarshal([]byte(arg), &elements); err != nil {
			return "", usageError{fmt.Errorf("key %s: %w", arg, err)}
		}
	}
	values := make([]mapstate.Value, len(elements))
	for i, e := range elements {
		var err error
		if values[i], err = api.ParseValue(e); err != nil {
			return "", usageError{fmt.Errorf("key %s: %w", arg, err)}
		}
	}
	return newKey(arg, values...)
}

func newKey(arg string, elements ...mapstate.Value) (mapstate.Key, error) {
	key, err := mapstate.NewKey(elements...)
	if err != nil {
		return "", usageError{fmt.Errorf("key %s: %w", arg, err)}
	}
	return key, nil
}

func parseKeys(args []string) ([]mapstate.Key, error) {
	keys := make([]mapstate.Key, len(args))
	for i, arg := range args {
		var err error
		if keys[i], err = parseKey(arg); err != nil {
			return nil, err
		}
	}
	return keys, nil
}

// parseValue returns the value that an argument stands for, which is JSON.
func parseValue(arg string) (mapstate.Value, error) {
	v, err := api.ParseValue([]byte(arg))
	if err != nil {
		return v, usageError{fmt.Errorf(`value %s: %w; a value is JSON, a string is '"text"'`, arg, err)}
	}
	return v, nil
}

// parseValues returns the values of a JSON array.
func parseValues(arg string) ([]mapstate.Value, error) {
	var elements []json.RawMessage
	if err := json.Unmarshal([]byte(arg), &elements); err != nil || elements == nil {
		return nil, usageError{fmt.Errorf("%s is not a JSON array", arg)}
	}
	values := make([]mapstate.Value, len(elements))
	for i, e := range elements {
		var err error
		if values[i], err = parseValue(string(e)); err != nil {
			return nil, err
		}
	}
	return values, nil
}
