package protocol

import "time"

// A payer whose payment by UPI the owner of a board did not confirm, and what follows for the board. Nobody but the two of them
// knows whether the money arrived: what the payer says is counted as that, and only the owner decides.

const (
	UnconfirmedFor = 90 * 24 * time.Hour // for so long a report that was not confirmed is counted on the board
	MaxUnconfirmed = 100                 // and so many at most, of payers of each kind
	MaxDisputes    = 3                   // known payers with an undecided dispute, from which on a board takes no bids
)

// Disputed reports whether a board takes no bids because of undecided disputes, which are counted by known payers: a stranger's never
// close a board, and one payer counts once.
func Disputed(payers int) bool { return payers >= MaxDisputes }

// Unconfirmed counts what payers of a board reported and its owner did not confirm. Each number is their word.
type Unconfirmed struct {
	Known    int `json:"known" minimum:"0" doc:"By payers who signed or were signed in."`
	Others   int `json:"others" minimum:"0" doc:"By strangers."`
	Disputed int `json:"disputed" minimum:"0" doc:"Known payers whose dispute the owner has not decided; from 3 on the board takes no bids."`
}

// A PaymentDispute says once more that a bid was paid.
type PaymentDispute struct {
	BidInput
	UTR string `json:"utr" shape:"utr" doc:"The bank's reference of the payment."`
}

// Check refuses what people type who have no reference.
func (d PaymentDispute) Check() []Fault { return PaymentClaim{UTR: d.UTR}.Check() }

var DisputePayment = declare[PaymentDispute, Bid](Operation{
	Name: "dispute_payment", Title: "Dispute an unconfirmed payment",
	Summary:     "Says once that a reported UPI payment was made although the owner did not confirm it.",
	Description: "The owner has to decide. By the bidder, or with the status token.",
	HTTP:        Route{"POST", "/api/public/bids/{id}/dispute", 200}, Doors: Everywhere, Idempotent: true,
	Secret: "statusToken", Visitor: true, Codes: []Code{NotFound, Unauthorized, Conflict},
	Example: PaymentDispute{BidInput{ID: "bid_01k9y3v6k8e5w9q2x4z7c1m0ad"}, "431298765012"},
})
