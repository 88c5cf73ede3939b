package api

import (
	"fmt"

	"tine/mapstate"
)

// Answers are read as strictly as requests, except that members that are not known
// are skipped: the server may be newer.

// answer reads one JSON object and nothing after it.
func (d *decoder) answer(member func(name []byte) error) error {
	if err := d.object(member); err != nil {
		return err
	}
	return d.end()
}

func (d *decoder) skip() error { return d.syntax(d.json.SkipValue()) }

// optionalTxID reads a txid, or null for none.
func (d *decoder) optionalTxID() (mapstate.TxID, error) {
	if d.null() {
		return mapstate.NoTxID, nil
	}
	return d.txid()
}

// count reads an integer that is not negative.
func (d *decoder) count() (int, error) {
	i, err := d.int()
	if err == nil && i < 0 {
		err = fmt.Errorf("%w: got %d, want 0 or more", ErrBadRequest, i)
	}
	return int(i), err
}

func (d *decoder) resultAnswer() (res mapstate.Result, err error) {
	values := false
	err = d.answer(func(name []byte) (err error) {
		switch string(name) {
		case "values":
			values = true
			return d.array("values", func() error { return d.appendValue(&d.values) })
		case "value":
			values = true
			return d.appendValue(&d.values)
		case "applied":
			res.Applied, err = d.count()
		case "replayed":
			res.Replayed, err = d.count()
		case "restored":
			res.Restored, err = d.count()
		case "alreadyCommitted":
			res.AlreadyCommitted, err = d.bool()
		default:
			return d.skip()
		}
		return err
	})
	if err == nil && values {
		res.Values = valuesOf(d.values, string(d.textArena))
	}
	return res, err
}

func (d *decoder) begunAnswer() (begun mapstate.Begun, err error) {
	err = d.answer(func(name []byte) (err error) {
		switch string(name) {
		case "committed":
			var x int64
			x, err = d.int()
			begun.Committed = mapstate.TxID(x)
		case "replay":
			begun.Replay, err = d.bool()
		default:
			return d.skip()
		}
		return err
	})
	return begun, err
}

func (d *decoder) valuesAnswer(want int) ([]mapstate.Value, error) {
	err := d.answer(func(name []byte) error {
		if string(name) != "values" {
			return d.skip()
		}
		return d.array("values", func() error { return d.appendValue(&d.values) })
	})
	if err == nil && len(d.values) != want {
		err = fmt.Errorf("%w: %d values for %d keys", ErrBadRequest, len(d.values), want)
	}
	if err != nil {
		return nil, err
	}
	values := valuesOf(d.values, string(d.textArena))
	for i, v := range values {
		if v == mapstate.Null {
			values[i] = mapstate.Value{}
		}
	}
	return values, nil
}

// draftEntry is an entry while it is read.
type draftEntry struct {
	value, prev draft
	txid        mapstate.TxID
	absent      bool
}

func (e draftEntry) in(arena string) mapstate.Entry {
	entry := mapstate.Entry{Value: e.value.in(arena), Prev: e.prev.in(arena), TxID: e.txid}
	if e.absent {
		entry.Value = mapstate.Value{}
	}
	return entry
}

// entryMember reads one member of an entry.
func (d *decoder) entryMember(name []byte, e *draftEntry) (err error) {
	switch string(name) {
	case "key":
		return d.key()
	case "found":
		var found bool
		found, err = d.bool()
		e.absent = !found
	case "value":
		e.value, err = d.value()
	case "prev":
		e.prev, err = d.value()
	case "txid":
		e.txid, err = d.optionalTxID()
	default:
		return d.skip()
	}
	return err
}

func (d *decoder) snapshotAnswer() (mapstate.Entry, error) {
	var e draftEntry
	err := d.answer(func(name []byte) error { return d.entryMember(name, &e) })
	return e.in(string(d.textArena)), err
}

// entryList reads an array of entries; their keys are left in the arena.
func (d *decoder) entryList() ([]draftEntry, error) {
	var entries []draftEntry
	err := d.array("entries", func() error {
		var e draftEntry
		if err := d.object(func(name []byte) error { return d.entryMember(name, &e) }); err != nil {
			return err
		}
		entries = append(entries, e)
		if len(d.keyEnds) != len(entries) {
			return fmt.Errorf("%w: an entry without a key", ErrBadRequest)
		}
		return nil
	})
	return entries, err
}

func (d *decoder) pageAnswer() (Page, error) {
	var page Page
	var drafts []draftEntry
	err := d.answer(func(name []byte) (err error) {
		switch string(name) {
		case "entries":
			drafts, err = d.entryList()
		case "cursor":
			var text []byte
			text, err = d.string()
			page.Cursor = string(text)
		default:
			return d.skip()
		}
		return err
	})
	if err != nil {
		return Page{}, err
	}
	page.Keys = d.keys()
	page.Entries = make([]mapstate.Entry, len(drafts))
	arena := string(d.textArena)
	for i, e := range drafts {
		page.Entries[i] = e.in(arena)
	}
	return page, nil
}

func (d *decoder) entriesAnswer(want int) ([]mapstate.Entry, error) {
	page, err := d.pageAnswer()
	if err == nil && len(page.Entries) != want {
		err = fmt.Errorf("%w: %d entries for %d keys", ErrBadRequest, len(page.Entries), want)
	}
	return page.Entries, err
}
