package test

import (
	"bytes"
	"encoding/json"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// moment is when a writer is killed, as seen from the request that it is in.
type moment int

const (
	beforeDelivery moment = iota // the request does not arrive
	beforeAnswer                 // it arrives, the answer does not
	beforeItIsLate               // it arrives while a later writer is at work
	afterAnswer                  // between two requests
)

// strike is one planned kill.
type strike struct {
	request int    // of the writer that is killed, from 1
	when    moment // in it
	server  bool   // the server is killed too
	lateBy  int    // requests that come before a late one
}

// saboteur stands between one writer at a time and its server: it hands on the
// writer's requests, and at one that was planned it kills the writer's processes, and
// perhaps the server. No clock has a part in it: a kill between two requests does what
// one at any moment between them does.
type saboteur struct {
	url string

	mu      sync.Mutex // held from a request to its answer
	server  *binary
	writer  *exec.Cmd
	next    strike
	struck  bool
	seen    int // requests of the writer
	waiting []lateRequest

	late     map[int]int // late requests by the status of their answers
	restored int         // keys, by all that was answered
}

// lateRequest is a request of a writer that is dead.
type lateRequest struct {
	request *http.Request
	after   int // so many requests of others
}

// newSaboteur starts a saboteur in front of a server. What it sends has an end with the test.
func newSaboteur(t *testing.T, server *binary) *saboteur {
	s := &saboteur{server: server, late: make(map[int]int)}
	front := httptest.NewServer(s)
	t.Cleanup(front.Close)
	s.url = front.URL
	return s
}

// drawStrike plans a kill at one of the first requests of a writer.
func drawStrike(random *rand.Rand, requests int) strike {
	return strike{
		request: 1 + random.IntN(requests),
		when:    moment(random.IntN(4)),
		server:  random.IntN(4) == 0,
		lateBy:  random.IntN(8),
	}
}

// run lets a writer work until it is struck or comes to its end, and reports whether
// it was struck. What it says is in its output.
func (s *saboteur) run(t *testing.T, writer *exec.Cmd, next strike) (struck bool) {
	t.Helper()
	var output bytes.Buffer
	writer.Stdout, writer.Stderr = &output, &output
	writer.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	s.mu.Lock()
	s.writer, s.next, s.struck, s.seen = writer, next, false, 0
	err := writer.Start()
	s.mu.Unlock()
	require.NoError(t, err)
	err = writer.Wait()
	s.mu.Lock() // a request that was struck is over
	defer s.mu.Unlock()
	if !s.struck {
		require.NoError(t, err, "%s", &output)
	}
	return s.struck
}

// serve goes on with another server.
func (s *saboteur) serve(server *binary) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.server = server
}

// settle delivers all that is late.
func (s *saboteur) settle() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.waiting {
		s.waiting[i].after = 0
	}
	s.deliverLate()
}

// ServeHTTP implements http.Handler.
func (s *saboteur) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil || s.struck {
		panic(http.ErrAbortHandler) // the writer is dead
	}
	req, err := http.NewRequest(r.Method, r.URL.Path, bytes.NewReader(body))
	if err != nil {
		panic(err)
	}
	req.Header = r.Header.Clone()
	s.deliverLate()
	s.seen++
	if s.seen < s.next.request || s.next.request == 0 {
		s.pass(w, req)
		return
	}
	switch s.next.when {
	case beforeAnswer:
		_, _ = s.send(req) // nobody hears of it
	case beforeItIsLate:
		s.waiting = append(s.waiting, lateRequest{req, s.next.lateBy})
	case afterAnswer:
		s.pass(w, req)
	case beforeDelivery:
	}
	s.kill()
	panic(http.ErrAbortHandler)
}

// kill carries out what was planned.
func (s *saboteur) kill() {
	s.struck = true
	_ = syscall.Kill(-s.writer.Process.Pid, syscall.SIGKILL) // it may have ended with its last answer
	if s.next.server {
		s.server.kill()
	}
}

// pass hands a request on, and its answer back.
func (s *saboteur) pass(w http.ResponseWriter, req *http.Request) {
	a, err := s.send(req)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	w.Header().Set("Content-Type", a.Header.Get("Content-Type"))
	w.WriteHeader(a.StatusCode)
	_, _ = w.Write(a.body) // to a writer that is there as long as it waits
	_ = http.NewResponseController(w).Flush()
}

func (s *saboteur) send(req *http.Request) (answer, error) {
	target, err := req.URL.Parse(s.server.url + req.URL.Path)
	if err != nil {
		return answer{}, err
	}
	req.URL = target
	a, err := do(s.server.http, req)
	if err != nil {
		return answer{}, err
	}
	var counts struct{ Restored int }
	_ = json.Unmarshal(a.body, &counts) // an empty body has none
	s.restored += counts.Restored
	return a, nil
}

// deliverLate sends the requests of dead writers whose time has come.
func (s *saboteur) deliverLate() {
	waiting := s.waiting[:0]
	for _, l := range s.waiting {
		if l.after > 0 {
			l.after--
			waiting = append(waiting, l)
			continue
		}
		if a, err := s.send(l.request); err == nil {
			s.late[a.StatusCode]++
		}
	}
	s.waiting = waiting
}
