package mapstate

import (
	"encoding/json"
	"strings"
)

// scanner walks the canonical JSON text of an array or object. Text that comes
// from disk may be damaged: then bad is set, and every method returns at once.
//
//	for more := s.open('[', ']'); more; more = s.next(']') {
//		element := s.value(levels)
//	}
type scanner struct {
	text string
	pos  int
	bad  bool
}

// end reports whether the text was good and there is no more of it.
func (s *scanner) end() bool { return !s.bad && s.pos == len(s.text) }

// open enters a list and reports whether it has elements.
func (s *scanner) open(first, last byte) bool {
	s.expect(first)
	return !s.bad && !s.eat(last)
}

// next leaves an element of a list and reports whether another follows.
func (s *scanner) next(last byte) bool {
	if s.bad || s.eat(last) {
		return false
	}
	s.expect(',')
	return !s.bad
}

// name passes the name of a member and its colon, and returns the name, quoted,
// or "" if it is bad.
func (s *scanner) name() string {
	start := s.pos
	s.quoted()
	end := s.pos
	s.expect(':')
	if s.bad {
		return ""
	}
	return s.text[start:end]
}

// value passes a value with at most that many levels, and returns its text, "" if
// it is bad.
func (s *scanner) value(levels int) string {
	start := s.pos
	switch s.peek() {
	case '[':
		s.bad = s.bad || levels == 0
		for more := s.open('[', ']'); more; more = s.next(']') {
			s.value(levels - 1)
		}
	case '{':
		s.bad = s.bad || levels == 0
		for more := s.open('{', '}'); more; more = s.next('}') {
			s.name()
			s.value(levels - 1)
		}
	case '"':
		s.quoted()
	case 'n':
		s.literal("null")
	case 't':
		s.literal("true")
	case 'f':
		s.literal("false")
	default:
		s.number()
	}
	if s.bad {
		return ""
	}
	return s.text[start:s.pos]
}

func (s *scanner) peek() byte {
	if s.pos < len(s.text) {
		return s.text[s.pos]
	}
	return 0
}

func (s *scanner) eat(c byte) bool {
	if s.peek() != c {
		return false
	}
	s.pos++
	return true
}

func (s *scanner) expect(c byte) {
	if !s.eat(c) {
		s.bad = true
	}
}

func (s *scanner) literal(word string) {
	if !strings.HasPrefix(s.text[s.pos:], word) {
		s.bad = true
		return
	}
	s.pos += len(word)
}

func (s *scanner) quoted() {
	s.expect('"')
	for !s.bad {
		switch c := s.peek(); {
		case c == '"':
			s.pos++
			return
		case c == '\\':
			s.pos++
			s.escape()
		case c < ' ':
			s.bad = true
		default:
			s.pos++
		}
	}
}

// escape passes what follows a backslash.
func (s *scanner) escape() {
	c := s.peek()
	s.bad = c == 0 || strings.IndexByte(`"\/bfnrtu`, c) < 0
	s.pos++
	for digits := 4; c == 'u' && digits > 0; digits-- {
		s.bad = s.bad || !isHex(s.peek())
		s.pos++
	}
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}

func (s *scanner) number() {
	s.eat('-')
	if !s.eat('0') {
		s.digits()
	}
	if s.eat('.') {
		s.digits()
	}
	if s.eat('e') {
		if !s.eat('-') {
			s.eat('+')
		}
		s.digits()
	}
}

func (s *scanner) digits() {
	start := s.pos
	for c := s.peek(); '0' <= c && c <= '9'; c = s.peek() {
		s.pos++
	}
	s.bad = s.bad || s.pos == start
}

// member is a member of an object: its name, quoted, and the text of its value.
type member struct{ name, value string }

// appendMembers appends the members of an object's text to dst, and reports
// whether the text was good.
func appendMembers(dst []member, text string) ([]member, bool) {
	s := scanner{text: text}
	for more := s.open('{', '}'); more; more = s.next('}') {
		name := s.name()
		dst = append(dst, member{name, s.value(MaxValueDepth - 1)})
	}
	return dst, s.end()
}

// parseScalar returns the value of canonical text that is no array and no object.
func parseScalar(text string) (Value, bool) {
	switch {
	case text == "null":
		return Null, true
	case text == "true", text == "false":
		return Bool(text == "true"), true
	case !strings.HasPrefix(text, `"`):
		return parseNumber(text)
	case strings.IndexByte(text, '\\') < 0:
		return String(text[1 : len(text)-1]), true
	}
	var plain string
	err := json.Unmarshal([]byte(text), &plain)
	return String(plain), err == nil
}

// depth returns how many levels of arrays and objects the value has.
func (v Value) depth() int {
	if v.typ != TypeArray && v.typ != TypeObject {
		return 0
	}
	depth, deepest := 0, 0
	for i := 0; i < len(v.text); i++ {
		switch v.text[i] {
		case '[', '{':
			depth++
			deepest = max(deepest, depth)
		case ']', '}':
			depth--
		case '"':
			for i++; i < len(v.text) && v.text[i] != '"'; i++ {
				if v.text[i] == '\\' {
					i++
				}
			}
		}
	}
	return deepest
}
