// Package test holds what only the whole of Tine can show: rules between
// packages, every kind on every backing, random histories, HTTP stories, the
// scripts of curl/, concurrent writers, and a process that is killed.
//
// Long are TestMatrix (each check opens a database of its own), the history
// tests, TestTheScriptsOfCurlRun and the tests of the built binary, which first
// build it. With -short the histories are few, and what needs the binary is left
// out.
package test

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
