package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

func outputWords() []string { return []string{"table", "json"} }

// print writes value as one line of JSON, or what fill puts into a table, as
// --output asks.
func (c *cli) print(value any, fill func(t *table)) error {
	if c.output == "json" {
		return printJSON(c.out, value)
	}
	t := &table{w: tabwriter.NewWriter(c.out, 0, 0, 2, ' ', 0)}
	fill(t)
	return t.flush()
}

// printJSON writes value as one line.
func printJSON(out io.Writer, value any) error {
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return fmt.Errorf("print the answer: %w", err)
	}
	return nil
}

// table aligns rows of cells. It keeps the first error for flush.
type table struct {
	w   *tabwriter.Writer
	err error
}

// row writes one row.
func (t *table) row(cells ...any) {
	texts := make([]string, len(cells))
	for i, c := range cells {
		texts[i] = fmt.Sprint(c)
	}
	if _, err := fmt.Fprintln(t.w, strings.Join(texts, "\t")); err != nil && t.err == nil {
		t.err = err
	}
}

func (t *table) flush() error {
	if err := t.w.Flush(); err != nil && t.err == nil {
		t.err = err
	}
	if t.err != nil {
		return fmt.Errorf("print the answer: %w", t.err)
	}
	return nil
}
