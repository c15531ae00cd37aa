package activity

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"stoa/protocol"
)

// ShopType is the type of what a node says of a shop of its own. Other software has none for it.
const ShopType = "stoa:Shop"

// A Shop is a shop as its node summarizes it for the nodes that follow its board.
type Shop struct {
	ID           Text            `json:"id"`
	Type         Types           `json:"type"`
	AttributedTo Refs            `json:"attributedTo"`
	Published    Time            `json:"published"`
	URL          Text            `json:"url"`
	Author       AuthorClaim     `json:"stoa:author"`
	Summary      json.RawMessage `json:"stoa:shop"`
	Statement    json.RawMessage `json:"stoa:statement"`
}

// Shop returns the id of what this node says of a shop.
func (s Site) Shop(handle string) string { return s.Base + "/ap/shops/" + handle }

// OfferShop returns the activity by which the board tells of a shop, without proof: its page and its summary, and a statement of
// the shop about that, nil for none.
func (s Site) OfferShop(author protocol.Author, page string, summary, statement json.RawMessage, at time.Time) Object {
	shop := Object{
		"id": s.Shop(*author.Handle), "type": ShopType, "attributedTo": *author.Actor, "published": stamp(at), "url": page, "to": []string{Public},
		"stoa:author": authorClaim(author), "stoa:shop": summary,
	}
	if statement != nil {
		shop["stoa:statement"] = statement
	}
	return s.OfferNews(shop)
}

// Limits of a summary that comes from elsewhere.
const (
	maxShopBytes = 16 << 10
	maxShopText  = 400
	maxShopTags  = 20
)

// Read reads the summary and the author, who is not verified, of a shop of the node host; errors wrap ErrShape.
func (s *Shop) Read(host string) (out protocol.ShopSummary, author protocol.Author, err error) {
	runes := utf8.RuneCountInString
	if s.ID == "" || len(s.ID) > MaxID || s.URL == "" || len(s.URL) > MaxID || len(s.AttributedTo) != 1 || s.Published.IsZero() {
		return out, author, refused("id, url, time and one author are needed")
	}
	claim := Note{ID: s.ID, AttributedTo: slices.Clone(s.AttributedTo), Author: s.Author}
	if author, err = claim.author(); err != nil {
		return out, author, err
	}
	if author.Handle == nil || len(s.Summary) > maxShopBytes || json.Unmarshal(s.Summary, &out) != nil {
		return out, author, refused("the author is no profile of its node, or stoa:shop is malformed or too large")
	}
	author.Node, out.HasIdentity = &host, false
	if out.Name = strings.TrimSpace(out.Name); out.Name == "" || len(out.Words) > protocol.MaxShopWords || len(out.Tags) > maxShopTags || len(out.Prices) > 3 ||
		out.Items < 0 || slices.ContainsFunc(append([]string{out.Name, out.Headline, out.Category, out.City}, out.Tags...),
		func(t string) bool { return runes(t) > maxShopText }) {
		return out, author, refused("a summary that is too long")
	}
	if g := out.Geo; g != nil && !(math.Abs(g.Latitude) <= 90 && math.Abs(g.Longitude) <= 180) {
		return out, author, refused("a place that is on no map")
	}
	if faults := protocol.CheckText("", struct {
		Name, Headline, Category, City, Words string
		Tags                                  []string
	}{out.Name, out.Headline, out.Category, out.City, out.Words, out.Tags}); len(faults) > 0 {
		return out, author, refused("%s: %s", faults[0].Pointer, faults[0].Detail)
	}
	return out, author, nil
}
