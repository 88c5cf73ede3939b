package crash

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tine/backing"
	"tine/mapstate"
	"tine/mapstate/mapstatetest"
	"tine/opaque"
)

// damaged are a directory that was closed in order, and what is in it.
type damaged struct {
	dir   string
	files map[string][]byte
}

const damagedKeys = 40

func openDamaged(dir string) (*backing.Database, error) {
	return backing.Open(dir, backing.Options{
		CacheBytes: 8 << 20, MemTableBytes: 64 << 10, MinFreeBytes: -1, Logger: slog.New(slog.DiscardHandler),
	})
}

// newDamaged makes a store with records in a table and in the log.
func newDamaged(t *testing.T) *damaged {
	d := &damaged{dir: filepath.Join(t.TempDir(), "data"), files: make(map[string][]byte)}
	for round := range 3 {
		db, err := openDamaged(d.dir) // which moves what was in the log into a table
		require.NoError(t, err)
		if round == 0 {
			_, err = db.Create("s", []byte("spec"))
			require.NoError(t, err)
		}
		state, err := db.State("s")
		require.NoError(t, err)
		m, err := mapstate.Open(background, opaque.Kind{}, state, mapstate.Options{})
		require.NoError(t, err)
		for i := range damagedKeys {
			env := mapstate.Envelope{TxID: mapstate.TxID(1 + round*damagedKeys + i), Offsets: []byte("7")}
			_, err = m.Put(background, env, mapstatetest.Keys(i), mapstatetest.Vals(fmt.Sprint("value ", round, strings.Repeat("y", 1200))))
			require.NoError(t, err)
		}
		m.Close(mapstate.ErrShuttingDown)
		require.NoError(t, db.Close())
	}
	entries, err := os.ReadDir(d.dir)
	require.NoError(t, err)
	for _, e := range entries {
		d.files[e.Name()], err = os.ReadFile(filepath.Join(d.dir, e.Name()))
		require.NoError(t, err)
	}
	return d
}

// restore makes a fresh copy of the directory and returns its name.
func (d *damaged) restore(t *testing.T) string {
	dir := filepath.Join(t.TempDir(), "data")
	require.NoError(t, os.Mkdir(dir, 0o750))
	for name, content := range d.files {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), content, 0o600))
	}
	return dir
}

// readDamaged opens a directory and reads all of it; what it reads is right, or it fails.
func readDamaged(t *testing.T, dir string) error {
	db, err := openDamaged(dir)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }() // it may have been damaged
	state, err := db.State("s")
	if err != nil {
		return err
	}
	require.Equal(t, "spec", string(state.Spec()))
	m, err := mapstate.Open(background, opaque.Kind{}, state, mapstate.Options{})
	if err != nil {
		return err
	}
	defer m.Close(mapstate.ErrShuttingDown)
	var keys []mapstate.Key
	for i := range damagedKeys {
		keys = append(keys, mapstatetest.Key(i))
	}
	entries, err := m.Read(background, mapstate.Envelope{}, keys)
	if err != nil {
		return err
	}
	require.Len(t, m.Progress(), 1)
	require.EqualValues(t, 3*damagedKeys, m.Progress()[0].TxID)
	for i, e := range entries {
		require.EqualValues(t, 2*damagedKeys+i+1, e.TxID, "key %d", i)
		require.Contains(t, e.Value.String(), "value 2")
		require.Contains(t, e.Prev.String(), "value 1")
	}
	return nil
}

// harmless are the files whose content decides nothing.
var harmless = []string{"LOCK", "marker."}

// TestADamagedFileIsNamedAndNeverBelieved flips a bit here and there in every file
// of a store. What is read then is right, or it is refused with the name of the
// file and the way out.
func TestADamagedFileIsNamedAndNeverBelieved(t *testing.T) {
	d := newDamaged(t)
	require.NoError(t, readDamaged(t, d.restore(t)), "it is whole")
	refused := make(map[string]int) // by sort of file
	for name, content := range d.files {
		if slices.ContainsFunc(harmless, func(p string) bool { return strings.HasPrefix(name, p) }) {
			continue
		}
		samples := 12
		if *longRun {
			samples = 200
		}
		for at := 0; at < len(content); at += max(1, len(content)/samples) {
			dir := d.restore(t)
			bad := slices.Clone(content)
			bad[at] ^= 0x10
			require.NoError(t, os.WriteFile(filepath.Join(dir, name), bad, 0o600))
			if err := readDamaged(t, dir); err != nil {
				refused[sortOf(name)]++
				require.ErrorIs(t, err, mapstate.ErrCorrupt, "%s, byte %d", name, at)
				require.Regexp(t, "(000[0-9]+|"+name+")", err.Error())
				require.ErrorContains(t, err, "from a copy")
				require.NotContains(t, err.Error(), "\n")
			}
		}
	}
	for _, sort := range []string{".sst", ".log", "MANIFEST", "OPTIONS"} {
		require.Positive(t, refused[sort], "%s: %v", sort, refused)
	}
	t.Logf("refused: %v", refused)
}

// sortOf returns what a file is.
func sortOf(name string) string {
	if base, _, ok := strings.Cut(name, "-"); ok {
		return base
	}
	return filepath.Ext(name)
}

// TestTheTailOfALogThatWasClosedIsGuarded flips a bit in each of the last commits.
func TestTheTailOfALogThatWasClosedIsGuarded(t *testing.T) {
	d := newDamaged(t)
	var last string
	for name := range d.files {
		if strings.HasSuffix(name, ".log") {
			last = max(last, name)
		}
	}
	content := d.files[last]
	at := bytes.LastIndex(content, []byte("value 2"))
	require.Positive(t, at, "the last commit is in the log")
	dir := d.restore(t)
	bad := slices.Clone(content)
	bad[at]++
	require.NoError(t, os.WriteFile(filepath.Join(dir, last), bad, 0o600))
	err := readDamaged(t, dir)
	require.ErrorIs(t, err, mapstate.ErrCorrupt)
	require.ErrorContains(t, err, last)
}

// TestAFileThatIsGoneIsMissed removes the files that a store cannot do without. Of the logs it is
// missed that there is none.
func TestAFileThatIsGoneIsMissed(t *testing.T) {
	d := newDamaged(t)
	for pattern, named := range map[string]string{
		"*.sst": ".sst|0000", "*.log": `\.log`, "marker.manifest.*": `marker\.manifest`, "marker.format-version.*": "data", "MANIFEST-*": "MANIFEST",
	} {
		t.Run(pattern, func(t *testing.T) {
			dir := d.restore(t)
			files, err := filepath.Glob(filepath.Join(dir, pattern))
			require.NoError(t, err)
			require.NotEmpty(t, files)
			for _, file := range files {
				require.NoError(t, os.Remove(file))
			}
			err = readDamaged(t, dir)
			require.ErrorIs(t, err, mapstate.ErrCorrupt)
			require.Regexp(t, named, err.Error())
			require.ErrorContains(t, err, "from a copy")
		})
	}
}

func TestADirectoryOfSomethingElseIsLeftAlone(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "thesis.txt"), nil, 0o600))
	_, err := openDamaged(dir)
	require.ErrorIs(t, err, mapstate.ErrUnsupported)
	require.ErrorContains(t, err, "thesis.txt")
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 1, "nothing was made there")
}
