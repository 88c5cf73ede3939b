package mapstate

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Arithmetic over the two number types. It never rounds an integer silently,
// but where a float takes part in a sum.

func isNumber(v Value) bool { return v.typ == TypeInt || v.typ == TypeFloat }

// addNumbers returns a + b for the op of a name: an integer if both are, else a float.
func addNumbers(op string, a, b Value) (Value, error) {
	if a.typ == TypeInt && b.typ == TypeInt {
		x, y := int64(a.bits), int64(b.bits)
		sum := x + y
		if (sum > x) != (y > 0) {
			return Value{}, fmt.Errorf("%w: %s of %s and %s is beyond int64", ErrUpdaterOverflow, op, a, b)
		}
		return Int(sum), nil
	}
	x, _ := a.AsFloat()
	y, _ := b.AsFloat()
	if sum := x + y; isFinite(sum) {
		return Float(sum), nil
	}
	return Value{}, fmt.Errorf("%w: %s of %s and %s is beyond float64", ErrUpdaterOverflow, op, a, b)
}

// compareNumbers compares two numbers by value, exactly.
func compareNumbers(a, b Value) int {
	switch {
	case a.typ == TypeInt && b.typ == TypeInt:
		return cmp.Compare(int64(a.bits), int64(b.bits))
	case a.typ == TypeInt:
		return compareIntFloat(int64(a.bits), math.Float64frombits(b.bits))
	case b.typ == TypeInt:
		return -compareIntFloat(int64(b.bits), math.Float64frombits(a.bits))
	}
	return cmp.Compare(math.Float64frombits(a.bits), math.Float64frombits(b.bits))
}

// compareIntFloat compares without rounding i to a float: float64(1<<53+1) is 1<<53.
func compareIntFloat(i int64, f float64) int {
	switch {
	case f >= 1<<63:
		return -1
	case f < math.MinInt64:
		return 1
	}
	whole, frac := math.Modf(f)
	if c := cmp.Compare(i, int64(whole)); c != 0 {
		return c
	}
	return cmp.Compare(0, frac)
}

// parseNumber parses canonical text: with a fraction or an exponent it is a
// float, else an integer.
func parseNumber(text string) (Value, bool) {
	if strings.IndexByte(text, '.') >= 0 || strings.IndexByte(text, 'e') >= 0 {
		if f, err := strconv.ParseFloat(text, 64); err == nil {
			return Float(f), true
		}
	} else if i, err := strconv.ParseInt(text, 10, 64); err == nil {
		return Int(i), true
	}
	return Value{}, false
}
