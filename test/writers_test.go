package test

import (
	"fmt"

	"pgregory.net/rapid"

	"tine/api"
	"tine/mapstate"
	"tine/mapstate/mapstatetest"
)

// writer is one partition's: its progress, and what it is in the middle of.
type writer struct {
	progress mapstate.Progress
	first    mapstate.TxID
	stride   mapstate.TxID

	open   *mapstate.Envelope // of the open batch
	staged map[mapstate.Key]bool
	// disturbed says that another commit has written what is staged. What the batch
	// sees until it commits is then open; the oracle has it see the other's work.
	disturbed bool
}

func drawWriters(t *rapid.T) []*writer {
	switch rapid.IntRange(0, 3).Draw(t, "writers") {
	case 0:
		return []*writer{newWriter("", 1, 1)}
	case 1: // with txids of their own
		return []*writer{newWriter("", 1, 2), newWriter("second", 2, 2)}
	}
	return []*writer{newWriter("", 1, 1), newWriter("second", 1, 1), newWriter("third", 1, 1)}
}

func newWriter(partition string, first, stride mapstate.TxID) *writer {
	return &writer{progress: mapstate.Progress{Partition: partition}, first: first, stride: stride}
}

// drawTxID draws a txid: a replay's, the next one, a later or an earlier one, or none.
func (w *writer) drawTxID(t *rapid.T) mapstate.TxID {
	last := max(w.progress.TxID, w.first)
	x := last
	switch rapid.IntRange(0, 9).Draw(t, "batch") {
	case 0, 1, 2:
		x = last + w.stride
	case 3:
		x = last + 5*w.stride
	case 4:
		x = max(w.first, last-w.stride)
	case 5, 6:
		x = mapstate.NoTxID
	}
	return x
}

func (w *writer) isOpen(x mapstate.TxID) bool { return w.open != nil && w.open.TxID == x }

// end notes that the open batch of w is over; open is the next one, if there is one.
func (w *writer) end(open *mapstate.Envelope) {
	w.open, w.staged, w.disturbed = open, make(map[mapstate.Key]bool), false
}

func drawOffsets(t *rapid.T) []byte {
	if rapid.IntRange(0, 4).Draw(t, "with offsets") > 0 {
		return nil
	}
	return fmt.Appendf(nil, `{"at":[%d,"é"]}`, rapid.IntRange(0, 99).Draw(t, "offset"))
}

// drawZombie makes some envelopes those of a writer that has been overtaken.
func drawZombie(t *rapid.T, env *mapstate.Envelope) bool {
	if env.Epoch < 2 || rapid.IntRange(0, 3).Draw(t, "zombie") > 0 {
		return false
	}
	env.Epoch--
	return true
}

// keyPool are the keys of histories.
func keyPool() []mapstate.Key {
	return []mapstate.Key{
		mapstatetest.Key("a"), mapstatetest.Key("a", "b"), mapstatetest.Key(1), mapstatetest.Key(true), mapstatetest.Key("é\x00"),
	}
}

func drawKeys(t *rapid.T) []mapstate.Key {
	return rapid.SliceOfN(rapid.SampledFrom(keyPool()), 0, 5).Draw(t, "keys")
}

// drawOp draws an updater that fits any number, or nothing.
func drawOp(t *rapid.T) api.Op {
	return rapid.SampledFrom([]api.Op{
		{Name: "sum", Arg: mapstate.Int(1)}, {Name: "sum", Arg: mapstate.Int(20)}, {Name: "sum", Arg: mapstate.Float(0.5)},
		{Name: "max", Arg: mapstate.Int(7)}, {Name: "first", Arg: mapstate.Int(3)}, {Name: "set", Arg: mapstate.Null},
	}).Draw(t, "op")
}

func drawValue(t *rapid.T) mapstate.Value {
	return rapid.SampledFrom(mapstatetest.Vals(0, -100, 1<<60, 2.0, nil)).Draw(t, "value")
}
