package main

import (
	"encoding/json"

	"tine/mapstate"
)

// entryJSON is an entry as the API shows it.
type entryJSON struct {
	Key   json.RawMessage `json:"key,omitempty"`
	Found *bool           `json:"found,omitempty"`
	Value json.RawMessage `json:"value"`
	Prev  json.RawMessage `json:"prev,omitempty"`
	TxID  mapstate.TxID   `json:"txid,omitempty"`
}

func newEntryJSON(key mapstate.Key, e mapstate.Entry) entryJSON {
	j := entryJSON{Value: e.Value.AppendJSON(nil), TxID: e.TxID}
	if key != mapstate.SnapshotKey {
		j.Key = key.AppendJSON(nil)
	}
	if !e.Prev.IsNone() {
		j.Prev = e.Prev.AppendJSON(nil)
	}
	return j
}

// withFound says whether the entry is there.
func (j entryJSON) withFound(e mapstate.Entry) entryJSON {
	found := !e.Value.IsNone()
	j.Found = &found
	return j
}

// cell shows a value in a table, where no value is a dash.
func cell(v mapstate.Value) string {
	if v.IsNone() {
		return "-"
	}
	return v.String()
}

// txidCell shows a txid in a table, where none is a dash.
func txidCell(x mapstate.TxID) any {
	if x == mapstate.NoTxID {
		return "-"
	}
	return x
}

// entryTable fills a table with entries, one per key.
func entryTable(keys []mapstate.Key, entries []mapstate.Entry) func(*table) {
	return func(t *table) {
		t.row("KEY", "VALUE", "PREV", "TXID")
		for i, e := range entries {
			t.row(keys[i], cell(e.Value), cell(e.Prev), txidCell(e.TxID))
		}
	}
}
