package mapstate_test

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"tine/mapstate"
	. "tine/mapstate/mapstatetest"
)

// Where an op combines, applying it to a, b, c in any grouping leaves the same.
// Integer sums are kept away from int64's ends, where one grouping may overflow
// and another not; float sums round, and are not associative.
func TestOpIsAssociative(t *testing.T) {
	integer := rapid.Map(rapid.Int64Range(-1<<60, 1<<60), mapstate.Int)
	text := rapid.Map(rapid.String(), mapstate.String)
	for op, args := range map[string]*rapid.Generator[mapstate.Value]{
		"count":          integer,
		"sum":            integer,
		"min":            anyNumber(),
		"max":            anyNumber(),
		"min of strings": text,
		"max of strings": text,
		"first":          rapid.Map(rapid.IntRange(1, 9), func(i int) mapstate.Value { return Val(i) }),
		"set":            anyValue(2),
		"concat":         text,
		"union":          scalarArray(),
	} {
		t.Run(op, func(t *testing.T) {
			name, _, _ := strings.Cut(op, " ")
			rapid.Check(t, func(t *rapid.T) {
				f := mustOp(name)
				a, b, c := args.Draw(t, "a"), args.Draw(t, "b"), args.Draw(t, "c")
				a, b, c = f(none, a), f(none, b), f(none, c)
				require.Equal(t, f(f(a, b), c), f(a, f(b, c)))
			})
		})
	}
}

func TestOpIsIdempotentWhereItPicks(t *testing.T) {
	for op, args := range map[string]*rapid.Generator[mapstate.Value]{
		"min": anyNumber(), "max": anyNumber(), "set": anyValue(2), "first": anyNumber(), "union": scalarArray(),
		"merge": anyObject(2),
	} {
		t.Run(op, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				f := mustOp(op)
				once := f(f(none, args.Draw(t, "stored")), args.Draw(t, "arg"))
				arg := args.Draw(t, "again")
				require.Equal(t, f(once, arg), f(f(once, arg), arg))
			})
		})
	}
}

func TestUnionIsSortedAndDistinctAsKeysAre(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := mustOp("union")
		a, b := scalarArray().Draw(t, "a"), scalarArray().Draw(t, "b")
		got := elements(f(f(none, a), b))
		seen := map[mapstate.Key]bool{}
		for i, e := range got {
			if i > 0 {
				require.Less(t, Key(got[i-1]), Key(e))
			}
			seen[Key(e)] = true
		}
		want := map[mapstate.Key]bool{}
		for _, e := range append(elements(a), elements(b)...) {
			want[Key(e)] = true
		}
		require.Equal(t, want, seen)
	})
}

func TestUnionKeepsTheFirstOfTwoEquals(t *testing.T) {
	var integers, floats []mapstate.Value
	for i := range 50 {
		integers = append(integers, Val(i))
		floats = append(floats, Val(float64(49-i)))
	}
	require.Equal(t, arrayOf(integers), mustOp("union")(arrayOf(integers), arrayOf(floats)))
}

func TestAppendKeepsEveryElement(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := mustOp("append")
		var list mapstate.Value
		var texts []string
		for i, v := range rapid.SliceOfN(anyValue(2), 1, 6).Draw(t, "elements") {
			list = f(list, v)
			texts = append(texts, v.String())
			require.Equal(t, mapstate.Array("["+strings.Join(texts, ",")+"]"), list, "after element %d", i)
		}
	})
}

// The merge patch as RFC 7396 has it in pseudo code, on maps; order is not its affair.
func TestMergeIsRFC7396(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		target, patch := anyObject(3).Draw(t, "target"), anyObject(3).Draw(t, "patch")
		got := mustOp("merge")(target, patch)
		require.Equal(t, got, JSON(got.String()), "not canonical")
		require.Equal(t, mergePatch(toAny(target), toAny(patch)), toAny(got))
	})
}

func mergePatch(target, patch any) any {
	changes, ok := patch.(map[string]any)
	if !ok {
		return patch
	}
	merged, ok := target.(map[string]any)
	if !ok {
		merged = map[string]any{}
	}
	for name, change := range changes {
		if change == nil {
			delete(merged, name)
		} else {
			merged[name] = mergePatch(merged[name], change)
		}
	}
	return merged
}

// A value is immutable, so an op can only leave its inputs alone; but append and
// its like build on their text, and what they return must not share it.
func TestOpLeavesItsInputsAlone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		stored, arg := anyValue(3).Draw(t, "stored"), anyValue(3).Draw(t, "arg")
		before := stored.String() + arg.String()
		for _, op := range opNames {
			info, _ := mapstate.LookupOp(op)
			first, err := info.Op(stored, arg)
			if err == nil {
				text := first.String()
				_, _ = info.Op(first, arg)
				_, _ = info.Op(stored, anyValue(1).Draw(t, "other"))
				require.Equal(t, text, first.String(), op)
				require.False(t, first.IsNone(), op)
				require.Equal(t, first, JSON(text), "%s does not leave canonical text", op)
			}
			again, errAgain := info.Op(stored, arg)
			require.Equal(t, first, again, op)
			require.Equal(t, err, errAgain, op)
			require.Equal(t, before, stored.String()+arg.String(), op)
		}
	})
}

