package backing

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"strings"

	"tine/mapstate"
)

// naming gives keys their names on the servers. A name is the prefix, a tag and
// the rest:
//
//	=  a key that begins and ends as one string does: what is between
//	+  any other key: all of it
//	#  a key whose name would be too long: its sha256, base64url
//	$  snapshot, the value outside the map; owner, the mark of who writes here
//
// Bytes that a name may not have (up to the blank, DEL) and the per cent sign are
// written %XX, so the key ["man"] of prefix p: is p:=man. No prefix holds a tag:
// different keys have different names, and so have the keys of different prefixes,
// but for two keys of one sha256. To find those, a value under # begins with the
// key: uvarint of its length, and its bytes.
//
// With a global key the names are those of Trident's adapter: the text of a key's one
// string behind the prefix, as it is, and the global key for the snapshot. A key that
// has no such name is refused.
type naming struct {
	prefix string
	global string // of Trident's names; "" for Tine's
}

const (
	tagString = '='
	tagOther  = '+'
	tagHash   = '#'
	tags      = "=+#$"

	nameSnapshot = "$snapshot"
	nameOwner    = "$owner"

	nameTridentOwner = "$TINE-OWNER$" // among names that are not ours

	maxNameBytes = 250 // what memcached takes
)

// The bytes around the one string of a key; see mapstate.Key.
const (
	keyStringTag = 0x05
	keyStringEnd = 0x00
)

// check refuses a key that has no name.
func (n naming) check(k mapstate.Key) error {
	if n.global == "" || k == mapstate.SnapshotKey {
		return nil
	}
	text, ok := oneString(k)
	name := n.prefix + text
	switch {
	case !ok:
		return fmt.Errorf("%w: in Trident's format a key is one string", mapstate.ErrInvalidKey)
	case name == "" || len(name) > maxNameBytes:
		return fmt.Errorf("%w: %w", mapstate.ErrInvalidKey, &mapstate.LimitError{What: "name on memcached, prefix included (in bytes)", Got: int64(len(name)), Limit: maxNameBytes})
	case text == n.global || text == nameTridentOwner:
		return fmt.Errorf("%w: %s is not a key but the name of the snapshot or of the owner's mark", mapstate.ErrInvalidKey, text)
	}
	for i := range len(name) {
		if name[i] <= ' ' || name[i] == 0x7F {
			return fmt.Errorf("%w: a blank or a control character, at byte %d, cannot be in a name on memcached", mapstate.ErrInvalidKey, i-len(n.prefix))
		}
	}
	return nil
}

// oneString returns the bytes of a key that is one string, NUL and 0x01 still escaped.
func oneString(k mapstate.Key) (text string, ok bool) {
	if len(k) < 2 || k[0] != keyStringTag || k[len(k)-1] != keyStringEnd {
		return "", false
	}
	text = string(k[1 : len(k)-1])
	return text, strings.IndexByte(text, keyStringEnd) < 0
}

// append appends the name of a key.
func (n naming) append(dst []byte, k mapstate.Key) []byte {
	if n.global != "" {
		dst = append(dst, n.prefix...)
		if k == mapstate.SnapshotKey {
			return append(dst, n.global...)
		}
		return append(dst, k[1:len(k)-1]...) // check has been there
	}
	start := len(dst)
	dst = append(dst, n.prefix...)
	rest, tag := k, byte(tagOther)
	switch {
	case k == mapstate.SnapshotKey:
		return append(dst, nameSnapshot...)
	case len(k) > 1 && k[0] == keyStringTag && k[len(k)-1] == keyStringEnd:
		rest, tag = k[1:len(k)-1], tagString
	}
	dst = append(dst, tag)
	for i := 0; i < len(rest) && len(dst)-start <= maxNameBytes; i++ {
		dst = appendEscaped(dst, rest[i])
	}
	if len(dst)-start <= maxNameBytes {
		return dst
	}
	dst = append(dst[:start+len(n.prefix)], tagHash)
	sum := sha256.Sum256([]byte(k))
	return base64.RawURLEncoding.AppendEncode(dst, sum[:])
}

func appendEscaped(dst []byte, c byte) []byte {
	const hex = "0123456789ABCDEF"
	if c <= ' ' || c == 0x7F || c == '%' {
		return append(dst, '%', hex[c>>4], hex[c&15])
	}
	return append(dst, c)
}

// owner is the name of the mark.
func (n naming) owner() string {
	if n.global != "" {
		return n.prefix + nameTridentOwner
	}
	return n.prefix + nameOwner
}

// hashed reports whether a name stands for its key's sha256 only.
func (n naming) hashed(name []byte) bool { return n.global == "" && name[len(n.prefix)] == tagHash }

// valueSize returns the length of what is stored under a name.
func (n naming) valueSize(name []byte, w mapstate.Write) int {
	if !n.hashed(name) {
		return len(w.Record)
	}
	var head [binary.MaxVarintLen64]byte
	return binary.PutUvarint(head[:], uint64(len(w.Key))) + len(w.Key) + len(w.Record)
}

// appendValue appends what is stored under a name.
func (n naming) appendValue(dst, name []byte, w mapstate.Write) []byte {
	if n.hashed(name) {
		dst = binary.AppendUvarint(dst, uint64(len(w.Key)))
		dst = append(dst, w.Key...)
	}
	return append(dst, w.Record...)
}

// record returns the record in a value that was read for a key. A value that is
// another key's, or none that appendValue appends, is ErrCorrupt.
func (n naming) record(name []byte, k mapstate.Key, value []byte) ([]byte, error) {
	if n.hashed(name) {
		size, head := binary.Uvarint(value)
		if head <= 0 || size > uint64(len(value)-head) {
			return nil, fmt.Errorf("%w: the value under %s does not begin with its key", mapstate.ErrCorrupt, name)
		}
		stored := mapstate.Key(value[head : head+int(size)])
		if stored != k {
			return nil, fmt.Errorf("%w: %s holds the record of another key, %s", mapstate.ErrCorrupt, name, stored)
		}
		value = value[head+int(size):]
	}
	if len(value) == 0 {
		return nil, fmt.Errorf("%w: the value under %s is empty", mapstate.ErrCorrupt, name)
	}
	return value[:len(value):len(value)], nil
}
