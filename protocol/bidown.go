package protocol

import "time"

// What an owner does with the bids on an attention board, and with their money.

// An OwnPayment is money that came in for a bid.
type OwnPayment struct {
	ID        string      `json:"id" pattern:"^pay_"`
	BidID     string      `json:"bidId" pattern:"^bid_"`
	Amount    Money       `json:"amount"`
	Provider  string      `json:"provider" enum:"upi,razorpay,sandbox"`
	Reference string      `json:"reference" doc:"Id of the payment at the provider, or its UTR."`
	Placed    bool        `json:"placed" doc:"It paid for a slot. Otherwise all of it goes back."`
	PaidAt    time.Time   `json:"paidAt" doc:"By the provider's clock."`
	Test      bool        `json:"test"`
	Refunds   []BidRefund `json:"refunds"`
}

// An OwnBid is a bid on a board of the caller.
type OwnBid struct {
	Bid
	UTR      *string      `json:"utr" doc:"Reference that the payer reported; null for none."`
	Approved bool         `json:"approved" doc:"Its text is public while it is live."`
	Provider string       `json:"provider" enum:"upi,razorpay,sandbox"`
	Payments []OwnPayment `json:"payments"`
}

// A BidQuery selects bids on a board of the caller.
type BidQuery struct {
	Owned
	State    BidState `json:"state,omitempty" enum:"held,claimed,unconfirmed,lapsed,withdrawn,live,outbid,ended,removed,unanswered,refund_due,refunding,refunded,refund_failed" doc:"Only bids in this state. claimed: waiting for you to confirm the payment. refunding, refund_failed: may be waiting for you to refund."`
	Disputed bool     `json:"disputed,omitempty" doc:"Only those whose payer disputes that you did not confirm the payment: confirm or deny it."`
	Paging
}

// An OwnBidRef names one bid on a board of the caller.
type OwnBidRef struct {
	ID string `json:"id" shape:"bid-id" doc:"Id of the bid." example:"bid_01k9y3v6k8e5w9q2x4z7c1m0ad"`
}

var exampleBid = OwnBidRef{"bid_01k9y3v6k8e5w9q2x4z7c1m0ad"}

var ListBids = declare[BidQuery, Page[OwnBid]](Operation{
	Name: "list_bids", Title: "List the bids on your board",
	Summary: "The bids on the attention board of a profile of yours, newest first.",
	HTTP:    Route{"GET", "/api/owner/bids", 200}, For: Owners, Scope: ScopeAttention, ReadOnly: true, Codes: []Code{Forbidden, NotFound, InvalidCursor},
	Example: BidQuery{Owned: Owned{"asha"}, State: BidClaimed},
})

var GetOwnBid = declare[OwnBidRef, OwnBid](Operation{
	Name: "get_own_bid", Title: "Read a bid on your board",
	Summary: "One bid on a board of yours with its payments, refunds and receipt.",
	HTTP:    Route{"GET", "/api/owner/bids/{id}", 200}, For: Owners, Scope: ScopeAttention, ReadOnly: true, Codes: []Code{NotFound},
	Example: exampleBid,
})

// A BidAnswer answers a live bid.
type BidAnswer struct {
	OwnBidRef
	Answer string `json:"answer" minLength:"1" maxLength:"1000" doc:"Plain text, for the bidder alone."`
	URL    string `json:"url,omitempty" format:"uri" shape:"address" maxLength:"500" doc:"An https address, for the bidder alone."`
}

var AnswerBid = declare[BidAnswer, OwnBid](Operation{
	Name: "answer_bid", Title: "Answer a bid",
	Summary: "Answers a live bid: the bidder reads it, and the time for an answer stops.",
	HTTP:    Route{"POST", "/api/owner/bids/{id}/answer", 200}, For: Owners, Idempotent: true, Scope: ScopeAttention, Codes: []Code{NotFound, Conflict},
	Example: BidAnswer{OwnBidRef: exampleBid, Answer: "Send two samples, please."},
})

var ApproveBid = declare[OwnBidRef, OwnBid](Operation{
	Name: "approve_bid", Title: "Approve a bid",
	Summary: "Makes the text of a live bid public, on a board that does not approve by itself.",
	HTTP:    Route{"POST", "/api/owner/bids/{id}/approve", 200}, For: Owners, Idempotent: true, Scope: ScopeAttention, Codes: []Code{NotFound, Conflict},
	Example: exampleBid,
})

// A BidRemoval takes a live bid off the board.
type BidRemoval struct {
	OwnBidRef
	Reason string `json:"reason" minLength:"1" maxLength:"300" doc:"Shown to the bidder."`
}

var RemoveBid = declare[BidRemoval, OwnBid](Operation{
	Name: "remove_bid", Title: "Remove a bid",
	Summary: "Takes a live bid off your board, and out of the feed. All of its money goes back.",
	HTTP:    Route{"POST", "/api/owner/bids/{id}/remove", 200}, For: Owners, Idempotent: true, Scope: ScopeAttention, Codes: []Code{NotFound, Conflict},
	Example: BidRemoval{exampleBid, "It is spam."},
})

// A PaymentConfirmation says that money has arrived.
type PaymentConfirmation struct {
	OwnBidRef
	UTR    string  `json:"utr,omitempty" shape:"utr" doc:"The bank's reference. Left out: the one that the payer reported."`
	Amount Decimal `json:"amount,omitempty" decimal:"true" doc:"What arrived, in rupees. Left out: the amount of the bid."`
}

