package demo

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptrace"
	"sync"

	"tine/api"
	"tine/mapstate"
)

// writer sends batches to a server of its own and does the faults.
type writer struct {
	executable, dir string

	server *process
	conns  *http.Transport
	client *api.Client // of the server
	lossy  *api.Client // of the server, losing every answer
	faults Faults
}

// start starts the server on what is in the directory.
func (w *writer) start(ctx context.Context) error {
	server, err := startProcess(ctx, w.executable, w.dir)
	if err != nil {
		return err
	}
	w.server = server
	w.conns = new(http.Transport) // no proxy: the server is on the loopback
	w.client = api.NewClient(server.url, &http.Client{Transport: w.conns})
	w.lossy = api.NewClient(server.url, newLossyClient())
	return nil
}

// stop kills the server, if there is one, and closes the connections to it.
func (w *writer) stop() {
	if w.server == nil {
		return
	}
	w.server.kill()
	w.conns.CloseIdleConnections()
}

func (w *writer) createStates(ctx context.Context) error {
	for state, kind := range map[string]string{stateOpaque: "opaque", stateTransactional: "transactional"} {
		if _, _, err := w.client.CreateState(ctx, state, api.StateSpec{Kind: kind}); err != nil {
			return fmt.Errorf("create state %s: %w", state, err)
		}
	}
	return nil
}

// send sends one batch to both states, with its faults, and then once more. The
// last attempt has the right contents, which is all that counts.
func (w *writer) send(ctx context.Context, b batch) error {
	if b.wrong != nil {
		// Only an opaque state forgives this: its replays may have other contents.
		if err := w.update(ctx, w.client, stateOpaque, b.txid, b.wrong); err != nil {
			return err
		}
		w.faults.WrongAttempts++
	}
	if b.kill {
		if err := w.killInFlight(ctx, b); err != nil {
			return err
		}
	}
	for _, state := range []string{stateOpaque, stateTransactional} {
		if b.loseAnswer {
			if err := w.update(ctx, w.lossy, state, b.txid, b.words); !errors.Is(err, errAnswerLost) {
				return fmt.Errorf("the answer was to be lost, got: %w", err)
			}
			w.faults.LostAnswers++
		}
		for range 2 {
			if err := w.update(ctx, w.client, state, b.txid, b.words); err != nil {
				return err
			}
		}
	}
	w.faults.Duplicates++
	return nil
}

// update adds one for each word, as the whole batch txid of its state.
func (w *writer) update(ctx context.Context, client *api.Client, state string, txid int64, words []string) error {
	keys := make([]mapstate.Key, len(words))
	for i, word := range words {
		keys[i] = wordKey(word)
	}
	_, err := client.MultiUpdate(ctx, state, api.Request{
		Envelope: mapstate.Envelope{TxID: mapstate.TxID(txid), Whole: true},
		Keys:     keys,
		Updater:  api.Op{Name: "count"},
		NoValues: true,
	})
	return err
}

// killInFlight sends the batch to both states, kills the server as soon as one of
// the requests has been written, and starts it again. Whether the batch was
// committed is not known, nor does it matter.
func (w *writer) killInFlight(ctx context.Context, b batch) error {
	written := make(chan struct{}, 4) // room for whatever is written or ends
	tell := func() { written <- struct{}{} }
	traced := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		WroteRequest: func(httptrace.WroteRequestInfo) { tell() },
	})
	var sending sync.WaitGroup
	for _, state := range []string{stateOpaque, stateTransactional} {
		sending.Go(func() {
			_ = w.update(traced, w.client, state, b.txid, b.words) // the answer is lost, or came in time
			tell()
		})
	}
	<-written
	w.stop()
	sending.Wait()
	w.faults.Kills++
	return w.start(ctx)
}
