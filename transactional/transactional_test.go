package transactional_test

import (
	"testing"

	"tine/mapstate/mapstatetest"
	"tine/transactional"
)

func TestKindFollowsTheTable(t *testing.T) { mapstatetest.TestKind(t, transactional.Kind{}) }

func FuzzDecodeRecord(f *testing.F) { mapstatetest.FuzzRecord(f, transactional.Kind{}) }
