package trident_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"tine/api"
	"tine/mapstate"
	"tine/mapstate/mapstatetest"
	"tine/nontx"
	"tine/opaque"
	"tine/transactional"
	"tine/trident"
)

func kinds() []mapstate.Kind {
	return []mapstate.Kind{
		trident.New(nontx.Kind{}, api.ParseValue),
		trident.New(transactional.Kind{}, api.ParseValue),
		trident.New(opaque.Kind{}, api.ParseValue),
	}
}

func kindOf(t testing.TB, name string) mapstate.Kind {
	for _, k := range kinds() {
		if k.Name() == name {
			return k
		}
	}
	require.Fail(t, "no kind", name)
	return nil
}

// TestRecordsAreWrittenByteForByteAsStormDoes lays the format down. Each line is what
// json-smart writes for the list of the record's members.
func TestRecordsAreWrittenByteForByteAsStormDoes(t *testing.T) {
	none := mapstate.Value{}
	for _, c := range []struct {
		kind   string
		record mapstate.Record
		want   string
	}{
		{"nontx", mapstate.Record{Curr: mapstate.Int(7)}, `7`},
		{"nontx", mapstate.Record{Curr: mapstate.String("man")}, `"man"`},
		{"nontx", mapstate.Record{Curr: mapstatetest.JSON(`[3,5]`)}, `[3,5]`},
		{"nontx", mapstate.Record{Curr: none}, `null`},
		{"transactional", mapstate.Record{TxID: 3, Curr: mapstate.Int(5)}, `[3,5]`},
		{"transactional", mapstate.Record{TxID: math.MaxInt64, Curr: mapstate.Int(math.MinInt64)}, `[9223372036854775807,-9223372036854775808]`},
		{"transactional", mapstate.Record{TxID: 3, Curr: none}, `[3,null]`},
		{"transactional", mapstate.Record{Curr: mapstate.Bool(true)}, `[0,true]`},
		{"opaque", mapstate.Record{TxID: 3, Curr: mapstate.Int(6), Prev: mapstate.Int(4)}, `[3,6,4]`},
		{"opaque", mapstate.Record{TxID: 1, Curr: mapstate.Int(6)}, `[1,6,null]`},
		{"opaque", mapstate.Record{TxID: 2, Curr: none, Prev: mapstatetest.JSON(`{"a":[1.0,null]}`)}, `[2,null,{"a":[1.0,null]}]`},
		{"opaque", mapstate.Record{TxID: 2, Curr: mapstate.String("a/b"), Prev: mapstate.String("a\u2028b")}, `[2,"a\/b","a\u2028b"]`},
	} {
		require.Equal(t, c.want, string(kindOf(t, c.kind).AppendRecord(nil, c.record)))
		require.Equal(t, "before"+c.want, string(kindOf(t, c.kind).AppendRecord([]byte("before"), c.record)), "it appends")
	}
}

func TestStringsAreEscapedAsStormDoes(t *testing.T) {
	for text, want := range map[string]string{
		"":                   ``,
		"man":                `man`,
		`"`:                  `\"`,
		`\`:                  `\\`,
		`/`:                  `\/`,
		"\b\f\n\r\t":         `\b\f\n\r\t`,
		"\x00\x01\x0b\x1f ":  `\u0000\u0001\u000B\u001F `,
		"~\x7f":              `~\u007F`,
		"\u0080\u009f\u00a0": `\u0080\u009F` + "\u00a0",
		"café":               `café`,
		"\u1fff\u2000\u2028\u203f\u2040\u20ac\u20ff\u2100": "\u1fff" + `\u2000\u2028\u203F\u2040\u20AC\u20FF` + "\u2100",
		"e\u0301":          "e\u0301",
		"\ufffd\U0001F600": "\ufffd\U0001F600",
		"</a>'<&>":         `<\/a>'<&>`,
	} {
		k := kindOf(t, "nontx")
		require.Equal(t, `"`+want+`"`, string(k.AppendRecord(nil, mapstate.Record{Curr: mapstate.String(text)})), "%q", text)
		// The same inside of arrays, and in the names of members.
		nested := mapstatetest.JSON(`{` + mapstate.String(text).String() + `:[` + mapstate.String(text).String() + `,1]}`)
		require.Equal(t, `{"`+want+`":["`+want+`",1]}`, string(k.AppendRecord(nil, mapstate.Record{Curr: nested})), "%q", text)
	}
}

