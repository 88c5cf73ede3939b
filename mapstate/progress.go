package mapstate

import (
	"context"
	"encoding/binary"
	"fmt"
	"time"
)

// Progress is where one partition's writer stands: what its last committed
// attempt was, written in the same atomic step as that attempt's records.
type Progress struct {
	Partition   string
	TxID        TxID
	Epoch       int64
	Offsets     []byte // JSON as the writer gave it; nil if never given
	CommittedAt time.Time
}

// partition is a Progress and what its next attempt has to know of the last
// batch's keys. They are kept in the state's meta space:
//
//	"p" partition             version, id, txid, epoch, time in ms, chunks, tombstones, whole, open,
//	                          pending, intents, offsets
//	"t" len partition chunk   the keys that an attempt at the txid touched
//
// Each part of a batch adds a chunk; the next batch starts again from chunk 0.
type partition struct {
	Progress
	id         PartitionID // 0: it has not written under a txid yet
	chunks     int         // chunks stored
	tombstones int         // keys in them that were left as tombstones
	whole      bool        // the last attempt was the commit of an open batch, or declared whole
	open       TxID        // a batch that was begun after it and has not been committed
	pending    TxID        // a batch of which an unfinished attempt may be there in part; see intend
	intents    int         // chunks stored of its keys

	seq uint64 // of its last change, in this process; not stored
}

// mayReplay reports whether an attempt at x may come again.
func (p *partition) mayReplay(x TxID) bool { return p.TxID == x || p.pending == x }

const progressVersion = 2

func progressName(name string) string { return "p" + name }

func chunkPrefix(name string) string { return metaPrefix('t', name) }

func chunkName(name string, n int) string { return numbered(chunkPrefix(name), n) }

// metaPrefix begins the names of a partition's entries of one sort.
func metaPrefix(sort byte, name string) string {
	b := binary.AppendUvarint([]byte{sort}, uint64(len(name)))
	return string(b) + name
}

func numbered(prefix string, n int) string {
	return string(binary.BigEndian.AppendUint32([]byte(prefix), uint32(n)))
}

// encode returns the stored form of p, without its name.
func (p *partition) encode() []byte {
	b := make([]byte, 0, 32+len(p.Offsets))
	b = append(b, progressVersion)
	b = binary.AppendUvarint(b, uint64(p.id))
	b = binary.AppendUvarint(b, uint64(p.TxID))
	b = binary.AppendVarint(b, p.Epoch)
	b = binary.AppendVarint(b, p.CommittedAt.UnixMilli())
	b = binary.AppendUvarint(b, uint64(p.chunks))
	b = binary.AppendUvarint(b, uint64(p.tombstones))
	if p.whole {
		b = append(b, 1)
	} else {
		b = append(b, 0)
	}
	b = binary.AppendUvarint(b, uint64(p.open))
	b = binary.AppendUvarint(b, uint64(p.pending))
	b = binary.AppendUvarint(b, uint64(p.intents))
	return append(b, p.Offsets...)
}

func decodePartition(name string, b []byte) (*partition, error) {
	if len(b) == 0 || b[0] != progressVersion {
		return nil, fmt.Errorf("progress of partition %q: %w: unknown version", name, ErrCorrupt)
	}
	var nums [10]int64
	b = b[1:]
	for i := range nums {
		var n int
		switch i {
		case 2, 3:
			nums[i], n = binary.Varint(b)
		default:
			var u uint64
			u, n = binary.Uvarint(b)
			nums[i] = int64(u)
		}
		if n <= 0 {
			return nil, fmt.Errorf("progress of partition %q: %w: cut short", name, ErrCorrupt)
		}
		b = b[n:]
	}
	p := &partition{
		Progress:   Progress{Partition: name, TxID: TxID(nums[1]), Epoch: nums[2], CommittedAt: time.UnixMilli(nums[3]).UTC()},
		id:         PartitionID(nums[0]),
		chunks:     int(nums[4]),
		tombstones: int(nums[5]),
		whole:      nums[6] != 0,
		open:       TxID(nums[7]),
		pending:    TxID(nums[8]),
		intents:    int(nums[9]),
	}
	if len(b) > 0 {
		p.Offsets = b
	}
	return p, nil
}

// partitions are all partitions of a state.
type partitions struct {
	byName map[string]*partition
	byID   map[PartitionID]*partition
	last   PartitionID // the highest id
}

func (all *partitions) put(p *partition) {
	all.byName[p.Partition] = p
	if p.id != 0 {
		all.byID[p.id] = p
		all.last = max(all.last, p.id)
	}
}

// loadProgress reads the progress of every partition.
func loadProgress(ctx context.Context, from MetaReader) (partitions, error) {
	entries, err := from.Meta(ctx, progressName(""))
	if err != nil {
		return partitions{}, fmt.Errorf("read progress: %w", err)
	}
	all := partitions{
		byName: make(map[string]*partition, len(entries)),
		byID:   make(map[PartitionID]*partition, len(entries)),
	}
	for _, e := range entries {
		name := e.Name[len(progressName("")):]
		p, err := decodePartition(name, e.Value)
		if err != nil {
			return partitions{}, err
		}
		all.put(p)
	}
	return all, nil
}

// touch is a key that an attempt touched.
type touch struct {
	key       Key
	tombstone bool // it left a tombstone
}

// appendTouch appends the stored form of t: the key's length and whether it is a
// tombstone in one uvarint, then the key.
func appendTouch(b []byte, t touch) []byte {
	head := uint64(len(t.key)) << 1
	if t.tombstone {
		head |= 1
	}
	b = binary.AppendUvarint(b, head)
	return append(b, t.key...)
}

// loadTouches reads the lists of keys under a prefix, in the order in which they were
// touched; a key may come more than once.
func loadTouches(ctx context.Context, from MetaReader, prefix string) ([]touch, error) {
	chunks, err := from.Meta(ctx, prefix)
	if err != nil {
		return nil, fmt.Errorf("read the keys of the last batch: %w", err)
	}
	var all []touch
	for _, c := range chunks {
		for b := string(c.Value); b != ""; {
			head, n := uvarint(b)
			size := int(head >> 1)
			if n <= 0 || size > len(b)-n {
				return nil, fmt.Errorf("keys of the last batch, under %q: %w: cut short", c.Name, ErrCorrupt)
			}
			all = append(all, touch{key: Key(b[n : n+size]), tombstone: head&1 != 0})
			b = b[n+size:]
		}
	}
	return all, nil
}

// uvarint is binary.Uvarint for the start of a string.
func uvarint(s string) (uint64, int) {
	return binary.Uvarint([]byte(s[:min(len(s), binary.MaxVarintLen64)]))
}
