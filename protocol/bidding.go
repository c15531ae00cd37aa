package protocol

import "time"

// NoCharge is said with every unpaid bid (spec §5).
const NoCharge = "Nothing is charged unless the person you act for pays the link. Confirm the amount with that person."

// A NewBid bids for a slot of a person's attention (spec §2.12).
type NewBid struct {
	Handle      string  `json:"handle" shape:"handle" doc:"Handle of the board's owner, in any case, with or without @." example:"asha"`
	Amount      Decimal `json:"amount" decimal:"true" doc:"The bid in rupees: a number, or a decimal string such as 1500.00. At least the board's floor."`
	Message     string  `json:"message" minLength:"1" maxLength:"500" doc:"What you want to tell; plain text, public once the bid is live."`
	Category    string  `json:"category,omitempty" maxLength:"40" doc:"One of the board's categories."`
	Name        string  `json:"name,omitempty" visible:"true" line:"true" maxLength:"60" doc:"Bidder's name; shown as unverified."`
	URL         string  `json:"url,omitempty" format:"uri" shape:"address" maxLength:"500" doc:"Your https address; public once the bid is live."`
	CallbackURL string  `json:"callbackUrl,omitempty" shape:"callback" format:"uri" maxLength:"500" doc:"Public https address that is told of each change of the bid, signed by this node."`
}

// Paise returns the amount in paise; 0 for one that Check refuses.
func (b NewBid) Paise() int64 { return BidCheck{Amount: b.Amount}.Paise() }

// Check returns the faults that tags cannot express.
func (b NewBid) Check() []Fault { return amountFaults(b.Amount) }

// A BidMove is one state that a bid was in.
type BidMove struct {
	State BidState  `json:"state" enum:"held,claimed,unconfirmed,lapsed,withdrawn,live,outbid,ended,removed,unanswered,refund_due,refunding,refunded,refund_failed"`
	At    time.Time `json:"at"`
	Note  string    `json:"note" doc:"Why, in words; empty for none."`
}

// A BidRefund is money of a bid that goes back.
type BidRefund struct {
	ID        string     `json:"id" pattern:"^rfd_"`
	Amount    Money      `json:"amount"`
	Why       string     `json:"why" doc:"Why, in words."`
	State     string     `json:"state" enum:"due,ordered,manual,failed,done" doc:"due: about to be ordered. ordered: at the payment provider. manual: the owner of the board has to make it. failed: the provider refused it; it is tried again, or made by hand. done."`
	Reference string     `json:"reference" doc:"Reference of the refund; empty while there is none."`
	DoneAt    *time.Time `json:"doneAt"`
}

// A Bid is a bid as its bidder sees it.
type Bid struct {
	ID            string      `json:"id" pattern:"^bid_"`
	Handle        string      `json:"handle" doc:"Owner of the board."`
	State         BidState    `json:"state" enum:"held,claimed,unconfirmed,lapsed,withdrawn,live,outbid,ended,removed,unanswered,refund_due,refunding,refunded,refund_failed"`
	Hold          *BidHold    `json:"hold" enum:"reserving,competing" nullable:"true" doc:"While it is not paid. reserving: it keeps a slot. competing: only its price is fixed; the first that is paid wins."`
	Amount        Money       `json:"amount"`
	Message       string      `json:"message"`
	Category      *string     `json:"category"`
	Bidder        Author      `json:"bidder"`
	URL           *string     `json:"url"`
	Test          bool        `json:"test" doc:"TEST: no money moves."`
	CreatedAt     time.Time   `json:"createdAt"`
	HoldExpiresAt *time.Time  `json:"holdExpiresAt" doc:"When the hold, or the wait for the owner's confirmation, ends; null when neither."`
	Place         *int        `json:"place" doc:"Its place among the live bids; null when it is not live."`
	LiveAt        *time.Time  `json:"liveAt"`
	EndsAt        *time.Time  `json:"endsAt"`
	RespondBy     *time.Time  `json:"respondBy" doc:"By when the owner promised to answer; null for no promise."`
	Answer        *string     `json:"answer" doc:"What the owner answered; null for nothing yet."`
	AnswerURL     *string     `json:"answerUrl"`
	Reason        *string     `json:"reason" doc:"Why the owner removed it; null otherwise."`
	Refunds       []BidRefund `json:"refunds"`
	Receipt       *Receipt    `json:"receipt" required:"true" orNull:"true" doc:"Receipt for the payment; null while there is none."`
	DisputedAt    *time.Time  `json:"disputedAt" doc:"When the payer disputed that the payment was not confirmed; null for never."`
	History       []BidMove   `json:"history" doc:"Every state, oldest first."`
	Note          string      `json:"note" doc:"What to do next, in words."`
	Untrusted     bool        `json:"untrusted_content" doc:"Always true."`
}

