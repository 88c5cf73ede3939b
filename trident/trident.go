// Package trident is the stored form of Storm Trident's states: the JSON that the
// serializers of its Redis and memcached states write
// (https://storm.apache.org/releases/current/Trident-state.html). With it a store can
// be shared with, taken over from or handed back to a Storm topology.
//
//	nontx          value
//	transactional  [txid,value]
//	opaque         [txid,value,previous value]
//
// What is written is byte for byte what Storm writes (json-smart 2, style NO_COMPRESS,
// in UTF-8), but for a record without a txid, see Codec.AppendRecord:
//
//   - no white space; members of objects in the order they came;
//   - in strings ", \ and / after a backslash; \b \f \n \r \t; U+0000 to U+001F, U+007F
//     to U+009F and U+2000 to U+20FF as \u and four upper-case hexadecimal digits;
//   - integers in decimal, floats as Java's Double.toString;
//   - no value, which is a removed key or one that was not there before, as null.
//
// The format has no room for some of what Tine's own records have: a stored null reads
// back as no value, and the partitions of a batch cannot be told apart.
package trident

import "tine/mapstate"

// stored is a kind whose records are Trident's JSON.
type stored struct {
	mapstate.Kind
	codec Codec
}

var _ mapstate.Kind = stored{}

// New returns a kind with the name and the rules of another, whose records are Trident's
// JSON. parse is as for NewCodec.
func New(kind mapstate.Kind, parse func([]byte) (mapstate.Value, error)) mapstate.Kind {
	return stored{Kind: kind, codec: NewCodec(kind.Replays(), parse)}
}

// Shares is false.
func (stored) Shares() bool { return false }

// AppendRecord implements mapstate.Codec.
func (k stored) AppendRecord(dst []byte, r mapstate.Record) []byte {
	return k.codec.AppendRecord(dst, r)
}

// DecodeRecord implements mapstate.Codec.
func (k stored) DecodeRecord(b []byte) (mapstate.Record, error) { return k.codec.DecodeRecord(b) }
