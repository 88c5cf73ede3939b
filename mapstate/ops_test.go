package mapstate_test

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"tine/mapstate"
	. "tine/mapstate/mapstatetest"
)

// none stands for "nothing is stored" and "no argument" in tables.
var none = mapstate.Value{}

func apply(t testing.TB, op string, stored, arg mapstate.Value) (mapstate.Value, error) {
	t.Helper()
	info, err := mapstate.LookupOp(op)
	require.NoError(t, err)
	require.Equal(t, op, info.Name)
	return info.Op(stored, arg)
}

func TestOpComputesTheNewValue(t *testing.T) {
	const maxInt, minInt = int64(math.MaxInt64), int64(math.MinInt64)
	for _, c := range []struct {
		op                string
		stored, arg, want any
	}{
		{"count", none, none, 1},
		{"count", nil, none, 1},
		{"count", none, 5, 5},
		{"count", 3, none, 4},
		{"count", 3, -5, -2},
		{"count", maxInt - 1, 1, maxInt},

		{"sum", none, 2, 2},
		{"sum", nil, 2.0, 2.0},
		{"sum", 1, 2, 3},
		{"sum", 1, 2.0, 3.0},
		{"sum", 0.5, 2, 2.5},
		{"sum", 0.1, 0.2, 0.1 + 0.2 + 5.551115123125783e-17},
		{"sum", minInt, maxInt, -1},
		{"sum", minInt, 0, minInt},
		{"sum", maxInt, 1.0, 0x1p63},
		{"sum", math.MaxFloat64, -math.MaxFloat64, 0.0},

		{"min", none, 2, 2},
		{"min", nil, "a", "a"},
		{"min", 2, 1, 1},
		{"min", 1, 2, 1},
		{"min", 1.5, 1, 1},
		{"min", 1, 1.0, 1},
		{"min", 1.0, 1, 1.0},
		{"min", 0.0, math.Copysign(0, -1), 0.0},
		{"min", 1<<53 + 1, 0x1p53, 0x1p53},
		{"min", 0x1p53, 1<<53 + 1, 0x1p53},
		{"min", -1<<53 - 1, -0x1p53, -1<<53 - 1},
		{"min", maxInt, 0x1p63, maxInt},
		{"min", minInt, -0x1p63, minInt},
		{"min", minInt, -0x1.8p63, -0x1.8p63},
		{"min", -1, -1.5, -1.5},
		{"min", "b", "a", "a"},
		{"min", "e\u0301", "\u00e9", "e\u0301"},

		{"max", none, 2, 2},
		{"max", 2, 1, 2},
		{"max", 1, 2, 2},
		{"max", 1, 1.0, 1},
		{"max", 1.0, 1, 1.0},
		{"max", 1<<53 + 1, 0x1p53, 1<<53 + 1},
		{"max", 0x1p53, 1<<53 + 1, 1<<53 + 1},
		{"max", maxInt, 0x1p63, 0x1p63},
		{"max", minInt, -0x1p63, minInt},
		{"max", 1, 1.5, 1.5},
		{"max", "", "\x00", "\x00"},
		{"max", "Z", "a", "a"},

		{"set", none, nil, nil},
		{"set", 1, "x", "x"},
		{"set", JSON(`[1]`), JSON(`{}`), JSON(`{}`)},

		{"first", none, 1, 1},
		{"first", nil, 1, 1},
		{"first", none, nil, nil},
		{"first", 0, 1, 0},
		{"first", false, 1, false},

		{"append", none, 1, JSON(`[1]`)},
		{"append", nil, nil, JSON(`[null]`)},
		{"append", JSON(`[]`), 2.0, JSON(`[2.0]`)},
		{"append", JSON(`[1]`), "a\"]\n", JSON(`[1,"a\"]\n"]`)},
		{"append", JSON(`[1]`), JSON(`[2,{"a":[]}]`), JSON(`[1,[2,{"a":[]}]]`)},
		{"append", JSON(`[9223372036854775807]`), maxInt, JSON(`[9223372036854775807,9223372036854775807]`)},

		{"union", none, JSON(`[3,1,"b",2,1.0,true,null,"a",false,3]`), JSON(`[null,false,true,1,2,3,"a","b"]`)},
		{"union", nil, JSON(`[]`), JSON(`[]`)},
		{"union", JSON(`[1,3]`), JSON(`[2,1.0,3.5]`), JSON(`[1,2,3,3.5]`)},
		{"union", JSON(`[1.0]`), JSON(`[1]`), JSON(`[1.0]`)},
		{"union", JSON(`[3,1,3]`), JSON(`[2]`), JSON(`[1,2,3]`)},
		{"union", JSON(`[9007199254740993]`), JSON(`[9007199254740992.0,9007199254740992]`),
			JSON(`[9007199254740992.0,9007199254740993]`)},
		{"union", JSON(`["\u0000","a"]`), JSON(`["\"","\u0000b","é","e\u0301"]`),
			JSON(`["\u0000","\u0000b","\"","a","e\u0301","é"]`)},

		{"concat", none, "a", "a"},
		{"concat", nil, "", ""},
		{"concat", "a", "\x00é", "a\x00é"},

		{"merge", none, JSON(`{"a":null,"b":{"c":null}}`), JSON(`{"a":null,"b":{"c":null}}`)},
		{"merge", nil, JSON(`{"a":1}`), JSON(`{"a":1}`)},
		{"merge", JSON(`{}`), JSON(`{}`), JSON(`{}`)},
		{"merge", JSON(`{"a":1,"b":2,"c":3}`), JSON(`{"d":4,"b":null,"a":9}`), JSON(`{"a":9,"c":3,"d":4}`)},
		{"merge", JSON(`{"a":1}`), JSON(`{"a":null}`), JSON(`{}`)},
		{"merge", JSON(`{"a":{"x":1,"y":2}}`), JSON(`{"a":{"y":null,"z":9223372036854775807}}`),
			JSON(`{"a":{"x":1,"z":9223372036854775807}}`)},
		{"merge", JSON(`{"a":[{"x":1}]}`), JSON(`{"a":[1]}`), JSON(`{"a":[1]}`)},
		{"merge", JSON(`{"a":[1]}`), JSON(`{"a":{"b":{"c":null}},"n":{"m":null}}`), JSON(`{"a":{"b":{}},"n":{}}`)},
		{"merge", JSON(`{"":0,"}":1}`), JSON(`{"\"":"{","":null}`), JSON(`{"}":1,"\"":"{"}`)},

		{"avg", none, 4, JSON(`{"sum":4,"count":1}`)},
		{"avg", nil, 0.5, JSON(`{"sum":0.5,"count":1}`)},
		{"avg", JSON(`{"sum":4,"count":1}`), 2, JSON(`{"sum":6,"count":2}`)},
		{"avg", JSON(`{"sum":4,"count":1}`), 2.0, JSON(`{"sum":6.0,"count":2}`)},
		{"avg", JSON(`{"count":7,"sum":-4}`), 4, JSON(`{"sum":0,"count":8}`)},
	} {
		stored, arg, want := Val(c.stored), Val(c.arg), Val(c.want)
		got, err := apply(t, c.op, stored, arg)
		require.NoError(t, err, "%s(%s, %s)", c.op, stored, arg)
		require.Equal(t, want, got, "%s(%s, %s) = %s, want %s", c.op, stored, arg, got, want)
	}
}

