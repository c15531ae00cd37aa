package web

import (
	"cmp"
	"net/http"

	"stoa/protocol"
)

func (s *Web) feed(r *http.Request) (view, error) {
	f, err := s.form(r, protocol.ReadFeed.Operation)
	if err != nil {
		return view{}, err
	}
	news, err := list(s, r, protocol.ReadFeed, f)
	if err != nil {
		return view{}, err
	}
	next := f.next("/feed", news.Next)
	parts := make([]thing, len(news.Items))
	for i, item := range news.Items {
		parts[i] = entryData(item.Subject.URL, cmp.Or(item.Subject.Title, item.Actor.Name), "")
	}
	title := tr(r.Context(), "Feed")
	return view{
		Title: title, Linked: s.collection("/feed", title, parts), Description: tr(r.Context(), "What happened on this node and on those it follows, newest first."),
		Next: next, Refused: f.err, Stray: f.otherFaults(), Data: news, Body: feedPage(s, f, news.Items, next),
	}, nil
}

// joinLike joins items that follow one another and say the same of the same actor: that a shop lists
// things. The first of a group is the newest.
func joinLike(news []protocol.FeedItem) (groups [][]protocol.FeedItem) {
	for _, item := range news {
		if n := len(groups) - 1; n >= 0 && item.Type == protocol.FeedListing && groups[n][0].Type == item.Type &&
			authorPath(item.Actor) != "" && authorPath(groups[n][0].Actor) == authorPath(item.Actor) {
			groups[n] = append(groups[n], item)
			continue
		}
		groups = append(groups, []protocol.FeedItem{item})
	}
	return groups
}
