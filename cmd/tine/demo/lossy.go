package demo

import (
	"context"
	"errors"
	"net"
	"net/http"
)

// errAnswerLost is what a request ends with when its answer is lost.
var errAnswerLost = errors.New("the connection was cut before the answer was read")

// newLossyClient returns an HTTP client that loses every answer: a request is
// sent whole, and its connection is cut when the first byte of the answer
// arrives. The server has done what was asked, and the client cannot know.
func newLossyClient() *http.Client {
	var dialer net.Dialer
	return &http.Client{Transport: &http.Transport{
		// One request per connection: none is sent again on a connection that was cut.
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := dialer.DialContext(ctx, network, address)
			if err != nil {
				return nil, err
			}
			return lossyConn{conn}, nil
		},
	}}
}

type lossyConn struct{ net.Conn }

func (c lossyConn) Read([]byte) (int, error) {
	var first [1]byte
	if _, err := c.Conn.Read(first[:]); err != nil {
		return 0, err
	}
	if err := c.Close(); err != nil {
		return 0, err
	}
	return 0, errAnswerLost
}
