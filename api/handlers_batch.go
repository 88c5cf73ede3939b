package api

import (
	"context"
	"net/http"
	"net/url"

	"tine/mapstate"
)

// action does what a call asks, and appends the answer to dst; no answer is 204.
type action func(ctx context.Context, m *mapstate.Map, req *Request, dst []byte) ([]byte, error)

// snapshotKeys is the snapshot as a list of keys. It is never written to.
var snapshotKeys = []mapstate.Key{mapstate.SnapshotKey}

// on makes the handler of a call: state, body, action, answer.
func (s *Server) on(c *call, do action) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		m, err := s.mapIn(r)
		if err != nil {
			return err
		}
		sc := s.getScratch()
		defer s.putScratch(sc)
		if err := s.readBody(w, r, sc); err != nil {
			return err
		}
		req, err := sc.dec.request(c)
		if err != nil {
			return err
		}
		out, err := do(r.Context(), m, req, sc.out[:0])
		if err != nil {
			return &batchError{txid: req.TxID, err: err}
		}
		sc.out = out
		if len(out) == 0 {
			w.WriteHeader(http.StatusNoContent)
			return nil
		}
		answer(w, http.StatusOK, "application/json", out)
		return nil
	}
}

func doMultiGet(ctx context.Context, m *mapstate.Map, req *Request, dst []byte) ([]byte, error) {
	entries, err := m.Read(ctx, req.Envelope, req.Keys)
	if err != nil {
		return nil, err
	}
	if req.Detail {
		dst = append(dst, `{"entries":[`...)
	} else {
		dst = append(dst, `{"values":[`...)
	}
	for i, e := range entries {
		if i > 0 {
			dst = append(dst, ',')
		}
		if !req.Detail {
			dst = e.Value.AppendJSON(dst)
			continue
		}
		dst = req.Keys[i].AppendJSON(append(dst, `{"key":`...))
		dst = append(appendFound(append(dst, ','), e), '}')
	}
	return append(dst, "]}"...), nil
}

func doMultiUpdate(ctx context.Context, m *mapstate.Map, req *Request, dst []byte) ([]byte, error) {
	updaters, err := req.bind(len(req.Keys))
	if err != nil {
		return nil, err
	}
	res, err := m.Update(ctx, req.Envelope, req.Keys, updaters)
	if err != nil {
		return nil, err
	}
	return appendResult(dst, req.TxID, &res, !req.NoValues), nil
}

func doMultiPut(ctx context.Context, m *mapstate.Map, req *Request, dst []byte) ([]byte, error) {
	res, err := m.Put(ctx, req.Envelope, req.Keys, req.Values)
	if err != nil {
		return nil, err
	}
	return appendResult(dst, req.TxID, &res, false), nil
}

func doMultiRemove(ctx context.Context, m *mapstate.Map, req *Request, dst []byte) ([]byte, error) {
	res, err := m.Remove(ctx, req.Envelope, req.Keys)
	if err != nil {
		return nil, err
	}
	return appendResult(dst, req.TxID, &res, false), nil
}

func doBegin(ctx context.Context, m *mapstate.Map, req *Request, dst []byte) ([]byte, error) {
	begun, err := m.Begin(ctx, req.Envelope)
	if err != nil {
		return nil, err
	}
	return appendBegun(dst, &req.Envelope, begun), nil
}

func doCommit(ctx context.Context, m *mapstate.Map, req *Request, dst []byte) ([]byte, error) {
	res, err := m.Commit(ctx, req.Envelope)
	if err != nil {
		return nil, err
	}
	return appendResult(dst, req.TxID, &res, false), nil
}

func doAbort(ctx context.Context, m *mapstate.Map, req *Request, _ []byte) ([]byte, error) {
	return nil, m.Abort(ctx, req.Envelope)
}

func doSnapshotUpdate(ctx context.Context, m *mapstate.Map, req *Request, dst []byte) ([]byte, error) {
	updaters, err := req.bind(1)
	if err != nil {
		return nil, err
	}
	res, err := m.Update(ctx, req.Envelope, snapshotKeys, updaters)
	if err != nil {
		return nil, err
	}
	return appendSnapshotResult(dst, req.TxID, &res), nil
}

func doSnapshotSet(ctx context.Context, m *mapstate.Map, req *Request, dst []byte) ([]byte, error) {
	res, err := m.Put(ctx, req.Envelope, snapshotKeys, []mapstate.Value{req.Value})
	if err != nil {
		return nil, err
	}
	return appendResult(dst, req.TxID, &res, false), nil
}

func (s *Server) getSnapshot(w http.ResponseWriter, r *http.Request) error {
	m, err := s.mapIn(r)
	if err != nil {
		return err
	}
	query, err := parseQuery(r.URL.RawQuery, "txid", "partition")
	if err != nil {
		return err
	}
	env, err := readEnvelope(query)
	if err != nil {
		return err
	}
	entries, err := m.Read(r.Context(), env, snapshotKeys)
	if err != nil {
		return &batchError{txid: env.TxID, err: err}
	}
	answer(w, http.StatusOK, "application/json", append(appendFound([]byte{'{'}, entries[0]), '}'))
	return nil
}

// readEnvelope returns the envelope of a read from its query.
func readEnvelope(query url.Values) (env mapstate.Envelope, err error) {
	if text := query.Get("txid"); text != "" {
		if env.TxID, err = parseTxID(text, text); err != nil {
			return env, &FieldError{Member: "txid", Index: -1, Err: err}
		}
	}
	env.Partition = query.Get("partition")
	if err := checkPartition(env.Partition); err != nil {
		return env, &FieldError{Member: "partition", Index: -1, Err: err}
	}
	return env, nil
}
