package verify_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tine/verify"
)

// requireClean fails with the whole story of a difference.
func requireClean(t *testing.T, report verify.Report) {
	t.Helper()
	if d := report.Difference; d != nil {
		require.Fail(t, d.Error(), "%s\n%s", d.Text, d.Replay)
	}
}

func TestACleanRunFindsNoDifference(t *testing.T) {
	s := startOurs(t)
	var last time.Duration
	report, err := verify.Run(t.Context(), verify.Options{
		Server: s, Seed: 1, Duration: 2 * time.Second, Kills: 3, BatchIdle: s.config.BatchIdle,
		Progress: func(done, total time.Duration) { last = total - done },
	})
	require.NoError(t, err)
	requireClean(t, report)
	require.Equal(t, len(verify.Histories()), report.States)
	require.EqualValues(t, 3, report.Kills)
	require.EqualValues(t, 1, report.Stops)
	for name, n := range map[string]int64{
		"batches": report.Batches, "keys": report.KeysCompared, "records": report.RecordsCompared, "reads": report.Reads,
	} {
		require.NotZero(t, n, name)
	}
	require.Zero(t, last)
}

func TestARunningServerIsNotKilledAndLeftAsItWas(t *testing.T) {
	h := newHouse(t, fault{})
	_, err := verify.Run(t.Context(), verify.Options{Server: verify.Running(h.URL()), Duration: time.Second, Kills: 1})
	require.ErrorIs(t, err, verify.ErrNotOurs)
	report, err := verify.Run(t.Context(), verify.Options{Server: verify.Running(h.URL()), Duration: time.Second})
	require.NoError(t, err)
	requireClean(t, report)
	require.NotZero(t, report.Batches)
	require.Empty(t, h.List())
}

func TestAnInterruptedRunTellsWhatWasDone(t *testing.T) {
	h := newHouse(t, fault{})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	report, err := verify.Run(ctx, verify.Options{
		Server: verify.Running(h.URL()), Duration: patience,
		Progress: func(done, _ time.Duration) {
			if done > 0 {
				cancel()
			}
		},
	})
	require.NoError(t, err)
	require.True(t, report.Interrupted)
	require.Less(t, report.Seconds, patience.Seconds())
	require.Nil(t, report.Difference)
	require.Empty(t, h.List())
}

func TestAServerThatIsGoneIsAnErrorAndNoDifference(t *testing.T) {
	h := newHouse(t, fault{})
	report, err := verify.Run(t.Context(), verify.Options{
		Server: verify.Running(h.URL()), Duration: patience,
		Progress: func(done, _ time.Duration) {
			if done > 0 {
				h.server.CloseClientConnections()
				h.server.Close()
			}
		},
	})
	require.Error(t, err)
	require.Nil(t, report.Difference)
}
