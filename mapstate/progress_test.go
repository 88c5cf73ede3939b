package mapstate

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestProgressRoundTrips(t *testing.T) {
	for _, p := range []partition{
		{},
		{Progress: Progress{Partition: "p", TxID: math.MaxInt64, Epoch: math.MaxInt64, Offsets: []byte(`{"a":[1]}`), CommittedAt: time.UnixMilli(1).UTC()}},
		{Progress: Progress{TxID: 7}, id: 1 << 20, chunks: 3, tombstones: 1 << 20, whole: true, open: 8, pending: 9, intents: 2},
	} {
		if p.CommittedAt.IsZero() {
			p.CommittedAt = time.UnixMilli(0).UTC()
		}
		again, err := decodePartition(p.Partition, p.encode())
		require.NoError(t, err)
		require.Equal(t, p, *again)
	}
}

func TestDamagedProgressIsCorrupt(t *testing.T) {
	whole := (&partition{Progress: Progress{TxID: 1 << 40, Epoch: 3, CommittedAt: time.UnixMilli(1 << 40)}, chunks: 2}).encode()
	for n := range whole {
		_, err := decodePartition("p", whole[:n])
		require.ErrorIs(t, err, ErrCorrupt, "the first %d bytes of %d", n, len(whole))
	}
	_, err := decodePartition("p", append([]byte{9}, whole[1:]...))
	require.ErrorIs(t, err, ErrCorrupt)
}

// FuzzTouches: damaged lists of touched keys are corrupt, all others come back.
func FuzzTouches(f *testing.F) {
	f.Add(appendTouch(appendTouch(nil, touch{key: "a"}), touch{key: "b\x00c", tombstone: true}))
	f.Add([]byte{0xff})
	f.Add([]byte{6, 'a'})
	f.Fuzz(func(t *testing.T, chunk []byte) {
		m := NewMemory()
		_, err := m.Commit(context.Background(), Writes{Meta: []MetaWrite{{Name: chunkName("p", 0), Value: chunk}}})
		require.NoError(t, err)
		touches, err := loadTouches(context.Background(), m, chunkPrefix("p"))
		if err != nil {
			require.ErrorIs(t, err, ErrCorrupt)
			return
		}
		var again []byte
		for _, touch := range touches {
			again = appendTouch(again, touch)
		}
		m = NewMemory()
		_, err = m.Commit(context.Background(), Writes{Meta: []MetaWrite{{Name: chunkName("p", 0), Value: again}}})
		require.NoError(t, err)
		same, err := loadTouches(context.Background(), m, chunkPrefix("p"))
		require.NoError(t, err)
		require.Equal(t, touches, same)
	})
}
