// Package bench holds the benchmarks that set Tine beside what it is measured
// against, in one run: each benchmark works in turns, so many seconds of one and
// then of the other, and reports both rates and their ratio. Rates are medians
// over the turns.
package bench
