package server

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// deadlines notes the read deadlines that a handler sets on its connection.
type deadlines struct {
	httptest.ResponseRecorder
	set []time.Time
}

// SetReadDeadline is what http.ResponseController looks for.
func (d *deadlines) SetReadDeadline(t time.Time) error {
	d.set = append(d.set, t)
	return nil
}

func TestABodyIsTimedUntilItHasArrived(t *testing.T) {
	conn := new(deadlines)
	body := &timedBody{
		ReadCloser: io.NopCloser(strings.NewReader("body")),
		control:    http.NewResponseController(conn),
		timeout:    time.Minute,
	}
	require.Empty(t, conn.set, "the time starts with the first read")

	before := time.Now()
	for range 2 {
		_, err := body.Read(make([]byte, 2))
		require.NoError(t, err)
	}
	require.Len(t, conn.set, 1, "one time for the whole body, not one for each read")
	require.False(t, conn.set[0].Before(before.Add(time.Minute)))

	_, err := body.Read(make([]byte, 2))
	require.ErrorIs(t, err, io.EOF)
	require.Len(t, conn.set, 2)
	require.Zero(t, conn.set[1], "the rest of the request takes as long as it takes")
}
