package opaque_test

import (
	"testing"

	"tine/mapstate/mapstatetest"
	"tine/opaque"
)

func TestKindFollowsTheTable(t *testing.T) { mapstatetest.TestKind(t, opaque.Kind{}) }

func FuzzDecodeRecord(f *testing.F) { mapstatetest.FuzzRecord(f, opaque.Kind{}) }
