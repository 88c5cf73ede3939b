package api

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/gorilla/mux"
	"github.com/stretchr/testify/require"
)

// openAPIDocument is what the tests read of the OpenAPI document.
type openAPIDocument struct {
	Paths      map[string]map[string]json.RawMessage
	Components struct{ Schemas map[string]schema }
}

type schema struct {
	Required   []string
	Properties map[string]json.RawMessage
}

func readOpenAPI(t *testing.T) (doc openAPIDocument) {
	t.Helper()
	require.NoError(t, json.Unmarshal(openAPI, &doc))
	return doc
}

func TestTheOpenAPIDocumentHasEveryRouteAndNoOther(t *testing.T) {
	s := New(nil, Options{Metrics: http.NotFoundHandler()})
	var routed []string
	require.NoError(t, s.router.Walk(func(route *mux.Route, _ *mux.Router, _ []*mux.Route) error {
		path, err := route.GetPathTemplate()
		require.NoError(t, err)
		methods, err := route.GetMethods()
		require.NoError(t, err)
		for _, method := range methods {
			routed = append(routed, method+" "+path)
		}
		return nil
	}))
	var described []string
	for path, item := range readOpenAPI(t).Paths {
		for method := range item {
			if method != "parameters" {
				described = append(described, strings.ToUpper(method)+" "+path)
			}
		}
	}
	slices.Sort(routed)
	slices.Sort(described)
	require.Equal(t, routed, described)
}

func TestTheOpenAPIDocumentHasTheMembersOfEveryCall(t *testing.T) {
	schemas := readOpenAPI(t).Components.Schemas
	for name, c := range map[string]*call{
		"MultiGetRequest": &multiGet, "MultiUpdateRequest": &multiUpdate, "MultiPutRequest": &multiPut, "MultiRemoveRequest": &multiRemove,
		"BeginRequest": &beginCommit, "CommitRequest": &commit, "AbortRequest": &abort,
		"SnapshotSetRequest": &snapshotSet, "SnapshotUpdateRequest": &snapshotUpdate,
	} {
		s := schemas[name]
		require.ElementsMatch(t, c.members[:c.required], s.Required, name)
		var members []string
		for member := range s.Properties {
			members = append(members, member)
		}
		require.ElementsMatch(t, c.members, members, name)
	}
}

func TestTheOpenAPIDocumentHasEveryProblemCode(t *testing.T) {
	var problem struct {
		Properties struct{ Code struct{ Enum []string } }
	}
	var doc struct {
		Components struct {
			Schemas struct{ Problem json.RawMessage }
		}
	}
	require.NoError(t, json.Unmarshal(openAPI, &doc))
	require.NoError(t, json.Unmarshal(doc.Components.Schemas.Problem, &problem))
	var codes []string
	for _, kind := range problemKinds {
		if !slices.Contains(codes, kind.code) {
			codes = append(codes, kind.code)
		}
	}
	require.ElementsMatch(t, codes, problem.Properties.Code.Enum)
}
