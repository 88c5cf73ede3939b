package backing

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
)

// answers returns a reader of what a server says, of which each read gets one byte.
func answers(text string) *bufio.Reader {
	return bufio.NewReader(iotest.OneByteReader(strings.NewReader(text)))
}

// got reads the values of the names a, b and c as name=value.
func got(r *bufio.Reader) (string, error) {
	names := [][]byte{[]byte("a"), []byte("b"), []byte("c")}
	values := make([][]byte, len(names))
	err := readValues(r, len(names), func(i int) []byte { return names[i] }, func(i, size int) ([]byte, error) {
		if size > 1<<16 {
			return nil, fmt.Errorf("a value of %d bytes", size)
		}
		values[i] = make([]byte, size)
		return values[i], nil
	})
	var b strings.Builder
	for i, v := range values {
		if v != nil {
			fmt.Fprintf(&b, "%s=%s ", names[i], v)
		}
	}
	return strings.TrimSuffix(b.String(), " "), err
}

func TestMemcachedAnswersToAGet(t *testing.T) {
	for _, c := range []struct{ name, answer, want, err string }{
		{"nothing is there", "END\r\n", "", ""},
		{"all are there", "VALUE a 0 1\r\n1\r\nVALUE b 7 2\r\n22\r\nVALUE c 0 0\r\n\r\nEND\r\n", "a=1 b=22 c=", ""},
		{"some are there", "VALUE b 0 5\r\nEND\r\n\r\nEND\r\n", "b=END\r\n", ""},
		{"with cas", "VALUE a 0 1 99\r\n1\r\nEND\r\n", "", "VALUE a 0 1 99"},
		{"in another order", "VALUE b 0 1\r\n1\r\nVALUE a 0 1\r\n1\r\nEND\r\n", "", `name "a"`},
		{"twice", "VALUE a 0 1\r\n1\r\nVALUE a 0 1\r\n1\r\nEND\r\n", "", `name "a"`},
		{"not asked for", "VALUE d 0 1\r\n1\r\nEND\r\n", "", `name "d"`},
		{"longer than said", "VALUE a 0 1\r\n12\r\nEND\r\n", "", "other length"},
		{"shorter than said", "VALUE a 0 3\r\n1\r\nEND\r\n", "", "other length"},
		{"cut in a line", "VALUE a", "", "unexpected EOF"},
		{"cut in a value", "VALUE a 0 3\r\n1", "", "unexpected EOF"},
		{"cut after a value", "VALUE a 0 1\r\n1\r", "", "unexpected EOF"},
		{"cut between values", "VALUE a 0 1\r\n1\r\n", "", "EOF"},
		{"nothing", "", "", "EOF"},
		{"without CR", "END\n", "", "without CR"},
		{"a line without end", strings.Repeat("x", 10_000), "", "more than 4096 bytes"},
		{"negative size", "VALUE a 0 -1\r\n\r\nEND\r\n", "", "VALUE a 0 -1"},
		{"huge size", "VALUE a 0 99999999999999999999\r\n", "", "9999"},
		{"no size", "VALUE a 0\r\nEND\r\n", "", "VALUE a 0"},
		{"an error", "SERVER_ERROR out of memory\r\n", "", "SERVER_ERROR out of memory"},
	} {
		values, err := got(answers(c.answer))
		if c.err == "" {
			require.NoError(t, err, c.name)
			require.Equal(t, c.want, values, c.name)
			continue
		}
		require.ErrorContains(t, err, c.err, c.name)
	}
}

