package test

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"

	"tine/backing/memcachedtest"
	"tine/mapstate"
)

// TestStories tells each story of testdata/http to a server of its own. A
// command is a request, its input the headers and the body, its output what came:
//
//	POST /v1/states/words/multiGet
//	{"keys":["man"]}
//	----
//	200 OK
//	"values":[null]
//
// The others are in story.command. In a body, <x*1000> stands for a thousand x.
func TestStories(t *testing.T) {
	datadriven.Walk(t, "testdata/http", func(t *testing.T, path string) {
		s := newStory(t)
		datadriven.RunTest(t, path, s.command)
	})
}

// what memcached does in another way: it lists no entries, a store of the test's takes
// its place, or it is not asked at all.
var notOnMemcached = regexp.MustCompile(`(?m)/entries|"capabilities"|^faulty|"backing"|min-free-bytes`)

// TestStoriesOnMemcached tells the stories of states on memcached: there they end the
// same, whatever else memcached cannot promise.
func TestStoriesOnMemcached(t *testing.T) {
	server := memcachedtest.Start(t, "-I", "8m", "-m", "100")
	told := 0
	for path, text := range storyFiles(t) {
		if notOnMemcached.MatchString(text) || !strings.Contains(text, "\nstate ") {
			continue
		}
		told++
		t.Run(filepath.Base(path), func(t *testing.T) {
			s := newStory(t)
			s.memcached = server.Addr
			datadriven.RunTest(t, path, s.command)
		})
	}
	require.Greater(t, told, 20)
}

// storyFiles returns the text of each story.
func storyFiles(t *testing.T) map[string]string {
	t.Helper()
	paths, err := filepath.Glob("testdata/http/*.txt")
	require.NoError(t, err)
	texts := make(map[string]string)
	for _, path := range paths {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		texts[path] = string(text)
	}
	return texts
}

func TestStoriesBeginWithWhatTheyShow(t *testing.T) {
	for path, text := range storyFiles(t) {
		require.Regexp(t, `^# [A-Z]`, text, path)
	}
}

func TestEveryErrorCodeIsToldInAStory(t *testing.T) {
	told := make(map[string]bool)
	code := regexp.MustCompile(`(?m)^"code":"([a-z_]+)"$`)
	for _, text := range storyFiles(t) {
		for _, m := range code.FindAllStringSubmatch(text, -1) {
			told[m[1]] = true
		}
	}
	codes := errorCodes(t)
	require.Greater(t, len(codes), 15, "the table was not found")
	for code := range codes {
		require.True(t, told[code], "no story shows %s", code)
	}
	for code := range told {
		require.True(t, codes[code], "a story shows %s, which the table does not have", code)
	}
}

// errorCodes returns the codes of the table of errors, read from its source.
func errorCodes(t *testing.T) map[string]bool {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "../api/errors.go", nil, 0)
	require.NoError(t, err)
	const codeColumn = 2
	codes := make(map[string]bool)
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || spec.Names[0].Name != "problemKinds" {
			return true
		}
		for _, row := range spec.Values[0].(*ast.CompositeLit).Elts {
			code, err := strconv.Unquote(row.(*ast.CompositeLit).Elts[codeColumn].(*ast.BasicLit).Value)
			require.NoError(t, err)
			codes[code] = true
		}
		return false
	})
	return codes
}

// A story names a route by its method and a path that fits its template.
func TestEveryRouteIsToldInAStory(t *testing.T) {
	var document struct {
		Paths map[string]map[string]json.RawMessage
	}
	text, err := os.ReadFile("../api/openapi.json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &document))
	require.Greater(t, len(document.Paths), 15)
	all := strings.Join(slices.Collect(maps.Values(storyFiles(t))), "\n")
	for template, methods := range document.Paths {
		path := regexp.MustCompile(`\\\{[a-z]+\\\}`).ReplaceAllString(regexp.QuoteMeta(template), "[^/ ]+")
		for method := range methods {
			if upper := strings.ToUpper(method); slices.Contains([]string{"GET", "PUT", "POST", "DELETE"}, upper) {
				require.Regexp(t, `(?m)^(hold )?`+upper+" "+path+`(\?.*)?$`, all)
			}
		}
	}
}

func TestEveryUpdaterIsToldInAStory(t *testing.T) {
	text, err := os.ReadFile("testdata/http/updaters.txt")
	require.NoError(t, err)
	for _, op := range []string{"append", "avg", "concat", "count", "first", "max", "merge", "min", "set", "sum", "union"} {
		_, err := mapstate.LookupOp(op)
		require.NoError(t, err)
		require.Contains(t, string(text), strconv.Quote(op))
	}
}
