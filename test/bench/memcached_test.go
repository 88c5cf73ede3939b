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
	"time"

	"github.com/bradfitz/gomemcache/memcache"
	"github.com/stretchr/testify/require"

	"tine/backing"
	"tine/backing/memcachedtest"
	"tine/mapstate"
)

// BenchmarkIsMemcachedReadAndWrittenAsFastAsABareConnection: 1,000 of 1,000,000 keys are read and
// written with values of 24 bytes, by the least that the protocol asks for on one
// connection, by Tine's backing, and by gomemcache, whose writes are one round trip each.
func BenchmarkIsMemcachedReadAndWrittenAsFastAsABareConnection(b *testing.B) {
	w := newMemcachedWork(b)
	compare(b,
		&contender{name: "bare", workers: 1, do: w.both(w.bareGet, w.bareSet)},
		&contender{name: "tine", workers: 1, do: w.both(w.tineGet, w.tineSet)},
		&contender{name: "gomemcache", workers: 1, do: w.both(w.otherGet, w.otherSet)})
}

// BenchmarkIsMemcachedReadAsFastAsABareConnection is the reading half.
func BenchmarkIsMemcachedReadAsFastAsABareConnection(b *testing.B) {
	w := newMemcachedWork(b)
	compare(b,
		&contender{name: "bare", workers: 1, do: w.one(w.bareGet)},
		&contender{name: "tine", workers: 1, do: w.one(w.tineGet)},
		&contender{name: "gomemcache", workers: 1, do: w.one(w.otherGet)})
}

// BenchmarkIsMemcachedWrittenAsFastAsABareConnection is the writing half.
func BenchmarkIsMemcachedWrittenAsFastAsABareConnection(b *testing.B) {
	w := newMemcachedWork(b)
	compare(b,
		&contender{name: "bare", workers: 1, do: w.one(w.bareSet)},
		&contender{name: "tine", workers: 1, do: w.one(w.tineSet)},
		&contender{name: "gomemcache", workers: 1, do: w.one(w.otherSet)})
}

// memcachedWork is one server with its table, and three ways to it.
type memcachedWork struct {
	b       *testing.B
	batches [][]int
	keys    []mapstate.Key
	names   []string
	value   []byte

	tine  *backing.Memcached
	other *memcache.Client
	nc    net.Conn
	r     *bufio.Reader
	buf   []byte
}

func newMemcachedWork(b *testing.B) *memcachedWork {
	server := memcachedtest.Start(b, "-m", "1024")
	w := &memcachedWork{b: b, batches: picks(1, 256), keys: stateKeys(b, 0, tableKeys), value: bytes.Repeat([]byte{'v'}, 24)}
	for i := range tableKeys {
		w.names = append(w.names, "bench:="+keyText(i))
	}
	var err error
	w.tine, err = backing.NewMemcached(mapstate.NewMemory(), backing.MemcachedOptions{Servers: []string{server.Addr}, Prefix: "bench:", Owner: "bench"})
	require.NoError(b, err)
	w.other = memcache.New(server.Addr)
	w.other.Timeout = 10 * time.Second
	w.nc, err = net.Dial("tcp", server.Addr)
	require.NoError(b, err)
	w.r = bufio.NewReaderSize(w.nc, 64<<10)
	b.Cleanup(func() {
		require.NoError(b, w.nc.Close())
		require.NoError(b, w.other.Close())
		require.NoError(b, w.tine.Close())
	})
	all := make([]int, tableKeys)
	for i := range all {
		all[i] = i
	}
	for from := 0; from < tableKeys; from += batchKeys {
		require.NoError(b, w.tineSet(all[from:from+batchKeys]))
	}
	return w
}

// one makes a batch of one step.
func (w *memcachedWork) one(step func([]int) error) func(int, int) int {
	return func(_, batch int) int {
		if err := step(w.batches[batch%len(w.batches)]); err != nil {
			w.b.Error(err)
		}
		return batchKeys
	}
}

// both makes a batch of a read and a write.
func (w *memcachedWork) both(get, set func([]int) error) func(int, int) int {
	return w.one(func(chosen []int) error {
		if err := get(chosen); err != nil {
			return err
		}
		return set(chosen)
	})
}

func (w *memcachedWork) bareGet(chosen []int) error {
	w.buf = append(w.buf[:0], "get"...)
	for _, i := range chosen {
		w.buf = append(append(w.buf, ' '), w.names[i]...)
	}
	if _, err := w.nc.Write(append(w.buf, "\r\n"...)); err != nil {
		return err
	}
	for range chosen {
		if _, err := w.r.ReadSlice('\n'); err != nil {
			return err
		}
		value := make([]byte, len(w.value))
		if _, err := io.ReadFull(w.r, value); err != nil {
			return err
		}
		if _, err := w.r.Discard(2); err != nil {
			return err
		}
	}
	return w.line("END\r\n")
}

func (w *memcachedWork) bareSet(chosen []int) error {
	w.buf = w.buf[:0]
	for _, i := range chosen {
		w.buf = append(append(append(w.buf, "ms "...), w.names[i]...), ' ')
		w.buf = append(strconv.AppendInt(w.buf, int64(len(w.value)), 10), " q\r\n"...)
		w.buf = append(append(w.buf, w.value...), "\r\n"...)
	}
	if _, err := w.nc.Write(append(w.buf, "mn\r\n"...)); err != nil {
		return err
	}
	return w.line("MN\r\n")
}

func (w *memcachedWork) line(want string) error {
	got, err := w.r.ReadSlice('\n')
	if err == nil && string(got) != want {
		err = fmt.Errorf("the server said %q", got)
	}
	return err
}

func (w *memcachedWork) tineGet(chosen []int) error {
	keys := make([]mapstate.Key, len(chosen))
	for n, i := range chosen {
		keys[n] = w.keys[i]
	}
	records, err := w.tine.MultiGet(context.Background(), keys)
	for _, r := range records {
		if len(r) != len(w.value) {
			return fmt.Errorf("a record of %d bytes", len(r))
		}
	}
	return err
}

func (w *memcachedWork) tineSet(chosen []int) error {
	writes := mapstate.Writes{Records: make([]mapstate.Write, len(chosen))}
	for n, i := range chosen {
		writes.Records[n] = mapstate.Write{Key: w.keys[i], Record: w.value}
	}
	_, err := w.tine.Commit(context.Background(), writes)
	return err
}

func (w *memcachedWork) otherGet(chosen []int) error {
	names := make([]string, len(chosen))
	for n, i := range chosen {
		names[n] = w.names[i]
	}
	items, err := w.other.GetMulti(names)
	if err == nil && len(items) != len(chosen) {
		err = fmt.Errorf("%d items of %d", len(items), len(chosen))
	}
	return err
}

func (w *memcachedWork) otherSet(chosen []int) error {
	for _, i := range chosen {
		if err := w.other.Set(&memcache.Item{Key: w.names[i], Value: w.value}); err != nil {
			return err
		}
	}
	return nil
}
