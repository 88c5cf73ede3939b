package mapstatetest

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tine/mapstate"
)

// state is one Map under test, over a backing that faults can be injected into.
type state struct {
	*mapstate.Map
	t       *testing.T
	fault   *Fault
	kind    mapstate.Kind
	harness Harness
}

// TestMap checks a kind's Map over a backing: the worked examples of the
// batch protocol, Storm's own cases, and the faults that Storm has. Each check
// opens a backing of its own.
func TestMap(t *testing.T, kind mapstate.Kind, open func(t testing.TB) Harness) {
	checks := map[string]func(*testing.T, *state){
		"OneRequestSeesItsOwnUpdates":          oneRequestSeesItself,
		"ARefusedRequestChangesNothing":        refusedChangesNothing,
		"AnUnnumberedWriteKeepsTheTxID":        unnumberedKeepsTxID,
		"ANullIsPresentAndARemovedKeyIsAbsent": nullIsPresent,
		"PutAndRemoveTakeEffectInOrder":        putAndRemoveInOrder,
		"TheSnapshotIsApartFromTheMap":         snapshotIsApart,
		"ALowerTxIDIsStaleUnlessItIsALabel":    lowerTxID,
		"TxIDsReachTheEndOfInt64":              txidsReachTheEnd,
		"AZombieIsFencedFromTheNextBegin":      zombieInBatch,
		"AnOpenBatchIsItsWritersOwn":           laterWriter,
		"NoPartComesBesideAnOpenBatch":         anotherBatch,
		"ABatchSurvivesAFullDisk":              fullDisk,
		"ALowerEpochIsFenced":                  lowerEpochIsFenced,
		"NoKeysMoveTheWatermark":               noKeysMoveTheWatermark,
		"ProgressSurvives":                     progressSurvives,
		"AFailedStoreLeavesWhatItHas":          failedStore,
		"AnOpenBatchIsSeenByItselfAlone":       openBatchIsPrivate,
		"ADroppedBatchTakesNoMoreOperations":   droppedBatchRefuses,
		"ABatchLostByARestartIsNotHalfApplied": lostBatch,
		"OnlyWhatWasBegunLastCommits":          replacedBatch,
		"CommitAgainWritesNothing":             commitAgain,
		"AFailedRequestLeavesTheBatchOpen":     failedRequestInBatch,
		"PartitionsOfOneBatchBuildOnEachOther": partitionsBuildOnEachOther,
		"AClosedMapRefusesEverything":          closedMapRefuses,
		"AFailedNeighbourIsBuiltUpon":          failedNeighbour,
	}
	for name, check := range kindChecks(kind) {
		checks[name] = check
	}
	for name, check := range checks {
		t.Run(name, func(t *testing.T) {
			s := &state{t: t, kind: kind, harness: open(t)}
			s.start(s.harness.Backing)
			defer func() { s.Close(mapstate.ErrShuttingDown) }()
			check(t, s)
		})
	}
}

func (s *state) start(b mapstate.BackingMap) {
	s.fault = NewFault(b)
	m, err := mapstate.Open(context.Background(), s.kind, s.fault, mapstate.Options{Torn: s.harness.Torn})
	require.NoError(s.t, err)
	s.Map = m
}

// restart closes the state and opens it again; false if nothing survives.
func (s *state) restart() bool {
	if s.harness.Reopen == nil {
		return false
	}
	s.Close(mapstate.ErrShuttingDown)
	s.start(s.harness.Reopen())
	return true
}

func at(x mapstate.TxID) mapstate.Envelope { return mapstate.Envelope{TxID: x} }

func whole(x mapstate.TxID) mapstate.Envelope { return mapstate.Envelope{TxID: x, Whole: true} }

// sum adds each number to its key, the pairs being key, number, key, number, ...
func (s *state) sum(env mapstate.Envelope, pairs ...any) (mapstate.Result, error) {
	var keys []mapstate.Key
	var updaters []mapstate.ValueUpdater
	for i := 0; i < len(pairs); i += 2 {
		keys = append(keys, Key(pairs[i]))
		updaters = append(updaters, Update("sum", pairs[i+1]))
	}
	return s.Update(context.Background(), env, keys, updaters)
}

func (s *state) mustSum(env mapstate.Envelope, pairs ...any) mapstate.Result {
	s.t.Helper()
	res, err := s.sum(env, pairs...)
	require.NoError(s.t, err)
	return res
}

func (s *state) put(env mapstate.Envelope, key string, v any) {
	s.t.Helper()
	_, err := s.Put(context.Background(), env, Keys(key), Vals(v))
	require.NoError(s.t, err)
}

func (s *state) remove(env mapstate.Envelope, key string) {
	s.t.Helper()
	_, err := s.Remove(context.Background(), env, Keys(key))
	require.NoError(s.t, err)
}

func (s *state) begin(env mapstate.Envelope) mapstate.Begun {
	s.t.Helper()
	b, err := s.Begin(context.Background(), env)
	require.NoError(s.t, err)
	return b
}

func (s *state) commit(env mapstate.Envelope) mapstate.Result {
	s.t.Helper()
	res, err := s.Commit(context.Background(), env)
	require.NoError(s.t, err)
	return res
}

// entry prints a key as env sees it: value, "prev" and the value before, "@" and the txid.
func (s *state) entry(env mapstate.Envelope, key mapstate.Key) string {
	s.t.Helper()
	entries, err := s.Read(context.Background(), env, []mapstate.Key{key})
	require.NoError(s.t, err)
	e := entries[0]
	if e.Value.IsNone() {
		return "absent"
	}
	text := e.Value.String()
	if !e.Prev.IsNone() {
		text += " prev " + e.Prev.String()
	}
	if e.TxID != mapstate.NoTxID {
		text += fmt.Sprintf(" @%d", e.TxID)
	}
	return text
}

// holds checks keys as entry prints them, the pairs being key, text, key, text, ...
func (s *state) holds(pairs ...string) {
	s.t.Helper()
	for i := 0; i < len(pairs); i += 2 {
		require.Equal(s.t, pairs[i+1], s.entry(mapstate.Envelope{}, Key(pairs[i])), "key %s", pairs[i])
	}
}

// value checks the value of a key alone.
func (s *state) value(env mapstate.Envelope, key, want string) {
	s.t.Helper()
	text := s.entry(env, Key(key))
	if i := strings.IndexByte(text, ' '); i >= 0 {
		text = text[:i]
	}
	require.Equal(s.t, want, text, "value of %s", key)
}

// stored reports whether the backing holds a record of the key, tombstones included.
func (s *state) stored(key string) bool {
	s.t.Helper()
	records, err := s.fault.MultiGet(context.Background(), Keys(key))
	require.NoError(s.t, err)
	return records[0] != nil
}

// scansNothing checks that a scan shows no key.
func (s *state) scansNothing() {
	s.t.Helper()
	err := s.Scan(context.Background(), mapstate.Range{}, func(k mapstate.Key, _ mapstate.Entry) error {
		return fmt.Errorf("scan shows %q", string(k))
	})
	if s.harness.NoScan {
		require.ErrorIs(s.t, err, mapstate.ErrUnsupported)
		return
	}
	require.NoError(s.t, err)
}

func (s *state) guarded() bool { return s.kind.Replays() != mapstate.ReplayApplies }
