package demo

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWordsAreRunsOfLetters(t *testing.T) {
	for text, want := range map[string][]string{
		"":                       nil,
		"  \n\t 12 -- ":          nil,
		"word":                   {"word"},
		"It's a DOG-cat7fish":    {"it", "s", "a", "dog", "cat", "fish"},
		"café\xff\x00na\u00efve": {"caf", "na", "ve"},
	} {
		require.Equal(t, want, Words([]byte(text)), "%q", text)
	}
}

func TestScheduleKeepsEveryWordInOrder(t *testing.T) {
	words := Words(Sample())
	for _, n := range []int{1, 7, 100, len(words), len(words) + 1} {
		var got []string
		for i, b := range schedule(words, n) {
			require.EqualValues(t, i+1, b.txid)
			require.NotEmpty(t, b.words)
			got = append(got, b.words...)
		}
		require.Equal(t, words, got)
	}
}

func TestScheduleHasEveryKindOfFault(t *testing.T) {
	for _, n := range []int{1, 50, 10_000} {
		batches := schedule(Words(Sample()), n)
		has := func(fault func(batch) bool) bool { return slices.ContainsFunc(batches, fault) }
		require.True(t, has(func(b batch) bool { return b.wrong != nil }))
		require.True(t, has(func(b batch) bool { return b.loseAnswer }))
		require.True(t, has(func(b batch) bool { return b.kill }))
	}
	require.Empty(t, schedule(nil, 10))
}