func TestOpRefusesWhatDoesNotFit(t *testing.T) {
	const maxInt, minInt = int64(math.MaxInt64), int64(math.MinInt64)
	const unfit = "updater does not fit the type: "
	const outside = "updater result out of range: "
	for _, c := range []struct {
		op          string
		stored, arg any
		is          error
		text        string
	}{
		{"count", none, 1.0, mapstate.ErrUpdaterType, unfit + "count wants an integer, the argument is a float"},
		{"count", 1.0, none, mapstate.ErrUpdaterType, unfit + "count wants an integer, the stored value is a float"},
		{"count", 1, nil, mapstate.ErrUpdaterType, unfit + "count wants an integer, the argument is null"},
		{"count", maxInt, none, mapstate.ErrUpdaterOverflow, outside + "count of 9223372036854775807 and 1 is beyond int64"},

		{"sum", "a", 1, mapstate.ErrUpdaterType, unfit + "sum wants a number, the stored value is a string"},
		{"sum", 1, "a", mapstate.ErrUpdaterType, unfit + "sum wants a number, the argument is a string"},
		{"sum", 1, none, mapstate.ErrUpdaterType, unfit + "sum wants a number, the argument is nothing"},
		{"sum", maxInt, 1, mapstate.ErrUpdaterOverflow, outside + "sum of 9223372036854775807 and 1 is beyond int64"},
		{"sum", minInt, -1, mapstate.ErrUpdaterOverflow, outside + "sum of -9223372036854775808 and -1 is beyond int64"},
		{"sum", math.MaxFloat64, math.MaxFloat64, mapstate.ErrUpdaterOverflow,
			outside + "sum of 1.7976931348623157e+308 and 1.7976931348623157e+308 is beyond float64"},

		{"min", 1, "a", mapstate.ErrUpdaterType, unfit + "min wants two numbers or two strings, the stored value is an integer and the argument a string"},
		{"max", JSON(`[]`), 1, mapstate.ErrUpdaterType, unfit + "max wants two numbers or two strings, the stored value is an array and the argument an integer"},
		{"max", none, true, mapstate.ErrUpdaterType, unfit + "max wants a number or a string, the argument is a boolean"},
		{"min", none, none, mapstate.ErrUpdaterType, unfit + "min wants a number or a string, the argument is nothing"},

		{"set", 1, none, mapstate.ErrUpdaterType, unfit + "set wants a value, the argument is nothing"},
		{"first", 1, none, mapstate.ErrUpdaterType, unfit + "first wants a value, the argument is nothing"},
		{"append", JSON(`[]`), none, mapstate.ErrUpdaterType, unfit + "append wants a value, the argument is nothing"},
		{"append", JSON(`{}`), 1, mapstate.ErrUpdaterType, unfit + "append wants an array, the stored value is an object"},

		{"union", JSON(`[]`), 1, mapstate.ErrUpdaterType, unfit + "union wants an array, the argument is an integer"},
		{"union", 1, JSON(`[]`), mapstate.ErrUpdaterType, unfit + "union wants an array, the stored value is an integer"},
		{"union", none, JSON(`[1,[2]]`), mapstate.ErrUpdaterType, unfit + "union wants strings, numbers, booleans and nulls, the argument has the element [2]"},
		{"union", JSON(`[{"a":1}]`), JSON(`[]`), mapstate.ErrUpdaterType, unfit + `union wants strings, numbers, booleans and nulls, the stored value has the element {"a":1}`},

		{"concat", "a", 1, mapstate.ErrUpdaterType, unfit + "concat wants a string, the argument is an integer"},
		{"concat", 1, "a", mapstate.ErrUpdaterType, unfit + "concat wants a string, the stored value is an integer"},
		{"merge", none, JSON(`[]`), mapstate.ErrUpdaterType, unfit + "merge wants an object, the argument is an array"},
		{"merge", "{}", JSON(`{}`), mapstate.ErrUpdaterType, unfit + "merge wants an object, the stored value is a string"},

		{"avg", none, "a", mapstate.ErrUpdaterType, unfit + "avg wants a number, the argument is a string"},
		{"avg", 1, 1, mapstate.ErrUpdaterType, unfit + `avg wants an object of a number "sum" and an integer "count", the stored value is an integer`},
		{"avg", JSON(`{"sum":1}`), 1, mapstate.ErrUpdaterType, "and nothing else, the stored value is an object"},
		{"avg", JSON(`{"sum":1,"count":1.0}`), 1, mapstate.ErrUpdaterType, ""},
		{"avg", JSON(`{"sum":"1","count":1}`), 1, mapstate.ErrUpdaterType, ""},
		{"avg", JSON(`{"sum":1,"count":1,"x":1}`), 1, mapstate.ErrUpdaterType, ""},
		{"avg", JSON(`{"sum":9223372036854775807,"count":1}`), 1, mapstate.ErrUpdaterOverflow, "avg of"},
		{"avg", JSON(`{"sum":1,"count":9223372036854775807}`), 1, mapstate.ErrUpdaterOverflow, "avg of"},
	} {
		got, err := apply(t, c.op, Val(c.stored), Val(c.arg))
		require.ErrorIs(t, err, c.is, "%s(%s, %s)", c.op, Val(c.stored), Val(c.arg))
		require.ErrorContains(t, err, c.text)
		require.True(t, got.IsNone(), "%s gives both a value and an error", c.op)
	}
}

