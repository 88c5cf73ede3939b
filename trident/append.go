package trident

import (
	"bytes"
	"math"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"tine/mapstate"
)

// appendValue appends a value as json-smart writes it, no value as null.
func appendValue(dst []byte, v mapstate.Value) []byte {
	switch v.Type() {
	case mapstate.TypeFloat:
		f, _ := v.AsFloat()
		return appendDouble(dst, f)
	case mapstate.TypeString:
		return appendString(dst, v.Text())
	case mapstate.TypeArray, mapstate.TypeObject:
		return appendComposite(dst, v.Text())
	}
	return v.AppendJSON(dst)
}

// appendComposite appends an array or object, which is canonical JSON text. Only its
// strings and its floats are written another way.
func appendComposite(dst []byte, text string) []byte {
	var plain []byte
	for i := 0; i < len(text); {
		end := i + 1
		switch c := text[i]; {
		case c == '"':
			end = stringEnd(text, i)
			if quoted := text[i:end]; strings.IndexByte(quoted, '\\') < 0 {
				dst = appendString(dst, quoted[1:len(quoted)-1])
			} else {
				plain, _ = jsontext.AppendUnquote(plain[:0], quoted) // canonical text has no error
				dst = appendString(dst, plain)
			}
		case c == '-' || '0' <= c && c <= '9':
			end = i + numberLen(text[i:])
			dst = appendNumber(dst, text[i:end])
		default:
			dst = append(dst, c)
		}
		i = end
	}
	return dst
}

// stringEnd returns where the JSON string that starts at i ends.
func stringEnd(text string, i int) int {
	for i++; text[i] != '"'; i++ {
		if text[i] == '\\' {
			i++
		}
	}
	return i + 1
}

// numberLen returns the length of the number that text begins with.
func numberLen(text string) int {
	n := strings.IndexAny(text, ",]}")
	if n < 0 {
		return len(text)
	}
	return n
}

// appendNumber appends a canonical number, which is a float where it has a fraction or an
// exponent.
func appendNumber(dst []byte, text string) []byte {
	if strings.ContainsAny(text, ".e") {
		f, _ := strconv.ParseFloat(text, 64) // canonical text has no error
		return appendDouble(dst, f)
	}
	return append(dst, text...)
}

// appendDouble appends a finite double as Double.toString of Java 19 and later does: the
// fewest digits that tell it apart, but at least one on either side of the point;
// with an exponent outside [10^-3, 10^7).
func appendDouble(dst []byte, f float64) []byte {
	if abs := math.Abs(f); f == 0 || 1e-3 <= abs && abs < 1e7 {
		start := len(dst)
		dst = strconv.AppendFloat(dst, f, 'f', -1, 64)
		if bytes.IndexByte(dst[start:], '.') < 0 {
			dst = append(dst, ".0"...)
		}
		return dst
	}
	var buf [32]byte
	mantissa, exponent, _ := bytes.Cut(strconv.AppendFloat(buf[:0], f, 'e', -1, 64), []byte("e"))
	if bytes.IndexByte(mantissa, '.') < 0 {
		// As there are two digits in any case, they are the two nearest to f: 4.9E-324 where
		// one digit alone would be 5.
		mantissa, exponent, _ = bytes.Cut(strconv.AppendFloat(buf[:0], f, 'e', 1, 64), []byte("e"))
	}
	dst = append(append(dst, mantissa...), 'E')
	if exponent[0] == '-' {
		dst = append(dst, '-')
	}
	return append(dst, bytes.TrimLeft(exponent, "+-0")...)
}

// appendString appends a string as json-smart writes it in its style NO_COMPRESS.
func appendString[S string | []byte](dst []byte, s S) []byte {
	dst = append(dst, '"')
	from := 0
	for i := 0; i < len(s); i++ {
		c := s[i]
		if ' ' <= c && c < 0x7F && c != '"' && c != '\\' && c != '/' {
			continue
		}
		unit, size := rune(c), 1
		if c >= 0x80 {
			if unit, size = escapedRune(s, i); size == 0 {
				continue
			}
		}
		dst = appendEscape(append(dst, s[from:i]...), unit)
		i += size - 1
		from = i + 1
	}
	return append(append(dst, s[from:]...), '"')
}

// escapedRune returns the rune at i, not of ASCII, and its length in UTF-8, if it is one
// that is escaped: U+0080 to U+009F are C2 80 to C2 9F, U+2000 to U+20FF are
// E2 80 80 to E2 83 BF. Any other has length 0.
func escapedRune[S string | []byte](s S, i int) (rune, int) {
	switch {
	case s[i] == 0xC2 && s[i+1] <= 0x9F:
		return rune(s[i+1]), 2
	case s[i] == 0xE2 && s[i+1] <= 0x83:
		return 0x2000 | rune(s[i+1]&0x3F)<<6 | rune(s[i+2]&0x3F), 3
	}
	return 0, 0
}

// appendEscape appends a UTF-16 unit as an escape.
func appendEscape(dst []byte, unit rune) []byte {
	const short = "\"\"\\\\//b\bf\fn\nr\rt\t" // pairs: what is written, what it stands for
	for i := 0; i < len(short); i += 2 {
		if rune(short[i+1]) == unit {
			return append(dst, '\\', short[i])
		}
	}
	const hex = "0123456789ABCDEF"
	return append(dst, '\\', 'u', hex[unit>>12&15], hex[unit>>8&15], hex[unit>>4&15], hex[unit&15])
}
