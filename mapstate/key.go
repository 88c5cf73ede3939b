package mapstate

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"unicode/utf8"
)

// Limits of a key.
const (
	MaxKeyElements = 16
	MaxKeyBytes    = 4 << 10 // encoded
)

// Key is a tuple of 1 to 16 scalars in an encoding that is injective and whose
// byte order is the order of tuples: element by element, shorter first; null,
// then false, true, numbers by value, strings by bytes. Equal numbers encode
// equally, whatever their type: 1, 1.0 and 1e0 are one key, -0 is 0.
//
// Each element is a tag and its payload:
//
//	0x01                null
//	0x02, 0x03          false, true
//	0x04 f8 [r2]        number: the float64 at or below it, as 8 order-preserving
//	                    bytes; from 2^53 up in magnitude also the distance to it, 2 bytes
//	0x05 s... 0x00      string: its bytes, 0x00 written as 0x01 0x01, 0x01 as 0x01 0x02
//
// No encoded element is a prefix of another. So the keys that begin with the
// bytes of a tuple are those of the tuples that begin with it, and no others.
type Key string

// SnapshotKey is the key of a state's single value outside its map. No tuple
// encodes to it.
const SnapshotKey Key = ""

const (
	tagNull   = 0x01
	tagFalse  = 0x02
	tagTrue   = 0x03
	tagNumber = 0x04
	tagString = 0x05

	stringEnd    = 0x00 // nowhere else in an encoded string
	stringEscape = 0x01 // before a byte up to itself, which is written plus one

	// exactInt is the magnitude up to which float64 holds every integer.
	exactInt = 1 << 53
)

// NewKey encodes a tuple of scalars.
func NewKey(elems ...Value) (Key, error) {
	if len(elems) == 0 || len(elems) > MaxKeyElements {
		return "", fmt.Errorf("%w: %d elements, want 1 to %d", ErrInvalidKey, len(elems), MaxKeyElements)
	}
	var buf []byte
	for i, e := range elems {
		var err error
		if buf, err = AppendKeyElement(buf, e); err != nil {
			return "", fmt.Errorf("element %d: %w", i, err)
		}
	}
	if len(buf) > MaxKeyBytes {
		return "", keyTooLong(len(buf))
	}
	return Key(buf), nil
}

func keyTooLong(n int) error {
	return fmt.Errorf("%w: %w", ErrInvalidKey, &LimitError{What: "encoded key", Got: int64(n), Limit: MaxKeyBytes})
}

// AppendKeyElement appends the encoding of one scalar. It checks the element,
// not the tuple: the caller holds MaxKeyElements and MaxKeyBytes.
func AppendKeyElement(dst []byte, v Value) ([]byte, error) {
	switch v.typ {
	case TypeNull:
		return append(dst, tagNull), nil
	case TypeBool:
		if v.bits != 0 {
			return append(dst, tagTrue), nil
		}
		return append(dst, tagFalse), nil
	case TypeInt:
		return AppendKeyInt(dst, int64(v.bits)), nil
	case TypeFloat:
		f := math.Float64frombits(v.bits)
		if !isFinite(f) {
			return dst, fmt.Errorf("%w: a number is finite, not %v", ErrInvalidKey, f)
		}
		return appendKeyFloat(dst, f), nil
	case TypeString:
		if !utf8.ValidString(v.text) {
			return dst, fmt.Errorf("%w: string is not UTF-8", ErrInvalidKey)
		}
		return AppendKeyString(dst, v.text), nil
	}
	return dst, fmt.Errorf("%w: an element is a string, number, boolean or null, not %s", ErrInvalidKey, v.typ)
}

// AppendKeyInt appends the encoding of an integer element.
func AppendKeyInt(dst []byte, i int64) []byte {
	f := float64(i)
	if -exactInt < i && i < exactInt {
		return appendKeyNumber(dst, f, 0)
	}
	// Round down, so that the distance is never negative. float64(i) may be 2^63,
	// which int64 cannot hold.
	if f >= 1<<63 || int64(f) > i {
		f = math.Nextafter(f, math.Inf(-1))
	}
	return appendKeyNumber(dst, f, uint16(i-int64(f)))
}

// appendKeyFloat appends the encoding of a finite float element.
func appendKeyFloat(dst []byte, f float64) []byte {
	if f == 0 {
		f = 0 // -0 is 0
	}
	return appendKeyNumber(dst, f, 0)
}

func appendKeyNumber(dst []byte, floor float64, rest uint16) []byte {
	dst = append(dst, tagNumber)
	dst = binary.BigEndian.AppendUint64(dst, orderedBits(floor))
	if math.Abs(floor) >= exactInt {
		dst = binary.BigEndian.AppendUint16(dst, rest)
	}
	return dst
}

// orderedBits maps finite floats to integers of the same order.
func orderedBits(f float64) uint64 {
	b := math.Float64bits(f)
	if b>>63 != 0 {
		return ^b
	}
	return b | 1<<63
}

func fromOrderedBits(b uint64) float64 {
	if b>>63 != 0 {
		return math.Float64frombits(b &^ (1 << 63))
	}
	return math.Float64frombits(^b)
}

