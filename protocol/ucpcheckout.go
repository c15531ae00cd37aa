package protocol

import "time"

// Checkouts, carts and orders of UCP, in the node's own shapes. The node holds no money: a checkout is a basket that a platform filled,
// priced and held, which a person takes over on a page of this node and makes an order of.

// Limits of checkouts.
const (
	CheckoutFor       = time.Hour           // an open checkout
	CartFor           = 3 * 24 * time.Hour  // a cart
	CheckoutKept      = 24 * time.Hour      // a checkout after it ended
	OrderedKept       = 30 * 24 * time.Hour // one that became an order
	FreeCheckouts     = 60                  // made within an hour by the platforms of one site whose profile was read
	UnprovedCheckouts = 600                 // made within an hour on the node by all others together
)

// A CheckoutBuyer is what a platform says of who buys.
type CheckoutBuyer struct {
	First  string `json:"first,omitempty" maxLength:"80"`
	Last   string `json:"last,omitempty" maxLength:"80"`
	Mail   string `json:"mail,omitempty" maxLength:"254"`
	Phone  string `json:"phone,omitempty" maxLength:"30"`
	Street string `json:"street,omitempty" maxLength:"200"`
	PIN    string `json:"pin,omitempty" maxLength:"6"`
}

// A CheckoutDraft is a checkout or a cart as a platform fills it, or names it, or an order.
type CheckoutDraft struct {
	Session string        `json:"session,omitempty" maxLength:"80" doc:"Id of the checkout, cart or order; none for a new one."`
	Profile string        `json:"profile,omitempty" maxLength:"512" doc:"Address of the profile of the platform, which was read."`
	Cart    bool          `json:"cart,omitempty"`
	From    string        `json:"from,omitempty" maxLength:"80" doc:"The cart that it begins with; then the rest does not count."`
	Items   []BasketItem  `json:"items,omitempty" maxItems:"50"`
	Buyer   CheckoutBuyer `json:"buyer,omitzero"`
	Pay     string        `json:"pay,omitempty" enum:"now,later"`
	Release string        `json:"release,omitempty" maxLength:"10" doc:"Of UCP, as negotiated."`
	Webhook string        `json:"webhook,omitempty" maxLength:"2048" doc:"Where the platform is told of the order."`
	Digest  string        `json:"digest,omitempty" maxLength:"64" doc:"Of the whole request, for its Idempotency-Key."`
}

// Status of a checkout (UCP "Status Values").
const (
	CheckoutIncomplete = "incomplete"
	CheckoutEscalates  = "requires_escalation" // a person continues on a page
	CheckoutCompleted  = "completed"
	CheckoutCanceled   = "canceled"
)

// A CheckoutNote is a message of UCP about a checkout.
type CheckoutNote struct {
	Type   string `json:"type" enum:"error,warning,info"`
	Code   string `json:"code"`
	Path   string `json:"path,omitempty" doc:"JSONPath."`
	Detail string `json:"detail"`
}

// A Checkout is a checkout or a cart as its platform sees it.
type Checkout struct {
	BasketQuote
	ID        string         `json:"id"`
	Status    string         `json:"status" enum:"incomplete,requires_escalation,completed,canceled"`
	Totals    []OrderTotal   `json:"totals"`
	Notes     []CheckoutNote `json:"notes"`
	Refused   *CheckoutNote  `json:"refused" required:"true" orNull:"true" doc:"Why there is none, or why it stayed as it was."`
	Buyer     CheckoutBuyer  `json:"buyer"`
	Pay       string         `json:"pay" enum:"now,later"`
	Token     string         `json:"token" doc:"Opens the page on which a person continues; empty for none."`
	Order     string         `json:"order" doc:"Id of the order; empty while there is none."`
	ExpiresAt time.Time      `json:"expiresAt"`
	Returns   *ReturnsPolicy `json:"returns" required:"true" orNull:"true"`
	Support   bool           `json:"support"`
	Placed    *PlatformOrder `json:"placed,omitempty" doc:"The order, where that was asked for."`
}

// A PlatformOrder is an order as the platform sees it that began it: without who buys.
type PlatformOrder struct {
	ID       string       `json:"id"`
	Checkout string       `json:"checkout"`
	Handle   string       `json:"handle"`
	Shop     string       `json:"shop"`
	State    OrderState   `json:"state" enum:"awaiting_payment,paid,fulfilled,canceled,refunded"`
	Lines    []OrderLine  `json:"lines"`
	Totals   []OrderTotal `json:"totals"`
	Way      string       `json:"way" enum:"delivery,pickup"`
	Pay      string       `json:"pay" enum:"now,later"`
	Events   []OrderEvent `json:"events"`
	Refunds  []BidRefund  `json:"refunds"`
	Returned int64        `json:"returned" doc:"Paise that the shop gave back in hand."`
	Test     bool         `json:"test" doc:"TEST: no money moves."`
	Release  string       `json:"release"`
}

var exampleCheckout = CheckoutDraft{Session: "chk_01k9y3v6k8e5w9q2x4z7c1m0ad"}

var (
	UCPMakeCheckout = declare[CheckoutDraft, Checkout](Operation{
		Name: "ucp_make_checkout", Title: "Make a checkout of UCP", Summary: "Prices a basket of one shop, and holds it for a person who takes it over.",
		Codes: []Code{NotFound}, Example: CheckoutDraft{Items: exampleBasket.Items, Release: UCPVersions[0]},
	})
	UCPPutCheckout = declare[CheckoutDraft, Checkout](Operation{
		Name: "ucp_put_checkout", Title: "Replace a checkout of UCP", Summary: "Replaces an open checkout or a cart.",
		Codes: []Code{NotFound}, Example: CheckoutDraft{Session: exampleCheckout.Session, Items: exampleBasket.Items, Release: UCPVersions[0]},
	})
	UCPCheckout = declare[CheckoutDraft, Checkout](Operation{
		Name: "ucp_checkout", Title: "A checkout of UCP", Summary: "A checkout or a cart, with the prices of now.",
		ReadOnly: true, NoStore: true, Codes: []Code{NotFound}, Example: exampleCheckout,
	})
	UCPCancelCheckout = declare[CheckoutDraft, Checkout](Operation{
		Name: "ucp_cancel_checkout", Title: "Cancel a checkout of UCP", Summary: "Ends a checkout or a cart; what it holds is free.",
		Codes: []Code{NotFound}, Example: exampleCheckout,
	})
	UCPOrder = declare[CheckoutDraft, Checkout](Operation{
		Name: "ucp_order", Title: "An order for UCP", Summary: "An order, for the platform that began it.",
		ReadOnly: true, NoStore: true, Codes: []Code{NotFound}, Example: CheckoutDraft{Session: "ord_01k9y3v6k8e5w9q2x4z7c1m0ad"},
	})
	ReadCheckout = declare[OrderInput, Checkout](Operation{
		Name: "read_checkout", Title: "Read a checkout", Summary: "A checkout, by the secret of its page.",
		ReadOnly: true, NoStore: true, Secret: "token", Codes: []Code{NotFound, Unauthorized}, Example: OrderInput{},
	})
)
