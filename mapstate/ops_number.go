package mapstate

import (
	"fmt"
	"strings"
)

// opCount adds integers; no argument is 1.
func opCount(stored, arg Value) (Value, error) {
	if arg.IsNone() {
		arg = Int(1)
	}
	if arg.typ != TypeInt {
		return Value{}, argError("count", "an integer", arg)
	}
	if isUnset(stored) {
		return arg, nil
	}
	if stored.typ != TypeInt {
		return Value{}, storedError("count", "an integer", stored)
	}
	return addNumbers("count", stored, arg)
}

// opSum adds numbers: integers exactly, a float makes a float.
func opSum(stored, arg Value) (Value, error) {
	if !isNumber(arg) {
		return Value{}, argError("sum", "a number", arg)
	}
	if isUnset(stored) {
		return arg, nil
	}
	if !isNumber(stored) {
		return Value{}, storedError("sum", "a number", stored)
	}
	return addNumbers("sum", stored, arg)
}

// opMin keeps the smaller value, the stored one of two equals.
func opMin(stored, arg Value) (Value, error) { return pick("min", -1, stored, arg) }

// opMax keeps the larger value, the stored one of two equals.
func opMax(stored, arg Value) (Value, error) { return pick("max", 1, stored, arg) }

// pick returns the argument where it compares to the stored value as want says,
// or nothing is stored, else the stored value.
func pick(op string, want int, stored, arg Value) (Value, error) {
	var c int
	switch {
	case !isNumber(arg) && arg.typ != TypeString:
		return Value{}, argError(op, "a number or a string", arg)
	case isUnset(stored):
		return arg, nil
	case isNumber(arg) && isNumber(stored):
		c = compareNumbers(arg, stored)
	case arg.typ == TypeString && stored.typ == TypeString:
		c = strings.Compare(arg.text, stored.text)
	default:
		return Value{}, fmt.Errorf("%w: %s wants two numbers or two strings, the stored value is %s and the argument %s",
			ErrUpdaterType, op, withArticle(stored.typ), withArticle(arg.typ))
	}
	if c == want {
		return arg, nil
	}
	return stored, nil
}

// opAvg keeps the sum and the count of the numbers it got.
func opAvg(stored, arg Value) (Value, error) {
	if !isNumber(arg) {
		return Value{}, argError("avg", "a number", arg)
	}
	if isUnset(stored) {
		return average(arg, Int(1)), nil
	}
	if stored.typ != TypeObject {
		return Value{}, storedError("avg", avgWants, stored)
	}
	sum, count, err := parseAverage(stored)
	if err != nil {
		return Value{}, err
	}
	if sum, err = addNumbers("avg", sum, arg); err != nil {
		return Value{}, err
	}
	if count, err = addNumbers("avg", count, Int(1)); err != nil {
		return Value{}, err
	}
	return average(sum, count), nil
}

const avgWants = `an object of a number "sum" and an integer "count"`

func average(sum, count Value) Value {
	var buf [80]byte
	text := append(buf[:0], `{"sum":`...)
	text = sum.AppendJSON(text)
	text = append(text, `,"count":`...)
	text = count.AppendJSON(text)
	return Object(string(append(text, '}')))
}

// parseAverage reads the two members of what opAvg keeps, in any order.
func parseAverage(stored Value) (sum, count Value, err error) {
	var buf [2]member
	members, ok := appendMembers(buf[:0], stored.text)
	if !ok {
		return Value{}, Value{}, corruptError("avg", stored)
	}
	for _, m := range members {
		v, _ := parseNumber(m.value)
		switch m.name {
		case `"sum"`:
			sum = v
		case `"count"`:
			count = v
		}
	}
	if len(members) != 2 || !isNumber(sum) || count.typ != TypeInt {
		return Value{}, Value{}, storedError("avg", avgWants+" and nothing else", stored)
	}
	return sum, count, nil
}
