package bench

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"strconv"
	"testing"

	"github.com/bradfitz/gomemcache/memcache"
	"github.com/stretchr/testify/require"

	"tine/backing"
	"tine/backing/memcachedtest"
	"tine/cache"
	"tine/mapstate"
	"tine/opaque"
)

// bare is one connection to memcached, and what is written there: the names and
// records that a Tine state has, with nothing around.
type bare struct {
	nc      net.Conn
	r       *bufio.Reader
	names   []string
	record  []byte
	request []byte
}

func newBare(b *testing.B, addr string) *bare {
	nc, err := net.Dial("tcp", addr)
	require.NoError(b, err)
	b.Cleanup(func() { _ = nc.Close() })
	m := &bare{nc: nc, r: bufio.NewReaderSize(nc, 64<<10), names: make([]string, tableKeys)}
	m.record = opaque.Kind{}.AppendRecord(nil, mapstate.Record{TxID: 1000, Curr: mapstate.Int(50), Prev: mapstate.Int(49), Partition: 1})
	for i := range m.names {
		m.names[i] = "bare=" + keyText(i)
	}
	for from := 0; from < tableKeys; from += batchKeys {
		chosen := make([]int, batchKeys)
		for i := range chosen {
			chosen[i] = from + i
		}
		m.set(b, chosen)
	}
	return m
}

// get reads keys with one text get.
func (m *bare) get(b *testing.B, chosen []int) {
	m.request = append(m.request[:0], "get"...)
	for _, i := range chosen {
		m.request = append(append(m.request, ' '), m.names[i]...)
	}
	m.request = append(m.request, "\r\n"...)
	_, err := m.nc.Write(m.request)
	require.NoError(b, err)
	for {
		line, err := m.r.ReadSlice('\n')
		if err != nil {
			b.Fatal(err)
		}
		if string(line) == "END\r\n" {
			return
		}
		size, err := strconv.Atoi(string(bytes.TrimSpace(line[bytes.LastIndexByte(line, ' ')+1:])))
		if err != nil {
			b.Fatal(err)
		}
		if _, err := m.r.Discard(size + 2); err != nil {
			b.Fatal(err)
		}
	}
}

// set writes keys with quiet meta sets, and waits for the answer to what follows them.
func (m *bare) set(b *testing.B, chosen []int) {
	m.request = m.request[:0]
	for _, i := range chosen {
		m.request = fmt.Appendf(m.request, "ms %s %d q\r\n", m.names[i], len(m.record))
		m.request = append(append(m.request, m.record...), "\r\n"...)
	}
	m.request = append(m.request, "mn\r\n"...)
	_, err := m.nc.Write(m.request)
	require.NoError(b, err)
	answer := make([]byte, 4)
	_, err = io.ReadFull(m.r, answer)
	require.NoError(b, err)
	require.Equal(b, "MN\r\n", string(answer))
}

// newOnMemcached returns an opaque state on memcached, its table loaded, its
// progress on disk, with an LRU of so many entries.
func newOnMemcached(b *testing.B, addr string, entries int64) *mapstate.Map {
	db, err := backing.Open(b.TempDir(), backing.Options{})
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, db.Close()) })
	meta, err := db.Create("bench", nil)
	require.NoError(b, err)
	onServer, err := backing.NewMemcached(meta, backing.MemcachedOptions{
		Servers: []string{addr}, Prefix: fmt.Sprint("lru", entries), Owner: "bench", Connections: 1,
	})
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, onServer.Close()) })
	m, err := mapstate.Open(context.Background(), opaque.Kind{}, cache.New(onServer, cache.Options{Entries: entries, Bytes: 1 << 30}),
		mapstate.Options{Interval: true, Torn: true, Evicts: true})
	require.NoError(b, err)
	b.Cleanup(func() { m.Close(mapstate.ErrShuttingDown) })
	loadTable(b, m)
	return m
}

// BenchmarkIsAnUpdateOnMemcachedAsFastAsABarePipeline: one writer, one connection
// each, in turns: bare pipelined gets and quiet sets of the same names and bytes;
// quiet sets alone; gomemcache's GetMulti and one Set after the other; opaque updates by
// Tine, with the LRU off and holding all.
func BenchmarkIsAnUpdateOnMemcachedAsFastAsABarePipeline(b *testing.B) {
	server := memcachedtest.Start(b, "-m", "1024")
	chosen := picks(1, 256)
	of := func(n int) []int { return chosen[n%len(chosen)] }
	pipeline := newBare(b, server.Addr)
	client := memcache.New(server.Addr)
	keys := stateKeys(b, 0, tableKeys)
	updaters := sums(b)
	batch := make([]mapstate.Key, batchKeys)
	tine := func(m *mapstate.Map) func(_, n int) int {
		return func(_, n int) int {
			for i, k := range of(n) {
				batch[i] = keys[k]
			}
			res, err := m.Update(context.Background(), mapstate.Envelope{TxID: mapstate.TxID(n + 2)}, batch, updaters)
			if err != nil || len(res.Values) != batchKeys {
				b.Error(err)
			}
			return batchKeys
		}
	}
	compare(b,
		&contender{name: "bare-get-and-set", workers: 1, do: func(_, n int) int {
			pipeline.get(b, of(n))
			pipeline.set(b, of(n))
			return batchKeys
		}},
		&contender{name: "tine-without-lru", workers: 1, do: tine(newOnMemcached(b, server.Addr, 0))},
		&contender{name: "bare-set", workers: 1, do: func(_, n int) int {
			pipeline.set(b, of(n))
			return batchKeys
		}},
		&contender{name: "tine-all-in-lru", workers: 1, do: tine(newOnMemcached(b, server.Addr, 2*tableKeys))},
		&contender{name: "gomemcache", workers: 1, do: func(_, n int) int {
			names := make([]string, batchKeys)
			for i, k := range of(n) {
				names[i] = pipeline.names[k]
			}
			found, err := client.GetMulti(names)
			if err != nil || len(found) != batchKeys {
				b.Error(len(found), err)
			}
			for _, item := range found {
				if err := client.Set(&memcache.Item{Key: item.Key, Value: pipeline.record}); err != nil {
					b.Error(err)
				}
			}
			return batchKeys
		}},
	)
}
