package protocol

// What the link of a notice to the owner of an attention board does: without signing in, once.

// A BidLinkInput is the ticket of a link.
type BidLinkInput struct {
	Ticket string `json:"ticket,omitempty" maxLength:"100" doc:"What the address in the notice has after ticket=; over HTTP send it as Authorization: Bearer."`
}

// BidLinkDo is what a link can do.
type BidLinkDo string

// What a link can do.
const (
	LinkConfirm BidLinkDo = "confirm" // the reported payment has arrived
	LinkDeny    BidLinkDo = "deny"    // it has not
	LinkApprove BidLinkDo = "approve" // the text of the bid becomes public
)

// A BidLink is what a link would do.
type BidLink struct {
	Do        []BidLinkDo `json:"do" enum:"confirm,deny,approve" doc:"What the bid waits for, of which use_bid_link does one."`
	Bid       OwnBid      `json:"bid"`
	Untrusted bool        `json:"untrusted_content" doc:"Always true."`
}

var ReadBidLink = declare[BidLinkInput, BidLink](Operation{
	Name: "read_bid_link", Title: "Read the link of a notice about a bid",
	Summary: "What the link of a notice about a bid on your attention board would do. Nothing is done.",
	HTTP:    Route{"GET", "/api/owner/bid-link", 200}, Doors: HTTP, For: Owners, ReadOnly: true, Secret: "ticket", Codes: []Code{Unauthorized, Gone},
	Example: BidLinkInput{},
})

// A BidLinkUse uses a link.
type BidLinkUse struct {
	BidLinkInput
	Do BidLinkDo `json:"do" enum:"confirm,deny,approve" doc:"confirm: the reported payment has arrived. deny: it has not. approve: the text of the bid becomes public."`
}

var UseBidLink = declare[BidLinkUse, OwnBid](Operation{
	Name: "use_bid_link", Title: "Use the link of a notice about a bid",
	Summary:     "Confirms or denies the payment of a bid, or approves its text, by the link of a mail or a webhook's notice. A link works once.",
	Description: "It ends when the bid changes, and when the address for notices does.",
	HTTP:        Route{"POST", "/api/owner/bid-link", 200}, Doors: HTTP, For: Owners, Secret: "ticket", Codes: []Code{Unauthorized, Gone, Conflict},
	Example: BidLinkUse{Do: LinkConfirm},
})
