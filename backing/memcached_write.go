package backing

import (
	"fmt"
	"strconv"
	"sync"

	"tine/mapstate"
)

// A chunk of writes has at most so many keys, and is closed once it has so many bytes.
const (
	chunkKeys  = 1000
	chunkBytes = 1 << 20
	// sendBytes is how much is encoded before it is sent, so that the server works
	// while the next is encoded.
	sendBytes = 32 << 10
)

// memcachedPut is what one commit writes to one server.
type memcachedPut struct {
	naming naming
	writes []mapstate.Write // of the whole commit
	at     []int32          // those of this server
	names  nameList         // theirs
	chunks []writeChunk

	buffers *sendBuffers
	conn    *memcachedConn
}

// nameList is a list of names in one buffer.
type nameList struct {
	bytes []byte
	ends  []int32
}

// newNameList returns a list with room for n names of usual length.
func newNameList(n int) nameList {
	const usual = 32
	return nameList{bytes: make([]byte, 0, n*usual), ends: make([]int32, 0, n)}
}

func (l *nameList) add(name []byte) {
	l.bytes = append(l.bytes, name...)
	l.ends = append(l.ends, int32(len(l.bytes)))
}

func (l *nameList) name(i int) []byte {
	if i == 0 {
		return l.bytes[:l.ends[0]]
	}
	return l.bytes[l.ends[i-1]:l.ends[i]]
}

// add adds the write at a position of the commit.
func (p *memcachedPut) add(i int32, name []byte, bytesInChunk *int) {
	n := len(p.at)
	p.at = append(p.at, i)
	p.names.add(name)
	last := len(p.chunks) - 1
	if last < 0 || n-p.chunks[last].from >= chunkKeys || *bytesInChunk >= chunkBytes {
		p.chunks = append(p.chunks, writeChunk{from: n})
		last, *bytesInChunk = last+1, 0
	}
	p.chunks[last].to = n + 1
	*bytesInChunk += len(name) + len(p.writes[i].Record)
}

func (p *memcachedPut) write(n int) mapstate.Write { return p.writes[p.at[n]] }

func (p *memcachedPut) deletes(n int) bool { return p.write(n).Record == nil }

// check refuses records that the server of the connection has no place for.
func (p *memcachedPut) check(addr string) error {
	if p.conn.itemLimit == 0 {
		return nil
	}
	for n := range p.at {
		w, name := p.write(n), p.names.name(n)
		if w.Record == nil {
			continue
		}
		if size := int64(itemOverhead + len(name) + p.naming.valueSize(name, w)); size > p.conn.itemLimit {
			return fmt.Errorf("memcached %s: key %s: %w", addr, w.Key, &mapstate.LimitError{
				What: "record with its name as an item of the server (memcached -I)", Got: size, Limit: p.conn.itemLimit})
		}
	}
	return nil
}

// sendBuffers keeps the buffers of writes.
type sendBuffers struct{ sync.Pool }

func (b *sendBuffers) get() *[]byte {
	if buf, ok := b.Get().(*[]byte); ok {
		return buf
	}
	buf := make([]byte, 0, 2*sendBytes)
	return &buf
}

// put keeps a buffer, unless it is large.
func (b *sendBuffers) put(buf *[]byte) {
	if cap(*buf) <= 16*sendBytes {
		b.Put(buf)
	}
}

// send writes the chunks to the connection.
func (p *memcachedPut) send(c *memcachedConn) error {
	kept := p.buffers.get()
	buf := (*kept)[:0]
	defer func() {
		*kept = buf
		p.buffers.put(kept)
	}()
	for _, chunk := range p.chunks {
		for n := chunk.from; n < chunk.to; n++ {
			buf = p.appendCommand(buf, n, c.meta)
			if len(buf) >= sendBytes {
				if _, err := c.nc.Write(buf); err != nil {
					return err
				}
				buf = buf[:0]
			}
		}
		if c.meta {
			buf = append(buf, "mn\r\n"...)
		} else {
			buf = append(buf, "version\r\n"...)
		}
	}
	_, err := c.nc.Write(buf)
	return err
}

// appendCommand appends the command of one write: of the meta protocol a quiet
// one, which is answered only if it fails.
func (p *memcachedPut) appendCommand(buf []byte, n int, meta bool) []byte {
	w, name := p.write(n), p.names.name(n)
	switch {
	case w.Record == nil && meta:
		return append(append(append(buf, "md "...), name...), " q\r\n"...)
	case w.Record == nil:
		return append(append(append(buf, "delete "...), name...), "\r\n"...)
	case meta:
		buf = append(append(append(buf, "ms "...), name...), ' ')
	default:
		buf = append(append(append(buf, "set "...), name...), " 0 0 "...)
	}
	buf = strconv.AppendInt(buf, int64(p.naming.valueSize(name, w)), 10)
	if meta {
		buf = append(buf, " q"...)
	}
	buf = append(buf, "\r\n"...)
	buf = p.naming.appendValue(buf, name, w)
	return append(buf, "\r\n"...)
}

// outcome is the error of a write that has been answered, nil if all was done.
func (p *memcachedPut) outcome(s *memcachedServer, unsent error, got written) error {
	what := fmt.Sprintf("write of %d keys", len(p.at))
	switch {
	case got.refusal != nil:
		return s.unavailable(what, p.refused(got.refusal))
	case got.err != nil:
		return s.unavailable(what, explain(got.err, 0))
	case unsent != nil:
		return s.unavailable(what, explain(unsent, 0))
	}
	return nil
}

func (p *memcachedPut) refused(r *refusal) error {
	key := "key " + p.write(r.from).Key.String()
	if p.write(r.from).Key == mapstate.SnapshotKey {
		key = "the snapshot"
	}
	if n := r.to - r.from; n > 1 {
		key = fmt.Sprintf("one of %d keys from %s on", n, key)
	}
	if r.more > 0 {
		return fmt.Errorf("%s: %s, and %d more such answers", key, r.said, r.more)
	}
	return fmt.Errorf("%s: %s", key, r.said)
}
