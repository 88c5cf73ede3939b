package mapstate_test

import (
	"fmt"
	"testing"

	"tine/mapstate"
	. "tine/mapstate/mapstatetest"
)

func BenchmarkOp(b *testing.B) {
	numbers := func(n int) mapstate.Value {
		values := make([]mapstate.Value, n)
		for i := range values {
			values[i] = Val(2 * i)
		}
		return arrayOf(values)
	}
	words := func(n int) mapstate.Value {
		values := make([]mapstate.Value, n)
		for i := range values {
			values[i] = Val(fmt.Sprintf("word%06d", i))
		}
		return arrayOf(values)
	}
	for _, c := range []struct {
		name, op    string
		stored, arg mapstate.Value
	}{
		{"sum", "sum", Val(1), Val(2)},
		{"sumFloat", "sum", Val(1), Val(2.5)},
		{"max", "max", Val(1), Val(2.5)},
		{"avg", "avg", JSON(`{"sum":123456,"count":789}`), Val(12)},
		{"avgFloat", "avg", JSON(`{"sum":123456.75,"count":789}`), Val(1.1)},
		{"append/1000", "append", numbers(1000), Val(7)},
		{"union/1000numbers", "union", numbers(1000), JSON(`[1001]`)},
		{"union/1000words", "union", words(1000), JSON(`["word000500x"]`)},
		{"merge", "merge", JSON(`{"a":1,"b":{"c":2},"d":[1,2,3]}`), JSON(`{"b":{"c":3},"e":"x"}`)},
	} {
		b.Run(c.name, func(b *testing.B) {
			info, err := mapstate.LookupOp(c.op)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := info.Op(c.stored, c.arg); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