func TestFloatsAreWrittenAsJavaDoes(t *testing.T) {
	for want, f := range map[string]float64{
		"0.0": 0, "-0.0": math.Copysign(0, -1), "1.0": 1, "-2.5": -2.5, "100.0": 100, "0.1": 0.1, "3.14": 3.14,
		"0.001": 1e-3, "9.999999999999998E-4": math.Nextafter(1e-3, 0), "9.99E-4": 9.99e-4, "1.0E-5": 1e-5, "-1.5E-7": -1.5e-7,
		"9999999.0": 9999999, "9999999.999999998": math.Nextafter(1e7, 0), "1.0E7": 1e7, "1.0E10": 1e10, "1.2345678E8": 123456780,
		"1234567.8": 1234567.8, "0.3333333333333333": 1. / 3, "9.007199254740992E15": 1 << 53, "1.0E21": 1e21, "1.0E-10": 1e-10,
		"1.0E100": 1e100, "1.7976931348623157E308": math.MaxFloat64, "2.2250738585072014E-308": 0x1p-1022,
		// Of one digit that tells them apart, but the nearest of two is another.
		"4.9E-324": math.SmallestNonzeroFloat64, "9.9E-324": 2 * math.SmallestNonzeroFloat64, "1.5E-323": 3 * math.SmallestNonzeroFloat64,
		// The fewest digits: Java wrote more before 19.
		"2.0E23": 2e23, "8.41E21": 8.41e21, "2.2E-322": 2.2e-322,
	} {
		k := kindOf(t, "nontx")
		require.Equal(t, want, string(k.AppendRecord(nil, mapstate.Record{Curr: mapstate.Float(f)})))
		nested := mapstatetest.JSON(fmt.Sprintf(`[%v,{"a":%v}]`, mapstate.Float(f), mapstate.Float(f)))
		require.Equal(t, `[`+want+`,{"a":`+want+`}]`, string(k.AppendRecord(nil, mapstate.Record{Curr: nested})))
	}
}

func TestFloatsReadBackAsTheyWere(t *testing.T) {
	k := kindOf(t, "nontx")
	rapid.Check(t, func(t *rapid.T) {
		f := rapid.OneOf(rapid.Float64(), rapid.Map(rapid.Uint64(), math.Float64frombits)).
			Filter(func(f float64) bool { return f-f == 0 }).Draw(t, "f")
		b := k.AppendRecord(nil, mapstate.Record{Curr: mapstate.Float(f)})
		r, err := k.DecodeRecord(b)
		require.NoError(t, err)
		require.Equal(t, mapstate.Float(f), r.Curr, "%s", b)
		require.Regexp(t, `^-?[0-9]+\.[0-9]+(E-?[1-9][0-9]*)?$`, string(b))
	})
}

// records are of every shape that the format can hold.
func records(kind mapstate.Kind) []mapstate.Record {
	values := []mapstate.Value{
		{}, mapstate.Bool(false), mapstate.Int(math.MinInt64), mapstate.Float(-0.5), mapstate.String(""), mapstate.String("é\x00\"/\u2028"),
		mapstatetest.JSON(`[1,[2.0,null]]`), mapstatetest.JSON(`{"a/b":{"\u0000":9223372036854775807},"c":1e300}`), mapstatetest.JSON(`[]`), mapstatetest.JSON(`{}`),
	}
	var all []mapstate.Record
	for _, curr := range values {
		switch kind.Name() {
		case "nontx":
			all = append(all, mapstate.Record{Curr: curr})
			continue
		case "transactional":
			for _, x := range []mapstate.TxID{0, 1, math.MaxInt64} {
				all = append(all, mapstate.Record{TxID: x, Curr: curr})
			}
			continue
		}
		all = append(all, mapstate.Record{Curr: curr})
		for _, prev := range values {
			all = append(all, mapstate.Record{TxID: 1, Curr: curr, Prev: prev}, mapstate.Record{TxID: math.MaxInt64, Curr: curr, Prev: prev})
		}
	}
	return all
}

func TestRecordsRoundTrip(t *testing.T) {
	for _, kind := range kinds() {
		for _, r := range records(kind) {
			b := kind.AppendRecord(nil, r)
			got, err := kind.DecodeRecord(b)
			require.NoError(t, err, "%s", b)
			require.Equal(t, r, got, "%s", b)
			clear(b)
			require.Equal(t, r, got, "it keeps the bytes")
		}
	}
}

