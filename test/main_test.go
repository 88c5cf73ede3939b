// Package test holds what only the whole of Tine can show: rules between
// packages, every kind on every backing, random histories, HTTP stories, the
// scripts of curl/, concurrent writers, and a process that is killed.
//
// Long are TestMatrix, of which each check opens a database of its own, the
// histories, and what builds and runs the binary: TestKilledServersHoldWholeBatches and
// TestTheScriptsOfCurlPass. With -short the histories are fewer and shorter, and
// the binary is left out.
package test

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
