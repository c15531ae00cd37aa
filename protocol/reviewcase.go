package protocol

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"
)

// ReviewType is the header typ of the JWS of a review that was given on a node.
const ReviewType = "review+jwt"

// ReviewClaims are the claims of the JWS of a review that was given on a node.
type ReviewClaims struct {
	Issuer   string `json:"iss"`
	ID       string `json:"jti"`
	Shop     string `json:"sub"`
	Receipt  string `json:"receipt"`            // jti of the order's
	Buyer    string `json:"buyer"`              // as Review.Client
	Rating   int64  `json:"rating"`             // hundredths of a point, 0 to 10,000
	TextHash string `json:"textHash,omitempty"` // see TextHash; a text may be hidden later
	At       int64  `json:"iat"`                // when it was given, or changed last
}

// TextHash is SHA-256 of a text, in hex.
func TextHash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// ReviewFloors are the least totals of orders whose reviews count, in minor units by currency. There is no rate of exchange here: an
// order in a currency without a floor is worth nothing that the node could tell, and does not count. Payments on a chain have no floor:
// what a token is worth, readers judge by the amount that is shown.
type ReviewFloors map[string]int64

// DefaultReviewFloors is the setting review-floor where none is given.
var DefaultReviewFloors = []string{"INR=50"}

// A ReviewCase is what decides whether a review of a shop counts. Of a payment on the chain, the order is zero.
type ReviewCase struct {
	Order   ReviewedOrder // Known, Test and Left
	Payment bool          // it names a payment on the chain, not an order
	Floors  ReviewFloors  // of the node
	Against ReviewReason  // what is wrong with its receipt or its giver; "" for nothing
	Full    bool          // as many count as a node keeps
	Used    bool          // another one counts of the same order or payment
	Near    bool          // another one of the buyer counts, less than ReviewsApart away
}

// Judge returns why the review counts, or why not. It is the one rule: every room asks it, and stoa verify repeats it.
func (c ReviewCase) Judge() ReviewReason {
	switch {
	case c.Against != "":
		return c.Against
	case c.Payment:
	case c.Order.Test:
		return TestOrder
	case c.Order.Known != KnownProvider && c.Order.Known != KnownConfirmed:
		return ReceiptStated
	default:
		if why := c.Floors.against(c.Order.Left); why != "" {
			return why
		}
	}
	switch {
	case c.Full:
		return TooManyReviews
	case c.Used:
		return ProofUsed
	case c.Near:
		return TooSoon
	case c.Payment:
		return ByPayment
	case c.Order.Known == KnownProvider:
		return ByProvider
	}
	return ByConfirmed
}

// Counts reports whether a review with the reason counts.
func (r ReviewReason) Counts() bool { return r == ByProvider || r == ByConfirmed || r == ByPayment }

// against returns why what is left of an order is too little, "" when it is enough.
func (fs ReviewFloors) against(left Money) ReviewReason {
	floor, ok := fs[left.Currency]
	minor, fault := MoneyDraft{left.Currency, Decimal(left.Amount)}.Minor()
	switch {
	case !ok:
		return OrderCurrency
	case fault != nil || minor <= 0:
		return OrderRefunded
	case minor < floor:
		return OrderTooSmall
	}
	return ""
}

// Of returns the least total that counts in a currency as a decimal string, "" for none.
func (fs ReviewFloors) Of(currency string) string {
	if floor, ok := fs[currency]; ok {
		return MoneyOf(currency, floor).Amount
	}
	return ""
}

// ParseReviewFloors reads settings such as INR=50; none is [DefaultReviewFloors].
func ParseReviewFloors(settings []string) (ReviewFloors, error) {
	if len(settings) == 0 {
		settings = DefaultReviewFloors
	}
	all := ReviewFloors{}
	for _, s := range settings {
		currency, amount, _ := strings.Cut(s, "=")
		minor, fault := MoneyDraft{currency, Decimal(amount)}.Minor()
		if fault != nil {
			return nil, fmt.Errorf("%q is not a currency and an amount such as INR=50: %s", s, fault.Detail)
		}
		all[currency] = minor
	}
	return all, nil
}

// An OrderReview is what a buyer says of an order.
type OrderReview struct {
	Token    string `json:"token,omitempty" maxLength:"100" doc:"Last part of the order's address; over HTTP as Authorization: Bearer."`
	Receipt  string `json:"receipt,omitempty" maxLength:"4096" doc:"Or the order receipt, signed by the buyer's identity."`
	Stars    int    `json:"stars,omitempty" minimum:"1" maximum:"5" doc:"5: best."`
	Text     string `json:"text,omitempty" maxLength:"1000" doc:"Public."`
	Withdraw bool   `json:"withdraw,omitempty" doc:"Take it back."`
}

// Check refuses a review without stars.
func (r OrderReview) Check() []Fault {
	if r.Stars == 0 && !r.Withdraw {
		return []Fault{{"/stars", "required", "from 1 to 5; or withdraw the review"}}
	}
	return nil
}

var ReviewOrder = declare[OrderReview, Review](Operation{
	Name: "review_order", Title: "Review an order",
	Summary: "The buyer of an order reviews the shop, for 180 days; again changes the review.",
	HTTP:    Route{"POST", "/api/public/order-receipts/review", 200}, Doors: Everywhere, Idempotent: true, Secret: "token",
	Codes: []Code{NotFound, Unauthorized, Conflict}, Example: OrderReview{Stars: 5},
})

// ReviewUntil is when the review of an order that was paid at a time can be given or changed last.
func ReviewUntil(paid time.Time) time.Time { return paid.Add(ReviewWithin) }
