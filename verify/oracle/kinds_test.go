package oracle_test

import (
	"tine/mapstate"
	"tine/nontx"
	"tine/opaque"
	"tine/transactional"
)

func kinds() []mapstate.Kind {
	return []mapstate.Kind{nontx.Kind{}, transactional.Kind{}, opaque.Kind{}}
}