func mustOp(name string) func(stored, arg mapstate.Value) mapstate.Value {
	info, err := mapstate.LookupOp(name)
	if err != nil {
		panic(err)
	}
	return func(stored, arg mapstate.Value) mapstate.Value {
		v, err := info.Op(stored, arg)
		if err != nil {
			panic(fmt.Sprintf("%s(%s, %s): %v", name, stored, arg, err))
		}
		return v
	}
}

func anyNumber() *rapid.Generator[mapstate.Value] {
	edges := []mapstate.Value{
		Val(0), Val(0.0), Val(math.Copysign(0, -1)), Val(1), Val(1.0), Val(-1), Val(5e-324), Val(-5e-324), Val(0x1p-1022),
		Val(1<<53 - 1), Val(1 << 53), Val(1<<53 + 1), Val(0x1p53), Val(-1<<53 - 1), Val(-0x1p53), Val(1 << 62), Val(0x1p62),
		Val(math.MaxInt64), Val(math.MaxInt64 - 1), Val(math.MinInt64), Val(math.MinInt64 + 1), Val(0x1p63), Val(-0x1p63),
		Val(math.Nextafter(0x1p63, 0)), Val(math.Nextafter(-0x1p63, 0)), Val(math.MaxFloat64), Val(-math.MaxFloat64), Val(1e21),
	}
	return rapid.OneOf(
		rapid.SampledFrom(edges),
		rapid.Map(rapid.Int64(), mapstate.Int),
		rapid.Map(rapid.Int64Range(-5, 5), func(d int64) mapstate.Value { return mapstate.Int(1<<53 + d) }),
		rapid.Map(rapid.Int64Range(0, 3000), func(d int64) mapstate.Value { return mapstate.Int(math.MaxInt64 - d) }),
		rapid.Map(rapid.Int64Range(0, 3000), func(d int64) mapstate.Value { return mapstate.Int(math.MinInt64 + d) }),
		rapid.Map(rapid.Int64Range(0, 3000), func(d int64) mapstate.Value { return mapstate.Float(float64(math.MaxInt64 - d)) }),
		rapid.Map(rapid.Float64Range(-math.MaxFloat64, math.MaxFloat64), mapstate.Float),
	)
}

func anyScalar() *rapid.Generator[mapstate.Value] {
	return rapid.OneOf(
		rapid.SampledFrom([]mapstate.Value{mapstate.Null, Val(true), Val(false)}),
		anyNumber(),
		rapid.Map(rapid.StringOf(rapid.SampledFrom([]rune("\x00\x01\x02ab:\"\\\n\u007f\u0080é\u0301ÿ\uffff\U0010ffff"))), mapstate.String),
		rapid.Map(rapid.String(), mapstate.String),
	)
}

func scalarArray() *rapid.Generator[mapstate.Value] {
	return rapid.Map(rapid.SliceOfN(anyScalar(), 0, 8), arrayOf)
}

func anyObject(levels int) *rapid.Generator[mapstate.Value] {
	name := rapid.SampledFrom([]string{"a", "b", "c", "", "\"", "{", "é", "\x00"})
	return rapid.Custom(func(t *rapid.T) mapstate.Value {
		var members []string
		for _, n := range rapid.SliceOfNDistinct(name, 0, 4, rapid.ID[string]).Draw(t, "names") {
			members = append(members, Val(n).String()+":"+anyValue(levels-1).Draw(t, n).String())
		}
		return mapstate.Object("{" + strings.Join(members, ",") + "}")
	})
}

func anyValue(levels int) *rapid.Generator[mapstate.Value] {
	if levels <= 0 {
		return anyScalar()
	}
	return rapid.OneOf(
		anyScalar(),
		rapid.Map(rapid.SliceOfN(rapid.Deferred(func() *rapid.Generator[mapstate.Value] { return anyValue(levels - 1) }), 0, 4), arrayOf),
		rapid.Deferred(func() *rapid.Generator[mapstate.Value] { return anyObject(levels) }),
	)
}

func arrayOf(values []mapstate.Value) mapstate.Value {
	texts := make([]string, len(values))
	for i, v := range values {
		texts[i] = v.String()
	}
	return mapstate.Array("[" + strings.Join(texts, ",") + "]")
}

// elements returns the elements of an array.
func elements(array mapstate.Value) []mapstate.Value {
	var raw []json.RawMessage
	if err := json.Unmarshal([]byte(array.Text()), &raw); err != nil {
		panic(err)
	}
	values := make([]mapstate.Value, len(raw))
	for i, r := range raw {
		values[i] = JSON(string(r))
	}
	return values
}

// toAny returns v as encoding/json decodes it, numbers as their text.
func toAny(v mapstate.Value) (x any) {
	dec := json.NewDecoder(strings.NewReader(v.String()))
	dec.UseNumber()
	if err := dec.Decode(&x); err != nil {
		panic(err)
	}
	return x
}
