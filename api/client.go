package api

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"tine/mapstate"

	"github.com/go-json-experiment/json"
)

// Client calls a server. Its methods may be called concurrently. An error that the
// server answered is a *Problem, and errors.Is and errors.As find in it the
// mapstate error it stands for; any other error says that it is not known whether
// the call was carried out. Numbered calls may then simply be sent again.
type Client struct {
	base string
	http *http.Client
}

// NewClient returns a client of the server at a base URL such as
// http://127.0.0.1:7070. A nil hc is http.DefaultClient.
func NewClient(baseURL string, hc *http.Client) *Client {
	if hc == nil {
		hc = http.DefaultClient
	}
	return &Client{base: strings.TrimRight(baseURL, "/"), http: hc}
}

// CreateState creates a state, or finds it there with the same spec (created false).
func (c *Client) CreateState(ctx context.Context, name string, spec StateSpec) (info StateInfo, created bool, err error) {
	body, err := json.Marshal(spec)
	if err != nil {
		return info, false, err
	}
	status, err := c.callStatus(ctx, http.MethodPut, statePath(name, ""), body, document(&info))
	return info, status == http.StatusCreated, err
}

// State describes a state.
func (c *Client) State(ctx context.Context, name string) (info StateInfo, err error) {
	err = c.call(ctx, http.MethodGet, statePath(name, ""), nil, document(&info))
	return info, err
}

// States describes all states, ordered by name.
func (c *Client) States(ctx context.Context) ([]StateInfo, error) {
	var list stateList
	err := c.call(ctx, http.MethodGet, "/v1/states", nil, document(&list))
	return list.States, err
}

// DeleteState removes a state with its entries and progress.
func (c *Client) DeleteState(ctx context.Context, name string) error {
	return c.call(ctx, http.MethodDelete, statePath(name, ""), nil, nil)
}

// Progress returns the last commit of every partition, ordered by name.
func (c *Client) Progress(ctx context.Context, name string) ([]mapstate.Progress, error) {
	var list partitionList
	if err := c.call(ctx, http.MethodGet, statePath(name, "/progress"), nil, document(&list)); err != nil {
		return nil, err
	}
	progress := make([]mapstate.Progress, len(list.Partitions))
	for i, p := range list.Partitions {
		progress[i] = mapstate.Progress{Partition: p.Partition, TxID: p.TxID, Epoch: p.Epoch, CommittedAt: p.CommittedAt}
		if p.Offsets.Kind() != 'n' {
			progress[i].Offsets = p.Offsets
		}
	}
	return progress, nil
}

// Ready returns nil if the server takes requests.
func (c *Client) Ready(ctx context.Context) error {
	return c.call(ctx, http.MethodGet, "/readyz", nil, nil)
}

// MultiGet returns the value of each key, no value where it is absent. It takes TxID and Partition of env.
// A stored null comes back as no value; Read tells them apart.
func (c *Client) MultiGet(ctx context.Context, state string, env mapstate.Envelope, keys []mapstate.Key) ([]mapstate.Value, error) {
	var values []mapstate.Value
	req := Request{Envelope: env, Keys: keys}
	err := c.post(ctx, state, "/multiGet", &multiGet, &req, func(d *decoder) (err error) {
		values, err = d.valuesAnswer(len(keys))
		return err
	})
	return values, err
}

// Read returns the entry of each key. It takes TxID and Partition of env.
func (c *Client) Read(ctx context.Context, state string, env mapstate.Envelope, keys []mapstate.Key) ([]mapstate.Entry, error) {
	var entries []mapstate.Entry
	req := Request{Envelope: env, Keys: keys, Detail: true}
	err := c.post(ctx, state, "/multiGet", &multiGet, &req, func(d *decoder) (err error) {
		entries, err = d.entriesAnswer(len(keys))
		return err
	})
	return entries, err
}

// MultiUpdate applies the updaters of req to its keys.
func (c *Client) MultiUpdate(ctx context.Context, state string, req Request) (mapstate.Result, error) {
	return c.write(ctx, state, "/multiUpdate", &multiUpdate, &req)
}

// MultiPut stores values[i] under keys[i].
func (c *Client) MultiPut(ctx context.Context, state string, env mapstate.Envelope, keys []mapstate.Key, values []mapstate.Value) (mapstate.Result, error) {
	return c.write(ctx, state, "/multiPut", &multiPut, &Request{Envelope: env, Keys: keys, Values: values})
}

// MultiRemove removes keys.
func (c *Client) MultiRemove(ctx context.Context, state string, env mapstate.Envelope, keys []mapstate.Key) (mapstate.Result, error) {
	return c.write(ctx, state, "/multiRemove", &multiRemove, &Request{Envelope: env, Keys: keys})
}

// BeginCommit opens a batch. It takes TxID, Partition and Epoch of env.
func (c *Client) BeginCommit(ctx context.Context, state string, env mapstate.Envelope) (begun mapstate.Begun, err error) {
	err = c.post(ctx, state, "/beginCommit", &beginCommit, &Request{Envelope: env}, func(d *decoder) (err error) {
		begun, err = d.begunAnswer()
		return err
	})
	return begun, err
}