// Check refuses an amount that is not one of rupees.
func (c PaymentConfirmation) Check() []Fault { return amountFaults(c.Amount) }

var ConfirmBidPayment = declare[PaymentConfirmation, OwnBid](Operation{
	Name: "confirm_bid_payment", Title: "Confirm a payment",
	Summary:     "Confirms that the payment for a bid has arrived at your UPI address: the bid gets its slot, or its money goes back.",
	Description: "Also for a payment that arrived after the bid had lapsed. One reference confirms one payment.",
	HTTP:        Route{"POST", "/api/owner/bids/{id}/confirm", 200}, For: Owners, Idempotent: true, Scope: ScopeAttention, Codes: []Code{NotFound, Conflict},
	Example: PaymentConfirmation{OwnBidRef: exampleBid},
})

var DenyBidPayment = declare[OwnBidRef, OwnBid](Operation{
	Name: "deny_bid_payment", Title: "Deny a payment",
	Summary:     "Says that the payment that was reported for a bid has not arrived.",
	Description: "An author whose reports you denied three times can bid on your board no more.",
	HTTP:        Route{"POST", "/api/owner/bids/{id}/deny", 200}, For: Owners, Idempotent: true, Scope: ScopeAttention, Codes: []Code{NotFound, Conflict},
	Example: exampleBid,
})

// A ClosedBoard is what followed from closing a board.
type ClosedBoard struct {
	Ended     int   `json:"ended" minimum:"0" doc:"Live bids that ended."`
	Withdrawn int   `json:"withdrawn" minimum:"0" doc:"Unpaid bids that ended."`
	Refunds   Money `json:"refunds" doc:"What goes back for the unused time of live bids."`
}

var CloseAttentionBoard = declare[OwnInput, ClosedBoard](Operation{
	Name: "close_attention_board", Title: "Close your attention board",
	Summary:     "Closes the board. Live bids end, and get their money back for the unused part of their time.",
	Description: "put_attention_board opens it again.",
	HTTP:        Route{"POST", "/api/owner/attention/close", 200}, For: Owners, Idempotent: true, Scope: ScopeAttention, Codes: []Code{Forbidden, NotFound},
	Example: OwnInput{Owned{"asha"}},
})

// A PaymentQuery selects a page of payments.
type PaymentQuery struct {
	Owned
	Paging
}

var ListPayments = declare[PaymentQuery, Page[OwnPayment]](Operation{
	Name: "list_payments", Title: "List payments",
	Summary: "Money that came in for bids on a board of yours, newest first, with its refunds.",
	HTTP:    Route{"GET", "/api/owner/payments", 200}, For: Owners, Scope: ScopeAttention, ReadOnly: true,
	Codes: []Code{Forbidden, NotFound, InvalidCursor}, Example: PaymentQuery{Owned: Owned{"asha"}},
})

// An OwnRefund is a refund that is not done.
type OwnRefund struct {
	BidRefund
	BidID      string `json:"bidId" pattern:"^bid_"`
	Provider   string `json:"provider" enum:"upi,razorpay,sandbox"`
	PaymentRef string `json:"paymentReference" doc:"Id of the payment at the provider, or the payer's UTR: whom to refund."`
	LastError  string `json:"lastError" doc:"Why the last try failed; empty if it did not."`
}

var ListRefunds = declare[PaymentQuery, Page[OwnRefund]](Operation{
	Name: "list_refunds", Title: "List refunds to make",
	Summary: "Refunds of bids on a board of yours that are not done, those that wait for you among them; oldest first.",
	HTTP:    Route{"GET", "/api/owner/refunds", 200}, For: Owners, Scope: ScopeAttention, ReadOnly: true,
	Codes: []Code{Forbidden, NotFound, InvalidCursor}, Example: PaymentQuery{Owned: Owned{"asha"}},
})

// A RefundDone says that the owner has made a refund.
type RefundDone struct {
	ID        string `json:"id" shape:"refund-id" doc:"Id of the refund." example:"rfd_01k9y3v6k8e5w9q2x4z7c1m0ad"`
	Reference string `json:"reference" line:"true" minLength:"4" maxLength:"80" doc:"The bank's reference of your transfer; shown to the bidder."`
}

var MarkRefunded = declare[RefundDone, OwnRefund](Operation{
	Name: "mark_refunded", Title: "Mark a refund as made",
	Summary: "Says that you have made a refund that the payment provider cannot make.",
	HTTP:    Route{"POST", "/api/owner/refunds/{id}/done", 200}, For: Owners, Idempotent: true, Scope: ScopeAttention, Codes: []Code{NotFound, Conflict},
	Example: RefundDone{ID: "rfd_01k9y3v6k8e5w9q2x4z7c1m0ad", Reference: "431298765013"},
})

// A MonthQuery names a month.
type MonthQuery struct {
	Owned
	Month string `json:"month" pattern:"^20[0-9]{2}-(0[1-9]|1[0-2])$" doc:"Year and month of Indian time." example:"2026-11"`
}

var ExportPayments = declare[MonthQuery, string](Operation{
	Name: "export_payments", Title: "Export a month's money",
	Summary: "Payments and refunds of a month as CSV, in the order of the ledger.",
	HTTP:    Route{"GET", "/api/owner/payments.csv", 200}, For: Owners, Scope: ScopeAttention, ReadOnly: true, Media: "text/csv; charset=utf-8",
	Codes: []Code{Forbidden, NotFound}, Example: MonthQuery{Owned{"asha"}, "2026-11"},
})
