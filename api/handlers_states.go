package api

import (
	"net/http"
	"net/url"
)

// stateList is the answer to GET /v1/states.
type stateList struct {
	States []StateInfo `json:"states"`
}

// partitionList is the answer to GET /v1/states/{state}/progress.
type partitionList struct {
	Partitions []PartitionProgress `json:"partitions"`
}

// answerDocument answers with a document that is not on a hot path.
func answerDocument(w http.ResponseWriter, status int, document any) error {
	body, err := appendDocument(nil, document)
	if err != nil {
		return err
	}
	answer(w, status, "application/json", body)
	return nil
}

func (s *Server) listStates(w http.ResponseWriter, _ *http.Request) error {
	list := stateList{States: []StateInfo{}}
	for _, state := range s.states.List() {
		list.States = append(list.States, infoOf(state))
	}
	return answerDocument(w, http.StatusOK, list)
}

func (s *Server) createState(w http.ResponseWriter, r *http.Request) error {
	name, err := nameIn(r)
	if err != nil {
		return err
	}
	sc := s.getScratch()
	defer s.putScratch(sc)
	if err := s.readBody(w, r, sc); err != nil {
		return err
	}
	spec, err := sc.dec.spec()
	if err != nil {
		return err
	}
	state, created, err := s.states.Create(r.Context(), name, spec)
	if err != nil {
		return err
	}
	status := http.StatusOK
	if created {
		status = http.StatusCreated
		w.Header().Set("Location", "/v1/states/"+url.PathEscape(name))
	}
	return answerDocument(w, status, infoOf(state))
}

func (s *Server) showState(w http.ResponseWriter, r *http.Request) error {
	state, err := s.stateIn(r)
	if err != nil {
		return err
	}
	return answerDocument(w, http.StatusOK, infoOf(state))
}

func (s *Server) deleteState(w http.ResponseWriter, r *http.Request) error {
	name, err := nameIn(r)
	if err != nil {
		return err
	}
	if err := s.states.Delete(r.Context(), name); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (s *Server) showProgress(w http.ResponseWriter, r *http.Request) error {
	m, err := s.mapIn(r)
	if err != nil {
		return err
	}
	return answerDocument(w, http.StatusOK, partitionList{Partitions: progressOf(m)})
}
