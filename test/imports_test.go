package test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// module is the path that every import of Tine's own begins with.
const module = "tine/"

// importTable is the map of the module: its rooms, and which of them the code of
// each may import, tests apart. A package below a room belongs to it, and the
// packages of one room may import each other.
var importTable = map[string][]string{
	"mapstate":              {},
	"mapstate/mapstatetest": {"mapstate", "verify/oracle"},
	"opaque":                {"mapstate"},
	"transactional":         {"mapstate"},
	"nontx":                 {"mapstate"},
	"backing":               {"mapstate"},
	"backing/backingtest":   {}, // imported by tests only
	"cache":                 {"mapstate"},
	"trident":               {"mapstate"},
	"api":                   {"mapstate"},
	"stream":                {"mapstate"},
	"server":                {"mapstate", "opaque", "transactional", "nontx", "trident", "backing", "cache", "api", "stream"},
	"verify/oracle":         {"mapstate"},
	"verify":                {"mapstate", "verify/oracle", "api"},
	"cmd/tine":              {"mapstate", "server", "api", "verify", "trident"},
	"test":                  {}, // its code is tests
}

// goPackage is what go list tells of a package.
type goPackage struct {
	ImportPath   string
	Dir          string
	Standard     bool
	DepOnly      bool
	Imports      []string
	TestImports  []string
	XTestImports []string
}

// goList returns the packages of the module, with their dependencies.
func goList(t *testing.T) []goPackage {
	t.Helper()
	cmd := exec.Command("go", "list", "-deps", "-json=ImportPath,Dir,Standard,DepOnly,Imports,TestImports,XTestImports", "./...")
	cmd.Dir = ".."
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	require.NoError(t, err, "%s: %s", cmd, &stderr)
	var all []goPackage
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p goPackage
		err := dec.Decode(&p)
		if errors.Is(err, io.EOF) {
			return all
		}
		require.NoError(t, err)
		all = append(all, p)
	}
}

// roomOf returns the room of the map that a package of the module is in.
func roomOf(importPath string) (room string, ok bool) {
	rel, ok := strings.CutPrefix(importPath, module)
	if !ok {
		return "", false
	}
	for name := range importTable {
		if (rel == name || strings.HasPrefix(rel, name+"/")) && len(name) > len(room) {
			room = name
		}
	}
	return room, room != ""
}

func TestPackagesImportWhatTheMapAllows(t *testing.T) {
	rooms := make(map[string]bool)
	for _, p := range goList(t) {
		if p.DepOnly {
			continue
		}
		room, ok := roomOf(p.ImportPath)
		require.True(t, ok, "package %s is outside the map", p.ImportPath)
		rooms[room] = true
		for _, imported := range p.Imports {
			if !strings.HasPrefix(imported, module) {
				continue
			}
			to, ok := roomOf(imported)
			require.True(t, ok, "%s imports %s, which is outside the map", p.ImportPath, imported)
			if to != room {
				require.Contains(t, importTable[room], to, "%s imports %s", p.ImportPath, imported)
			}
		}
	}
	require.Subset(t, []string{"stream", "verify"}, missing(rooms), "rooms of the map without a package")
}

// missing returns the rooms that are not there. That there is code for all but the
// engine shows that the walk has seen the module.
func missing(rooms map[string]bool) []string {
	names := []string{}
	for room := range importTable {
		if !rooms[room] && room != "test" {
			names = append(names, room)
		}
	}
	return names
}

func TestMapstateNeedsTheStandardLibraryOnly(t *testing.T) {
	packages := make(map[string]goPackage)
	for _, p := range goList(t) {
		packages[p.ImportPath] = p
	}
	vocabulary := packages[module+"mapstate"]
	require.NotEmpty(t, vocabulary.Imports)
	for _, imported := range vocabulary.Imports {
		require.True(t, packages[imported].Standard, "mapstate imports %s", imported)
	}
	// Its tests may use what is made for tests, and Tine.
	tests := []string{"github.com/stretchr/testify/require", "pgregory.net/rapid", "go.uber.org/goleak"}
	for _, imported := range slices.Concat(vocabulary.TestImports, vocabulary.XTestImports) {
		outside := strings.Contains(imported, ".")
		require.True(t, !outside || slices.Contains(tests, imported), "the tests of mapstate import %s", imported)
	}
}

func TestOnlyTestsImportMapstatetest(t *testing.T) {
	const suites = module + "mapstate/mapstatetest"
	users := 0
	for _, p := range goList(t) {
		require.NotContains(t, p.Imports, suites, "%s", p.ImportPath)
		if slices.Contains(slices.Concat(p.TestImports, p.XTestImports), suites) {
			users++
		}
	}
	require.NotZero(t, users, "nobody uses the suites, or the list is not what it seems")
}
