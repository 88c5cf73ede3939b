package mapstate_test

import (
	"bytes"
	"cmp"
	"math/big"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"tine/mapstate"
	. "tine/mapstate/mapstatetest"
)

// compareTuples is the order of keys by the contract, without their encoding:
// element by element, null, false, true, numbers by value, strings by bytes,
// shorter first.
func compareTuples(a, b []mapstate.Value) int {
	for i := 0; i < len(a) && i < len(b); i++ {
		if c := compareElements(a[i], b[i]); c != 0 {
			return c
		}
	}
	return cmp.Compare(len(a), len(b))
}

func compareElements(a, b mapstate.Value) int {
	if c := cmp.Compare(rank(a), rank(b)); c != 0 {
		return c
	}
	switch rank(a) {
	case 3:
		return exact(a).Cmp(exact(b))
	case 4:
		return bytes.Compare([]byte(a.Text()), []byte(b.Text()))
	}
	return 0
}

func rank(v mapstate.Value) int {
	switch v.Type() {
	case mapstate.TypeNull:
		return 0
	case mapstate.TypeBool:
		if v.AsBool() {
			return 2
		}
		return 1
	case mapstate.TypeInt, mapstate.TypeFloat:
		return 3
	case mapstate.TypeString:
		return 4
	}
	panic("not a scalar: " + v.String())
}

func exact(v mapstate.Value) *big.Float {
	if i, ok := v.AsInt(); ok {
		return new(big.Float).SetPrec(64).SetInt64(i)
	}
	f, _ := v.AsFloat()
	return big.NewFloat(f)
}

func anyTuple() *rapid.Generator[[]mapstate.Value] {
	return rapid.OneOf(
		rapid.SliceOfN(anyNumber(), 1, 1), // numbers meet more often on their own
		rapid.SliceOfN(anyScalar(), 1, 4),
	)
}

func TestKeyOrderIsTupleOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := anyTuple().Draw(t, "a"), anyTuple().Draw(t, "b")
		if rapid.Bool().Draw(t, "related") {
			b = append(a[:rapid.IntRange(0, len(a)).Draw(t, "shared"):len(a)], b...)
		}
		ka, kb := Key(Any(a)...), Key(Any(b)...)
		require.Equal(t, compareTuples(a, b), cmp.Compare(ka, kb), "%s %s", ka, kb)
	})
}

func TestKeyRoundTrips(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tuple := anyTuple().Draw(t, "tuple")
		k := Key(Any(tuple)...)
		parsed, err := mapstate.ParseKey([]byte(k))
		require.NoError(t, err)
		require.Equal(t, k, parsed)
		elems, err := k.Elements()
		require.NoError(t, err)
		require.Zero(t, compareTuples(tuple, elems), "%v came back as %v", tuple, elems)
		require.Equal(t, JSON(k.String()).Text(), k.String(), "not canonical JSON")
		require.Equal(t, k, Key(Any(elements(mapstate.Array(k.String())))...), "the printed tuple is another key")
	})
}

func TestKeyElementIsNoPrefixOfAnother(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := anyTuple().Draw(t, "a"), anyTuple().Draw(t, "b")
		ka, kb := Key(Any(a)...), Key(Any(b)...)
		begins := len(a) <= len(b) && compareTuples(a, b[:min(len(a), len(b))]) == 0
		require.Equal(t, begins, strings.HasPrefix(string(kb), string(ka)))
	})
}

func TestEqualNumbersAreOneKey(t *testing.T) {
	for _, same := range [][]any{
		{1, 1.0, 1e0},
		{0, 0.0, JSON("-0.0"), JSON("-0")},
		{1 << 53, 0x1p53},
		{-1 << 53, -0x1p53},
		{1 << 62, 0x1p62},
		{-1 << 63, -0x1p63},
	} {
		for _, x := range same {
			require.Equal(t, Key(same[0]), Key(x), "%v", x)
		}
	}
}

func TestDifferentTuplesAreDifferentKeys(t *testing.T) {
	keys := []mapstate.Key{
		Key(1), Key("1"), Key(true), Key(false), Key(nil), Key(""), Key(0), Key("a"), Key("a", nil), Key("a", ""),
		Key("a", "b:c"), Key("a:b", "c"), Key("ab", "c"), Key("a", "bc"), Key("abc"),
		Key("\u00e9"), Key("e\u0301"), Key("a\x00"), Key("a\x00", "b"), Key("a", "\x00b"), Key("a\x01"), Key("a\x02"),
		Key(1<<53 + 1), Key(0x1p53), Key(1<<53 - 1), Key(-1<<53 - 1), Key(-0x1p53),
		Key(1<<63 - 1), Key(0x1p63), Key(1<<63 - 2), Key(-1 << 63), Key(-1<<63 + 1), Key(5e-324), Key(-5e-324), Key(0.1),
	}
	seen := map[mapstate.Key]int{mapstate.SnapshotKey: -1}
	for i, k := range keys {
		before, twice := seen[k]
		require.False(t, twice, "%s at %d and %d", k, before, i)
		seen[k] = i
	}
}

func TestKeyPrintsAsJSON(t *testing.T) {
	require.Equal(t, `["a\"",1,-0.5,1e+300,9223372036854775807,true,null]`,
		Key("a\"", 1.0, -0.5, 1e300, 1<<63-1, true, nil).String())
	require.Equal(t, "[]", mapstate.SnapshotKey.String())
	require.Equal(t, "[1,invalid]", (Key(1) + "\x09").String())
}

