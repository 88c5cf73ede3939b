// Package test holds what only the whole of Tine can show: rules between
// packages, every kind on every backing, random histories, HTTP stories, the
// scripts of curl/, concurrent writers, and a process that is killed.
//
// Long are TestMatrix, of which each check opens a database of its own, the
// histories, the clients that stall, and what builds and runs the binary:
// TestKilledServersHoldWholeBatches and TestTheScriptsOfCurlPass. With -short the
// histories are fewer and shorter, and the stalled clients and the binary are left out.
// `make long` kills the server more often and takes more concurrent histories:
//
//	go test ./test -run 'KilledServers|Linearizable' -tine.kills 60 -tine.rounds 100
package test

import (
	"flag"
	"testing"

	"go.uber.org/goleak"
)

var (
	kills  = flag.Int("tine.kills", 3, "how often TestKilledServersHoldWholeBatches ends the server")
	rounds = flag.Int("tine.rounds", 30, "how many histories of each sort TestConcurrentHistoriesAreLinearizable takes")
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