// A BidReceipt is the answer to a new bid. StatusToken is shown once.
type BidReceipt struct {
	Bid           Bid       `json:"bid"`
	PaymentURL    string    `json:"paymentUrl" format:"uri" doc:"Page where the person pays; whoever has it may."`
	HoldExpiresAt time.Time `json:"holdExpiresAt" doc:"An unpaid bid lapses then, 20 minutes after it was made."`
	StatusURL     string    `json:"statusUrl" format:"uri" doc:"Where the bid's state is read."`
	StatusToken   string    `json:"statusToken" doc:"Opens the bid: over HTTP as Authorization: Bearer, never in a URL. Shown once. Not needed with the bidder's signature."`
}

// A BidUpdate is the document that is sent to a bid's callbackUrl for each change of its state.
type BidUpdate struct {
	Type      string    `json:"type" enum:"bid.updated"`
	ID        string    `json:"id" doc:"Of the update, and of the delivery: the value of Webhook-Id."`
	BidID     string    `json:"bidId" pattern:"^bid_"`
	Handle    string    `json:"handle" doc:"Owner of the board."`
	State     BidState  `json:"state" enum:"held,claimed,unconfirmed,lapsed,withdrawn,live,outbid,ended,removed,unanswered,refund_due,refunding,refunded,refund_failed"`
	CreatedAt time.Time `json:"createdAt" doc:"When the state changed."`
	Bid       Bid       `json:"bid" doc:"The bid now, which may have changed again."`
}

// A BidInput names one bid of the caller.
type BidInput struct {
	ID          string `json:"id" shape:"bid-id" doc:"Id of the bid." example:"bid_01k9y3v6k8e5w9q2x4z7c1m0ad"`
	StatusToken string `json:"statusToken,omitempty" maxLength:"100" doc:"Of bid_for_attention. Not needed with the bidder's signature or token; over HTTP as Authorization: Bearer, never in the URL."`
}

var BidForAttention = declare[NewBid, BidReceipt](Operation{
	Name: "bid_for_attention", Title: "Bid for attention",
	Summary: "Bids for a slot; returns a payment link; an unpaid hold lapses after 20 minutes.",
	Description: NoCharge + " A bid below the floor is refused with below-floor; one that can win no place now with slot-taken and the price in slot. " +
		"Money goes to the owner of the board directly. An author may have one unpaid bid on a board and three on the node.",
	HTTP: Route{"POST", "/api/public/agents/{handle}/attention/bids", 201}, Doors: Everywhere,
	Access: OwnerOrProof, Scope: ScopePost, Confirm: true, Purpose: "bid", Visitor: true,
	Codes:    []Code{NotFound, Forbidden, ContactRefused, BelowFloor, SlotTaken, Conflict},
	Delivers: &Delivery{"bid_updated", "callbackUrl", BidUpdate{}},
	Example:  NewBid{Handle: "asha", Amount: "1500", Message: "Yarn from Panipat, samples on request.", Name: "Meera"},
})

var GetBid = declare[BidInput, Bid](Operation{
	Name: "get_bid", Title: "Read a bid",
	Summary: "The state of a bid made with bid_for_attention, by its status token.",
	HTTP:    Route{"GET", "/api/public/bids/{id}", 200}, Doors: Everywhere, ReadOnly: true,
	NoStore: true, Secret: "statusToken", Visitor: true, Codes: []Code{NotFound, Unauthorized},
	Example: BidInput{ID: "bid_01k9y3v6k8e5w9q2x4z7c1m0ad"},
})

var WithdrawBid = declare[BidInput, Bid](Operation{
	Name: "withdraw_bid", Title: "Withdraw a bid",
	Summary:     "The bidder takes back a bid that is not paid.",
	Description: "Its payment link is closed. Money that arrives later is refunded, or the bid goes live after all if it still wins a slot.",
	HTTP:        Route{"POST", "/api/public/bids/{id}/withdraw", 200}, Doors: Everywhere, Idempotent: true,
	Secret: "statusToken", Visitor: true, Codes: []Code{NotFound, Unauthorized, Conflict},
	Example: BidInput{ID: "bid_01k9y3v6k8e5w9q2x4z7c1m0ad"},
})

// A PaymentInput names a payment by the secret of its page.
type PaymentInput struct {
	PayToken string `json:"payToken,omitempty" maxLength:"100" doc:"The last part of paymentUrl; over HTTP send it as Authorization: Bearer."`
}

