package mapstate_test

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"tine/mapstate"
	. "tine/mapstate/mapstatetest"
)

var inf = math.Inf(1)

func TestNullIsPresentAndNoValueIsNot(t *testing.T) {
	require.False(t, mapstate.Null.IsNone())
	require.True(t, mapstate.Value{}.IsNone())
	require.NotEqual(t, mapstate.Value{}, mapstate.Null)
	require.Equal(t, "null", mapstate.Null.String())
	require.Equal(t, mapstate.TypeNull, mapstate.Null.Type())
}

func TestValueAnswersOnlyForItsType(t *testing.T) {
	i, ok := Val(-7).AsInt()
	require.True(t, ok)
	require.Equal(t, int64(-7), i)
	f, ok := Val(-7).AsFloat()
	require.True(t, ok)
	require.Equal(t, -7.0, f)
	i, ok = Val(1.5).AsInt()
	require.False(t, ok)
	require.Zero(t, i)
	_, ok = Val("1").AsFloat()
	require.False(t, ok)
	require.True(t, Val(true).AsBool())
	require.False(t, Val(1).AsBool())
	require.Equal(t, "unknown", mapstate.Type(99).String())
}

func TestValuePrintsAsJSON(t *testing.T) {
	for want, v := range map[string]any{
		"null": nil, "true": true, "false": false, "0": 0, "-1": -1,
		"9223372036854775807": math.MaxInt64, "-9223372036854775808": math.MinInt64,
		"2.0": 2.0, "-0.0": math.Copysign(0, -1), "0.0": 0.0, "0.1": 0.1, "-1.5": -1.5,
		"1e+21": 1e21, "100000000000000000000.0": 1e20, "1e-7": 1e-7, "1e-10": 1e-10, "0.000001": 1e-6,
		"5e-324": 5e-324, "1.7976931348623157e+308": math.MaxFloat64, "9007199254740992.0": 0x1p53,
		`""`: "", `"a\"\\/\b\f\n\r\t\u0000\u001f` + "\u007fé\u2028" + `"`: "a\"\\/\b\f\n\r\t\x00\x1f\u007fé\u2028",
	} {
		require.Equal(t, want, Val(v).String())
	}
}

func TestFloatPrintsShortestAndComesBackAsTheSameFloat(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := math.Float64frombits(rapid.Uint64().Draw(t, "bits"))
		if math.IsNaN(f) || math.IsInf(f, 0) {
			t.Skip("not finite")
		}
		text := mapstate.Float(f).String()
		require.True(t, strings.ContainsAny(text, ".e"), text)
		require.True(t, json.Valid([]byte(text)), text)
		back, err := strconv.ParseFloat(text, 64)
		require.NoError(t, err)
		require.Equal(t, math.Float64bits(f), math.Float64bits(back), text)
		likeJSON, err := json.Marshal(f)
		require.NoError(t, err)
		require.Equal(t, string(likeJSON), strings.TrimSuffix(text, ".0"))
	})
}

func TestAppendQuotedIsWhatOthersPrint(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.OneOf(rapid.String(), rapid.StringOf(rapid.SampledFrom([]rune("\x00\x01\b\f\n\r\t\x1f\"\\/u2028<&\u007f\u2028\u2029é")))).Draw(t, "string")
		got := mapstate.AppendQuoted([]byte("x"), s)
		require.Equal(t, byte('x'), got[0])

		var want bytes.Buffer
		enc := json.NewEncoder(&want)
		enc.SetEscapeHTML(false)
		require.NoError(t, enc.Encode(s))
		// encoding/json escapes two more, for JavaScript.
		likeJSON := strings.NewReplacer(`\\`, `\\`, `\u2028`, "\u2028", `\u2029`, "\u2029").Replace(strings.TrimSuffix(want.String(), "\n"))
		require.Equal(t, likeJSON, string(got[1:]))
	})
}

