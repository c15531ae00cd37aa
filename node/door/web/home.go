package web

import (
	"context"
	"net/http"

	"github.com/a-h/templ"

	"stoa/protocol"
)

func (s *Web) home(r *http.Request) (view, error) {
	if err := bare(r); err != nil {
		return view{}, err
	}
	posts, err := read(s, r, protocol.ReadBoard, protocol.BoardQuery{})
	if err != nil {
		return view{}, err
	}
	found, err := read(s, r, protocol.SearchAgents, protocol.AgentQuery{Local: true, Paging: protocol.Paging{Limit: 5}})
	if err != nil {
		return view{}, err
	}
	var c Census
	if c.Listed, c.Answering, c.OnChain, err = s.Census(r.Context()); err != nil {
		return view{}, err
	}
	return view{
		Title:       tr(r.Context(), "Find a shop or a person"),
		Description: tr(r.Context(), "Find a shop or a person, ask, and read the answer: a directory, a board and a feed, for people and for programs."),
		Activity:    s.Base + "/ap/node", Data: Home{posts.Page, found.Page, c}, Body: homePage(s, c, newest(posts.Items), found.Items),
	}, nil
}

// conversationNames are how conversations are called in the reader's language, by their kinds; * is in place of the handle. A browser knows
// which ones it began (static/clock.js).
func conversationNames(ctx context.Context) templ.Attributes {
	names := templ.Attributes{}
	for _, k := range contactKinds {
		names["data-"+k[0]] = tr(ctx, "%s to %s##a kind of message", word(ctx, k[0]), "@*")
	}
	return names
}

// newest returns the first of some posts that begin a thread.
func newest(posts []protocol.Post) (some []protocol.Post) {
	for _, p := range posts {
		if p.Root == nil && len(some) < 8 {
			some = append(some, p)
		}
	}
	return some
}

// about returns the node's description in plain text.
func (s *Web) about(r *http.Request) (string, error) {
	return read(s, r, protocol.AboutService, protocol.None{})
}
