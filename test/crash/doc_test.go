// Package crash puts the whole of a state, kind, Map, LRU and Pebble, on a disk on
// which everything goes wrong: the machine crashes before any write, any write
// fails, files are damaged, the disk is full.
//
// The machine crashes before every third write of one history, and every seventh
// write fails; with -short it is every 13th; with -tine.long every write of many
// histories.
package crash

import (
	"flag"
	"os"
	"testing"
)

// longRun is read by the tests once the flags are parsed.
var longRun = flag.Bool("tine.long", false, "many histories, not one")

// unitsPerState is how long a history is.
const unitsPerState = 30

// seeds is how many histories there are.
func seeds() int {
	if *longRun {
		return 24
	}
	return 1
}

// stride is how many writes a loop goes on by: a prime where it is not one, so that no
// operation of a repeated sequence is left out.
func stride() int {
	switch {
	case *longRun:
		return 1
	case testing.Short():
		return 13
	}
	return 3
}

// faultStride is stride for writes that fail. It is odd: by turns they are carried
// out all the same.
func faultStride() int {
	if stride() == 3 {
		return 7
	}
	return stride()
}

// TestMain does not look for goroutines that are left: a store that cannot be
// written is left as it is, to the end of the process.
func TestMain(m *testing.M) { os.Exit(m.Run()) }
