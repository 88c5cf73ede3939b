package server

import (
	"io"
	"net/http"
	"time"
)

// timedBody is a request body that must arrive before its time is up. When it has
// been read to its end the connection's deadline is lifted again, so that a
// request may then take as long as it needs.
type timedBody struct {
	io.ReadCloser
	control *http.ResponseController
	timeout time.Duration
	started bool
}

// Read implements io.Reader. The time starts with the first call.
func (b *timedBody) Read(p []byte) (int, error) {
	if !b.started {
		b.started = true
		if err := b.control.SetReadDeadline(time.Now().Add(b.timeout)); err != nil {
			return 0, err
		}
	}
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF {
		if err := b.control.SetReadDeadline(time.Time{}); err != nil {
			return n, err
		}
	}
	return n, err
}
