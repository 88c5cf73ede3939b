package backing

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tine/backing/memcachedtest"
	"tine/mapstate"
	"tine/mapstate/mapstatetest"
)

// hardKeys are keys that naive names would cut, mix up or run as commands.
func hardKeys() []mapstate.Key {
	keys := []mapstate.Key{
		mapstate.SnapshotKey,
		mapstatetest.Key("snapshot"), mapstatetest.Key("$snapshot"), mapstatetest.Key("owner"), mapstatetest.Key("$owner"),
		mapstatetest.Key(""), mapstatetest.Key("man"), mapstatetest.Key("=man"), mapstatetest.Key("a b"), mapstatetest.Key("a%20b"), mapstatetest.Key("%"),
		mapstatetest.Key("tab\tnul\x00del\x7f"),
		mapstatetest.Key("k\r\nset t:=man 0 0 5\r\nstole\r\n"),
		mapstatetest.Key("чай"), mapstatetest.Key("🫖"),
		mapstatetest.Key(1), mapstatetest.Key("1"), mapstatetest.Key(true), mapstatetest.Key(nil), mapstatetest.Key(1.5),
		mapstatetest.Key("a", "b:c"), mapstatetest.Key("a:b", "c"), mapstatetest.Key("a", ""), mapstatetest.Key("", "a"),
		"\x05", "\x00", "\x05\x00\x00",
		mapstatetest.Key(strings.Repeat("x", 250) + strings.Repeat("y", 50)), mapstatetest.Key(strings.Repeat("x", 250) + strings.Repeat("z", 50)),
		mapstatetest.Key(strings.Repeat(" ", 100)), // three characters each
		mapstate.Key(strings.Repeat("k", 5000)),
	}
	for _, n := range []int{249, 250, 251} { // of the name, or what it would be
		keys = append(keys, mapstatetest.Key(strings.Repeat("n", n-len("t:="))))
	}
	return keys
}

func TestMemcachedKeepsHardKeysApart(t *testing.T) {
	_, addrs := memcachedtest.Starts(t, 3)
	m := newMemcached(t, mapstate.NewMemory(), addrs)
	keys := hardKeys()
	var w mapstate.Writes
	var want []string
	for i, k := range keys {
		want = append(want, fmt.Sprint("record ", i))
		w.Records = append(w.Records, mapstate.Write{Key: k, Record: []byte(want[i])})
	}
	mapstatetest.Commit(t, m, w)
	require.Equal(t, want, mapstatetest.Get(t, m, keys...))
	for i, k := range keys { // each is deleted alone
		mapstatetest.Commit(t, m, mapstate.Writes{Records: []mapstate.Write{{Key: k}}})
		want[i] = ""
		require.Equal(t, want, mapstatetest.Get(t, m, keys...), "after %q was deleted", k)
	}
}

func TestMemcachedNamesAreReadableWhereTheyCanBe(t *testing.T) {
	n := naming{prefix: "t:"}
	for _, c := range []struct {
		key  mapstate.Key
		want string
	}{
		{mapstate.SnapshotKey, "t:$snapshot"},
		{mapstatetest.Key("man"), "t:=man"},
		{mapstatetest.Key("the end"), "t:=the%20end"},
		{mapstatetest.Key("100%"), "t:=100%25"},
		{mapstatetest.Key("чай"), "t:=чай"},
		{mapstatetest.Key("a", "b"), "t:=a%00%05b"},
		{mapstatetest.Key(true), "t:+%03"},
		{mapstatetest.Key(strings.Repeat("n", 247)), "t:=" + strings.Repeat("n", 247)},
		{mapstatetest.Key(strings.Repeat("n", 248)), "t:#2GanF2Pt-Brh_7aoqJV34_Rs3-y4CfxBYDGUDMe8iOo"},
	} {
		require.Equal(t, c.want, string(n.append(nil, c.key)), "%s", c.key)
	}
}

// nameable is what every name is, whatever the key.
func nameable(t *testing.T, n naming, k mapstate.Key) string {
	t.Helper()
	name := n.append([]byte("before"), k)
	name, ok := bytes.CutPrefix(name, []byte("before"))
	require.True(t, ok)
	require.LessOrEqual(t, len(name), maxNameBytes)
	require.Equal(t, -1, bytes.IndexFunc(name, func(r rune) bool { return r <= ' ' || r == 0x7F }), "%q", name)
	w := mapstate.Write{Key: k, Record: []byte("r")}
	value := n.appendValue(nil, name, w)
	require.Len(t, value, n.valueSize(name, w))
	record, err := n.record(name, k, value)
	require.NoError(t, err)
	require.Equal(t, "r", string(record))
	return string(name)
}

// FuzzMemcachedNames: two keys under two prefixes have one name only if they are the same.
func FuzzMemcachedNames(f *testing.F) {
	keys := hardKeys()
	for i, k := range keys {
		f.Add("t:", string(k), "t:", string(keys[(i+1)%len(keys)]))
		f.Add("t:", string(k), "t", ":="+string(k))
	}
	f.Fuzz(func(t *testing.T, prefix, key, otherPrefix, otherKey string) {
		options := func(prefix string) MemcachedOptions {
			return MemcachedOptions{Servers: []string{"h"}, Owner: "o", Prefix: prefix}
		}
		if options(prefix).Validate() != nil || options(otherPrefix).Validate() != nil {
			t.Skip()
		}
		a, b := naming{prefix: prefix}, naming{prefix: otherPrefix}
		same := nameable(t, a, mapstate.Key(key)) == nameable(t, b, mapstate.Key(otherKey))
		require.Equal(t, prefix == otherPrefix && key == otherKey, same)
		require.NotEqual(t, a.owner(), nameable(t, b, mapstate.Key(otherKey)))
	})
}

func TestMemcachedNeverServesTheRecordOfAKeyWithTheSameHash(t *testing.T) {
	server := memcachedtest.NewFake(t)
	m := newMemcached(t, mapstate.NewMemory(), []string{server.Addr})
	key, other := mapstatetest.Key(strings.Repeat("a", 300)), mapstatetest.Key(strings.Repeat("b", 300))
	name := m.naming.append(nil, key)
	for what, value := range map[string]string{
		"another key's":   string(m.naming.appendValue(nil, name, mapstate.Write{Key: other, Record: []byte("r")})),
		"cut short":       "\xff\x02aaa",
		"without a key":   "\xff",
		"without records": string(m.naming.appendValue(nil, name, mapstate.Write{Key: key})),
	} {
		server.Play(func(line string) memcachedtest.Action {
			if strings.HasPrefix(line, "get ") && strings.Contains(line, string(name)) {
				return memcachedtest.Refuse(fmt.Sprintf("VALUE %s 0 %d\r\n%s\r\nEND", name, len(value), value))
			}
			return memcachedtest.Action{}
		})
		_, err := m.MultiGet(t.Context(), []mapstate.Key{"first", key})
		require.ErrorIs(t, err, mapstate.ErrCorrupt, what)
		var at *mapstate.KeyError
		require.ErrorAs(t, err, &at, what)
		require.Equal(t, mapstate.KeyError{Index: 1, Key: key, Err: at.Err}, *at, what)
	}
}
