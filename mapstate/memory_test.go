package mapstate_test

import (
	"testing"

	"tine/mapstate"
	"tine/mapstate/mapstatetest"
)

func TestMemoryIsABackingMap(t *testing.T) {
	mapstatetest.TestBacking(t, func(testing.TB) mapstatetest.Harness {
		return mapstatetest.Harness{Backing: mapstate.NewMemory()}
	})
}
