package api

import (
	"strconv"
	"time"

	"tine/mapstate"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// StateInfo is a state as GET shows it.
type StateInfo struct {
	Name         string              `json:"name"`
	Kind         string              `json:"kind"`
	Backing      string              `json:"backing"`
	Cache        *CacheSpec          `json:"cache,omitempty"`
	Durability   string              `json:"durability,omitempty"`
	Memcached    *MemcachedSpec      `json:"memcached,omitempty"`
	Capabilities Capabilities        `json:"capabilities"`
	Progress     []PartitionProgress `json:"progress"`
	Stats        StateStats          `json:"stats"`
}

// StateStats are counts since the server opened the state.
type StateStats struct {
	Commits     int64       `json:"commits"`
	Keys        int64       `json:"keys"` // written by commits
	Replayed    int64       `json:"replayed"`
	Restored    int64       `json:"restored"`
	Stale       int64       `json:"stale"`              // operations refused as stale
	Forgotten   int64       `json:"forgotten,omitzero"` // keys that the backing has lost, as far as it was noticed
	OpenBatches int64       `json:"openBatches"`
	Waiting     int64       `json:"waiting"` // requests that wait for the state
	Cache       *CacheStats `json:"cache,omitempty"`
}

// PartitionProgress is the last commit of one partition.
type PartitionProgress struct {
	Partition   string         `json:"partition"`
	TxID        mapstate.TxID  `json:"txid"`
	Epoch       int64          `json:"epoch"`
	Offsets     jsontext.Value `json:"offsets"` // null: never given
	CommittedAt time.Time      `json:"committedAt"`
}

// infoOf describes a state.
func infoOf(s *NamedState) StateInfo {
	stats := s.Map.Stats()
	info := StateInfo{
		Name: s.Name, Kind: s.Spec.Kind, Backing: s.Spec.Backing, Cache: s.Spec.Cache, Durability: s.Spec.Durability,
		Memcached:    s.Spec.Memcached,
		Capabilities: s.Capabilities,
		Progress:     progressOf(s.Map),
		Stats: StateStats{
			Commits: stats.Commits, Keys: stats.Keys, Replayed: stats.Replayed, Restored: stats.Restored,
			Stale: stats.Stale, Forgotten: stats.Forgotten, OpenBatches: stats.Open, Waiting: stats.Waiting,
		},
	}
	if s.CacheStats != nil {
		cache := s.CacheStats()
		info.Stats.Cache = &cache
	}
	return info
}

func progressOf(m *mapstate.Map) []PartitionProgress {
	partitions := []PartitionProgress{}
	for _, p := range m.Progress() {
		partitions = append(partitions, PartitionProgress{
			Partition: p.Partition, TxID: p.TxID, Epoch: p.Epoch, Offsets: p.Offsets, CommittedAt: p.CommittedAt.UTC(),
		})
	}
	return partitions
}

// appendDocument appends an answer that is not on a hot path.
func appendDocument(dst []byte, document any) ([]byte, error) {
	text, err := json.Marshal(document)
	return append(dst, text...), err
}

// appendResult appends the answer to a write.
func appendResult(dst []byte, x mapstate.TxID, res *mapstate.Result, withValues bool) []byte {
	dst = appendTxID(append(dst, `{"txid":`...), x)
	if withValues {
		dst = appendValues(append(dst, `,"values":`...), res.Values)
	}
	return append(appendCounts(dst, res), '}')
}

// appendSnapshotResult appends the answer to an update of the snapshot.
func appendSnapshotResult(dst []byte, x mapstate.TxID, res *mapstate.Result) []byte {
	dst = appendTxID(append(dst, `{"txid":`...), x)
	dst = res.Values[0].AppendJSON(append(dst, `,"value":`...))
	return append(appendCounts(dst, res), '}')
}

func appendCounts(dst []byte, res *mapstate.Result) []byte {
	dst = strconv.AppendInt(append(dst, `,"applied":`...), int64(res.Applied), 10)
	dst = strconv.AppendInt(append(dst, `,"replayed":`...), int64(res.Replayed), 10)
	dst = strconv.AppendInt(append(dst, `,"restored":`...), int64(res.Restored), 10)
	if res.AlreadyCommitted {
		dst = append(dst, `,"alreadyCommitted":true`...)
	}
	return dst
}

func appendTxID(dst []byte, x mapstate.TxID) []byte {
	if x == mapstate.NoTxID {
		return append(dst, "null"...)
	}
	return strconv.AppendInt(dst, int64(x), 10)
}

func appendValues(dst []byte, values []mapstate.Value) []byte {
	dst = append(dst, '[')
	for i, v := range values {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = v.AppendJSON(dst)
	}
	return append(dst, ']')
}

func appendKeys(dst []byte, keys []mapstate.Key) []byte {
	dst = append(dst, '[')
	for i, k := range keys {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = k.AppendJSON(dst)
	}
	return append(dst, ']')
}

// appendFound appends an entry that says whether it is there, without its key.
func appendFound(dst []byte, e mapstate.Entry) []byte {
	dst = strconv.AppendBool(append(dst, `"found":`...), !e.Value.IsNone())
	return appendEntry(append(dst, ','), e)
}

// appendEntry appends the members of an entry other than its key.
func appendEntry(dst []byte, e mapstate.Entry) []byte {
	dst = e.Value.AppendJSON(append(dst, `"value":`...))
	if !e.Prev.IsNone() {
		dst = e.Prev.AppendJSON(append(dst, `,"prev":`...))
	}
	if e.TxID != mapstate.NoTxID {
		dst = appendTxID(append(dst, `,"txid":`...), e.TxID)
	}
	return dst
}

// appendKeyedEntry appends one entry of a listing.
func appendKeyedEntry(dst []byte, k mapstate.Key, e mapstate.Entry) []byte {
	dst = k.AppendJSON(append(dst, `{"key":`...))
	return append(appendEntry(append(dst, ','), e), '}')
}

func appendBegun(dst []byte, env *mapstate.Envelope, begun mapstate.Begun) []byte {
	dst = appendTxID(append(dst, `{"txid":`...), env.TxID)
	dst = mapstate.AppendQuoted(append(dst, `,"partition":`...), env.Partition)
	dst = strconv.AppendInt(append(dst, `,"committed":`...), int64(begun.Committed), 10)
	dst = strconv.AppendBool(append(dst, `,"replay":`...), begun.Replay)
	return append(dst, '}')
}
