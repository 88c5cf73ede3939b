package nontx_test

import (
	"testing"

	"tine/mapstate/mapstatetest"
	"tine/nontx"
)

func TestKindFollowsTheTable(t *testing.T) { mapstatetest.TestKind(t, nontx.Kind{}) }

func FuzzDecodeRecord(f *testing.F) { mapstatetest.FuzzRecord(f, nontx.Kind{}) }
