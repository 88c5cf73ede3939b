package api

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strconv"

	"tine/mapstate"
)

// longLiteral is the length of a number literal from which strconv, which caps
// exponents, is given a normalised one.
const longLiteral = 400

// parseNumber returns the value of a JSON number literal: an integer literal is
// an int, any other a float. A literal that its type cannot hold is an error.
func parseNumber(lit []byte) (mapstate.Value, error) {
	if isInteger(lit) {
		i, err := strconv.ParseInt(string(lit), 10, 64)
		if err != nil {
			return mapstate.Value{}, fmt.Errorf("integer %s is outside int64", excerpt(lit))
		}
		return mapstate.Int(i), nil
	}
	f, err := parseFloat(lit)
	if err != nil {
		return mapstate.Value{}, err
	}
	return mapstate.Float(f), nil
}

// appendKeyNumber appends the key element of a JSON number literal. Literals of
// one number give one element: a fraction or exponent that comes to an integer
// within int64 is that integer, exactly.
func appendKeyNumber(dst, lit []byte) ([]byte, error) {
	v, err := parseNumber(lit)
	if err != nil {
		return dst, fmt.Errorf("%w: %w", mapstate.ErrInvalidKey, err)
	}
	if i, ok := v.AsInt(); ok {
		return mapstate.AppendKeyInt(dst, i), nil
	}
	// Below 2^53 the float of an integer is that integer.
	if f, _ := v.AsFloat(); math.Abs(f) >= 1<<53 && math.Abs(f) <= 1<<63 {
		if i, ok := parseDecimal(lit).int64(); ok {
			return mapstate.AppendKeyInt(dst, i), nil
		}
	}
	return mapstate.AppendKeyElement(dst, v)
}

func isInteger(lit []byte) bool {
	return bytes.IndexByte(lit, '.') < 0 && bytes.IndexByte(lit, 'e') < 0 && bytes.IndexByte(lit, 'E') < 0
}

// parseFloat returns the float64 nearest to a literal. One beyond the largest
// float64, or below the smallest and not zero, is an error.
func parseFloat(lit []byte) (float64, error) {
	text := string(lit)
	if len(lit) >= longLiteral {
		text = parseDecimal(lit).String()
	}
	f, err := strconv.ParseFloat(text, 64)
	switch {
	case errors.Is(err, strconv.ErrRange):
		return 0, fmt.Errorf("number %s is beyond float64", excerpt(lit))
	case err != nil:
		return 0, err
	case f == 0 && len(parseDecimal(lit).digits) > 0:
		return 0, fmt.Errorf("number %s is too small for float64", excerpt(lit))
	}
	return f, nil
}

// decimal is the number ±0.digits × 10^point. Its digits neither begin nor end with 0.
type decimal struct {
	negative bool
	digits   []byte
	point    int
}

// parseDecimal takes a JSON number literal apart, in time linear in its length.
func parseDecimal(lit []byte) decimal {
	var d decimal
	if lit[0] == '-' {
		d.negative, lit = true, lit[1:]
	}
	mantissa, exponent := lit, 0
	if e := bytes.IndexAny(lit, "eE"); e >= 0 {
		mantissa, exponent = lit[:e], parseExponent(lit[e+1:])
	}
	whole, fraction, _ := bytes.Cut(mantissa, []byte("."))
	digits := append(bytes.Clone(whole), fraction...)
	significant := bytes.TrimLeft(digits, "0")
	d.point = len(whole) - (len(digits) - len(significant)) + exponent
	d.digits = bytes.TrimRight(significant, "0")
	return d
}

// parseExponent saturates far beyond any exponent that a mantissa can make up for.
func parseExponent(text []byte) int {
	const saturated = math.MaxInt >> 1
	e, err := strconv.Atoi(string(text))
	if err != nil || e > saturated || e < -saturated {
		if text[0] == '-' {
			return -saturated
		}
		return saturated
	}
	return e
}

// int64 returns the decimal as an integer, if it is one within int64.
func (d decimal) int64() (int64, bool) {
	const mostDigits = 19
	if d.point < len(d.digits) || d.point > mostDigits {
		return 0, false
	}
	text := append(make([]byte, 0, mostDigits+1), '-')
	text = append(text, d.digits...)
	text = append(text, bytes.Repeat([]byte("0"), d.point-len(d.digits))...)
	if !d.negative {
		text = text[1:]
	}
	i, err := strconv.ParseInt(string(text), 10, 64)
	return i, err == nil
}

// String returns a literal of the same number with a small exponent, if it is
// anywhere near the range of float64.
func (d decimal) String() string {
	const far = 2000 // strconv takes exponents below 10000 exactly
	text := append(make([]byte, 0, len(d.digits)+16), "-0."...)
	text = append(text, d.digits...)
	if len(d.digits) == 0 {
		text = append(text, '0')
	}
	text = append(text, 'e')
	text = strconv.AppendInt(text, int64(max(-far, min(far, d.point))), 10)
	if !d.negative {
		text = text[1:]
	}
	return string(text)
}