// Commit commits an open batch. It takes TxID, Partition, Epoch and Offsets of env.
func (c *Client) Commit(ctx context.Context, state string, env mapstate.Envelope) (mapstate.Result, error) {
	return c.write(ctx, state, "/commit", &commit, &Request{Envelope: env})
}

// Abort drops an open batch. It takes TxID, Partition and Epoch of env.
func (c *Client) Abort(ctx context.Context, state string, env mapstate.Envelope) error {
	return c.post(ctx, state, "/abort", &abort, &Request{Envelope: env}, nil)
}

// Snapshot returns the state's single value. It takes TxID and Partition of env.
func (c *Client) Snapshot(ctx context.Context, state string, env mapstate.Envelope) (entry mapstate.Entry, err error) {
	query := url.Values{}
	if env.TxID != mapstate.NoTxID {
		query.Set("txid", strconv.FormatInt(int64(env.TxID), 10))
	}
	if env.Partition != "" {
		query.Set("partition", env.Partition)
	}
	err = c.call(ctx, http.MethodGet, statePath(state, "/snapshot")+encodeQuery(query), nil, func(d *decoder) (err error) {
		entry, err = d.snapshotAnswer()
		return err
	})
	return entry, err
}

// UpdateSnapshot applies op to the state's single value; the result has one value.
func (c *Client) UpdateSnapshot(ctx context.Context, state string, env mapstate.Envelope, op Op) (mapstate.Result, error) {
	return c.write(ctx, state, "/snapshot/update", &snapshotUpdate, &Request{Envelope: env, Updater: op})
}

// SetSnapshot stores the state's single value.
func (c *Client) SetSnapshot(ctx context.Context, state string, env mapstate.Envelope, v mapstate.Value) (res mapstate.Result, err error) {
	body := appendRequest(nil, &snapshotSet, &Request{Envelope: env, Value: v})
	err = c.call(ctx, http.MethodPut, statePath(state, "/snapshot"), body, resultInto(&res))
	return res, err
}

// write posts a call whose answer is a result.
func (c *Client) write(ctx context.Context, state, verb string, call *call, req *Request) (res mapstate.Result, err error) {
	err = c.post(ctx, state, verb, call, req, resultInto(&res))
	return res, err
}

func resultInto(res *mapstate.Result) func(*decoder) error {
	return func(d *decoder) (err error) {
		*res, err = d.resultAnswer()
		return err
	}
}

func (c *Client) post(ctx context.Context, state, verb string, call *call, req *Request, read func(*decoder) error) error {
	return c.call(ctx, http.MethodPost, statePath(state, verb), appendRequest(nil, call, req), read)
}

// call sends a request and reads its answer, nil for none.
func (c *Client) call(ctx context.Context, method, target string, body []byte, read func(*decoder) error) error {
	_, err := c.callStatus(ctx, method, target, body, read)
	return err
}

func (c *Client) callStatus(ctx context.Context, method, target string, body []byte, read func(*decoder) error) (int, error) {
	resp, err := c.send(ctx, method, target, body, "application/json")
	if err != nil {
		return 0, err
	}
	defer func() { _ = resp.Body.Close() }()
	// The answer is read to its end in any case, so that the connection can serve again.
	var answer bytes.Buffer
	if _, err := answer.ReadFrom(resp.Body); err != nil {
		return 0, fmt.Errorf("%s %s: reading the answer: %w", method, target, err)
	}
	if read == nil {
		return resp.StatusCode, nil
	}
	var d decoder
	d.reset(&answer, math.MaxInt)
	if err := read(&d); err != nil {
		return 0, fmt.Errorf("%s %s: in the answer: %w", method, target, err)
	}
	return resp.StatusCode, nil
}

// send returns an answer that is not a problem. Its body is the caller's to close.
func (c *Client) send(ctx context.Context, method, target string, body []byte, accept string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.base+target, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", accept)
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode/100 == 2 {
		return resp, nil
	}
	defer func() { _ = resp.Body.Close() }()
	return nil, readProblem(resp)
}

// readProblem returns the problem that an answer tells of, also one from a
// server that is not Tine.
func readProblem(resp *http.Response) error {
	const most = 1 << 20
	text, err := io.ReadAll(io.LimitReader(resp.Body, most))
	if err != nil {
		return fmt.Errorf("%s: reading the problem: %w", resp.Status, err)
	}
	var p Problem
	if err := json.Unmarshal(text, &p); err != nil || p.Status != resp.StatusCode {
		return &Problem{Title: resp.Status, Status: resp.StatusCode, Detail: resp.Status + ": " + excerpt(text)}
	}
	return &p
}

// document reads a whole answer into a Go value.
func document(into any) func(*decoder) error {
	return func(d *decoder) error { return json.UnmarshalDecode(d.json, into) }
}

func statePath(state, below string) string { return "/v1/states/" + url.PathEscape(state) + below }

func encodeQuery(query url.Values) string {
	if len(query) == 0 {
		return ""
	}
	return "?" + query.Encode()
}
