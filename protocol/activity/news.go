package activity

import (
	"encoding/json"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"stoa/protocol"
)

// NewsType is the type of news of a shop. Other software has none for it.
const NewsType = "stoa:News"

// News is news of a shop as a node tells the nodes that follow its board: that it joined, what it lists, a review.
type News struct {
	ID           Text            `json:"id"`
	Type         Types           `json:"type"`
	AttributedTo Refs            `json:"attributedTo"`
	Published    Time            `json:"published"`
	URL          Text            `json:"url"`
	Summary      Text            `json:"summary"`
	Kind         Text            `json:"stoa:kind"`
	Title        Text            `json:"stoa:title"`
	Author       AuthorClaim     `json:"stoa:author"`
	Statement    json.RawMessage `json:"stoa:statement"`
	Review       json.RawMessage `json:"stoa:review"`
}

// newsSubjects are the kinds of news, and what each is about.
var newsSubjects = map[protocol.FeedType]string{
	protocol.FeedMerchantJoined: "profile", protocol.FeedListing: "item", protocol.FeedReview: "review",
}

// News returns the id of news of this node, by the id of its feed item.
func (s Site) News(id string) string { return s.Base + "/ap/news/" + id }

// NewsObject returns the news of a feed item of this node.
func (s Site) NewsObject(item protocol.FeedItem) (Object, error) {
	var e protocol.NewsEvidence
	if item.Evidence != nil {
		if err := json.Unmarshal(item.Evidence, &e); err != nil {
			return nil, err
		}
	}
	o := Object{
		"id": s.News(item.ID), "type": NewsType, "attributedTo": s.Agent(*item.Actor.Handle), "published": stamp(item.At), "url": item.Subject.URL,
		"to": []string{Public}, "summary": item.Summary, "stoa:kind": item.Type, "stoa:title": item.Subject.Title, "stoa:author": authorClaim(item.Actor),
	}
	if e.Statement != nil {
		o["stoa:statement"] = e.Statement
	}
	if e.Review != nil {
		o["stoa:review"] = e.Review
	}
	return o, nil
}

// OfferNews returns the activity by which the board tells news, without proof. A reader that does not know it ignores it.
func (s Site) OfferNews(news Object) Object {
	return Object{
		"@context": postContext, "id": CreateID(news["id"].(string)), "type": "Offer", "actor": s.Board(),
		"to": news["to"], "cc": []string{s.Board() + "/followers"}, "published": news["published"], "object": news,
	}
}

// OfferAgain returns the activity by which the board shows the news of a shop again that Withdrawn took back, without proof.
func (s Site) OfferAgain(actor string, seq int64, at time.Time) Object {
	return Object{
		"@context": postContext, "id": s.EntryID(seq) + "#Offer", "type": "Offer", "actor": s.Board(),
		"to": []string{Public}, "cc": []string{s.Board() + "/followers"}, "published": stamp(at), "object": actor,
	}
}

// Withdrawn returns the activity that takes back what was offered: a bid or news by its id, or all news of a shop by its
// actor; without proof.
func (s Site) Withdrawn(id string, seq int64, at time.Time) Object {
	return Object{
		"@context": postContext, "id": s.EntryID(seq) + "#Undo", "type": "Undo", "actor": s.Board(),
		"to": []string{Public}, "cc": []string{s.Board() + "/followers"}, "published": stamp(at),
		"object": Object{"id": CreateID(id), "type": "Offer", "actor": s.Board(), "object": id},
	}
}

// Limits of news that comes from elsewhere.
const (
	maxNewsTitle   = 200
	maxNewsSummary = 600
)

// Item reads news as a feed item of the node host, with an author who is not verified; errors wrap ErrShape. Ids and time
// are the caller's. The text about a review is what its members say.
func (n *News) Item(host string) (item protocol.FeedItem, review *protocol.NewsReview, err error) {
	kind, runes := protocol.FeedType(n.Kind), utf8.RuneCountInString
	title, summary := strings.TrimSpace(string(n.Title)), strings.TrimSpace(string(n.Summary))
	switch {
	case !n.Type.Is(NewsType) || newsSubjects[kind] == "":
		return item, nil, refused("not news of a known kind")
	case n.ID == "" || len(n.ID) > MaxID || n.URL == "" || len(n.URL) > MaxID || len(n.AttributedTo) != 1:
		return item, nil, refused("id, url and one author are needed")
	case n.Published.IsZero():
		return item, nil, refused("published is missing")
	}
	claim := Note{ID: n.ID, AttributedTo: slices.Clone(n.AttributedTo), Author: n.Author}
	author, err := claim.author()
	if err != nil {
		return item, nil, err
	}
	if author.Handle == nil {
		return item, nil, refused("the author is no profile of its node")
	}
	if kind == protocol.FeedReview {
		review = &protocol.NewsReview{}
		if json.Unmarshal(n.Review, review) != nil || review.Rating < 0 || review.Rating > 10_000 {
			return item, nil, refused("stoa:review is missing, or malformed")
		}
		summary = review.Summary(author.Name)
	}
	if title == "" || runes(title) > maxNewsTitle || summary == "" || runes(summary) > maxNewsSummary {
		return item, nil, refused("title: 1 to %d characters; summary: 1 to %d", maxNewsTitle, maxNewsSummary)
	}
	if faults := protocol.CheckText("", struct{ Title, Summary, Name string }{title, summary, author.Name}); len(faults) > 0 {
		return item, nil, refused("%s: %s", faults[0].Pointer, faults[0].Detail)
	}
	author.Node = &host
	return protocol.FeedItem{
		Type: kind, Actor: author, Node: &host, Summary: summary, Untrusted: true,
		Subject: protocol.Subject{Kind: newsSubjects[kind], URL: string(n.URL), Title: title},
	}, review, nil
}