func TestDamagedRecordsAreCorrupt(t *testing.T) {
	for _, kind := range kinds() {
		for _, r := range records(kind) {
			b := kind.AppendRecord(nil, r)
			for n := range b {
				got, err := kind.DecodeRecord(b[:n])
				if kind.Name() == "nontx" && err == nil { // a number that is cut is another number
					_, isNumber := r.Curr.AsFloat()
					require.True(t, isNumber && got != r, "%s of %s", b[:n], b)
					continue
				}
				require.ErrorIs(t, err, mapstate.ErrCorrupt, "%d of the bytes of %s", n, b)
			}
			for _, more := range []string{"\x00", ",", "]", " 1", "null", "[]"} {
				_, err := kind.DecodeRecord(append(b[:len(b):len(b)], more...))
				require.ErrorIs(t, err, mapstate.ErrCorrupt, "%s%s", b, more)
			}
		}
	}
}

func TestWhatIsNoRecordIsCorruptAndSaysWhy(t *testing.T) {
	for _, c := range []struct{ kind, stored, why string }{
		{"nontx", ``, ""},
		{"nontx", `man`, ""},
		{"nontx", `9223372036854775808`, "outside int64"},
		{"nontx", `1e400`, "beyond float64"},
		{"nontx", `{"a":1,"a":2}`, "duplicate"},
		{"nontx", `'man'`, ""},
		{"nontx", "\"\xff\"", "UTF-8"},
		{"nontx", `"\ud800"`, ""},
		{"nontx", `NaN`, ""},
		{"nontx", `"` + strings.Repeat("x", mapstate.MaxValueBytes) + `"`, "too large"},
		{"nontx", strings.Repeat("[", 101) + strings.Repeat("]", 101), "depth"},
		{"transactional", ``, "cut short"},
		{"transactional", `5`, "not an array, want one of 2"},
		{"transactional", `{"txid":1}`, "not an array"},
		{"transactional", `[]`, "of 0 elements, want 2"},
		{"transactional", `[1]`, "of 1 elements, want 2"},
		{"transactional", `[1,2,3]`, "of 3 elements, want 2"},
		{"transactional", `[1,2`, "cut short"},
		{"transactional", `[1,2,]`, "not JSON"},
		{"transactional", `[1 2]`, "not JSON"},
		{"transactional", `[1,2]]`, "not JSON"},
		{"transactional", `[1,2] [1,2]`, "follows"},
		{"transactional", `[1,{"a":1,"a":2}]`, "duplicate"},
		{"transactional", `[-1,2]`, "txid: -1 is negative"},
		{"transactional", `[-1.0,2]`, "txid: -1 is negative"},
		{"transactional", `["1",2]`, "txid: it is string"},
		{"transactional", `[true,2]`, "txid: it is boolean"},
		{"transactional", `[1.5,2]`, "txid: 1.5 is no integer"},
		{"transactional", `[1e17,2]`, "no integer that can be told exactly"},
		{"transactional", `[9223372036854775808,2]`, "outside int64"},
		{"transactional", `[1,9223372036854775808]`, "value: "},
		{"opaque", `[1,2]`, "of 2 elements, want 3"},
		{"opaque", `[1,2,3,4]`, "of 4 elements, want 3"},
		{"opaque", `[1,2,9223372036854775808]`, "previous value: "},
		{"opaque", `[null,2,9223372036854775808]`, "previous value: "},
	} {
		_, err := kindOf(t, c.kind).DecodeRecord([]byte(c.stored))
		require.ErrorIs(t, err, mapstate.ErrCorrupt, "%.40s", c.stored)
		require.ErrorContains(t, err, c.why)
		for _, fault := range []error{mapstate.ErrInvalidValue, mapstate.ErrTooLarge, api.ErrBadRequest} {
			require.NotErrorIs(t, err, fault, "no request is at fault")
		}
	}
}

func TestRecordsOfOtherWritersAreTaken(t *testing.T) {
	for _, c := range []struct {
		kind, stored string
		want         mapstate.Record
	}{
		{"nontx", ` {"a" : 1, "b":"\u00e9\/"} `, mapstate.Record{Curr: mapstatetest.JSON(`{"a":1,"b":"é/"}`)}},
		{"transactional", "[ 3 ,\t5\n]\n", mapstate.Record{TxID: 3, Curr: mapstate.Int(5)}},
		{"transactional", `[3.0,5]`, mapstate.Record{TxID: 3, Curr: mapstate.Int(5)}},
		{"transactional", `[3e0,5E2]`, mapstate.Record{TxID: 3, Curr: mapstate.Float(500)}},
		{"transactional", `[9007199254740992.0,5]`, mapstate.Record{TxID: 1 << 53, Curr: mapstate.Int(5)}},
		{"transactional", `[9007199254740993,5]`, mapstate.Record{TxID: 1<<53 + 1, Curr: mapstate.Int(5)}},
		{"transactional", `[null,5]`, mapstate.Record{Curr: mapstate.Int(5)}},
		{"transactional", `[0,5]`, mapstate.Record{Curr: mapstate.Int(5)}},
		{"opaque", `[null,2,1]`, mapstate.Record{Curr: mapstate.Int(2)}},
		{"opaque", `[0,2,null]`, mapstate.Record{Curr: mapstate.Int(2)}},
		{"opaque", `[7,null,null]`, mapstate.Record{TxID: 7}},
	} {
		got, err := kindOf(t, c.kind).DecodeRecord([]byte(c.stored))
		require.NoError(t, err, c.stored)
		require.Equal(t, c.want, got, c.stored)
	}
}

