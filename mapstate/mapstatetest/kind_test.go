package mapstatetest_test

import (
	"testing"

	"tine/mapstate"
	. "tine/mapstate/mapstatetest"
	"tine/nontx"
	"tine/opaque"
	"tine/transactional"
)

func kinds() []mapstate.Kind {
	return []mapstate.Kind{nontx.Kind{}, transactional.Kind{}, opaque.Kind{}}
}

func TestKindsFollowTheTable(t *testing.T) {
	for _, kind := range kinds() {
		t.Run(kind.Name(), func(t *testing.T) { TestKind(t, kind) })
	}
}