func TestOpRefusesResultsThatAreTooLarge(t *testing.T) {
	long := mapstate.String(strings.Repeat("x", mapstate.MaxValueBytes-10))
	deep := func(levels int) mapstate.Value {
		return JSON(strings.Repeat("[", levels) + strings.Repeat("]", levels))
	}
	wide := mapstate.Array(`["` + long.Text() + `"]`)
	named := mapstate.Object(`{"a":"` + strings.Repeat("x", mapstate.MaxValueBytes-20) + `"}`)
	for _, c := range []struct {
		op          string
		stored, arg mapstate.Value
		what        string
	}{
		{"concat", long, Val("0123456789"), "value"},
		{"append", JSON(`[]`), long, ""},
		{"append", JSON(`["0123456789"]`), long, "value"},
		{"append", none, deep(mapstate.MaxValueDepth - 1), ""},
		{"append", none, deep(mapstate.MaxValueDepth), "depth of the value"},
		{"append", none, mapstate.Array(`[{"[[[":"]\"[["}]`), ""},
		{"union", wide, JSON(`["0123456789"]`), "value"},
		{"union", wide, wide, ""},
		{"merge", named, JSON(`{"b":"0123456789"}`), "value"},
		{"merge", named, JSON(`{"a":"0123456789"}`), ""},
	} {
		_, err := apply(t, c.op, c.stored, c.arg)
		if c.what == "" {
			require.NoError(t, err, c.op)
			continue
		}
		require.ErrorIs(t, err, mapstate.ErrTooLarge, c.op)
		var limit *mapstate.LimitError
		require.ErrorAs(t, err, &limit)
		require.Equal(t, c.what, limit.What)
		require.Greater(t, limit.Got, limit.Limit)
		require.ErrorContains(t, err, c.op+": ")
	}
}

