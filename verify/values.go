package verify

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"tine/api"
	"tine/mapstate"
)

// mirrorKeys is how many keys a mirrored state has.
const mirrorKeys = 8

// family is what may be done to a key, such that no updater ever finds a value
// that it cannot take.
type family int

const (
	integers family = iota
	floats
	extremes
	firsts
	sets
	unions
	texts
	objects
	averages
	lists
	families
)

// keyPool returns the keys of a history. The family of a key is its position,
// modulo the number of families.
func keyPool(mirror bool) []mapstate.Key {
	if mirror {
		keys := make([]mapstate.Key, mirrorKeys)
		for i := range keys {
			keys[i] = tuple(mapstate.String("mirror"), mapstate.Int(int64(i)))
		}
		return keys
	}
	return []mapstate.Key{
		tuple(mapstate.String("a")),
		tuple(mapstate.String("a"), mapstate.Float(0.5)),
		tuple(mapstate.Int(1)),
		tuple(mapstate.String("1")),
		tuple(mapstate.Bool(true), mapstate.Null),
		tuple(mapstate.String("é\x00\x01")),
		tuple(mapstate.Int(-1 << 60)),
		tuple(mapstate.Null),
		tuple(mapstate.String("a"), mapstate.String("b")),
		tuple(mapstate.String("long"), mapstate.String(string(make([]byte, 300)))),
		mapstate.SnapshotKey,
		tuple(mapstate.Float(1e300)),
	}
}

// withoutSnapshot returns the keys that one read can name.
func withoutSnapshot(pool []mapstate.Key) []mapstate.Key {
	return slices.DeleteFunc(slices.Clone(pool), func(k mapstate.Key) bool { return k == mapstate.SnapshotKey })
}

// tuple returns the key of elements that are known to make one.
func tuple(elems ...mapstate.Value) mapstate.Key {
	key, err := mapstate.NewKey(elems...)
	if err != nil {
		panic("verify: a key of the pool is none: " + err.Error())
	}
	return key
}

// drawOp draws an updater that fits what a key of the family holds.
func drawOp(random *rand.Rand, f family) api.Op {
	switch f {
	case integers:
		if random.IntN(2) == 0 {
			return api.Op{Name: "count"}
		}
		return api.Op{Name: "sum", Arg: drawValue(random, f)}
	case floats:
		return api.Op{Name: "sum", Arg: drawValue(random, f)}
	case extremes:
		return api.Op{Name: []string{"min", "max"}[random.IntN(2)], Arg: drawValue(random, f)}
	case firsts:
		return api.Op{Name: "first", Arg: drawValue(random, f)}
	case unions:
		return api.Op{Name: "union", Arg: drawValue(random, f)}
	case texts:
		return api.Op{Name: "concat", Arg: mapstate.String(string(rune('a' + random.IntN(26))))}
	case objects:
		return api.Op{Name: "merge", Arg: drawValue(random, f)}
	case averages:
		return api.Op{Name: "avg", Arg: mapstate.Int(random.Int64N(100))}
	case lists:
		return api.Op{Name: "append", Arg: mapstate.Int(random.Int64N(10))}
	}
	return api.Op{Name: "set", Arg: drawValue(random, f)}
}

// drawValue draws a value that the updaters of the family can take over from.
func drawValue(random *rand.Rand, f family) mapstate.Value {
	n := random.Int64N(100)
	switch f {
	case integers, extremes, firsts:
		return mapstate.Int(n - 20)
	case floats:
		return mapstate.Float(float64(n) / 4) // sums of quarters are exact
	case unions:
		return mapstate.Array(fmt.Sprintf("[%d]", n%20))
	case texts:
		return mapstate.String(fmt.Sprint("t", n))
	case objects:
		return mapstate.Object(fmt.Sprintf(`{"m%d":%d}`, n%4, n))
	case averages:
		return mapstate.Object(fmt.Sprintf(`{"sum":%d,"count":1}`, n))
	case lists:
		return mapstate.Array("[]")
	}
	return []mapstate.Value{
		mapstate.Null, mapstate.Bool(true), mapstate.Int(1 << 62), mapstate.Float(2), mapstate.String("\"\u2028"),
		mapstate.Array(`[1,[2.0,"x"],{}]`),
	}[n%6]
}

// misfit is an updater that nothing fits.
func misfit() api.Op { return api.Op{Name: "sum", Arg: mapstate.String("text")} }
