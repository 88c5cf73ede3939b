package api

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"tine/mapstate"

	"github.com/gorilla/mux"
)

// route is one row of the routing table.
type route struct {
	method string
	path   string
	handle handler
}

// routes is the table of everything that is served.
func (s *Server) routes() []route {
	const (
		states   = "/v1/states"
		state    = states + "/{state}"
		snapshot = state + "/snapshot"
	)
	table := []route{
		{http.MethodGet, states, s.listStates},
		{http.MethodPut, state, s.createState},
		{http.MethodGet, state, s.showState},
		{http.MethodDelete, state, s.deleteState},
		{http.MethodPost, state + "/multiGet", s.on(&multiGet, doMultiGet)},
		{http.MethodPost, state + "/multiUpdate", s.on(&multiUpdate, doMultiUpdate)},
		{http.MethodPost, state + "/multiPut", s.on(&multiPut, doMultiPut)},
		{http.MethodPost, state + "/multiRemove", s.on(&multiRemove, doMultiRemove)},
		{http.MethodPost, state + "/beginCommit", s.on(&beginCommit, doBegin)},
		{http.MethodPost, state + "/commit", s.on(&commit, doCommit)},
		{http.MethodPost, state + "/abort", s.on(&abort, doAbort)},
		{http.MethodGet, state + "/progress", s.showProgress},
		{http.MethodGet, snapshot, s.getSnapshot},
		{http.MethodPut, snapshot, s.on(&snapshotSet, doSnapshotSet)},
		{http.MethodPost, snapshot + "/update", s.on(&snapshotUpdate, doSnapshotUpdate)},
		{http.MethodGet, state + "/entries", s.listEntries},
		{http.MethodGet, "/livez", s.live},
		{http.MethodGet, "/readyz", s.ready},
		{http.MethodGet, "/openapi.json", s.describe},
	}
	if s.opts.Metrics != nil {
		table = append(table, route{http.MethodGet, "/metrics", s.metrics})
	}
	return table
}

func (s *Server) newRouter() *mux.Router {
	// Paths are matched as they were sent: an escaped slash is part of a name, and is
	// refused with it.
	router := mux.NewRouter().UseEncodedPath().SkipClean(true)
	for _, route := range s.routes() {
		router.Handle(route.path, s.adapt(route.path, route.handle)).Methods(route.method)
	}
	router.NotFoundHandler = s.adapt("none", notFound)
	router.MethodNotAllowedHandler = s.adapt("none", s.methodNotAllowed)
	return router
}

func notFound(_ http.ResponseWriter, r *http.Request) error {
	return fmt.Errorf("%w: there is nothing at %s; /openapi.json lists what there is", ErrNotFound, excerpt(r.URL.Path))
}

func (s *Server) methodNotAllowed(w http.ResponseWriter, r *http.Request) error {
	var allowed []string
	for _, method := range []string{http.MethodDelete, http.MethodGet, http.MethodPost, http.MethodPut} {
		probe := r.Clone(r.Context())
		probe.Method = method
		var match mux.RouteMatch
		if s.router.Match(probe, &match) && match.MatchErr == nil {
			allowed = append(allowed, method)
		}
	}
	allow := strings.Join(allowed, ", ")
	w.Header().Set("Allow", allow)
	return fmt.Errorf("%w: %s, allowed are %s", ErrMethodNotAllowed, excerpt(r.Method), allow)
}

// stateName is what states may be called.
var stateName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$`)

// nameIn returns the name of the state that a request is about.
func nameIn(r *http.Request) (string, error) {
	escaped := mux.Vars(r)["state"]
	name, err := url.PathUnescape(escaped)
	if err != nil || !stateName.MatchString(name) {
		return "", fmt.Errorf("%w: state name %q, want %s", ErrBadRequest, excerpt(escaped), stateName)
	}
	return name, nil
}

// mapIn returns the map of the state that a request is about.
func (s *Server) mapIn(r *http.Request) (*mapstate.Map, error) {
	state, err := s.stateIn(r)
	if err != nil {
		return nil, err
	}
	return state.Map, nil
}

func (s *Server) stateIn(r *http.Request) (*NamedState, error) {
	name, err := nameIn(r)
	if err != nil {
		return nil, err
	}
	return s.states.State(name)
}