func TestNewKeyRefusesWhatIsNoKey(t *testing.T) {
	array, long := JSON(`[1]`), strings.Repeat("x", mapstate.MaxKeyBytes)
	for text, elems := range map[string][]mapstate.Value{
		"invalid key: 0 elements, want 1 to 16":          {},
		"invalid key: 17 elements, want 1 to 16":         Vals(make([]any, 17)...),
		"element 1: invalid key: an element is a":        {Val(1), array},
		"element 0: invalid key: an element is":          {none},
		"element 0: invalid key: string is not":          {mapstate.String("\xff")},
		"element 0: invalid key: a number is fin":        {mapstate.Float(inf)},
		"encoded key too large: 4098, the limit is 4096": Vals(long),
	} {
		_, err := mapstate.NewKey(elems...)
		require.ErrorIs(t, err, mapstate.ErrInvalidKey)
		require.ErrorContains(t, err, text)
	}
	_, err := mapstate.NewKey(Vals(long[2:])...)
	require.NoError(t, err)
	_, err = mapstate.NewKey(Vals(make([]any, 16)...)...)
	require.NoError(t, err)
}

func TestParseKeyRefusesWhatNewKeyDoesNotMake(t *testing.T) {
	number := func(bits string, rest ...byte) string { return "\x04" + bits + string(rest) }
	for name, b := range map[string]string{
		"nothing":               "",
		"unknown tag":           "\x06",
		"tag zero":              "\x00",
		"number cut short":      number("\xbf\xf0"),
		"distance cut short":    string(Key(1 << 53))[:10],
		"minus zero":            number("\x7f\xff\xff\xff\xff\xff\xff\xff"),
		"infinity":              number("\xff\xf0\x00\x00\x00\x00\x00\x00", 0, 0),
		"NaN":                   number("\xff\xf8\x00\x00\x00\x00\x00\x00", 0, 0),
		"distance of a step":    string(Key(0x1p53)[:9]) + "\x00\x02",
		"distance past int64":   string(Key(1<<63 - 1)[:9]) + "\xff\xff",
		"distance of a float":   string(Key(0x1p63)[:9]) + "\x00\x01",
		"string without end":    "\x05a",
		"escape without end":    "\x05a\x01",
		"escape of nothing":     "\x05a\x01\x00",
		"escape of a letter":    "\x05\x01\x61\x00",
		"not UTF-8":             "\x05\xff\x00",
		"surrogate":             "\x05\xed\xa0\x80\x00",
		"rest after a string":   "\x05a\x00\x00",
		"too many elements":     strings.Repeat("\x01", 17),
		"more than 4 KiB":       "\x05" + strings.Repeat("x", mapstate.MaxKeyBytes) + "\x00",
		"a number, and garbage": string(Key(1)) + "\xff",
	} {
		_, err := mapstate.ParseKey([]byte(b))
		require.ErrorIs(t, err, mapstate.ErrInvalidKey, name)
	}
}

func TestElementsOfADamagedKeyAreRefused(t *testing.T) {
	for _, k := range []mapstate.Key{mapstate.SnapshotKey, "\x05\x01a\x00", "\x05a", "\x04", "\x07"} {
		_, err := k.Elements()
		require.ErrorIs(t, err, mapstate.ErrInvalidKey, "%q", string(k))
	}
}

func TestPrefixEndBoundsTheTuplesThatBegin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		prefix, other := anyTuple().Draw(t, "prefix"), anyTuple().Draw(t, "other")
		if rapid.Bool().Draw(t, "begins") {
			other = append(prefix[:len(prefix):len(prefix)], other...)
		}
		p, k := Key(Any(prefix)...), Key(Any(other)...)
		begins := len(other) >= len(prefix) && compareTuples(other[:min(len(prefix), len(other))], prefix) == 0
		require.Equal(t, begins, p <= k && k < mapstate.PrefixEnd(p))
	})
	require.Equal(t, mapstate.Key("a\x01"), mapstate.PrefixEnd("a\x00\xff\xff"))
	require.Empty(t, mapstate.PrefixEnd("\xff\xff"))
	require.Empty(t, mapstate.PrefixEnd(""))
}

func FuzzParseKey(f *testing.F) {
	seeds := []mapstate.Key{
		Key(nil), Key(false, true), Key("a\x00\x01\x02é"), Key(1, -1, 0.5), Key(1<<53+1, 1<<63-1), Key(-1<<63, -0x1p53), Key("a", "b"),
	}
	for i, k := range seeds {
		f.Add([]byte(k), []byte(seeds[(i+1)%len(seeds)]))
	}
	f.Add([]byte("\x04\x7f\xff\xff\xff\xff\xff\xff\xff"), []byte("\x05\x01\x61\x00"))
	f.Fuzz(func(t *testing.T, a, b []byte) {
		ka, err := mapstate.ParseKey(a)
		if err != nil {
			require.ErrorIs(t, err, mapstate.ErrInvalidKey)
			_ = mapstate.Key(a).String()
			return
		}
		require.Equal(t, string(a), string(ka))
		ea, err := ka.Elements()
		require.NoError(t, err)
		require.Equal(t, ka, Key(Any(ea)...))
		kb, err := mapstate.ParseKey(b)
		if err != nil {
			return
		}
		eb, err := kb.Elements()
		require.NoError(t, err)
		require.Equal(t, compareTuples(ea, eb), bytes.Compare(a, b), "%s %s", ka, kb)
	})
}
