package protocol

import (
	"encoding/json"
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

// ToldTypes are the types that something on a node can cause today. The pages offer only these.
var ToldTypes = []FeedType{FeedBoardPost, FeedMerchantJoined, FeedListing, FeedReview, FeedAttentionBid}

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

	Evidence json.RawMessage `json:"-"` // what a node that follows this one checks; nil for none. It is stored, and not read with the feed.
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
	Local bool   `json:"local,omitempty" doc:"Only of this node."`
	Paging
}

// List returns the wanted types; nil means all.
func (q FeedQuery) List() []FeedType {
	var types []FeedType
	for t := range strings.SplitSeq(q.Types, ",") {
		if t = strings.TrimSpace(t); t != "" {
			types = append(types, FeedType(t))
		}
	}
	return types
}

// Check refuses unknown types.
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

// A FeedStream selects what a stream of the feed contains.
type FeedStream struct {
	Types string `json:"types,omitempty" maxLength:"80" doc:"Comma list of board_post, merchant_joined, listing, review, attention_bid."`
	Local bool   `json:"local,omitempty" doc:"Only of this node."`
	After string `json:"after,omitempty" shape:"feed-id" doc:"Id of a feed item: the stream begins after it; without it and the header Last-Event-ID, with the next item."`
}

// List returns the wanted types; nil means all.
func (q FeedStream) List() []FeedType { return FeedQuery{Types: q.Types}.List() }

// Check refuses unknown types.
func (q FeedStream) Check() []Fault { return FeedQuery{Types: q.Types}.Check() }

var ReadFeed = declare[FeedQuery, Page[FeedItem]](Operation{
	Name: "read_feed", Title: "Read the feed",
	Summary: "Activity feed, newest first.",
	HTTP:    Route{"GET", "/api/public/feed", 200}, Doors: Everywhere, ReadOnly: true,
	Codes:   []Code{InvalidCursor},
	Example: FeedQuery{Types: "board_post"},
})

var StreamFeed = declare[FeedStream, Stream](Operation{
	Name: "stream_feed", Title: "Follow the feed",
	Summary: "The feed as it happens, as server-sent events.",
	Description: "The event is the type of the feed item, its id the item's, its data the item as JSON on one line. Items come in the order in which " +
		"they became public, each once; a reader that comes back with Last-Event-ID, here or at another process, gets all it has missed. A comment comes every " +
		"15 seconds; a stream ends after an hour, or earlier.",
	HTTP: Route{"GET", "/api/public/feed/stream", 200}, Doors: HTTP, ReadOnly: true, NoStore: true,
	Media: "text/event-stream", Codes: []Code{InvalidCursor},
	Example: FeedStream{Types: "board_post"},
})
