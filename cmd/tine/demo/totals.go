package demo

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"tine/api"
	"tine/mapstate"
)

// totals reads the count of every word from a state.
func (w *writer) totals(ctx context.Context, state string) (map[string]int64, error) {
	counts := make(map[string]int64)
	err := w.client.Scan(ctx, state, api.Listing{}, func(key mapstate.Key, e mapstate.Entry) error {
		elements, err := key.Elements()
		if err != nil {
			return err
		}
		n, ok := e.Value.AsInt()
		if len(elements) != 1 || elements[0].Type() != mapstate.TypeString || !ok {
			return fmt.Errorf("entry %s is %s, want the count of a word", key, e.Value)
		}
		counts[elements[0].Text()] = n
		return nil
	})
	return counts, err
}

// differences says, in order of words, where got is not want.
func differences(state string, want, got map[string]int64) []string {
	var lines []string
	for _, word := range slices.Sorted(maps.Keys(want)) {
		if n, ok := got[word]; !ok || n != want[word] {
			lines = append(lines, fmt.Sprintf("%s: %q is %d, want %d", state, word, n, want[word]))
		}
	}
	for _, word := range slices.Sorted(maps.Keys(got)) {
		if _, ok := want[word]; !ok {
			lines = append(lines, fmt.Sprintf("%s: %q is %d, want it absent", state, word, got[word]))
		}
	}
	return lines
}
