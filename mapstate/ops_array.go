package mapstate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// opAppend puts the argument at the end of an array. It does not look inside the
// stored array: the text of a longer one is that of the shorter with the new
// element before its end.
func opAppend(stored, arg Value) (Value, error) {
	if arg.IsNone() {
		return Value{}, argError("append", "a value", arg)
	}
	if depth := arg.depth() + 1; depth > MaxValueDepth {
		return Value{}, fmt.Errorf("append: %w", &LimitError{What: "depth of the value", Got: int64(depth), Limit: MaxValueDepth})
	}
	if isUnset(stored) {
		return sized("append", Array("["+arg.String()+"]"))
	}
	if stored.typ != TypeArray {
		return Value{}, storedError("append", "an array", stored)
	}
	head, ok := strings.CutSuffix(stored.text, "]")
	if !ok || !strings.HasPrefix(head, "[") {
		return Value{}, corruptError("append", stored)
	}
	comma := ","
	if head == "[" {
		comma = ""
	}
	return sized("append", Array(head+comma+arg.String()+"]"))
}

// opUnion keeps a set of scalars as an array, sorted and distinct as keys are. Of
// two equals it keeps the one that came first.
func opUnion(stored, arg Value) (Value, error) {
	const want = "an array"
	if arg.typ != TypeArray {
		return Value{}, argError("union", want, arg)
	}
	var set []Value
	var err error
	if !isUnset(stored) {
		if stored.typ != TypeArray {
			return Value{}, storedError("union", want, stored)
		}
		if set, err = appendScalars(set, "stored value", stored.text); err != nil {
			return Value{}, err
		}
	}
	if set, err = appendScalars(set, "argument", arg.text); err != nil {
		return Value{}, err
	}
	slices.SortStableFunc(set, compareScalars)
	set = slices.CompactFunc(set, func(a, b Value) bool { return compareScalars(a, b) == 0 })

	text := make([]byte, 0, len(stored.text)+len(arg.text))
	text = append(text, '[')
	for i, v := range set {
		if i > 0 {
			text = append(text, ',')
		}
		text = v.AppendJSON(text)
	}
	return sized("union", Array(string(append(text, ']'))))
}

// appendScalars appends the elements of an array's text to dst. what names the array.
func appendScalars(dst []Value, what, text string) ([]Value, error) {
	dst = slices.Grow(dst, strings.Count(text, ",")+1)
	s := scanner{text: text}
	for more := s.open('[', ']'); more; more = s.next(']') {
		raw := s.value(MaxValueDepth - 1)
		v, ok := parseScalar(raw)
		if !ok && (strings.HasPrefix(raw, "[") || strings.HasPrefix(raw, "{")) {
			return nil, fmt.Errorf("%w: union wants strings, numbers, booleans and nulls, the %s has the element %.40s",
				ErrUpdaterType, what, raw)
		}
		if !ok {
			s.bad = true
		}
		dst = append(dst, v)
	}
	if !s.end() {
		return nil, fmt.Errorf("%w: union: the %s is not canonical JSON", ErrCorrupt, what)
	}
	return dst, nil
}

// compareScalars orders values as key elements are: null, false, true, numbers
// by value, strings by bytes.
func compareScalars(a, b Value) int {
	switch {
	case isNumber(a) && isNumber(b):
		return compareNumbers(a, b)
	case a.typ != b.typ:
		return cmp.Compare(a.typ, b.typ) // the types are declared in this order
	case a.typ == TypeString:
		return strings.Compare(a.text, b.text)
	}
	return cmp.Compare(a.bits, b.bits)
}
