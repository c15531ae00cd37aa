package protocol

import "time"

// MaxShopWords is the maximum size of the words of a summary, in bytes.
const MaxShopWords = 2000

// A ShopSummary is what the nodes that follow the node of a shop list it by. Its items stay where they are.
type ShopSummary struct {
	Name           string      `json:"name"`
	Headline       string      `json:"headline,omitempty"`
	Category       string      `json:"category,omitempty"`
	City           string      `json:"city,omitempty"`
	Geo            *Geo        `json:"geo,omitempty"`
	Tags           []string    `json:"tags,omitempty"`  // at most 20
	Words          string      `json:"words,omitempty"` // of its items, folded, those of names first
	Prices         []PriceSpan `json:"prices,omitempty"`
	Items          int         `json:"items"`
	AcceptsReturns bool        `json:"acceptsReturns,omitempty"`
	HasIdentity    bool        `json:"hasIdentity,omitempty"` // of a received one: this node verified it
	Updated        time.Time   `json:"updated"`
}

// A PriceSpan is the lowest and the highest price of a shop in a currency, in minor units.
type PriceSpan struct {
	Currency string `json:"currency"`
	Low      int64  `json:"low"`
	High     int64  `json:"high"`
}