// AppendKeyString appends the encoding of a string element, which must be UTF-8.
func AppendKeyString[S string | []byte](dst []byte, s S) []byte {
	dst = append(dst, tagString)
	for i := 0; i < len(s); i++ {
		if c := s[i]; c > stringEscape {
			dst = append(dst, c)
		} else {
			dst = append(dst, stringEscape, c+1)
		}
	}
	return append(dst, stringEnd)
}

// ParseKey checks that b is the encoding of a tuple and returns it as a Key.
func ParseKey(b []byte) (Key, error) {
	if len(b) > MaxKeyBytes {
		return "", keyTooLong(len(b))
	}
	k := Key(b)
	elems, err := k.Elements()
	if err != nil {
		return "", err
	}
	// Only the canonical encoding is a key: one tuple, one key.
	if again, err := NewKey(elems...); err != nil || again != k {
		return "", fmt.Errorf("%w: encoding is not canonical", ErrInvalidKey)
	}
	return k, nil
}

// Elements decodes the tuple. A number that is an integer within int64 is an
// int, every other number a float.
func (k Key) Elements() ([]Value, error) {
	var elems []Value
	for rest := string(k); rest != ""; {
		v, n, err := decodeElement(rest)
		if err != nil {
			return nil, err
		}
		elems = append(elems, v)
		rest = rest[n:]
	}
	if len(elems) == 0 || len(elems) > MaxKeyElements {
		return nil, fmt.Errorf("%w: %d elements, want 1 to %d", ErrInvalidKey, len(elems), MaxKeyElements)
	}
	return elems, nil
}

// decodeElement decodes the first element of s and says how many bytes it took.
func decodeElement(s string) (Value, int, error) {
	switch s[0] {
	case tagNull:
		return Null, 1, nil
	case tagFalse:
		return Bool(false), 1, nil
	case tagTrue:
		return Bool(true), 1, nil
	case tagNumber:
		return decodeNumber(s)
	case tagString:
		return decodeString(s)
	}
	return Value{}, 0, fmt.Errorf("%w: unknown tag 0x%02x", ErrInvalidKey, s[0])
}

func decodeNumber(s string) (Value, int, error) {
	if len(s) < 9 {
		return Value{}, 0, fmt.Errorf("%w: number cut short", ErrInvalidKey)
	}
	floor := fromOrderedBits(binary.BigEndian.Uint64([]byte(s[1:9])))
	if !isFinite(floor) {
		return Value{}, 0, fmt.Errorf("%w: number not finite", ErrInvalidKey)
	}
	n, rest := 9, int64(0)
	if math.Abs(floor) >= exactInt {
		if len(s) < 11 {
			return Value{}, 0, fmt.Errorf("%w: number cut short", ErrInvalidKey)
		}
		n, rest = 11, int64(binary.BigEndian.Uint16([]byte(s[9:11])))
	}
	if floor == math.Trunc(floor) && floor >= math.MinInt64 && floor < 1<<63 {
		if i := int64(floor); rest <= math.MaxInt64-i || i < 0 {
			return Int(i + rest), n, nil
		}
	}
	if rest != 0 {
		return Value{}, 0, fmt.Errorf("%w: distance beyond int64", ErrInvalidKey)
	}
	return Float(floor), n, nil
}

func decodeString(s string) (Value, int, error) {
	end := strings.IndexByte(s, stringEnd)
	if end < 0 {
		return Value{}, 0, fmt.Errorf("%w: string without end", ErrInvalidKey)
	}
	text := s[1:end]
	if strings.IndexByte(text, stringEscape) >= 0 {
		var ok bool
		if text, ok = unescapeKeyString(text); !ok {
			return Value{}, 0, fmt.Errorf("%w: bad escape in string", ErrInvalidKey)
		}
	}
	if !utf8.ValidString(text) {
		return Value{}, 0, fmt.Errorf("%w: string is not UTF-8", ErrInvalidKey)
	}
	return String(text), end + 1, nil
}

func unescapeKeyString(s string) (string, bool) {
	text := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c == stringEscape {
			i++
			if i == len(s) || s[i] > stringEscape+1 {
				return "", false
			}
			c = s[i] - 1
		}
		text = append(text, c)
	}
	return string(text), true
}

// AppendJSON appends the tuple as a JSON array, up to where k is no key.
func (k Key) AppendJSON(dst []byte) []byte {
	dst = append(dst, '[')
	for rest := string(k); rest != ""; {
		if len(rest) < len(k) {
			dst = append(dst, ',')
		}
		v, n, err := decodeElement(rest)
		if err != nil {
			return append(dst, "invalid]"...)
		}
		dst = v.AppendJSON(dst)
		rest = rest[n:]
	}
	return append(dst, ']')
}

// String returns the tuple as a JSON array.
func (k Key) String() string { return string(k.AppendJSON(nil)) }

// PrefixEnd returns the smallest string above every string that begins with p:
// the end of a range scan over a prefix. It is "" where there is none.
func PrefixEnd(p Key) Key {
	for i := len(p) - 1; i >= 0; i-- {
		if p[i] < 0xFF {
			return p[:i] + Key([]byte{p[i] + 1})
		}
	}
	return ""
}
