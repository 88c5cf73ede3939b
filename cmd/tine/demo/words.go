package demo

// Words splits a text into lower-cased words, runs of the ASCII letters; every
// other byte separates. In the C locale it finds what this does:
//
//	tr -cs 'A-Za-z' '\n' | tr A-Z a-z | sed '/^$/d'
func Words(text []byte) []string {
	var words []string
	var word []byte
	for _, c := range text {
		switch {
		case 'a' <= c && c <= 'z':
			word = append(word, c)
		case 'A' <= c && c <= 'Z':
			word = append(word, c-'A'+'a')
		case len(word) > 0:
			words, word = append(words, string(word)), word[:0]
		}
	}
	if len(word) > 0 {
		words = append(words, string(word))
	}
	return words
}

// Count returns how often each word occurs.
func Count(words []string) map[string]int64 {
	counts := make(map[string]int64)
	for _, w := range words {
		counts[w]++
	}
	return counts
}
