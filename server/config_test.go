package server

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestDefaultConfigIsValid(t *testing.T) {
	require.NoError(t, DefaultConfig().Validate())
}

func TestValidateReportsEveryProblemAtOnce(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Listen = "nowhere"
	cfg.DataDir = ""
	cfg.CacheEntries = -1
	cfg.SyncInterval = 2 * time.Second
	cfg.MaxInFlightBytes = cfg.MaxBodyBytes - 1
	cfg.LogFormat = "xml"
	err := cfg.Validate()
	for _, name := range []string{"listen", "data-dir", "cache-entries", "sync-interval", "max-in-flight-bytes", "log-format"} {
		require.ErrorContains(t, err, name)
	}
	require.NotContains(t, err.Error(), "memtable-bytes", "what is right is not a problem")
	var first *SettingError
	require.ErrorAs(t, err, &first)
	require.Equal(t, "listen", first.Name)
}

func TestValidateRefusesOneAddressForBothListeners(t *testing.T) {
	cfg := DefaultConfig()
	cfg.AdminListen = cfg.Listen
	require.ErrorContains(t, cfg.Validate(), "admin-listen")

	cfg.Listen, cfg.AdminListen = "127.0.0.1:0", "127.0.0.1:0"
	require.NoError(t, cfg.Validate(), "two free ports are two addresses")
}
