package test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"tine/mapstate"
	"tine/mapstate/mapstatetest"
)

// recordsIn counts the records of a store, those of removed keys too.
func recordsIn(t *testing.T, store mapstate.BackingMap) int {
	t.Helper()
	n := 0
	require.NoError(t, store.Scan(t.Context(), mapstate.Range{}, func(mapstate.Key, []byte) error {
		n++
		return nil
	}))
	return n
}

// Tombstones that a crash of the machine finds waiting are swept by the next batch.
func TestTombstonesAreSweptAfterARestart(t *testing.T) {
	for _, kind := range kindNames {
		t.Run(kind, func(t *testing.T) {
			h := openPebbleInMemory(t)
			const removed = 50
			keys := make([]mapstate.Key, 1+removed)
			values := make([]mapstate.Value, len(keys))
			for i := range keys {
				keys[i], values[i] = mapstatetest.Key(i), mapstate.Int(int64(i))
			}
			m := openMap(t, kind, 0, h.Backing)
			_, err := m.Put(t.Context(), mapstate.Envelope{TxID: 1}, keys, values)
			require.NoError(t, err)
			_, err = m.Remove(t.Context(), mapstate.Envelope{TxID: 2}, keys[1:])
			require.NoError(t, err)
			m.Close(mapstate.ErrShuttingDown)

			store := h.Reopen()
			m = openMap(t, kind, 0, store)
			waiting := map[string]int{"nontx": 0, "transactional": removed, "opaque": removed}[kind]
			require.Equal(t, 1+waiting, recordsIn(t, store), "before the next batch")
			_, err = m.Put(t.Context(), mapstate.Envelope{TxID: 3}, keys[:1], values[:1])
			require.NoError(t, err)
			require.Equal(t, 1, recordsIn(t, store))
			m.Close(mapstate.ErrShuttingDown)
			require.Equal(t, 1, recordsIn(t, h.Reopen()), "the sweep is not on disk")
		})
	}
}
