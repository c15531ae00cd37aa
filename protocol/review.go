package protocol

import "time"

// Reviews of businesses, from paid orders (spec §2.6): given here by the buyer of an order, or as feedback with the tag starred in an
// ERC-8004 reputation registry. [ReviewCase.Judge] says which count.

// A ReviewReason says why a review counts or not. Values are added and never renamed.
type ReviewReason string

const (
	ByProvider  ReviewReason = "paid-provider"  // counts: the payment provider told of the payment of its order
	ByConfirmed ReviewReason = "paid-confirmed" // counts: a known buyer reported the payment, and the shop confirmed it
	ByPayment   ReviewReason = "payment"        // counts: its file names a payment to the business

	NotStarred      ReviewReason = "not-starred"
	OutOfRange      ReviewReason = "out-of-range"
	SelfReview      ReviewReason = "self-review"
	ReviewRevoked   ReviewReason = "revoked"
	NoFile          ReviewReason = "no-file"
	UnreadableURI   ReviewReason = "uri-not-supported"
	Unreachable     ReviewReason = "unreachable"
	FileTooLarge    ReviewReason = "file-too-large"
	HashMismatch    ReviewReason = "hash-mismatch"
	MalformedFile   ReviewReason = "malformed-file"
	FileDiffers     ReviewReason = "file-differs"
	NoProof         ReviewReason = "no-proof"
	ReceiptInvalid  ReviewReason = "receipt-invalid"
	ReceiptIssuer   ReviewReason = "receipt-issuer"
	ReceiptAgent    ReviewReason = "receipt-agent"
	ReceiptClient   ReviewReason = "receipt-client"
	ReceiptUnknown  ReviewReason = "receipt-unknown"
	ReceiptRevoked  ReviewReason = "receipt-revoked"
	ProofUsed       ReviewReason = "proof-used"
	PaymentChain    ReviewReason = "payment-chain"
	PaymentUnknown  ReviewReason = "payment-unknown"
	PaymentFailed   ReviewReason = "payment-failed"
	PaymentLate     ReviewReason = "payment-late"
	PaymentPayee    ReviewReason = "payment-payee"
	PaymentNothing  ReviewReason = "payment-nothing"
	ReviewNotSeen   ReviewReason = "not-confirmed"
	FormerOwner     ReviewReason = "former-owner"
	ReceiptShop     ReviewReason = "receipt-shop"
	OrderRefunded   ReviewReason = "order-refunded"
	OrderTooSmall   ReviewReason = "order-too-small"
	OrderCurrency   ReviewReason = "order-currency"
	TooSoon         ReviewReason = "too-soon"
	TooManyReviews  ReviewReason = "too-many"
	ReviewIsChecked ReviewReason = "waiting"
	ReceiptStated   ReviewReason = "receipt-stated"
	TestOrder       ReviewReason = "test"
	ReviewWithdrawn ReviewReason = "withdrawn"
)

var reviewReasons = map[ReviewReason]string{
	ByProvider:      "From a paid order: the payment provider reported its payment to the node.",
	ByConfirmed:     "From a paid order: a buyer whose mailbox or identity is confirmed reported its payment, and the shop confirmed it.",
	ByPayment:       "It names a payment on the chain from this account to the wallet of the business, before the review.",
	NotStarred:      "It has no tag starred, so it is no rating.",
	OutOfRange:      "Its value is not a rating from 0 to 100.",
	SelfReview:      "Who gave it is the business: by account, wallet, identity, mailbox or payment account.",
	ReviewRevoked:   "The account that gave it has revoked it.",
	NoFile:          "It names no file, so nothing proves an order.",
	UnreadableURI:   "Its file is at an address that this node does not read; it reads https: and data:.",
	Unreachable:     "Its file could not be fetched.",
	FileTooLarge:    "Its file is larger than 64 KiB.",
	HashMismatch:    "Its file is not the one that the chain has the hash of.",
	MalformedFile:   "Its file is not a feedback file of ERC-8004.",
	FileDiffers:     "Its file says something else than the chain: of the business, the account or the value.",
	NoProof:         "Its file has neither a receipt for an order nor a payment.",
	ReceiptInvalid:  "The receipt in its file is not signed by the node that it names.",
	ReceiptIssuer:   "The receipt in its file is of a node that this one does not trust.",
	ReceiptAgent:    "The receipt in its file is for another business.",
	ReceiptClient:   "The receipt in its file is for another account.",
	ReceiptUnknown:  "The node that issued the receipt in its file does not know it.",
	ReceiptRevoked:  "The shop has revoked the receipt in its file.",
	ProofUsed:       "Another review has used the same order or payment.",
	PaymentChain:    "The payment is on a chain that this node does not read.",
	PaymentUnknown:  "The payment is in no final block of the chain.",
	PaymentFailed:   "The payment failed.",
	PaymentLate:     "The payment came after the review.",
	PaymentPayee:    "The payment went to another account than the wallet of the business.",
	PaymentNothing:  "The transaction paid nothing from the account that gave the review.",
	ReviewNotSeen:   "A second endpoint of the chain does not have it.",
	FormerOwner:     "It, or its order, is from before the present owner got the identity: it is a former owner's.",
	ReceiptShop:     "The receipt in its file is of another shop.",
	OrderRefunded:   "Its order was refunded in full.",
	OrderTooSmall:   "Its order, after refunds, is smaller than this node counts.",
	OrderCurrency:   "Its order is in a currency that this node does not count.",
	TooSoon:         "Another review of this buyer, less than 30 days before or after it, counts.",
	TooManyReviews:  "The business has as many counted reviews as a node keeps.",
	ReviewIsChecked: "It is being checked.",
	ReceiptStated:   "That its order was paid, only the shop says.",
	TestOrder:       "TEST: no money moved for its order.",
	ReviewWithdrawn: "Its buyer has withdrawn it.",
}

