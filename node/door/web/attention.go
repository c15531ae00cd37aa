package web

import (
	"net/http"

	"github.com/a-h/templ"

	"stoa/protocol"
)

func (s *Web) attention(r *http.Request) (view, error) {
	f, err := s.form(r, protocol.ListAttentionBoards.Operation)
	if err != nil {
		return view{}, err
	}
	found, err := list(s, r, protocol.ListAttentionBoards, f)
	if err != nil {
		return view{}, err
	}
	next := f.next("/attention", found.Next)
	parts := make([]thing, len(found.Items))
	for i, e := range found.Items {
		parts[i] = entryData(e.Page, e.Name, e.Headline)
	}
	title := tr(r.Context(), "Attention")
	return view{
		Title: title, Linked: s.collection("/attention", title, parts),
		Description: tr(r.Context(), "People who sell slots of their attention: the least bid, and how many slots are free."),
		Next:        next, Refused: f.err, Stray: f.otherFaults("category"), Data: found, Body: attentionPage(f, found.Items, next),
	}, nil
}

func testMark(test bool) templ.Component { return when(test, worded("fair", "TEST: no money moves")) }

func slotsMark(accepting bool, free *int, slots int) templ.Component {
	switch {
	case !accepting:
		return worded("poor", "takes no bids now")
	case free == nil: // its node knows
		return templ.NopComponent
	case *free > 0:
		return worded("good", "%[2]d of %[1]d slots free", slots, *free)
	}
	return worded("fair", "no free slot of %d", slots)
}
