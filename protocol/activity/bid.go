package activity

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"

	"stoa/protocol"
)

// BidType is the type of a bid on an attention board. Other software has none for it.
const BidType = "stoa:AttentionBid"

// A Bid is a live bid for attention as a node tells the nodes that follow its board.
type Bid struct {
	ID           Text        `json:"id"`
	Type         Types       `json:"type"`
	AttributedTo Refs        `json:"attributedTo"`
	Published    Time        `json:"published"`
	URL          Text        `json:"url"`
	Summary      Text        `json:"summary"`
	Title        Text        `json:"stoa:title"`
	Author       AuthorClaim `json:"stoa:author"`
}

// Bid returns the id of a bid of this node.
func (s Site) Bid(id string) string { return s.Base + "/ap/bids/" + id }

// BidObject returns the bid of a feed item of this node.
func (s Site) BidObject(item protocol.FeedItem) Object {
	author := s.Anon()
	if item.Actor.Handle != nil {
		author = s.Agent(*item.Actor.Handle)
	}
	return Object{
		"id": s.Bid(item.Subject.ID), "type": BidType, "attributedTo": author, "published": stamp(item.At), "url": item.Subject.URL,
		"to": []string{Public}, "summary": item.Summary, "stoa:title": item.Subject.Title, "stoa:author": authorClaim(item.Actor),
	}
}

// Offer returns the activity by which the board tells of a live bid, without proof. A reader that
// does not know it ignores it.
func (s Site) Offer(item protocol.FeedItem) Object {
	bid := s.BidObject(item)
	return Object{
		"@context": postContext, "id": CreateID(s.Bid(item.Subject.ID)), "type": "Offer", "actor": s.Board(),
		"to": bid["to"], "cc": []string{s.Board() + "/followers"}, "published": bid["published"], "object": bid,
	}
}

// Limits of the item of a bid that comes from elsewhere.
const (
	maxBidTitle   = 120
	maxBidSummary = 400
)

// Item reads a bid as a feed item of the node host; errors wrap ErrShape. The author is only what
// that node claims: not verified, and without chain identity. Ids and time are the caller's.
func (b *Bid) Item(host string) (protocol.FeedItem, error) {
	title, summary := strings.TrimSpace(string(b.Title)), strings.TrimSpace(string(b.Summary))
	runes := utf8.RuneCountInString
	switch {
	case !b.Type.Is(BidType):
		return protocol.FeedItem{}, refused("not a bid")
	case b.ID == "" || len(b.ID) > MaxID || len(b.URL) > MaxID || len(b.AttributedTo) != 1:
		return protocol.FeedItem{}, refused("id, url and one author are needed")
	case b.Published.IsZero():
		return protocol.FeedItem{}, refused("published is missing")
	case title == "" || runes(title) > maxBidTitle || summary == "" || runes(summary) > maxBidSummary:
		return protocol.FeedItem{}, refused("title: 1 to %d characters; summary: 1 to %d", maxBidTitle, maxBidSummary)
	}
	claim := Note{ID: b.ID, AttributedTo: slices.Clone(b.AttributedTo), Author: b.Author}
	author, err := claim.author()
	if err != nil {
		return protocol.FeedItem{}, err
	}
	author.Node = &host
	if faults := protocol.CheckText("", struct{ Title, Summary, Name string }{title, summary, author.Name}); len(faults) > 0 {
		return protocol.FeedItem{}, refused("%s: %s", faults[0].Pointer, faults[0].Detail)
	}
	return protocol.FeedItem{
		Type: protocol.FeedAttentionBid, Actor: author, Node: &host, Summary: summary, Untrusted: true,
		Subject: protocol.Subject{Kind: "bid", URL: string(b.URL), Title: title},
	}, nil
}

// An OfferOf reads the object of an Undo, or of an Offer, as what it names.
type OfferOf struct {
	Type   Types           `json:"type"`
	Object json.RawMessage `json:"object"`
}
