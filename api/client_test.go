package api_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tine/api"
	"tine/mapstate"
	"tine/mapstate/mapstatetest"
)

func TestTheClientCarriesABatch(t *testing.T) {
	f := start(t, api.Options{})
	c, ctx := f.client, t.Context()
	keys := mapstatetest.Keys("a", int64(1<<53+1))
	env := mapstate.Envelope{TxID: 1, Partition: "p/1", Epoch: 2, Offsets: []byte(`{"at":[1,2.0]}`), Whole: true}

	res, err := c.MultiUpdate(ctx, "opaque", api.Request{Envelope: env, Keys: keys, Updater: api.Op{Name: "sum"}, Args: mapstatetest.Vals(1, 2.5)})
	require.NoError(t, err)
	require.Equal(t, mapstate.Result{Values: mapstatetest.Vals(1, 2.5), Applied: 2}, res)

	progress, err := c.Progress(ctx, "opaque")
	require.NoError(t, err)
	require.Len(t, progress, 1)
	require.False(t, progress[0].CommittedAt.IsZero())
	progress[0].CommittedAt = progress[0].CommittedAt.UTC()
	require.Equal(t, []mapstate.Progress{{Partition: "p/1", TxID: 1, Epoch: 2, Offsets: env.Offsets, CommittedAt: progress[0].CommittedAt}}, progress)

	env = mapstate.Envelope{TxID: 2, Partition: "p/1", Epoch: 2}
	begun, err := c.BeginCommit(ctx, "opaque", env)
	require.NoError(t, err)
	require.Equal(t, mapstate.Begun{Committed: 1}, begun)
	_, err = c.MultiUpdate(ctx, "opaque", api.Request{Envelope: env, Keys: keys, NoValues: true,
		Updaters: []api.Op{{Name: "count"}, {Name: "sum", Arg: mapstate.Int(1)}}})
	require.NoError(t, err)
	values, err := c.MultiGet(ctx, "opaque", mapstate.Envelope{TxID: 2, Partition: "p/1"}, keys)
	require.NoError(t, err)
	require.Equal(t, mapstatetest.Vals(2, 3.5), values)
	for _, again := range []bool{false, true} {
		res, err = c.Commit(ctx, "opaque", env)
		require.NoError(t, err)
		require.Equal(t, again, res.AlreadyCommitted)
	}

	env = mapstate.Envelope{TxID: 3, Partition: "p/1", Epoch: 2}
	_, err = c.BeginCommit(ctx, "opaque", env)
	require.NoError(t, err)
	require.NoError(t, c.Abort(ctx, "opaque", env))
	_, err = c.Commit(ctx, "opaque", env)
	require.ErrorIs(t, err, mapstate.ErrNoOpenBatch)

	env.TxID = 4
	_, err = c.MultiPut(ctx, "opaque", env, keys[:1], []mapstate.Value{mapstate.Null})
	require.NoError(t, err)
	entries, err := c.Read(ctx, "opaque", mapstate.Envelope{}, append(keys, mapstatetest.Key("none")))
	require.NoError(t, err)
	require.Equal(t, []mapstate.Entry{{Value: mapstate.Null, Prev: mapstate.Int(2), TxID: 4},
		{Value: mapstate.Float(3.5), Prev: mapstate.Float(2.5), TxID: 2}, {}}, entries)
	res, err = c.MultiRemove(ctx, "opaque", env, keys)
	require.NoError(t, err)
	require.Equal(t, mapstate.Result{Applied: 1, Replayed: 1}, res)
}

func TestTheClientHandlesStatesAndSnapshots(t *testing.T) {
	f := start(t, api.Options{})
	c, ctx := f.client, t.Context()
	for _, fresh := range []bool{true, false} {
		info, created, err := c.CreateState(ctx, "s", api.StateSpec{Kind: "opaque", Cache: &api.CacheSpec{Entries: 3}})
		require.NoError(t, err)
		require.Equal(t, fresh, created)
		require.Equal(t, "memory", info.Backing)
		require.EqualValues(t, 3, info.Cache.Entries)
	}
	_, _, err := c.CreateState(ctx, "s", api.StateSpec{Kind: "nontx"})
	require.ErrorIs(t, err, mapstate.ErrStateExists)
	infos, err := c.States(ctx)
	require.NoError(t, err)
	require.Len(t, infos, 4)

	entry, err := c.Snapshot(ctx, "s", mapstate.Envelope{})
	require.NoError(t, err)
	require.Equal(t, mapstate.Entry{}, entry)
	_, err = c.SetSnapshot(ctx, "s", mapstate.Envelope{TxID: 1}, mapstate.String("a"))
	require.NoError(t, err)
	res, err := c.UpdateSnapshot(ctx, "s", mapstate.Envelope{TxID: 2}, api.Op{Name: "concat", Arg: mapstate.String("é\"\u2028")})
	require.NoError(t, err)
	require.Equal(t, mapstate.Result{Values: mapstatetest.Vals("aé\"\u2028"), Applied: 1}, res)
	entry, err = c.Snapshot(ctx, "s", mapstate.Envelope{TxID: 2, Partition: "&="})
	require.NoError(t, err)
	require.Equal(t, mapstate.Entry{Value: mapstate.String("a"), Prev: mapstate.String("a"), TxID: 2}, entry)

	info, err := c.State(ctx, "s")
	require.NoError(t, err)
	require.EqualValues(t, 2, info.Stats.Commits)
	require.NoError(t, c.DeleteState(ctx, "s"))
	_, err = c.State(ctx, "s")
	require.ErrorIs(t, err, mapstate.ErrUnknownState)
}

