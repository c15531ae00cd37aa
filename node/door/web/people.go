package web

import (
	"net/http"

	"stoa/protocol"
)

func (s *Web) people(r *http.Request) (view, error) {
	f, err := s.form(r, protocol.ListPeople.Operation)
	if err != nil {
		return view{}, err
	}
	found, err := list(s, r, protocol.ListPeople, f)
	if err != nil {
		return view{}, err
	}
	f.found = found.Finding
	next := f.next("/people", found.Next)
	parts := make([]thing, len(found.Items))
	for i, e := range found.Items {
		parts[i] = entryData(e.Page, e.Name, e.Headline)
	}
	title := tr(r.Context(), "People")
	return view{
		Title: title, Linked: s.collection("/people", title, parts), Description: tr(r.Context(), "People who chose to be listed, and what they do."),
		Next: next, Refused: f.err, Stray: f.otherFaults("q", "sort"), Data: found, Body: peoplePage(f, found.Items, next),
	}, nil
}