func TestOpReportsDamagedText(t *testing.T) {
	for _, text := range []string{
		"", "[", "]", "{", "}", "[1", "1]", "{]", "[}", `["a]`, `["a\]`, `["\u00"]`, `["\x"]`, "[1,]", "[,1]", "[1 ,2]",
		"[nul]", "[-]", "[1.]", "[1e]", "[01]", "[1e400]", "[9223372036854775808]", "[1][", "[\"\x00\"]", "[1]2",
		"{1:2}", `{"a"}`, `{"a":}`, `{"a":1,}`, `{"a":1}}`, `{"a" :1}`, `{"a":tru}`, `{"\u12":1}`, `{"sum":1,"count":1`,
		strings.Repeat("[", 1000), strings.Repeat(`{"a":`, 1000), "[" + strings.Repeat("[", 200) + strings.Repeat("]", 201),
	} {
		_, err := apply(t, "union", mapstate.Array(text), JSON(`[1]`))
		require.ErrorIs(t, err, mapstate.ErrCorrupt, "union on %q", text)
		_, err = apply(t, "merge", mapstate.Object(text), JSON(`{"a":{"b":1}}`))
		require.ErrorIs(t, err, mapstate.ErrCorrupt, "merge on %q", text)
		_, err = apply(t, "avg", mapstate.Object(text), Val(1))
		require.ErrorIs(t, err, mapstate.ErrCorrupt, "avg on %q", text)
		if !strings.HasPrefix(text, "[") || !strings.HasSuffix(text, "]") {
			_, err = apply(t, "append", mapstate.Array(text), Val(1))
			require.ErrorIs(t, err, mapstate.ErrCorrupt, "append on %q", text)
		}
	}
}

func TestOpNeverPanicsOnMutatedText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := []byte(anyValue(3).Draw(t, "stored").String())
		for range rapid.IntRange(1, 3).Draw(t, "mutations") {
			i := rapid.IntRange(0, len(text)-1).Draw(t, "at")
			text[i] = rapid.SampledFrom([]byte("[]{}\",:\\u0e.-1n\x00\xff")).Draw(t, "byte")
		}
		arg := anyValue(3).Draw(t, "arg")
		for _, op := range opNames {
			info, _ := mapstate.LookupOp(op)
			for _, stored := range []mapstate.Value{mapstate.Array(string(text)), mapstate.Object(string(text))} {
				_, _ = info.Op(stored, arg)
				_, _ = info.Op(stored, mapstate.Object(string(text)))
				_, _ = info.Op(stored, mapstate.Array(string(text)))
			}
		}
	})
}

func TestLookupOpNamesTheUnknownAndTheKnown(t *testing.T) {
	_, err := mapstate.LookupOp("summ")
	require.ErrorIs(t, err, mapstate.ErrUnknownUpdater)
	require.EqualError(t, err, `unknown updater: "summ", known are append, avg, concat, count, first, max, merge, min, set, sum, union`)
}

func TestOnlyCountTakesNoArgument(t *testing.T) {
	for _, op := range opNames {
		info, err := mapstate.LookupOp(op)
		require.NoError(t, err)
		_, err = info.Op(none, none)
		require.Equal(t, op == "count", info.ArgOptional, op)
		require.Equal(t, info.ArgOptional, err == nil, op)
	}
}

var opNames = []string{"append", "avg", "concat", "count", "first", "max", "merge", "min", "set", "sum", "union"}

func TestSumDoesNotAllocate(t *testing.T) {
	for _, op := range []string{"count", "sum", "min", "max", "first", "set"} {
		info, err := mapstate.LookupOp(op)
		require.NoError(t, err)
		require.Zero(t, testing.AllocsPerRun(100, func() { _, _ = info.Op(Val(1), Val(2)) }), op)
	}
}
