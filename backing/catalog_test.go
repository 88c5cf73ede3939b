package backing

import (
	"encoding/binary"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"tine/mapstate"
	"tine/mapstate/mapstatetest"
)

func TestCatalogSurvivesACrash(t *testing.T) {
	fs := vfs.NewCrashableMem()
	d := open(t, "data", quiet(fs))
	for _, name := range []string{"b", "a", "gone", "c"} {
		_, err := d.Create(name, []byte("spec of "+name))
		require.NoError(t, err)
	}
	require.NoError(t, d.Delete("gone"))
	states, err := open(t, "data", quiet(fs.CrashClone(vfs.CrashCloneCfg{}))).States()
	require.NoError(t, err)
	require.Equal(t, []CatalogEntry{
		{Name: "a", Spec: []byte("spec of a")},
		{Name: "b", Spec: []byte("spec of b")},
		{Name: "c", Spec: []byte("spec of c")},
	}, states)
}

func TestAnEmptyDatabaseOpensAgain(t *testing.T) {
	fs := vfs.NewMem()
	for range 3 {
		d := open(t, "data", quiet(fs))
		states, err := d.States()
		require.NoError(t, err)
		require.Empty(t, states)
		require.NoError(t, d.Close())
	}
}

func TestCreateRefusesANameThatIsTaken(t *testing.T) {
	d, p := create(t, vfs.NewMem())
	_, err := d.Create("s", []byte("other"))
	require.ErrorIs(t, err, mapstate.ErrStateExists)
	again, err := d.State("s")
	require.NoError(t, err)
	require.Same(t, p, again)
	require.Equal(t, "spec", string(again.Spec()))
}

func TestUnknownStatesAreNamed(t *testing.T) {
	d := open(t, "data", quiet(vfs.NewMem()))
	_, err := d.State("nowhere")
	require.ErrorIs(t, err, mapstate.ErrUnknownState)
	require.ErrorContains(t, err, `"nowhere"`)
	require.ErrorIs(t, d.Delete("nowhere"), mapstate.ErrUnknownState)
}

func TestADeletedStateLeavesNothingToItsSuccessor(t *testing.T) {
	fs := vfs.NewCrashableMem()
	d, p := create(t, fs)
	w := record("k", "old")
	w.Meta = []mapstate.MetaWrite{{Name: "m", Value: []byte("old")}}
	mapstatetest.Commit(t, p, w)
	require.NoError(t, d.Delete("s"))
	next, err := d.Create("s", nil)
	require.NoError(t, err)
	require.NotEqual(t, p.id, next.id, "ids are never given twice")
	for _, p := range []*Pebble{next, afterCrash(t, fs)} {
		require.Equal(t, []string{""}, mapstatetest.Get(t, p, "k"))
		entries, err := p.Meta(t.Context(), "")
		require.NoError(t, err)
		require.Empty(t, entries)
	}
	left, err := d.engine.NewIter(&pebble.IterOptions{
		LowerBound: binary.BigEndian.AppendUint32(nil, p.id),
		UpperBound: binary.BigEndian.AppendUint32(nil, p.id+1),
	})
	require.NoError(t, err)
	require.False(t, left.First(), "nothing of the deleted state is left")
	require.NoError(t, left.Close())
}

func TestIdsAreNotGivenTwiceAfterTheLastStateIsDeleted(t *testing.T) {
	fs := vfs.NewMem()
	d, p := create(t, fs)
	require.NoError(t, d.Delete("s"))
	require.NoError(t, d.Close())
	next, err := open(t, "data", quiet(fs)).Create("s", nil)
	require.NoError(t, err)
	require.Greater(t, next.id, p.id)
}

func TestOpenRefusesWhatItCannotRead(t *testing.T) {
	for name, c := range map[string]struct {
		key, value string
		want       error
		message    string
	}{
		"a newer layout":        {catalogFormat, "\x00\x00\x00\x07", mapstate.ErrUnsupported, "layout version 7, this program reads version 2"},
		"a layout cut short":    {catalogFormat, "\x00", mapstate.ErrCorrupt, "data"},
		"another program's":     {"\x00\x00", "x", mapstate.ErrCorrupt, "another program's"},
		"a state cut short":     {catalogStates + "short", "\x00", mapstate.ErrCorrupt, `"short"`},
		"a state with an id":    {catalogStates + "high", "\x00\x00\x10\x00", mapstate.ErrCorrupt, `"high"`},
		"a next id that is odd": {catalogNextID, "x", mapstate.ErrCorrupt, "catalog"},
	} {
		t.Run(name, func(t *testing.T) {
			fs := vfs.NewMem()
			d, _ := create(t, fs)
			require.NoError(t, d.engine.Set([]byte(c.key), []byte(c.value), pebble.Sync))
			require.NoError(t, d.Close())
			_, err := Open("data", quiet(fs))
			require.ErrorIs(t, err, c.want)
			require.ErrorContains(t, err, c.message)
			require.ErrorContains(t, err, "open data")
		})
	}
}
