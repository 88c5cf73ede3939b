package mapstate

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
	"unicode/utf8"
)

// Limits of a value.
const (
	MaxValueBytes = 1 << 20 // in stored form, see AppendValue
	MaxValueDepth = 100     // levels of arrays and objects
)

// Type is the JSON type of a Value, with integers apart from other numbers.
type Type uint8

// The types of values. TypeNone is that of the zero Value: there is no value,
// which is not the same as a stored null.
const (
	TypeNone Type = iota
	TypeNull
	TypeBool
	TypeInt
	TypeFloat
	TypeString
	TypeArray
	TypeObject
)

var typeNames = [...]string{"nothing", "null", "boolean", "integer", "float", "string", "array", "object"}

func (t Type) String() string {
	if int(t) < len(typeNames) {
		return typeNames[t]
	}
	return "unknown"
}

// Value is one JSON value, held without boxing. Integers are int64 and stay
// integers; other numbers are finite float64. Arrays and objects are held as
// canonical JSON text: no white space, numbers and strings as AppendJSON prints
// them, members in the order they came and each once. Values are immutable; two
// with the same JSON text and type are ==.
//
// The zero Value is no value at all.
type Value struct {
	typ  Type
	bits uint64
	text string
}

// Null is the JSON null.
var Null = Value{typ: TypeNull}

// Bool returns a boolean value.
func Bool(b bool) Value {
	v := Value{typ: TypeBool}
	if b {
		v.bits = 1
	}
	return v
}

// Int returns an integer value.
func Int(i int64) Value { return Value{typ: TypeInt, bits: uint64(i)} }

// Float returns a float value; f must be finite.
func Float(f float64) Value { return Value{typ: TypeFloat, bits: math.Float64bits(f)} }

// String returns a string value; s must be UTF-8.
func String(s string) Value { return Value{typ: TypeString, text: s} }

// Array returns an array value from canonical JSON text, which it trusts.
func Array(text string) Value { return Value{typ: TypeArray, text: text} }

// Object returns an object value from canonical JSON text, which it trusts.
func Object(text string) Value { return Value{typ: TypeObject, text: text} }

// Type returns the type of the value.
func (v Value) Type() Type { return v.typ }

// IsNone reports whether there is no value.
func (v Value) IsNone() bool { return v.typ == TypeNone }

// AsBool returns a boolean's value.
func (v Value) AsBool() bool { return v.typ == TypeBool && v.bits != 0 }

// AsInt returns an integer's value.
func (v Value) AsInt() (int64, bool) {
	if v.typ != TypeInt {
		return 0, false
	}
	return int64(v.bits), true
}

// AsFloat returns a number's value, integers converted to the nearest float.
func (v Value) AsFloat() (float64, bool) {
	switch v.typ {
	case TypeInt:
		return float64(int64(v.bits)), true
	case TypeFloat:
		return math.Float64frombits(v.bits), true
	}
	return 0, false
}

// Text returns a string's value, or the JSON text of an array or object.
func (v Value) Text() string { return v.text }

// AppendJSON appends the value as compact JSON; no value prints as null. A float
// prints shortest, and always with a fraction or an exponent.
func (v Value) AppendJSON(dst []byte) []byte {
	switch v.typ {
	case TypeBool:
		return strconv.AppendBool(dst, v.bits != 0)
	case TypeInt:
		return strconv.AppendInt(dst, int64(v.bits), 10)
	case TypeFloat:
		return appendFloat(dst, math.Float64frombits(v.bits))
	case TypeString:
		return AppendQuoted(dst, v.text)
	case TypeArray, TypeObject:
		return append(dst, v.text...)
	}
	return append(dst, "null"...)
}

// String returns the value as JSON.
func (v Value) String() string { return string(v.AppendJSON(nil)) }

func appendFloat(dst []byte, f float64) []byte {
	start := len(dst)
	if abs := math.Abs(f); abs != 0 && (abs < 1e-6 || abs >= 1e21) {
		dst = strconv.AppendFloat(dst, f, 'e', -1, 64)
		if n := len(dst); dst[n-3] == '-' && dst[n-2] == '0' { // e-09 is e-9
			dst = append(dst[:n-2], dst[n-1])
		}
		return dst
	}
	dst = strconv.AppendFloat(dst, f, 'f', -1, 64)
	if bytes.IndexByte(dst[start:], '.') >= 0 {
		return dst
	}
	return append(dst, ".0"...)
}

