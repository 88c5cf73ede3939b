package verify

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"tine/api"
	"tine/mapstate"
	"tine/verify/oracle"
)

// errRecorded is what every call of a recorder ends with.
var errRecorded = errors.New("recorded, not sent")

// recorder is a transport that writes requests down in place of sending them, as
// lines that "tine replay" reads.
type recorder struct {
	out    bytes.Buffer
	expect int // the status of the next one
}

// RoundTrip implements http.RoundTripper.
func (r *recorder) RoundTrip(req *http.Request) (*http.Response, error) {
	line := struct {
		Method       string          `json:"method"`
		Path         string          `json:"path"`
		Body         json.RawMessage `json:"body,omitempty"`
		ExpectStatus int             `json:"expectStatus"`
	}{Method: req.Method, Path: req.URL.RequestURI(), ExpectStatus: r.expect}
	if req.Body != nil {
		var err error
		if line.Body, err = io.ReadAll(req.Body); err != nil {
			return nil, err
		}
	}
	encoder := json.NewEncoder(&r.out)
	encoder.SetEscapeHTML(false)
	return nil, errors.Join(errRecorded, encoder.Encode(&line))
}

// replayFile returns a history as NDJSON for "tine replay": the state's creation, the
// calls with the status that each must have, and in the end the reads that show what is
// stored. Restarts of the server are not in it.
func (h History) replayFile(state string) ([]byte, error) {
	r := &recorder{expect: http.StatusCreated}
	client := api.NewClient("http://recorded", &http.Client{Transport: r})
	ctx := context.Background() // nothing is sent
	_, _, err := client.CreateState(ctx, state, h.Spec)
	errs := []error{unlessRecorded(err)}
	o := oracle.New(h.Spec.Kind)
	record := func(s Step) {
		r.expect = statusOf(s, apply(o, s).err)
		errs = append(errs, unlessRecorded(call(ctx, client, state, s).err))
	}
	for _, s := range h.Steps {
		switch {
		case s.Verb == Kill, s.Verb == Stop, s.Verb == Idle:
			o.Restart()
		case s.Verb.isCall():
			record(s)
		}
		switch {
		case s.Fault == Killed, s.Fault == Stopped:
			o.Restart()
		case s.Fault == Cut && s.Verb.writes():
			record(fence(s))
		}
	}
	r.expect = http.StatusOK
	_, err = client.Progress(ctx, state)
	errs = append(errs, unlessRecorded(err))
	for _, keys := range [][]mapstate.Key{{mapstate.SnapshotKey}, withoutSnapshot(keyPool(h.Mirror))} {
		read := Step{Verb: MultiGet, Keys: keys}
		errs = append(errs, unlessRecorded(call(ctx, client, state, read).err))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("write down the history: %w", err)
	}
	return r.out.Bytes(), nil
}

func unlessRecorded(err error) error {
	if errors.Is(err, errRecorded) {
		return nil
	}
	return err
}

// statusOf returns the status of an answer.
func statusOf(s Step, err error) int {
	switch {
	case err == nil && s.Verb == Abort:
		return http.StatusNoContent
	case err == nil:
		return http.StatusOK
	case errors.Is(err, mapstate.ErrUpdaterType), errors.Is(err, mapstate.ErrUpdaterOverflow):
		return http.StatusUnprocessableEntity
	}
	return http.StatusConflict
}
