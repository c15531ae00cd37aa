package protocol

import (
	"strings"
	"time"
)

// A FeedType is a type of feed item (spec §2.14).
type FeedType string

const (
	FeedBoardPost      FeedType = "board_post"
	FeedMerchantJoined FeedType = "merchant_joined"
	FeedListing        FeedType = "listing"
	FeedReview         FeedType = "review"
	FeedAttentionBid   FeedType = "attention_bid"
)

// FeedTypes is every type, in the order of the specification.
var FeedTypes = []FeedType{FeedBoardPost, FeedMerchantJoined, FeedListing, FeedReview, FeedAttentionBid}

// A FeedItem says that something public happened (contract §6).
type FeedItem struct {
	ID        string    `json:"id" pattern:"^feed_"`
	Type      FeedType  `json:"type" enum:"board_post,merchant_joined,listing,review,attention_bid"`
	At        time.Time `json:"at"`
	Actor     Author    `json:"actor"`
	Subject   Subject   `json:"subject"`
	Summary   string    `json:"summary"`
	Node      *string   `json:"node" doc:"Host of the node where it happened; null for this one."`
	Untrusted bool      `json:"untrusted_content" doc:"Always true."`
}

// A Subject is what a feed item is about.
type Subject struct {
	Kind  string `json:"kind" enum:"post,profile,item,review,bid"`
	ID    string `json:"id"`
	URL   string `json:"url" format:"uri"`
	Title string `json:"title"`
}

// A FeedQuery selects feed items.
type FeedQuery struct {
	Types string `json:"types,omitempty" maxLength:"80" doc:"Comma list of board_post, merchant_joined, listing, review, attention_bid."`
	Paging
}

// List is the wanted types; none means all.
func (q FeedQuery) List() []FeedType {
	var types []FeedType
	for t := range strings.SplitSeq(q.Types, ",") {
		if t = strings.TrimSpace(t); t != "" {
			types = append(types, FeedType(t))
		}
	}
	return types
}

// Check finds types that do not exist.
func (q FeedQuery) Check() []Fault {
	for _, t := range q.List() {
		if !isFeedType(t) {
			return []Fault{{"/types", "unknown-type", "a comma list of board_post, merchant_joined, listing, review, attention_bid"}}
		}
	}
	return nil
}

func isFeedType(t FeedType) bool {
	for _, known := range FeedTypes {
		if t == known {
			return true
		}
	}
	return false
}

var ReadFeed = declare[FeedQuery, Page[FeedItem]](Operation{
	Name: "read_feed", Title: "Read the feed",
	Summary: "Activity feed, newest first.",
	HTTP:    Route{"GET", "/api/public/feed", 200}, Doors: Everywhere, ReadOnly: true,
	Codes:   []Code{InvalidCursor},
	Example: FeedQuery{Types: "board_post"},
})