// isFinite reports whether f is neither NaN nor an infinity.
func isFinite(f float64) bool { return f-f == 0 }

// AppendQuoted appends s, which must be UTF-8, as the shortest JSON string: only
// what must be escaped is, and in two characters where JSON has such an escape.
func AppendQuoted(dst []byte, s string) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	from := 0
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		dst = append(dst, s[from:i]...)
		from = i + 1
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\b':
			dst = append(dst, '\\', 'b')
		case '\f':
			dst = append(dst, '\\', 'f')
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\r':
			dst = append(dst, '\\', 'r')
		case '\t':
			dst = append(dst, '\\', 't')
		default:
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
	}
	dst = append(dst, s[from:]...)
	return append(dst, '"')
}

// AppendValue appends the stored form of a value: a type byte and its payload,
// integers as zigzag varints, floats as 8 bytes, text with its length before it.
// The form delimits itself. No value is stored as its type byte alone.
func AppendValue(dst []byte, v Value) []byte {
	dst = append(dst, byte(v.typ))
	switch v.typ {
	case TypeBool:
		return append(dst, byte(v.bits))
	case TypeInt:
		return binary.AppendVarint(dst, int64(v.bits))
	case TypeFloat:
		return binary.BigEndian.AppendUint64(dst, v.bits)
	case TypeString, TypeArray, TypeObject:
		dst = binary.AppendUvarint(dst, uint64(len(v.text)))
		return append(dst, v.text...)
	}
	return dst
}

// CheckSize returns a LimitError for a value larger than MaxValueBytes.
func (v Value) CheckSize() error {
	const head = 1 + binary.MaxVarintLen32 // at most, before the text
	if len(v.text) <= MaxValueBytes-head {
		return nil
	}
	var size [binary.MaxVarintLen64]byte
	n := 1 + binary.PutUvarint(size[:], uint64(len(v.text))) + len(v.text)
	if n > MaxValueBytes {
		return &LimitError{What: "value", Got: int64(n), Limit: MaxValueBytes}
	}
	return nil
}

// DecodeValue decodes the stored form at the start of b and returns what
// follows it. The value does not keep b.
func DecodeValue(b []byte) (Value, []byte, error) {
	if len(b) == 0 {
		return Value{}, nil, fmt.Errorf("%w: no value", ErrCorrupt)
	}
	v, b := Value{typ: Type(b[0])}, b[1:]
	switch v.typ {
	case TypeNone, TypeNull:
		return v, b, nil
	case TypeBool:
		if len(b) < 1 || b[0] > 1 {
			return Value{}, nil, fmt.Errorf("%w: bad boolean", ErrCorrupt)
		}
		v.bits = uint64(b[0])
		return v, b[1:], nil
	case TypeInt:
		i, n := binary.Varint(b)
		if n <= 0 {
			return Value{}, nil, fmt.Errorf("%w: bad integer", ErrCorrupt)
		}
		v.bits = uint64(i)
		return v, b[n:], nil
	case TypeFloat:
		if len(b) < 8 {
			return Value{}, nil, fmt.Errorf("%w: float cut short", ErrCorrupt)
		}
		v.bits = binary.BigEndian.Uint64(b)
		if f := math.Float64frombits(v.bits); !isFinite(f) {
			return Value{}, nil, fmt.Errorf("%w: float not finite", ErrCorrupt)
		}
		return v, b[8:], nil
	case TypeString, TypeArray, TypeObject:
		size, n := binary.Uvarint(b)
		if n <= 0 || size > uint64(len(b)-n) {
			return Value{}, nil, fmt.Errorf("%w: text cut short", ErrCorrupt)
		}
		v.text = string(b[n : n+int(size)])
		if !utf8.ValidString(v.text) {
			return Value{}, nil, fmt.Errorf("%w: text is not UTF-8", ErrCorrupt)
		}
		return v, b[n+int(size):], nil
	}
	return Value{}, nil, fmt.Errorf("%w: unknown type %d", ErrCorrupt, v.typ)
}
