package protocol

import "time"

// What became of a payment, for people who look for it.

// A TraceQuery names a payment by any id that somebody has of it.
type TraceQuery struct {
	ID string `json:"id" minLength:"4" maxLength:"80" doc:"A bid_, pay_ or rfd_ id, the bank's reference (UTR), or the provider's id of a payment, refund or event." example:"431298765012"`
}

// A MoneyStep is one thing that happened to a bid's money, or has to happen next.
type MoneyStep struct {
	At        *time.Time `json:"at" doc:"When; null when that is not known, or has no limit."`
	What      string     `json:"what" doc:"In words."`
	Amount    *Money     `json:"amount" required:"true" orNull:"true"`
	ID        string     `json:"id" doc:"Of the payment or refund here, or of the provider's event; empty for none."`
	Reference string     `json:"reference" doc:"At the provider or the bank; empty for none."`
	Note      string     `json:"note" doc:"Why, or how it ended; empty for nothing."`
}

// A MoneyTrace is the life of a bid's money.
type MoneyTrace struct {
	BidID    string      `json:"bidId" doc:"Empty for an event of no bid."`
	Handle   string      `json:"handle" doc:"Owner of the board."`
	State    string      `json:"state" doc:"Of the bid."`
	Amount   *Money      `json:"amount" required:"true" orNull:"true" doc:"Of the bid."`
	Bidder   string      `json:"bidder" doc:"Name that the bidder gave."`
	Provider string      `json:"provider"`
	Test     bool        `json:"test"`
	Steps    []MoneyStep `json:"steps" doc:"What happened, oldest first."`
	Next     []MoneyStep `json:"next" doc:"What has to happen next; empty when nothing is left to do."`
}

// MoneyTraces are the bids that an id leads to, ten at most.
type MoneyTraces struct {
	Items     []MoneyTrace `json:"items"`
	Untrusted bool         `json:"untrusted_content" doc:"Always true."`
}

var TracePayment = declare[TraceQuery, MoneyTraces](Operation{
	Name: "trace_payment", Title: "Trace a payment",
	Summary: "The life of a bid's payment and refunds in words and times, and what has to happen next.",
	HTTP:    Route{"GET", "/api/operator/money", 200}, For: Operators, ReadOnly: true, Codes: []Code{NotFound},
	Example: TraceQuery{ID: "431298765012"},
})

var TraceOwnPayment = declare[TraceQuery, MoneyTraces](Operation{
	Name: "trace_own_payment", Title: "Trace a payment to you",
	Summary: "The life of a payment for a bid on a board of yours, in words and times, and what has to happen next.",
	HTTP:    Route{"GET", "/api/owner/money", 200}, For: Owners, Scope: ScopeAttention, ReadOnly: true, Codes: []Code{NotFound},
	Example: TraceQuery{ID: "431298765012"},
})
