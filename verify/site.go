package verify

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync"
	"time"

	"tine/api"
)

// Server is a server that its user owns and may end under load. The context of a
// restart bounds the restart, and not the life of the server that was started.
type Server interface {
	// URL returns where the server listens now.
	URL() string
	// Kill ends the server as kill -9 does, starts it again over the same data, and
	// returns when it listens.
	Kill(ctx context.Context) error
	// Stop does the same with an orderly stop, which must succeed.
	Stop(ctx context.Context) error
}

// ErrNotOurs is what a Server that may not be ended answers to Kill and Stop.
var ErrNotOurs = errors.New("the server is not ours to end")

// Running is a server that somebody else runs, at a URL.
type Running string

var _ Server = Running("")

// URL implements Server.
func (r Running) URL() string { return string(r) }

// Kill implements Server.
func (Running) Kill(context.Context) error { return ErrNotOurs }

// Stop implements Server.
func (Running) Stop(context.Context) error { return ErrNotOurs }

// answerTimeout bounds the wait for an answer.
const answerTimeout = 30 * time.Second

// errAnswerLost is what a call ends with whose answer is lost.
var errAnswerLost = errors.New("the connection was cut before the answer was read")

// site is the server under test as its clients see it.
type site struct {
	server Server

	mu sync.RWMutex // held alone while the server is down
	at endpoint
}

// endpoint is one life of the server, from a start to the next one.
type endpoint struct {
	ends   []end // of the lives before it
	err    error // the server did not start again
	client *api.Client
	lossy  *api.Client // loses every answer
	conns  *http.Transport
}

// end is the end of a life.
type end struct {
	killed bool
	at     time.Time
}

// life is the number of the endpoint.
func (e endpoint) life() int { return len(e.ends) }

// since says how the server was ended since a life: by a kill, where one was among
// them, and when the first was.
func (e endpoint) since(life int) end {
	sum := e.ends[life]
	for _, more := range e.ends[life:] {
		if more.killed && !sum.killed {
			sum = more
		}
	}
	return sum
}

func newSite(server Server) *site {
	s := &site{server: server}
	s.connect()
	return s
}

func (s *site) connect() {
	s.at.conns = &http.Transport{MaxIdleConnsPerHost: 64, DialContext: (&net.Dialer{Timeout: answerTimeout}).DialContext}
	s.at.client = api.NewClient(s.server.URL(), &http.Client{Transport: s.at.conns, Timeout: answerTimeout})
	s.at.lossy = api.NewClient(s.server.URL(), &http.Client{Transport: loser{s.at.conns}, Timeout: answerTimeout})
}

// now returns the life under way; it waits for a server that is down to come back.
func (s *site) now() endpoint {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.at
}

// restart ends the server, under whatever load there is, and starts it again.
func (s *site) restart(ctx context.Context, kill bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.at.err != nil {
		return s.at.err
	}
	s.at.ends = append(s.at.ends, end{killed: kill, at: time.Now()})
	s.at.conns.CloseIdleConnections() // an orderly stop waits for those that were never used
	var err error
	if kill {
		err = s.server.Kill(ctx)
	} else {
		err = s.server.Stop(ctx)
	}
	s.at.conns.CloseIdleConnections()
	if err != nil {
		s.at.err = fmt.Errorf("restart the server: %w", err)
		return s.at.err
	}
	s.connect()
	return nil
}

func (s *site) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.at.conns.CloseIdleConnections()
}

// loser is a transport that loses the answer of every request that the server has
// carried out or refused for good.
type loser struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (l loser) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	req.Close = true // it is the connection that is cut
	resp, err := l.next.RoundTrip(req)
	if err != nil || resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode >= http.StatusInternalServerError {
		return resp, err
	}
	return nil, errors.Join(errAnswerLost, resp.Body.Close())
}

// onceWritten returns a context that calls f in a goroutine of its own, once, when a
// request under it has been written or is over; wait waits for that.
func onceWritten(ctx context.Context, f func()) (traced context.Context, wait func()) {
	written := make(chan struct{})
	var once sync.Once
	tell := func() { once.Do(func() { close(written) }) }
	var running sync.WaitGroup
	running.Go(func() {
		<-written
		f()
	})
	traced = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		WroteRequest: func(httptrace.WroteRequestInfo) { tell() },
	})
	return traced, func() { tell(); running.Wait() }
}
