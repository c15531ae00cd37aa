package web

import (
	"net/http"

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
	return view{
		Title: tr(r.Context(), "Attention"), Description: tr(r.Context(), "People who sell slots of their attention: the least bid, and how many slots are free."),
		Next: next, Refused: f.err, Stray: f.otherFaults("category"), Data: found, Body: attentionPage(f, found.Items, next),
	}, nil
}
