package activity

import (
	"encoding/json"
	"time"

	"stoa/protocol"
)

// Terms of FEP-044f.
var (
	quotePolicyTerms = Object{
		"gts":               "https://gotosocial.org/ns#",
		"interactionPolicy": Object{"@id": "gts:interactionPolicy", "@type": "@id"}, "canQuote": Object{"@id": "gts:canQuote", "@type": "@id"},
		"automaticApproval": Object{"@id": "gts:automaticApproval", "@type": "@id"},
	}
	quoteContext = []any{
		"https://www.w3.org/ns/activitystreams",
		Object{
			"QuoteRequest": "https://w3id.org/fep/044f#QuoteRequest", "QuoteAuthorization": "https://w3id.org/fep/044f#QuoteAuthorization",
			"gts":               "https://gotosocial.org/ns#",
			"interactingObject": Object{"@id": "gts:interactingObject", "@type": "@id"}, "interactionTarget": Object{"@id": "gts:interactionTarget", "@type": "@id"},
		},
	}
)

// Quotable reports whether everyone may quote a post of this node: a public one.
func Quotable(p *protocol.StoredPost) bool { return p.State == protocol.Visible && !p.Unlisted }

// quotePolicy is the interactionPolicy of a post: everyone may quote a public one; of another only its author, which is how FEP-044f says
// nobody.
func (s Site) quotePolicy(p *protocol.StoredPost) Object {
	who := Public
	if p.Unlisted {
		who = s.Author(p)
	}
	return Object{"canQuote": Object{"automaticApproval": []string{who}}}
}

// WithCounts puts the numbers of likes and boosts into a Note that is served at its id. The Note inside a Create has only the ids of both
// collections, so that its bytes do not change.
func WithCounts(note Object, p *protocol.StoredPost) Object {
	note["likes"], note["shares"] = Counted(p, "likes"), Counted(p, "shares")
	return note
}

// Counted returns the collection of the likes or the shares of a post, of which only the number is shown.
func Counted(p *protocol.StoredPost, part string) Object {
	n := p.Likes
	if part == "shares" {
		n = p.Shares
	}
	return Object{"id": p.URI + "/" + part, "type": "Collection", "totalItems": n}
}

// A Quoting is the post in a QuoteRequest that wants to quote another one.
type Quoting struct {
	ID     string
	Author string // "" when only the id is known
	Of     string // the post that it quotes, "" when it does not say
	Public bool
}

// Quoting reads the instrument of a QuoteRequest.
func (a *Activity) Quoting() (q Quoting) {
	var ids Refs
	if a.Instrument == nil || ids.UnmarshalJSON(a.Instrument) != nil {
		return q
	}
	q.ID = ids.One()
	var n struct {
		AttributedTo Refs `json:"attributedTo"`
		To           Refs `json:"to"`
		CC           Refs `json:"cc"`
		Quote        Refs `json:"quote"`
	}
	if first(a.Instrument) == '{' && json.Unmarshal(a.Instrument, &n) == nil {
		q.Author, q.Of, q.Public = n.AttributedTo.One(), n.Quote.One(), IsPublic(n.To) || IsPublic(n.CC)
	}
	return q
}

// StampID returns the id of the permission to quote a post.
func StampID(uri, key string) string { return uri + "/quotes/" + key }

// Stamp returns the permission of a post's author that another post quotes it.
func (s Site) Stamp(p *protocol.StoredPost, key, quoting string) Object {
	return Object{
		"@context": quoteContext, "id": StampID(p.URI, key), "type": "QuoteAuthorization", "attributedTo": s.Author(p),
		"interactingObject": quoting, "interactionTarget": p.URI,
	}
}

// RevokedStamp returns what replaces a permission of a deleted post.
func RevokedStamp(p *protocol.StoredPost, key string) Object {
	return Object{"@context": quoteContext, "id": StampID(p.URI, key), "type": "Tombstone", "formerType": "QuoteAuthorization"}
}

// Revoke returns the Delete of the permission by which an actor quotes a post.
func (s Site) Revoke(p *protocol.StoredPost, key, actor string, at time.Time) Object {
	id := StampID(p.URI, key)
	return Object{
		"@context": quoteContext, "id": id + "#delete", "type": "Delete", "actor": s.Author(p), "to": []string{actor}, "published": stamp(at), "object": id,
	}
}

// AnswerQuote returns the Accept or Reject of a QuoteRequest of actor by the author of the post; an Accept names the permission.
func (s Site) AnswerQuote(kind, id, request, actor, quoting string, p *protocol.StoredPost, key string) Object {
	o := Object{
		"@context": quoteContext, "id": id, "type": kind, "actor": s.Author(p), "to": []string{actor},
		"object": Object{"id": request, "type": "QuoteRequest", "actor": actor, "object": p.URI, "instrument": quoting},
	}
	if key != "" {
		o["result"] = StampID(p.URI, key)
	}
	return o
}
