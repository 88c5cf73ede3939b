package main

import (
	"encoding/json"
	"fmt"
	"strings"

	"tine/api"
	"tine/mapstate"
)

// keysText says how keys are written, for the help of the verbs that take them.
const keysText = `A KEY is a JSON array or scalar; anything else is a string: man, 42, '["eu","man"]'.
Write '"42"' for the string. Arguments that begin with a minus go after --.`

// parseKey returns the key that an argument stands for: JSON, else a string.
func parseKey(arg string) (mapstate.Key, error) {
	if !json.Valid([]byte(arg)) {
		if beginsAsJSON(arg) {
			return "", usageError{fmt.Errorf("key %s begins like JSON but is not JSON; the string is '%s'", arg, quoted(arg))}
		}
		arg = quoted(arg)
	}
	key, err := api.ParseKey([]byte(arg))
	if err != nil {
		return "", usageError{fmt.Errorf("key %s: %w", arg, err)}
	}
	return key, nil
}

// beginsAsJSON reports whether arg can be taken for the beginning of JSON, so that as
// a string it must be quoted.
func beginsAsJSON(arg string) bool { return arg != "" && strings.ContainsRune(`[{"`, rune(arg[0])) }

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

// parseValue returns the value that an argument stands for, which is JSON. An error
// calls the argument by its name.
func parseValue(name, arg string) (mapstate.Value, error) {
	v, err := api.ParseValue([]byte(arg))
	if err != nil {
		problem := strings.TrimPrefix(err.Error(), api.ErrBadRequest.Error()+": ") // there is no request yet
		return v, usageError{fmt.Errorf(`%s is %q: %s; want JSON, a string is '"text"'`, name, arg, problem)}
	}
	return v, nil
}

// parseValues is parseValue for each element of a JSON array.
func parseValues(name, arg string) ([]mapstate.Value, error) {
	var elements []json.RawMessage
	if err := json.Unmarshal([]byte(arg), &elements); err != nil || elements == nil {
		return nil, usageError{fmt.Errorf("%s is %q, want a JSON array with an element for each key", name, arg)}
	}
	values := make([]mapstate.Value, len(elements))
	for i, e := range elements {
		var err error
		if values[i], err = parseValue(fmt.Sprintf("%s, element %d,", name, i), string(e)); err != nil {
			return nil, err
		}
	}
	return values, nil
}