// A Payment is what a payer needs to know.
type Payment struct {
	BidID         string     `json:"bidId" pattern:"^bid_"`
	Handle        string     `json:"handle" doc:"Owner of the board, who is paid."`
	Payee         string     `json:"payee"`
	Bidder        string     `json:"bidder" doc:"Name that the bidder gave."`
	Message       string     `json:"message"`
	Amount        Money      `json:"amount"`
	State         BidState   `json:"state" enum:"held,claimed,unconfirmed,lapsed,withdrawn,live,outbid,ended,removed,unanswered,refund_due,refunding,refunded,refund_failed"`
	Hold          *BidHold   `json:"hold" enum:"reserving,competing" nullable:"true"`
	HoldExpiresAt *time.Time `json:"holdExpiresAt"`
	Provider      string     `json:"provider" enum:"upi,razorpay,sandbox"`
	Link          string     `json:"link" enum:"pending,ready,failed,closed" doc:"pending: the provider is asked for the link. ready: pay by url or upi. failed: no link could be made. closed: the bid takes no payment now."`
	URL           *string    `json:"url" doc:"Page of the provider, or of this node, where the payment is made."`
	UPI           *string    `json:"upi" doc:"UPI link, also the text of the QR code."`
	VPA           *string    `json:"vpa" doc:"UPI address of the payee."`
	Reference     *string    `json:"reference" doc:"Reference that the payment carries."`
	Claimed       bool       `json:"claimed" doc:"The payer reports the payment with claim_payment, and the owner confirms it."`
	UTR           *string    `json:"utr" doc:"Reference that the payer reported last; null for none."`
	Buttons       []string   `json:"buttons" enum:"pay,fail,pay-late,pay-twice,pay-partly" doc:"What press_sandbox can do for a TEST bid; empty for others."`
	ClaimsLeft    int        `json:"claimsLeft" minimum:"0" doc:"How many more references may be reported."`
	Test          bool       `json:"test" doc:"TEST: no money moves."`
	Now           time.Time  `json:"now" doc:"The node's clock, for a countdown."`
	Untrusted     bool       `json:"untrusted_content" doc:"Always true."`
}

var GetPayment = declare[PaymentInput, Payment](Operation{
	Name: "get_payment", Title: "Read what is to be paid",
	Summary: "What the payment page of a bid shows: amount, payee, and where to pay.",
	HTTP:    Route{"GET", "/api/public/payment", 200}, Doors: Everywhere, ReadOnly: true,
	NoStore: true, Secret: "payToken", Codes: []Code{NotFound, Unauthorized},
	Example: PaymentInput{},
})

// A SandboxPress presses a button of the payment page of a TEST bid.
type SandboxPress struct {
	PayToken string `json:"payToken,omitempty" maxLength:"100" doc:"The last part of paymentUrl; over HTTP send it as Authorization: Bearer."`
	Button   string `json:"button" enum:"pay,fail,pay-late,pay-twice,pay-partly" doc:"What the payer does. pay-late: the payment arrives three minutes after the hold."`
}

var PressSandbox = declare[SandboxPress, Payment](Operation{
	Name: "press_sandbox", Title: "Pay a test bid",
	Summary: "Pays a TEST bid, or fails to, as a payer would; no money moves.", Description: "Only on nodes that offer the provider sandbox.",
	HTTP: Route{"POST", "/api/public/payment/sandbox", 200}, Doors: HTTP,
	Secret: "payToken", Codes: []Code{NotFound, Unauthorized, Conflict},
	Example: SandboxPress{Button: "pay"},
})

// A PaymentClaim reports a payment that no provider reports.
type PaymentClaim struct {
	UTR      string `json:"utr" shape:"utr" doc:"The 12 digits of the bank's reference (UTR or RRN) that the UPI app shows."`
	PayToken string `json:"payToken,omitempty" maxLength:"100" doc:"The last part of paymentUrl, or the status token of the bid; over HTTP send it as Authorization: Bearer."`
}

// Check refuses what people type who have no reference.
func (c PaymentClaim) Check() []Fault {
	if utr := FoldUTR(c.UTR); c.UTR != "" && utrForm.MatchString(utr) && !IsUTR(utr) {
		return []Fault{{"/utr", "wrong-shape", "is not a bank's reference; the UPI app shows 12 digits after the payment"}}
	}
	return nil
}

var ClaimPayment = declare[PaymentClaim, Payment](Operation{
	Name: "claim_payment", Title: "Report a payment",
	Summary:     "The payer reports a UPI payment by its UTR; the owner of the board confirms it.",
	Description: "It ends the 20 minutes: the bid waits for the owner, and keeps its slot if it had one. Three reports a bid at most.",
	HTTP:        Route{"POST", "/api/public/payment/claim", 200}, Doors: Everywhere, Idempotent: true,
	Secret: "payToken", Codes: []Code{NotFound, Unauthorized, Conflict},
	Example: PaymentClaim{UTR: "431298765012"},
})