func TestTheClientListsAndScans(t *testing.T) {
	f := start(t, api.Options{})
	f.fillLarge(2500)
	var keys []mapstate.Key
	cursor := ""
	for {
		page, err := f.client.Entries(t.Context(), "opaque", api.Listing{Start: "[10]"}, 999, cursor)
		require.NoError(t, err)
		keys = append(keys, page.Keys...)
		if cursor = page.Cursor; cursor == "" {
			break
		}
	}
	require.Len(t, keys, 2490)
	i := 0
	err := f.client.Scan(t.Context(), "opaque", api.Listing{Start: mapstatetest.Key(10).String()}, func(k mapstate.Key, e mapstate.Entry) error {
		require.Equal(t, keys[i], k)
		require.Len(t, e.Value.Text(), 1000)
		i++
		return nil
	})
	require.NoError(t, err)
	require.Equal(t, 2490, i)

	enough := errors.New("enough")
	require.ErrorIs(t, f.client.Scan(t.Context(), "opaque", api.Listing{}, func(mapstate.Key, mapstate.Entry) error { return enough }), enough)
}

func TestAStreamWithoutItsEndIsIncomplete(t *testing.T) {
	line := `{"key":["a"],"value":1,"later":[{}]}` + "\n"
	for body, complete := range map[string]bool{
		line + line + `{"end":true,"entries":2}`:        true,
		line + line + `{"end":true,"entries":2}` + "\n": true,
		`{"end":true,"entries":0}`:                      true,
		"":                                              false,
		line:                                            false,
		line + line[:9]:                                 false,
		line + `{"end":true,"entries":2}`:               false,
		line + line + `{"end":true,"entries":`:          false,
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, body) }))
		err := api.NewClient(server.URL+"/", server.Client()).Scan(t.Context(), "s", api.Listing{}, func(mapstate.Key, mapstate.Entry) error { return nil })
		server.Close()
		if complete {
			require.NoError(t, err, body)
		} else {
			require.ErrorIs(t, err, api.ErrIncomplete, body)
		}
	}
}

func TestErrorsKeepTheirIdentityAcrossTheWire(t *testing.T) {
	f := start(t, api.Options{})
	c, ctx := f.client, t.Context()
	keys := mapstatetest.Keys("a", "b")
	at := func(x mapstate.TxID) mapstate.Envelope {
		return mapstate.Envelope{TxID: x, Partition: fmt.Sprint("p", x), Epoch: 5}
	}
	_, err := c.MultiPut(ctx, "opaque", at(9), keys[1:], mapstatetest.Vals(1))
	require.NoError(t, err)

	_, err = c.MultiPut(ctx, "opaque", at(3), keys, mapstatetest.Vals(1, 2))
	require.ErrorIs(t, err, mapstate.ErrStaleTx)
	var stale *mapstate.StaleTxError
	require.ErrorAs(t, err, &stale)
	require.Equal(t, mapstate.StaleTxError{Stored: 9, Got: 3}, *stale)
	var key *mapstate.KeyError
	require.ErrorAs(t, err, &key)
	require.Equal(t, keys[1], key.Key)
	require.Equal(t, 1, key.Index)
	var problem *api.Problem
	require.ErrorAs(t, err, &problem)
	require.Equal(t, http.StatusConflict, problem.Status)
	require.NotEmpty(t, problem.RequestID)

	_, err = c.MultiRemove(ctx, "opaque", mapstate.Envelope{TxID: 10, Partition: "p9", Epoch: 4}, nil)
	require.ErrorIs(t, err, mapstate.ErrFenced)
	var fenced *mapstate.FencedError
	require.ErrorAs(t, err, &fenced)
	require.Equal(t, mapstate.FencedError{Partition: "p9", Stored: 5, Got: 4}, *fenced)

	_, err = c.MultiPut(ctx, "opaque", at(10), keys[:1], mapstatetest.Vals(strings.Repeat("x", 1<<20)))
	require.ErrorIs(t, err, mapstate.ErrTooLarge)
	var limit *mapstate.LimitError
	require.ErrorAs(t, err, &limit)
	require.EqualValues(t, 1<<20, limit.Limit)

	_, err = c.MultiUpdate(ctx, "opaque", api.Request{Keys: keys, Updater: api.Op{Name: "nope"}})
	require.ErrorIs(t, err, mapstate.ErrUnknownUpdater)
	_, err = c.MultiGet(ctx, "bad name", mapstate.Envelope{}, keys)
	require.ErrorIs(t, err, api.ErrBadRequest)
}

func TestAnAnswerThatIsNoProblemIsStillAnError(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/multiGet") {
			_, _ = io.WriteString(w, `{"values":[1]}`)
			return
		}
		http.Error(w, "<html>bad gateway</html>", http.StatusBadGateway)
	}))
	defer server.Close()
	c := api.NewClient(server.URL, server.Client())
	_, err := c.States(t.Context())
	var problem *api.Problem
	require.ErrorAs(t, err, &problem)
	require.Equal(t, http.StatusBadGateway, problem.Status)
	require.ErrorContains(t, err, "bad gateway")
	_, err = c.MultiGet(t.Context(), "s", mapstate.Envelope{}, mapstatetest.Keys("a", "b"))
	require.ErrorContains(t, err, "1 values for 2 keys")

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = c.States(ctx)
	require.ErrorIs(t, err, context.Canceled)
}