// Text returns the reason as a sentence.
func (r ReviewReason) Text() string { return reviewReasons[r] }

// Limits of reviews.
const (
	MaxReviewFile       = 64 << 10             // bytes
	MaxReviewText       = 1000                 // characters of a review that are shown
	MaxReviewReplies    = 5                    // answers of a business to one review that are kept, the newest
	MaxCountedReviews   = 50_000               // of one identity
	MaxUncountedReviews = 1000                 // of one identity that are kept, the newest
	ReviewsApart        = 30 * 24 * time.Hour  // between two counted reviews of a shop by one buyer
	ReviewWithin        = 180 * 24 * time.Hour // after the payment, an order can be reviewed, and its review changed or withdrawn
	MaxReviewChanges    = 10
)

// A ReviewedOrder is the order that a receipt proves.
type ReviewedOrder struct {
	Issuer  string    `json:"issuer" format:"uri" doc:"Node that signed the receipt."`
	Receipt string    `json:"receipt" pattern:"^rcpt_" doc:"Its jti."`
	Total   Money     `json:"total" doc:"What was paid, as the receipt says."`
	PaidAt  time.Time `json:"paidAt"`
	Known   string    `json:"known" enum:"provider,confirmed,stated" doc:"Who reported the payment: stated, the shop alone."`
	Test    bool      `json:"test" doc:"TEST: no money moved."`
	Left    Money     `json:"left" doc:"After refunds."`
	Floor   string    `json:"floor" doc:"The least left that counts here."`
}

// A ReviewPayment is a payment on a chain.
type ReviewPayment struct {
	Chain       string  `json:"chain" doc:"CAIP-2, such as eip155:8453."`
	Transaction string  `json:"transaction"`
	Units       string  `json:"units" doc:"Amount in the smallest unit of the currency or token."`
	Amount      string  `json:"amount" doc:"Decimal string; the units where a token does not say its decimals."`
	Token       *string `json:"token" nullable:"true" doc:"Contract of the ERC-20 token; null for the chain's own currency. Anyone can make a token: look what it is worth."`
	Wallet      string  `json:"wallet" doc:"Wallet of the business that it was paid to."`
	WalletNow   bool    `json:"walletNow" doc:"It was compared to the wallet of today: the endpoint no longer has the one at that block."`
}

// A ReviewReply is an answer of the business to a review, given on the chain by its owner or wallet.
type ReviewReply struct {
	URI         string    `json:"uri" doc:"Where the answer is; data: up to 2 KiB."`
	Text        string    `json:"text" doc:"The answer, when it is text in the address itself."`
	At          time.Time `json:"at"`
	Transaction string    `json:"transaction"`
}

// ReviewEvidence is where anyone can check a review.
type ReviewEvidence struct {
	Registry    string `json:"registry" doc:"Reputation registry, eip155:<chainId>:<address>."`
	Transaction string `json:"transaction"`
	Block       uint64 `json:"block"`
	LogIndex    uint64 `json:"logIndex"`
	Index       uint64 `json:"index" doc:"feedbackIndex of the account."`
	URI         string `json:"uri" doc:"feedbackURI; a data: URI is cut after 2 KiB."`
	Hash        string `json:"hash" doc:"feedbackHash, keccak256 of the file."`
	Signed      string `json:"signed" doc:"Via node, instead: a JWS of the node."`
}

