package server

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tine/mapstate"
)

func TestStopFailsReadinessWhileItStillServes(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t)
	cfg.ShutdownGrace = 2 * time.Second // far longer than the requests below take
	r := start(t, cfg)
	r.createState(t, "s")
	status, _ := r.get(t, "/readyz")
	require.Equal(t, http.StatusOK, status)

	r.stop()
	require.Eventually(t, func() bool {
		status, _ := r.get(t, "/readyz")
		return status == http.StatusServiceUnavailable
	}, time.Minute, time.Millisecond)
	require.ErrorIs(t, r.api().Ready(t.Context()), mapstate.ErrShuttingDown)
	_, err := r.api().States(t.Context())
	require.NoError(t, err, "requests are served during the grace")
}

func TestStopRefusesNewRequestsAndFinishesThoseUnderWay(t *testing.T) {
	r := start(t, testConfig(t))
	r.createState(t, "s")
	slow := r.startRequest(t, "s")
	r.stop()
	require.Eventually(t, func() bool {
		_, err := r.api().States(t.Context())
		return err != nil
	}, time.Minute, time.Millisecond)
	_, err := r.api().States(t.Context())
	require.ErrorIs(t, err, mapstate.ErrShuttingDown)
	requireRunning(t, r)
	require.Equal(t, http.StatusOK, slow.finish(t))
	require.NoError(t, r.wait())
}

func TestStopCutsOffRequestsThatDoNotFinishInTime(t *testing.T) {
	cfg := testConfig(t)
	cfg.ShutdownTimeout = 20 * time.Millisecond
	var log logText
	r := startLogging(t, cfg, &log)
	r.createState(t, "s")
	r.startRequest(t, "s")
	require.NoError(t, r.wait(), "the store is whole all the same")
	require.Contains(t, log.String(), "connections=1", "it is told")
}

func requireRunning(t *testing.T, r *running) {
	t.Helper()
	select {
	case err := <-r.ended:
		require.Fail(t, "the server has ended", "%v", err)
	default:
	}
}
