package backing

import (
	"runtime"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"tine/mapstate"
	"tine/mapstate/mapstatetest"
)

// The engine panics where one of its batches would exceed 4 GiB.
func TestACommitBeyondTheEnginesBatchIsRefusedBeforeItIsBuilt(t *testing.T) {
	_, p := create(t, vfs.NewMem())
	shared := make([]byte, mapstate.MaxValueBytes)
	var w mapstate.Writes
	for i := range 4097 {
		w.Records = append(w.Records, mapstate.Write{Key: mapstatetest.Key(i), Record: shared})
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := p.Commit(t.Context(), w)
	runtime.ReadMemStats(&after)
	require.ErrorIs(t, err, mapstate.ErrTooLarge)
	require.ErrorContains(t, err, "2147483648", "the limit")
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(1<<20))

	w.Records = w.Records[:4]
	mapstatetest.Commit(t, p, w)
}