func TestKindsKeepTheirNamesAndRules(t *testing.T) {
	for i, of := range []mapstate.Kind{nontx.Kind{}, transactional.Kind{}, opaque.Kind{}} {
		kind := kinds()[i]
		require.Equal(t, of.Name(), kind.Name())
		require.Equal(t, of.Replays(), kind.Replays())
		require.False(t, kind.Shares())
		for _, r := range records(kind) {
			for _, x := range []mapstate.TxID{0, 1, 2} {
				want, wantErr := of.Resolve(r, x)
				got, err := kind.Resolve(r, x)
				require.Equal(t, wantErr, err)
				require.Equal(t, want, got)
			}
		}
	}
}

// TestAStateGoesOnWhereStormLeftIt steps a state over records that Storm has written.
func TestAStateGoesOnWhereStormLeftIt(t *testing.T) {
	man := mapstatetest.Key("man")
	add := func(n int) []mapstate.ValueUpdater { return mapstatetest.Updates("sum", n) }
	for _, c := range []struct {
		kind, stored    string
		replay, next    int
		after, atTheEnd string
	}{
		{"nontx", `4`, 2, 3, `6`, `9`},
		{"transactional", `[2,4]`, 2, 3, `[2,4]`, `[3,7]`},
		{"transactional", `[0,4]`, 2, 3, `[2,6]`, `[3,9]`},
		{"opaque", `[2,4,1]`, 2, 3, `[2,3,1]`, `[3,6,3]`},
		{"opaque", `[2,4,null]`, 2, 3, `[2,2,null]`, `[3,5,2]`},
		{"opaque", `[2,null,1]`, 2, 3, `[2,3,1]`, `[3,6,3]`},
		{"opaque", `[null,4,1]`, 2, 3, `[2,6,4]`, `[3,9,6]`},
	} {
		backing := mapstate.NewMemory()
		durable, err := backing.Commit(t.Context(), mapstate.Writes{Records: []mapstate.Write{{Key: man, Record: []byte(c.stored)}}})
		require.NoError(t, err)
		require.NoError(t, durable.Wait())
		m, err := mapstate.Open(t.Context(), kindOf(t, c.kind), backing, mapstate.Options{})
		require.NoError(t, err)
		stored := func() string {
			b, err := backing.MultiGet(t.Context(), []mapstate.Key{man})
			require.NoError(t, err)
			return string(b[0])
		}
		_, err = m.Update(t.Context(), mapstate.Envelope{TxID: 2}, []mapstate.Key{man}, add(c.replay))
		require.NoError(t, err)
		require.Equal(t, c.after, stored(), c.stored)
		_, err = m.Update(t.Context(), mapstate.Envelope{TxID: 3}, []mapstate.Key{man}, add(c.next))
		require.NoError(t, err)
		require.Equal(t, c.atTheEnd, stored(), c.stored)
		m.Close(mapstate.ErrShuttingDown)
	}
}

func FuzzDecodeRecord(f *testing.F) {
	for which, kind := range kinds() {
		for i, r := range records(kind) {
			if i%5 == 0 {
				f.Add(uint8(which), kind.AppendRecord(nil, r))
			}
		}
	}
	f.Fuzz(func(t *testing.T, which uint8, stored []byte) {
		kind := kinds()[int(which)%len(kinds())]
		r, err := kind.DecodeRecord(stored)
		if err != nil {
			require.ErrorIs(t, err, mapstate.ErrCorrupt)
			return
		}
		require.GreaterOrEqual(t, r.TxID, mapstate.NoTxID)
		b := kind.AppendRecord(nil, r)
		again, err := kind.DecodeRecord(b)
		require.NoError(t, err)
		require.Equal(t, r, again)
		require.Equal(t, b, kind.AppendRecord(nil, again))
	})
}
