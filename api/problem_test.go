package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"tine/mapstate"
)

func TestEveryKindOfProblemMapsBackToItsError(t *testing.T) {
	names := map[string]bool{}
	for _, kind := range problemKinds {
		require.False(t, names[kind.name], kind.name)
		names[kind.name] = true
		p := newProblem(fmt.Errorf("doing something: %w", kind.err), "id")
		require.Equal(t, kind.status, p.Status)
		require.Equal(t, kind.code, p.Code)
		require.Equal(t, kind.title, p.Title)

		var back Problem
		require.NoError(t, json.Unmarshal(p.appendJSON(nil), &back))
		require.ErrorIs(t, &back, kind.err)
		for _, other := range problemKinds {
			if !errors.Is(kind.err, other.err) {
				require.NotErrorIs(t, &back, other.err)
			}
		}
	}
}

func TestEverySentinelThatACallerCanCauseHasItsStatus(t *testing.T) {
	for err, status := range map[error]int{
		mapstate.ErrInvalidKey: 400, mapstate.ErrInvalidValue: 400, mapstate.ErrInvalidTxID: 400, mapstate.ErrUnknownUpdater: 400,
		mapstate.ErrUnknownState: 404, mapstate.ErrStaleTx: 409, mapstate.ErrFenced: 409, mapstate.ErrStateExists: 409,
		mapstate.ErrNoOpenBatch: 409, mapstate.ErrTooLarge: 413, mapstate.ErrUpdaterType: 422, mapstate.ErrUpdaterOverflow: 422,
		mapstate.ErrOverloaded: 429, mapstate.ErrUnsupported: 501, mapstate.ErrUnavailable: 503, mapstate.ErrShuttingDown: 503,
		mapstate.ErrDiskFull: 507, mapstate.ErrCorrupt: 500, mapstate.ErrLocked: 500, errors.New("anything else"): 500,
	} {
		require.Equal(t, status, newProblem(&mapstate.KeyError{Err: err}, "").Status, err)
	}
}

// A server that is newer may send a type that the client does not know.
func TestAnUnknownTypeFallsBackOnTheCode(t *testing.T) {
	require.ErrorIs(t, &Problem{Type: "urn:tine:problem:newer", Code: "stale_txid"}, mapstate.ErrStaleTx)
	require.ErrorIs(t, &Problem{Type: "about:blank", Code: "newer"}, ErrInternal)
}

func TestAProblemMendsTextThatIsNotUTF8(t *testing.T) {
	text := newProblem(fmt.Errorf("%w: \xff\n", ErrBadRequest), "id").appendJSON(nil)
	require.Contains(t, string(text), `"detail":"bad request: �\n"`)
}

// The snapshot has no key that could be shown.
func TestAProblemOfTheSnapshotHasNoKey(t *testing.T) {
	p := newProblem(&mapstate.KeyError{Key: mapstate.SnapshotKey, Err: mapstate.ErrUpdaterType}, "")
	require.Nil(t, p.Key)
	require.Nil(t, p.Index)
}
