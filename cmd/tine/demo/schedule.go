package demo

// Faults counts what was done to the batches on purpose.
type Faults struct {
	Duplicates    int `json:"duplicates"`    // batches sent once more after they were committed
	WrongAttempts int `json:"wrongAttempts"` // batches first sent with other contents under the same txid
	LostAnswers   int `json:"lostAnswers"`   // requests whose connection was cut before the answer was read
	Kills         int `json:"kills"`         // kill -9 of the server with a batch in flight, and restart
}

// batch is a run of words under one txid, and what goes wrong with it besides
// being sent twice.
type batch struct {
	txid  int64
	words []string
	// wrong is an attempt with other contents, sent before the right one: some of
	// the batch's words, some of the next batch's, and one that is in no batch.
	wrong      []string
	loseAnswer bool
	kill       bool
}

// noWord cannot be a word of a text, and must not be left in a state.
const noWord = "never-in-the-text"

// schedule cuts words into batches of n and decides their faults. Every kind of
// fault happens at least once if there is a batch at all, the kill half way.
func schedule(words []string, n int) []batch {
	var batches []batch
	for start := 0; start < len(words); start += n {
		end := min(start+n, len(words))
		next := words[end:min(end+n/2, len(words))]
		i := len(batches)
		b := batch{txid: int64(i) + 1, words: words[start:end], loseAnswer: i%4 == 0}
		if i%3 == 0 {
			b.wrong = append(b.wrong, b.words[:len(b.words)/2]...)
			b.wrong = append(b.wrong, next...)
			b.wrong = append(b.wrong, noWord)
		}
		batches = append(batches, b)
	}
	if len(batches) > 0 {
		batches[len(batches)/2].kill = true
	}
	return batches
}
