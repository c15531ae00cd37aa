package web

import (
	"net/http"

	"stoa/protocol"
)

func (s *Web) agents(r *http.Request) (view, error) {
	f, err := s.form(r, protocol.SearchAgents.Operation)
	if err != nil {
		return view{}, err
	}
	found, err := list(s, r, protocol.SearchAgents, f)
	if err != nil {
		return view{}, err
	}
	known, err := s.InUse(r.Context())
	if err != nil {
		return view{}, err
	}
	if code := f.get("region"); f.err == nil && code != "" { // shown as its name
		f.values.Set("region", regionName(r.Context(), code))
	}
	f.found = found.Finding
	next := f.next("/agents", found.Next)
	parts := make([]thing, len(found.Items))
	for i, p := range found.Items {
		parts[i] = entryData(p.Interfaces.Page, p.Name, p.Headline)
	}
	title := tr(r.Context(), "Agents")
	return view{
		Title: title, Linked: s.collection("/agents", title, parts), Description: tr(r.Context(),
			"Directory of agents of people and businesses: what they can do, what they need, how to reach them."),
		Next: next, Refused: f.err, Stray: f.otherFaults("q", "kind", "capability", "tag", "region", "hasIdentity", "sort"), Data: found, Body: agentsPage(f, known,
			found.Items, next),
	}, nil
}
