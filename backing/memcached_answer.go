package backing

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// A garbled answer is none to what was asked: the connection is out of step.
type garbledError struct{ what string }

func (e *garbledError) Error() string { return e.what }

func garbled(format string, args ...any) error {
	return &garbledError{what: fmt.Sprintf(format, args...)}
}

// quoted is a line as an error shows it.
func quoted(line []byte) string {
	const most = 120
	if len(line) > most {
		return fmt.Sprintf("%q...", line[:most])
	}
	return fmt.Sprintf("%q", line)
}

// readLine returns the next line without its CRLF, valid until the next read. A
// line that the reader cannot hold, or without CR, is garbled; it has been read then,
// or as much of it as the reader holds.
func readLine(r *bufio.Reader) ([]byte, error) {
	line, err := r.ReadSlice('\n')
	switch {
	case errors.Is(err, bufio.ErrBufferFull):
		return nil, garbled("it answered a line of more than %d bytes: %s", r.Size(), quoted(line))
	case errors.Is(err, io.EOF) && len(line) > 0:
		return nil, fmt.Errorf("%w within the line %s", io.ErrUnexpectedEOF, quoted(line))
	case err != nil:
		return nil, err
	}
	text, ok := bytes.CutSuffix(line, []byte("\r\n"))
	if !ok {
		return nil, garbled("it answered a line without CR: %s", quoted(line))
	}
	return text, nil
}

// readValues reads the answer to one get of n names: VALUEs of some of them, in
// the order of names, and END. take is called with the position and the size of
// each value, and returns the memory for it.
func readValues(r *bufio.Reader, n int, name func(int) []byte, take func(i, size int) ([]byte, error)) error {
	next := 0
	for {
		line, err := readLine(r)
		if err != nil {
			return err
		}
		if string(line) == "END" {
			return nil
		}
		key, size, ok := parseValueLine(line)
		if !ok {
			return garbled("it answered %s to a get", quoted(line))
		}
		for next < n && !bytes.Equal(name(next), key) {
			next++
		}
		if next == n {
			return garbled("it answered with the name %s, which was not asked for, or not there", quoted(key))
		}
		value, err := take(next, size)
		if err != nil {
			return err
		}
		next++
		if err := readBody(r, value); err != nil {
			return err
		}
	}
}

// readBody fills value with the bytes that follow and reads their CRLF.
func readBody(r *bufio.Reader, value []byte) error {
	if _, err := io.ReadFull(r, value); err != nil {
		return noEOF(err)
	}
	end, err := r.Peek(2)
	if err != nil {
		return noEOF(err)
	}
	if string(end) != "\r\n" {
		return garbled("it answered a value of other length than it said: %s follows", quoted(end))
	}
	_, err = r.Discard(2)
	return err
}

// noEOF is err inside an answer, where an end is unexpected.
func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// maxValueLineBytes bounds what a server may claim a value to have.
const maxValueLineBytes = 1 << 30

// parseValueLine parses VALUE name flags size.
func parseValueLine(line []byte) (name []byte, size int, ok bool) {
	rest, ok := bytes.CutPrefix(line, []byte("VALUE "))
	if !ok {
		return nil, 0, false
	}
	name, rest, _ = bytes.Cut(rest, []byte{' '})
	flags, digits, _ := bytes.Cut(rest, []byte{' '})
	if _, ok := parseCount(flags, 1<<32-1); !ok {
		return nil, 0, false
	}
	size, ok = parseCount(digits, maxValueLineBytes)
	return name, size, ok
}

// parseCount parses decimal digits up to most.
func parseCount(digits []byte, most int) (int, bool) {
	n := 0
	for _, c := range digits {
		if c < '0' || c > '9' {
			return 0, false
		}
		if n = 10*n + int(c-'0'); n > most {
			return 0, false
		}
	}
	return n, len(digits) > 0
}

// writeChunk is a stretch of the writes to one server that ends with a command whose
// answer closes it.
type writeChunk struct{ from, to int }

// refusal is what a server said of writes that it did not do.
type refusal struct {
	from, to int // it is one of these
	said     string
	more     int // further ones
}

// readWritten reads the answers to chunks of writes up to the last closing one,
// whatever else comes in between, and returns the first refusal. An error says that
// the connection ended before.
func readWritten(r *bufio.Reader, meta bool, chunks []writeChunk, deletes func(int) bool) (*refusal, error) {
	var first *refusal
	refuse := func(from, to int, said string) {
		if first == nil {
			first = &refusal{from: from, to: to, said: said, more: -1}
		}
		first.more++
	}
	for _, chunk := range chunks {
		at := chunk.from // the next that the plain protocol answers
		for {
			line, err := readLine(r)
			var g *garbledError
			if errors.As(err, &g) {
				refuse(chunk.from, chunk.to, g.what)
				continue
			}
			if err != nil {
				return first, err
			}
			if meta {
				if string(line) == "MN" {
					break
				}
				if string(line) != "NF" { // of a quiet delete
					refuse(chunk.from, chunk.to, "it said "+quoted(line))
				}
				continue
			}
			if bytes.HasPrefix(line, []byte("VERSION ")) {
				if at != chunk.to {
					refuse(chunk.from, chunk.to, fmt.Sprintf("it answered %d of %d writes", at-chunk.from, chunk.to-chunk.from))
				}
				break
			}
			if at >= chunk.to || !isDone(line, deletes(at)) {
				refuse(min(at, chunk.to-1), min(at+1, chunk.to), "it said "+quoted(line))
			}
			at++
		}
	}
	return first, nil
}

// isDone reports whether a line of the plain protocol says that a write was done.
func isDone(line []byte, deleted bool) bool {
	if deleted {
		return string(line) == "DELETED" || string(line) == "NOT_FOUND"
	}
	return string(line) == "STORED"
}

// readStats reads the answer to stats: STAT name value, and END. A server that does
// not know the command has none.
func readStats(r *bufio.Reader) (map[string]string, error) {
	stats := make(map[string]string)
	for {
		line, err := readLine(r)
		if err != nil {
			return nil, err
		}
		if string(line) == "END" || string(line) == "ERROR" && len(stats) == 0 {
			return stats, nil
		}
		rest, ok := bytes.CutPrefix(line, []byte("STAT "))
		if !ok {
			return nil, garbled("it answered %s to stats", quoted(line))
		}
		name, value, _ := bytes.Cut(rest, []byte{' '})
		stats[string(name)] = string(value)
	}
}
