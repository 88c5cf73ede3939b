package demo

import _ "embed" // for the text

//go:embed sample.txt
var sample string

// Sample returns a short text to run the demonstration on.
func Sample() []byte { return []byte(sample) }
