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
	batches []memcachedBatch
	value   []byte

	tine  *backing.Memcached
	other *memcache.Client
	nc    net.Conn
	r     *bufio.Reader
	buf   []byte
}

// memcachedBatch are the keys of a batch, one after the other in memory as those of a
// request are, and their names.
type memcachedBatch struct {
	keys  []mapstate.Key
	names []string
}

func newMemcachedBatch(b *testing.B, chosen []int) memcachedBatch {
	var batch memcachedBatch
	for _, i := range chosen {
		batch.keys = append(batch.keys, stateKeys(b, i, 1)[0])
	}
	for _, i := range chosen {
		batch.names = append(batch.names, "bench:="+keyText(i))
	}
	return batch
}

func newMemcachedWork(b *testing.B) *memcachedWork {
	server := memcachedtest.Start(b, "-m", "1024")
	w := &memcachedWork{b: b, value: bytes.Repeat([]byte{'v'}, 24)}
	for _, chosen := range picks(1, 256) {
		w.batches = append(w.batches, newMemcachedBatch(b, chosen))
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
	for from := 0; from < tableKeys; from += batchKeys {
		require.NoError(b, w.tineSet(memcachedBatch{keys: stateKeys(b, from, batchKeys)}))
	}
	return w
}

// one makes a batch of one step.
func (w *memcachedWork) one(step func(memcachedBatch) error) func(int, int) int {
	return func(_, batch int) int {
		if err := step(w.batches[batch%len(w.batches)]); err != nil {
			w.b.Error(err)
		}
		return batchKeys
	}
}

// both makes a batch of a read and a write.
func (w *memcachedWork) both(get, set func(memcachedBatch) error) func(int, int) int {
	return w.one(func(batch memcachedBatch) error {
		if err := get(batch); err != nil {
			return err
		}
		return set(batch)
	})
}

func (w *memcachedWork) bareGet(batch memcachedBatch) error {
	w.buf = append(w.buf[:0], "get"...)
	for _, name := range batch.names {
		w.buf = append(append(w.buf, ' '), name...)
	}
	if _, err := w.nc.Write(append(w.buf, "\r\n"...)); err != nil {
		return err
	}
	for range batch.names {
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

func (w *memcachedWork) bareSet(batch memcachedBatch) error {
	w.buf = w.buf[:0]
	for _, name := range batch.names {
		w.buf = append(append(append(w.buf, "ms "...), name...), ' ')
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

func (w *memcachedWork) tineGet(batch memcachedBatch) error {
	records, err := w.tine.MultiGet(context.Background(), batch.keys)
	for _, r := range records {
		if len(r) != len(w.value) {
			return fmt.Errorf("a record of %d bytes", len(r))
		}
	}
	return err
}

func (w *memcachedWork) tineSet(batch memcachedBatch) error {
	writes := mapstate.Writes{Records: make([]mapstate.Write, len(batch.keys))}
	for i, key := range batch.keys {
		writes.Records[i] = mapstate.Write{Key: key, Record: w.value}
	}
	_, err := w.tine.Commit(context.Background(), writes)
	return err
}

func (w *memcachedWork) otherGet(batch memcachedBatch) error {
	items, err := w.other.GetMulti(batch.names)
	if err == nil && len(items) != len(batch.names) {
		err = fmt.Errorf("%d items of %d", len(items), len(batch.names))
	}
	return err
}

func (w *memcachedWork) otherSet(batch memcachedBatch) error {
	for _, name := range batch.names {
		if err := w.other.Set(&memcache.Item{Key: name, Value: w.value}); err != nil {
			return err
		}
	}
	return nil
}