func TestMemcachedAnswersToWrites(t *testing.T) {
	chunks := []writeChunk{{0, 2}, {2, 3}}
	for _, c := range []struct {
		name   string
		meta   bool
		answer string
		want   *refusal
		err    error
	}{
		{"all done, quietly", true, "MN\r\nMN\r\n", nil, nil},
		{"a quiet delete finds nothing", true, "NF\r\nMN\r\nMN\r\n", nil, nil},
		{"not stored", true, "MN\r\nNS\r\nMN\r\n", &refusal{2, 3, `it said "NS"`, 0}, nil},
		{"two failures", true, "EX\r\nSERVER_ERROR out of memory\r\nMN\r\nMN\r\n", &refusal{0, 2, `it said "EX"`, 1}, nil},
		{"loud", true, "HD\r\nMN\r\nMN\r\n", &refusal{0, 2, `it said "HD"`, 0}, nil},
		{"without CR", true, "MN\nMN\r\nMN\r\n", &refusal{0, 2, `it answered a line without CR: "MN\n"`, 0}, nil},
		{"ends early", true, "MN\r\n", nil, io.EOF},
		{"ends in a line", true, "MN\r\nM", nil, io.ErrUnexpectedEOF},
		{"all done", false, "STORED\r\nDELETED\r\nVERSION 1\r\nSTORED\r\nVERSION 1\r\n", nil, nil},
		{"a delete finds nothing", false, "STORED\r\nNOT_FOUND\r\nVERSION 1\r\nSTORED\r\nVERSION 1\r\n", nil, nil},
		{"one fails", false, "STORED\r\nDELETED\r\nVERSION 1\r\nSERVER_ERROR x\r\nVERSION 1\r\n", &refusal{2, 3, `it said "SERVER_ERROR x"`, 0}, nil},
		{"a delete is stored", false, "STORED\r\nSTORED\r\nVERSION 1\r\nSTORED\r\nVERSION 1\r\n", &refusal{1, 2, `it said "STORED"`, 0}, nil},
		{"one answer too few", false, "STORED\r\nVERSION 1\r\nSTORED\r\nVERSION 1\r\n", &refusal{0, 2, "it answered 1 of 2 writes", 0}, nil},
		{"one answer too many", false, "STORED\r\nDELETED\r\nSTORED\r\nVERSION 1\r\nSTORED\r\nVERSION 1\r\n", &refusal{1, 2, `it said "STORED"`, 1}, nil},
	} {
		refused, err := readWritten(answers(c.answer), c.meta, chunks, func(i int) bool { return i == 1 })
		require.ErrorIs(t, err, c.err, c.name)
		require.Equal(t, c.want, refused, c.name)
	}
}

// FuzzMemcachedAnswers: whatever a server says, what is taken from it is what it
// said of a name that was asked for, and a write counts as done only by one answer.
func FuzzMemcachedAnswers(f *testing.F) {
	f.Add([]byte("VALUE a 0 1\r\n1\r\nVALUE c 7 2\r\n22\r\nEND\r\n"))
	f.Add([]byte("MN\r\nNF\r\nMN\r\n"))
	f.Add([]byte("STORED\r\nDELETED\r\nVERSION 1.4.1\r\nSTORED\r\nVERSION 1.4.1\r\n"))
	f.Add([]byte("STAT item_size_max 1\r\nEND\r\n"))
	f.Add([]byte("SERVER_ERROR\r\n\r\n\x00"))
	f.Fuzz(func(t *testing.T, said []byte) {
		read := func() *bufio.Reader { return bufio.NewReader(bytes.NewReader(said)) }
		if values, err := got(read()); err == nil {
			require.Contains(t, string(said), "END\r\n")
			for v := range strings.SplitSeq(values, " ") {
				if name, _, ok := strings.Cut(v, "="); ok && len(name) == 1 && strings.Contains("abc", name) {
					require.Contains(t, string(said), "VALUE "+name+" ")
				}
			}
		}
		chunks := []writeChunk{{0, 2}, {2, 3}}
		deletes := func(i int) bool { return i == 1 }
		if refused, err := readWritten(read(), true, chunks, deletes); refused == nil && err == nil {
			require.Regexp(t, `^(NF\r\n)*MN\r\n(NF\r\n)*MN\r\n`, string(said))
		}
		if refused, err := readWritten(read(), false, chunks, deletes); refused == nil && err == nil {
			require.Regexp(t, `^STORED\r\n(DELETED|NOT_FOUND)\r\nVERSION [^\n]*\r\nSTORED\r\nVERSION [^\n]*\r\n`, string(said))
		}
		if stats, err := readStats(read()); err == nil && len(stats) > 0 {
			require.Contains(t, string(said), "STAT ")
		}
	})
}

func TestMemcachedMetaCommandsNeedTheirVersion(t *testing.T) {
	for version, want := range map[string]bool{
		"1.6.13": true, "1.6.18": true, "1.6.18_2": true, "1.6.40-rc1": true, "1.7.0": true, "1.10.0": true, "2.0.0": true,
		"1.6.12": false, "1.6.9": false, "1.5.22": false, "1.4.15": false, "0.9.99": false, "1.6": false, "1": false, "": false, "x.y.z": false,
	} {
		require.Equal(t, want, isSince(version, metaSince), version)
	}
}