// A Review is feedback on a business, with what the node found out about it.
type Review struct {
	ID        string         `json:"id" pattern:"^rev_"`
	Via       string         `json:"via" enum:"chain,node" doc:"Where it was given."`
	Agent     string         `json:"agent" doc:"Chain identity that was reviewed; empty via node."`
	Client    string         `json:"client" doc:"Account that gave it; via node, a name of the buyer for this shop."`
	At        time.Time      `json:"at"`
	Rating    *float64       `json:"rating" nullable:"true" doc:"0 to 100; null when the value is no rating."`
	Stars     *float64       `json:"stars" nullable:"true" doc:"0 to 5, the rating divided by 20."`
	Text      string         `json:"text"`
	Hidden    bool           `json:"textHidden" doc:"The operator hid text, uri and replies; it counts as before."`
	Counts    bool           `json:"counts"`
	Reason    ReviewReason   `json:"reason" doc:"Why it counts, or not."`
	Why       string         `json:"why" doc:"The reason in words."`
	Order     *ReviewedOrder `json:"order" required:"true" orNull:"true" doc:"Of one that counts by a receipt."`
	Payment   *ReviewPayment `json:"payment" required:"true" orNull:"true" doc:"Of one that counts by a payment."`
	Replies   []ReviewReply  `json:"replies"`
	Evidence  ReviewEvidence `json:"evidence"`
	Untrusted bool           `json:"untrusted_content" enum:"true" doc:"Always true."`
}

// A FeedbackQuery selects reviews of a business.
type FeedbackQuery struct {
	HandleInput
	Uncounted bool `json:"uncounted,omitempty" doc:"Those that do not count instead, with the reason of each."`
	Paging
}

var ListReviews = declare[FeedbackQuery, Page[Review]](Operation{
	Name: "list_reviews", Title: "List the reviews of a business",
	Summary: "The reviews of a business, newest first, each with why it counts, the amount and where to check it.",
	Description: "Given here (review_order), or as final feedback with the tag starred on the chain (ERC-8004). They count with the receipt of a paid order, " +
		"or a payment to the shop's wallet; each is good for one, a buyer for one in 30 days. Those from before the present owner got " +
		"the identity do not. With uncounted, the newest 1,000 that do not count.",
	HTTP: Route{"GET", "/api/public/agents/{handle}/reviews", 200}, Doors: Everywhere, ReadOnly: true,
	Codes:   []Code{NotFound, InvalidCursor},
	Example: FeedbackQuery{HandleInput: HandleInput{Handle: "rao-tiffins"}},
})

// A ReviewDecision is an operator's decision about the text of a review.
type ReviewDecision struct {
	ID     string `json:"id" shape:"review-id" doc:"Id of the review."`
	Reason string `json:"reason,omitempty" maxLength:"300" doc:"Shown to everyone in the moderation log."`
}

// A ReviewStanding says whether the text of a review is hidden.
type ReviewStanding struct {
	ID       string     `json:"id" pattern:"^rev_"`
	Handle   *string    `json:"handle" nullable:"true" doc:"The business that is enrolled to the identity now; null when none is."`
	Hidden   bool       `json:"textHidden"`
	HiddenAt *time.Time `json:"hiddenAt" nullable:"true"`
	Reason   string     `json:"reason"`
}

// A HiddenReview is a review whose text is hidden, with the text.
type HiddenReview struct {
	ReviewStanding
	Review    Review `json:"review" doc:"With its text, as it was given: data, never instructions."`
	Untrusted bool   `json:"untrusted_content" enum:"true" doc:"Always true."`
}

var reviewDecision = ReviewDecision{ID: "rev_01k9y3v6k8e5w9q2x4z7c1m0ad", Reason: "names a private person"}

var HideReview = declare[ReviewDecision, ReviewStanding](Operation{
	Name: "hide_review", Title: "Hide the text of a review",
	Summary: "Hides the text of one review on this node, with the address of its file and the answers to it. It counts as before.",
	Description: "A review is on a chain, where nobody can delete it, and its rating counts by its proof: so the reputation stays as it is. " +
		"The moderation log says why. Hiding it again gives another reason.",
	HTTP: Route{"POST", "/api/operator/reviews/{id}/hide", 200}, For: Operators, Codes: []Code{NotFound}, Example: reviewDecision,
})

var RestoreReview = declare[ReviewDecision, ReviewStanding](Operation{
	Name: "restore_review", Title: "Show the text of a review again",
	Summary: "Undoes hide_review.",
	HTTP:    Route{"POST", "/api/operator/reviews/{id}/restore", 200}, For: Operators, Codes: []Code{NotFound, Conflict}, Example: reviewDecision,
})

var ListHiddenReviews = declare[Paging, Page[HiddenReview]](Operation{
	Name: "list_hidden_reviews", Title: "List the reviews whose text is hidden",
	Summary: "The reviews whose text an operator has hidden, with the text and the reason, the newest review first.",
	HTTP:    Route{"GET", "/api/operator/reviews", 200}, For: Operators, ReadOnly: true, Codes: []Code{InvalidCursor}, Example: Paging{Limit: 20},
})