func TestValueRoundTripsThroughItsStoredForm(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.OneOf(rapid.Just(none), anyValue(2)).Draw(t, "value")
		stored := mapstate.AppendValue(nil, v)
		back, rest, err := mapstate.DecodeValue(append(stored, "rest"...))
		require.NoError(t, err)
		require.Equal(t, "rest", string(rest))
		require.Equal(t, v, back)
		require.True(t, v == back)
		require.NoError(t, v.CheckSize())
	})
}

func TestDecodeValueRefusesWhatIsCutShort(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		stored := mapstate.AppendValue(nil, anyValue(2).Draw(t, "value"))
		for n := range stored {
			_, _, err := mapstate.DecodeValue(stored[:n])
			require.ErrorIs(t, err, mapstate.ErrCorrupt, "%d of %d bytes", n, len(stored))
		}
	})
}

func TestDecodeValueSurvivesEveryMutatedByte(t *testing.T) {
	for _, v := range Vals(none, nil, true, 1, math.MinInt64, 1.5, "é\x00", JSON(`[1,"a"]`), JSON(`{"a":1}`)) {
		stored := mapstate.AppendValue(nil, v)
		for i := range stored {
			for b := range 256 {
				mutated := bytes.Clone(stored)
				mutated[i] = byte(b)
				requireDecodes(t, mutated)
			}
		}
	}
}

func TestDecodeValueRefusesWhatIsNoValue(t *testing.T) {
	for name, b := range map[string]string{
		"unknown type":       "\x08",
		"boolean 2":          "\x02\x02",
		"integer too long":   "\x03" + strings.Repeat("\xff", 10) + "\x01",
		"infinity":           "\x04\x7f\xf0\x00\x00\x00\x00\x00\x00",
		"NaN":                "\x04\x7f\xf8\x00\x00\x00\x00\x00\x00",
		"length past uint64": "\x05" + strings.Repeat("\xff", 10) + "\x01",
		"length past int":    "\x05\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
		"not UTF-8":          "\x05\x01\xff",
	} {
		_, _, err := mapstate.DecodeValue([]byte(b))
		require.ErrorIs(t, err, mapstate.ErrCorrupt, name)
	}
}

func TestDecodedValueDoesNotKeepItsBytes(t *testing.T) {
	stored := mapstate.AppendValue(nil, Val("abc"))
	v, _, err := mapstate.DecodeValue(stored)
	require.NoError(t, err)
	clear(stored)
	require.Equal(t, Val("abc"), v)
}

func TestCheckSizeCountsTheStoredForm(t *testing.T) {
	const fits = mapstate.MaxValueBytes - 4 // a type byte, and three for the length
	v := mapstate.String(strings.Repeat("x", fits))
	require.Len(t, mapstate.AppendValue(nil, v), mapstate.MaxValueBytes)
	require.NoError(t, v.CheckSize())
	err := mapstate.String(v.Text() + "x").CheckSize()
	require.ErrorIs(t, err, mapstate.ErrTooLarge)
	require.EqualError(t, err, "value too large: 1048577, the limit is 1048576")
}

func FuzzDecodeValue(f *testing.F) {
	for _, v := range Vals(none, nil, true, -1, math.MaxInt64, 0.5, "a\x00é", JSON(`[1,[2.0]]`), JSON(`{"a":{"b":null}}`)) {
		f.Add(mapstate.AppendValue(nil, v))
	}
	f.Add([]byte("\x05\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"))
	f.Fuzz(func(t *testing.T, b []byte) { requireDecodes(t, b) })
}

// requireDecodes checks that b is refused as corrupt, or decodes to a value that
// is stored again as another form of itself.
func requireDecodes(t *testing.T, b []byte) {
	v, rest, err := mapstate.DecodeValue(b)
	if err != nil {
		require.ErrorIs(t, err, mapstate.ErrCorrupt)
		return
	}
	require.True(t, bytes.HasSuffix(b, rest))
	again, rest, err := mapstate.DecodeValue(mapstate.AppendValue(nil, v))
	require.NoError(t, err)
	require.Empty(t, rest)
	require.Equal(t, v, again)
	_ = v.String()
	for _, op := range opNames {
		info, _ := mapstate.LookupOp(op)
		_, _ = info.Op(v, Val(1))
		_, _ = info.Op(v, v)
	}
}
