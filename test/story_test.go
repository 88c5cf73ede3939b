package test

import (
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"
)

// story is one story being told: a server, and what it is in the middle of.
type story struct {
	dir     string // of the server's data
	process *process
	faulty  *faulty // in place of the process, once asked for
	url     string
	client  *http.Client
	held    *heldRequest

	memcached string // where new states keep their entries; "": in the default backing
}

func newStory(t *testing.T) *story {
	s := &story{dir: t.TempDir()}
	s.start(t, nil)
	return s
}

// start starts the server with settings, by the names of their flags.
func (s *story) start(t *testing.T, settings map[string]string) {
	config := testConfig(s.dir)
	for name, text := range settings {
		n, err := strconv.ParseInt(text, 10, 64)
		require.NoError(t, err)
		switch name {
		case "max-keys":
			config.MaxKeys = int(n)
		case "max-body-bytes":
			config.MaxBodyBytes = n
		case "max-requests":
			config.MaxRequests = int(n)
		case "min-free-bytes":
			config.MinFreeBytes = n
		default:
			require.Fail(t, "no such setting", name)
		}
	}
	s.process = startProcess(t, config)
	s.url, s.client = s.process.url, s.process.http
}

// command runs one command of a story and returns what came.
func (s *story) command(t *testing.T, d *datadriven.TestData) string {
	args := make(map[string]string)
	for _, arg := range d.CmdArgs {
		args[arg.Key] = strings.Join(arg.Vals, ",")
	}
	switch d.Cmd {
	case "restart": // SETTING=N...: stop in order, start again over the same directory
		require.NoError(t, s.process.stop())
		s.start(t, args)
		return ""
	case "state": // NAME KIND: a new state with the defaults
		body := fmt.Sprintf(`{"kind":%q}`, d.CmdArgs[1].Key)
		if s.memcached != "" {
			body = fmt.Sprintf(`{"kind":%q,"backing":"memcached","memcached":{"servers":[%q]}}`, d.CmdArgs[1].Key, s.memcached)
		}
		created, err := do(s.client, s.request(t, "PUT /v1/states/"+d.CmdArgs[0].Key, body))
		require.NoError(t, err)
		require.Equal(t, http.StatusCreated, created.StatusCode)
		return ""
	case "faulty": // go on with an empty server in memory whose store can fail
		s.faulty, s.url, s.client = startFaulty(t)
		return ""
	case "fail": // STATE at=MOMENT with=ERROR
		s.faulty.order(t, d.CmdArgs[0].Key, args["at"], args["with"])
		return ""
	case "hold": // METHOD PATH: a request, up to where the server waits for its body
		s.held = hold(t, s.request(t, strings.TrimPrefix(d.FullCmd(), "hold "), d.Input))
		return ""
	case "release": // send the body of the held request
		return s.held.release(t).show(t, s.dir)
	case "stop": // begin to stop, until new requests are refused
		s.process.cancel()
		s.process.awaitRefusal(t)
		return ""
	case "ended": // wait for the end of the stop
		require.NoError(t, s.process.stop())
		return "in order\n"
	}
	a, err := do(s.client, s.request(t, d.FullCmd(), d.Input))
	require.NoError(t, err)
	return a.show(t, s.dir)
}

var (
	headerLine = regexp.MustCompile(`^([A-Z][A-Za-z-]*): (.*)$`)
	repeated   = regexp.MustCompile(`<([^<>*]+)\*([0-9]+)>`)
)

// request makes a request of a line with its method and target, and of an input of
// header lines and a body. A body is JSON unless a header says otherwise.
func (s *story) request(t *testing.T, line, input string) *http.Request {
	method, target, ok := strings.Cut(line, " ")
	require.True(t, ok && strings.HasPrefix(target, "/"), "no such command: %s", line)
	header := make(http.Header)
	for {
		first, rest, _ := strings.Cut(input, "\n")
		m := headerLine.FindStringSubmatch(first)
		if m == nil {
			break
		}
		header.Set(m[1], m[2])
		input = rest
	}
	body := expand(t, input)
	if body != "" && header.Get("Content-Type") == "" {
		header.Set("Content-Type", "application/json")
	}
	req, err := http.NewRequestWithContext(t.Context(), method, s.url+expand(t, target), strings.NewReader(body))
	require.NoError(t, err)
	req.Header = header
	return req
}

// expand writes out what is repeated.
func expand(t *testing.T, text string) string {
	return repeated.ReplaceAllStringFunc(text, func(short string) string {
		m := repeated.FindStringSubmatch(short)
		n, err := strconv.Atoi(m[2])
		require.NoError(t, err)
		return strings.Repeat(m[1], n)
	})
}

// heldRequest is a request whose body has yet to be sent.
type heldRequest struct {
	send   chan struct{}
	answer answer
	err    error
	done   chan struct{} // closed when there is an answer or an error
}

// heldBody is a body that waits to be sent. A client that expects a "100
// Continue" does not read it before the server does.
type heldBody struct {
	io.ReadCloser
	wanted chan struct{} // closed by the first read, nil after it
	send   chan struct{}
}

func (b *heldBody) Read(p []byte) (int, error) {
	if b.wanted != nil {
		close(b.wanted)
		b.wanted = nil
		<-b.send
	}
	return b.ReadCloser.Read(p)
}

// hold sends a request without its body, and returns once the server reads that.
func hold(t *testing.T, req *http.Request) *heldRequest {
	h := &heldRequest{send: make(chan struct{}), done: make(chan struct{})}
	wanted := make(chan struct{})
	req.Header.Set("Expect", "100-continue")
	req.Body, req.GetBody = &heldBody{ReadCloser: req.Body, wanted: wanted, send: h.send}, nil
	transport := &http.Transport{ExpectContinueTimeout: patience}
	t.Cleanup(transport.CloseIdleConnections)
	go func() {
		defer close(h.done)
		h.answer, h.err = do(&http.Client{Transport: transport}, req)
	}()
	select {
	case <-wanted:
	case <-h.done:
		require.Fail(t, "the request was not held", "%v %s", h.err, h.answer.body)
	}
	return h
}

// release sends the body and returns the answer.
func (h *heldRequest) release(t *testing.T) answer {
	close(h.send)
	<-h.done
	require.NoError(t, h.err)
	return h.answer
}
