package protocol

import (
	"encoding/json"
	"fmt"
	"strings"
)

// NewsEvidence is what a node that follows another one checks of news of a shop: the evidence of a FeedItem.
type NewsEvidence struct {
	Statement json.RawMessage `json:"statement,omitempty"` // by a key of the shop; see integrity.Statement
	Review    *NewsReview     `json:"review,omitempty"`    // of a review
}

// A NewsReview names feedback in a reputation registry on a chain.
type NewsReview struct {
	Agent   string `json:"agent"`           // chain identity of the shop
	Client  string `json:"client"`          // address in lower case
	Index   uint64 `json:"index"`           // of the client's feedback to the agent
	Tx      string `json:"tx"`              // hash of the transaction
	Rating  int64  `json:"rating"`          // hundredths of a point, 0 to 10,000
	Receipt bool   `json:"receipt"`         // of an order, otherwise with a payment on the chain
	Known   string `json:"known,omitempty"` // with Receipt: how the node knows of the order's payment
}

// Summary says in the feed that a shop has the review.
func (r NewsReview) Summary(shop string) string {
	with := "with a payment on the chain"
	switch {
	case r.Known == KnownProvider:
		with = "from a paid order, by the payment provider's report"
	case r.Known == KnownConfirmed:
		with = "from a paid order, as buyer and shop confirm"
	case r.Receipt:
		with = "with a receipt of the shop"
	}
	return fmt.Sprintf("%s has a review of %s of 5, %s.", shop, Stars(r.Rating), with)
}

// Stars is a rating, in hundredths of a point of 0 to 100, in stars, such as 4.5.
func Stars(rating int64) string {
	tenths := (rating*20 + 2000) / 4000 // rounded up at a half
	return strings.TrimSuffix(fmt.Sprintf("%d.%d", tenths/10, tenths%10), ".0")
}
