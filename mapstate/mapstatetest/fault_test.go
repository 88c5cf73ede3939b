package mapstatetest_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"tine/mapstate"
	"tine/mapstate/mapstatetest"
)

func TestFaultIsABackingMap(t *testing.T) {
	mapstatetest.TestBacking(t, func(testing.TB) mapstatetest.Harness {
		return mapstatetest.Harness{Backing: mapstatetest.NewFault(mapstate.NewMemory())}
	})
}

func TestFaultStrikesOnceAtTheCallItWasOrderedFor(t *testing.T) {
	fault := mapstatetest.NewFault(mapstate.NewMemory())
	broken := errors.New("broken")
	fault.FailGet(2, broken)
	for _, want := range []error{nil, broken, nil} {
		_, err := fault.MultiGet(t.Context(), []mapstate.Key{"k"})
		require.ErrorIs(t, err, want)
	}
}

func TestFaultStrikesACommitAtTheMomentGiven(t *testing.T) {
	broken := errors.New("broken")
	for name, c := range map[string]struct {
		at         mapstatetest.Moment
		commitErr  error
		wantRecord []byte
	}{
		"before the write": {mapstatetest.BeforeWrite, broken, nil},
		"after the write":  {mapstatetest.AfterWrite, broken, []byte("v")},
		"in the wait":      {mapstatetest.InWait, nil, []byte("v")},
		"half way":         {mapstatetest.HalfWay, broken, nil}, // the first record is not in the half
	} {
		t.Run(name, func(t *testing.T) {
			fault := mapstatetest.NewFault(mapstate.NewMemory())
			fault.FailCommit(1, c.at, broken)
			d, err := fault.Commit(t.Context(), mapstate.Writes{Records: []mapstate.Write{{Key: "k", Record: []byte("v")}}})
			require.ErrorIs(t, err, c.commitErr)
			if c.at == mapstatetest.InWait {
				require.ErrorIs(t, d.Wait(), broken)
			}
			records, err := fault.MultiGet(t.Context(), []mapstate.Key{"k"})
			require.NoError(t, err)
			require.Equal(t, [][]byte{c.wantRecord}, records)
		})
	}
}
