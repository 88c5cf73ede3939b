package mapstate_test

import (
	"testing"

	"tine/mapstate"
	"tine/mapstate/mapstatetest"
	"tine/nontx"
	"tine/opaque"
	"tine/transactional"
)

func TestMapKeepsItsPromisesInMemory(t *testing.T) {
	for _, kind := range []mapstate.Kind{nontx.Kind{}, transactional.Kind{}, opaque.Kind{}} {
		t.Run(kind.Name(), func(t *testing.T) {
			mapstatetest.TestMap(t, kind, func(testing.TB) mapstatetest.Harness {
				m := mapstate.NewMemory()
				return mapstatetest.Harness{Backing: m, Reopen: func() mapstate.BackingMap { return m }}
			})
		})
	}
}
