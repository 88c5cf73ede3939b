package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"
)

// recorded is one line of a recording: a request and the answer it should get.
type recorded struct {
	Method       string         `json:"method"`
	Path         string         `json:"path"`
	Body         jsontext.Value `json:"body"`
	ExpectStatus int            `json:"expectStatus"` // 0: any 2xx
}

// answered is one line of the output.
type answered struct {
	Line   int             `json:"line"`
	Status int             `json:"status"`
	Body   json.RawMessage `json:"body,omitempty"` // a string where the answer is not JSON
}

func (c *cli) replayCommand() *cobra.Command {
	var keepGoing bool
	cmd := &cobra.Command{
		Use:   "replay FILE",
		Short: "Send recorded requests in order",
		Long: `Send the requests of an NDJSON file in order and print each answer as one line
of JSON. FILE - is the standard input. A line is

  {"method":"POST","path":"/v1/states/words/multiUpdate","body":{...},"expectStatus":200}

"body" and "expectStatus" may be left out; any 2xx is then what is expected. The
first other answer ends the run.`,
		Example: `  tine replay requests.ndjson
  tine replay --keep-going - < requests.ndjson`,
		Args: wants("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			in, size, closeInput, err := c.openInput(args[0])
			if err != nil {
				return err
			}
			defer closeInput()
			bar := c.progress(size, "replay")
			defer bar.finish()
			r := replayer{url: c.url, client: c.httpClient(), out: c.out, keepGoing: keepGoing, explain: c.explain}
			return r.run(cmd.Context(), bar.reader(in))
		},
	}
	cmd.Flags().BoolVar(&keepGoing, "keep-going", false, "go on after an unexpected answer; the exit code still tells of it")
	return cmd
}

// openInput opens a file, or the standard input for "-", whose size is -1.
func (c *cli) openInput(name string) (in io.Reader, size int64, closeInput func(), err error) {
	if name == "-" {
		return c.in, -1, func() {}, nil
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, 0, nil, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, 0, nil, errors.Join(err, f.Close())
	}
	return f, info.Size(), func() { _ = f.Close() }, nil // only read: nothing is lost
}

// replayer sends recorded requests.
type replayer struct {
	url       string
	client    *http.Client
	out       io.Writer
	keepGoing bool
	explain   func(error) error // of a call without an answer
}

// run sends every request of in. It stops at the first unexpected answer, or
// reports all of them in the end where it keeps going.
func (r *replayer) run(ctx context.Context, in io.Reader) error {
	lines := bufio.NewReader(in)
	var unexpected []error
	for n := 1; ; n++ {
		line, err := lines.ReadBytes('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("line %d: %w", n, err)
		}
		last := err != nil
		if line = bytes.TrimSpace(line); len(line) > 0 {
			if err := r.step(ctx, n, line); err != nil {
				if !r.keepGoing || !errors.As(err, new(unexpectedAnswer)) {
					return err
				}
				unexpected = append(unexpected, err)
			}
		}
		if last {
			return errors.Join(unexpected...)
		}
	}
}

// step sends the request of one line and prints the answer.
func (r *replayer) step(ctx context.Context, n int, line []byte) error {
	request, err := parseRecorded(line)
	if err != nil {
		return fmt.Errorf("line %d: %w", n, err)
	}
	answer, err := r.send(ctx, request)
	if err != nil {
		return fmt.Errorf("line %d: %w", n, r.explain(err))
	}
	answer.Line = n
	if err := printJSON(r.out, answer); err != nil {
		return err
	}
	if answer.Status == request.ExpectStatus || request.ExpectStatus == 0 && answer.Status/100 == 2 {
		return nil
	}
	return unexpectedAnswer{request: request, answer: answer}
}

func parseRecorded(line []byte) (recorded, error) {
	var r recorded
	if err := jsonv2.Unmarshal(line, &r, jsonv2.RejectUnknownMembers(true)); err != nil {
		return r, fmt.Errorf(`%w; want {"method","path","body"?,"expectStatus"?}`, recordedError(err))
	}
	switch {
	case r.Method == "" || strings.ToUpper(r.Method) != r.Method:
		return r, fmt.Errorf("method is %q, want GET, PUT, POST or DELETE", r.Method)
	case !strings.HasPrefix(r.Path, "/"):
		return r, fmt.Errorf("path is %q, want one that begins with /", r.Path)
	case r.ExpectStatus != 0 && (r.ExpectStatus < 100 || r.ExpectStatus > 599):
		return r, fmt.Errorf("expectStatus is %d, want an HTTP status", r.ExpectStatus)
	}
	return r, nil
}

// recordedError returns what is wrong with the JSON of a line, without the names of Go.
func recordedError(err error) error {
	bad, ok := errors.AsType[*jsonv2.SemanticError](err)
	switch {
	case !ok:
		return errors.New(strings.TrimPrefix(err.Error(), "jsontext: "))
	case errors.Is(err, jsonv2.ErrUnknownName):
		return fmt.Errorf("unknown member %q", bad.JSONPointer.LastToken())
	case bad.JSONPointer == "":
		return fmt.Errorf("it is %s, not an object", kindText(bad.JSONKind))
	}
	return fmt.Errorf("member %q cannot be %s", bad.JSONPointer.LastToken(), kindText(bad.JSONKind))
}

func kindText(kind jsontext.Kind) string {
	switch kind {
	case '{':
		return "an object"
	case '[':
		return "an array"
	case '0':
		return "this number"
	case '"':
		return "a string"
	}
	return kind.String()
}

func (r *replayer) send(ctx context.Context, request recorded) (answered, error) {
	req, err := http.NewRequestWithContext(ctx, request.Method, r.url+request.Path, bytes.NewReader(request.Body))
	if err != nil {
		return answered{}, err
	}
	if request.Body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := r.client.Do(req)
	if err != nil {
		return answered{}, err
	}
	body, err := io.ReadAll(resp.Body)
	if err := errors.Join(err, resp.Body.Close()); err != nil {
		return answered{}, fmt.Errorf("%s %s: read the answer: %w", request.Method, request.Path, err)
	}
	answer := answered{Status: resp.StatusCode}
	switch body = bytes.TrimSpace(body); {
	case len(body) == 0:
	case json.Valid(body):
		answer.Body = body
	default:
		answer.Body, err = json.Marshal(string(body))
	}
	return answer, err
}

// unexpectedAnswer is an answer with another status than the recording wants.
type unexpectedAnswer struct {
	request recorded
	answer  answered
}

func (e unexpectedAnswer) Error() string {
	want := "2xx"
	if e.request.ExpectStatus != 0 {
		want = fmt.Sprint(e.request.ExpectStatus)
	}
	text := fmt.Sprintf("line %d: %s %s: status %d, want %s", e.answer.Line, e.request.Method, e.request.Path, e.answer.Status, want)
	var problem struct{ Detail string }
	// The detail is a help where there is one.
	if err := json.Unmarshal(e.answer.Body, &problem); err == nil && problem.Detail != "" {
		text += ": " + problem.Detail
	}
	return text
}
