package protocol

import (
	"regexp"
	"strconv"
	"strings"
	"time"
)

// A BasketItem is a variant and how many pieces of it.
type BasketItem struct {
	ID       string `json:"id" minLength:"1" maxLength:"80" doc:"Id of the variant (var_…), or of an item without variants (item_…)."`
	Quantity int    `json:"quantity" minimum:"1" maximum:"999"`
}

// A Basket is what somebody wants to buy, of one shop.
type Basket struct {
	Items []BasketItem `json:"items" minItems:"1" maxItems:"50"`
}

// ParseBasket reads the items of a permalink: id:quantity, divided by commas; a quantity of 1 may be left out.
func ParseBasket(text string) (b Basket, err error) {
	for part := range strings.SplitSeq(text, ",") {
		id, many, given := strings.Cut(part, ":")
		n := 1
		if given {
			n, err = strconv.Atoi(many)
		}
		if err != nil || given && strconv.Itoa(n) != many || id == "" || len(id) > 120 || n < 1 || n > MaxPieces || len(b.Items) == MaxOrderItems {
			return b, Errorf(InvalidRequest, "the items of this address are not id:quantity, divided by commas, with at most %d items of at most %d pieces",
				MaxOrderItems, MaxPieces)
		}
		b.Items = append(b.Items, BasketItem{id, n})
	}
	return b, nil
}

// String is the basket as the items of a permalink.
func (b Basket) String() string {
	parts := make([]string, len(b.Items))
	for i, x := range b.Items {
		parts[i] = x.ID + ":" + strconv.Itoa(x.Quantity)
	}
	return strings.Join(parts, ",")
}

// A BasketFault says why an item of a basket cannot be ordered.
type BasketFault struct {
	ID     string `json:"id"`
	Code   string `json:"code" enum:"item_unavailable,out_of_stock,no_price,other_shop"`
	Detail string `json:"detail"`
}

// A BasketQuote is what a basket costs now, without delivery.
type BasketQuote struct {
	Handle    string        `json:"handle" doc:"The shop."`
	Shop      string        `json:"shop"`
	Lines     []OrderLine   `json:"lines"`
	Sum       Money         `json:"sum"`
	Faults    []BasketFault `json:"faults"`
	Till      Till          `json:"till"`
	Carriage  Money         `json:"carriage" doc:"What delivery costs."`
	Mail      bool          `json:"mail" doc:"The node sends mail about orders."`
	Untrusted bool          `json:"untrusted_content" doc:"Always true."`
}

var exampleBasket = Basket{[]BasketItem{{"var_01k9y3v6k8e5w9q2x4z7c1m0a0", 2}}}

var QuoteOrder = declare[Basket, BasketQuote](Operation{
	Name: "quote_order", Title: "What a basket costs",
	Summary:  "What the items of a basket cost now, and how their shop hands them over.",
	ReadOnly: true, NoStore: true, Codes: []Code{NotFound}, Example: exampleBasket,
})

// An OrderBuyer is who orders, and where it goes. Only the buyer and the shop see it.
type OrderBuyer struct {
	Name   string `json:"name" line:"true" minLength:"1" maxLength:"80" doc:"Your name."`
	Mail   string `json:"mail" shape:"mail" minLength:"3" maxLength:"254" doc:"Your mail address; the shop sees it."`
	Phone  string `json:"phone,omitempty" maxLength:"30" doc:"For the delivery."`
	Street string `json:"street,omitempty" line:"true" maxLength:"200" doc:"With delivery: house, street and place."`
	PIN    string `json:"pin,omitempty" pattern:"^[1-9][0-9]{5}$" doc:"With delivery: PIN code."`
	Note   string `json:"note,omitempty" maxLength:"300" doc:"For the shop."`
}

// A NewOrder is an order to make.
type NewOrder struct {
	Basket
	OrderBuyer
	Way      string  `json:"way" enum:"delivery,pickup" doc:"How it reaches you."`
	Pay      string  `json:"pay" enum:"now,later" doc:"later: when it is handed over."`
	Total    Decimal `json:"total,omitempty" decimal:"true" doc:"What you expect to pay, in rupees: another total is refused."`
	Language string  `json:"language,omitempty" enum:"en,hi" doc:"Of the mails."`
	Client   string  `json:"client,omitempty" pattern:"^0x[0-9a-fA-F]{40}$" doc:"Your account on the blockchain, which may review the order."`
	Checkout string  `json:"checkout,omitempty" maxLength:"100" doc:"Secret of the checkout's page: its items are ordered."`
}

var phoneForm = regexp.MustCompile(`^\+?[0-9][0-9 ()-]{5,28}$`)

// Check returns the faults that tags cannot express.
func (n NewOrder) Check() (faults []Fault) {
	if n.Phone != "" && !phoneForm.MatchString(n.Phone) {
		faults = append(faults, Fault{"/phone", "wrong-shape", "is not a telephone number"})
	}
	if n.Way == ByDelivery && strings.TrimSpace(n.Street) == "" {
		faults = append(faults, Fault{"/street", "required", "is required for a delivery"})
	}
	if n.Way == ByDelivery && n.PIN == "" {
		faults = append(faults, Fault{"/pin", "required", "is required for a delivery"})
	}
	return faults
}

// An OrderEvent is something that happened to an order.
type OrderEvent struct {
	What string    `json:"what" enum:"made,reported,denied,paid,packed,sent,delivered,picked_up,fulfilled,canceled,refund,refunded,answered"`
	At   time.Time `json:"at"`
	Note string    `json:"note" doc:"Why, in words; empty for none."`
}

// A ShopOrder is an order as its buyer sees it.
type ShopOrder struct {
	ID            string       `json:"id" pattern:"^ord_"`
	Handle        string       `json:"handle" doc:"The shop."`
	Shop          string       `json:"shop"`
	State         OrderState   `json:"state" enum:"awaiting_payment,paid,fulfilled,canceled,refunded"`
	Claimed       bool         `json:"claimed" doc:"The buyer reported the payment, and the shop has to confirm it."`
	Lines         []OrderLine  `json:"lines"`
	Totals        []OrderTotal `json:"totals" doc:"In paise."`
	Total         Money        `json:"total"`
	Way           string       `json:"way" enum:"delivery,pickup"`
	Pay           string       `json:"pay" enum:"now,later"`
	Test          bool         `json:"test" doc:"TEST: no money moves."`
	Provider      string       `json:"provider" enum:",upi,razorpay,sandbox"`
	Buyer         OrderBuyer   `json:"buyer"`
	MadeAt        time.Time    `json:"madeAt"`
	HoldUntil     *time.Time   `json:"holdUntil" nullable:"true" doc:"When it ends unless it is paid, or its payment confirmed."`
	Events        []OrderEvent `json:"events"`
	Refunds       []BidRefund  `json:"refunds"`
	Known         *string      `json:"known" enum:"provider,confirmed,stated" nullable:"true" doc:"How the payment is known."`
	Receipt       *string      `json:"receipt" nullable:"true" doc:"The order receipt: a compact JWS."`
	UTR           *string      `json:"utr" nullable:"true"`
	Note          string       `json:"note" doc:"Of the shop, for buyers."`
	Review        *Review      `json:"review" required:"true" orNull:"true"`
	MailConfirmed bool         `json:"mailConfirmed" doc:"The buyer's mailbox is confirmed."`
	Untrusted     bool         `json:"untrusted_content" doc:"Always true."`
}

// A MadeOrder is the answer to a new order.
type MadeOrder struct {
	Order ShopOrder `json:"order"`
	Token string    `json:"token" doc:"Opens its page, /order/<token>, and pays it at /pay/<token>."`
}

var MakeOrder = declare[NewOrder, MadeOrder](Operation{
	Name: "make_order", Title: "Order",
	Summary: "Orders items of a shop; holds them for 20 minutes, until they are paid.",
	Codes:   []Code{NotFound, Forbidden, Conflict, ContactRefused},
	Example: NewOrder{Basket: exampleBasket, OrderBuyer: OrderBuyer{Name: "Ravi", Mail: "ravi@example.org"}, Way: ByPickup, Pay: PayNow},
})

// An OrderInput is the secret of an order's page.
type OrderInput struct {
	Token string `json:"token,omitempty" maxLength:"100"`
}

var ReadOrder = declare[OrderInput, ShopOrder](Operation{
	Name: "read_order", Title: "Read an order", Summary: "An order, by the secret of its page.",
	ReadOnly: true, NoStore: true, Secret: "token", Codes: []Code{NotFound, Unauthorized}, Example: OrderInput{},
})

var CancelOrder = declare[OrderInput, ShopOrder](Operation{
	Name: "cancel_order", Title: "Cancel an order", Summary: "The buyer cancels an order that is not paid.",
	Secret: "token", Idempotent: true, Codes: []Code{NotFound, Unauthorized, Conflict}, Example: OrderInput{},
})

// An OrderMail confirms the mailbox of a buyer.
type OrderMail struct {
	OrderInput
	Ticket string `json:"ticket" maxLength:"100" doc:"Of the link in a letter about the order."`
}

var ConfirmOrderMail = declare[OrderMail, ShopOrder](Operation{
	Name: "confirm_order_mail", Title: "Confirm a mailbox", Summary: "The buyer has read a letter about the order.",
	Secret: "token", Idempotent: true, Codes: []Code{NotFound, Unauthorized, Gone}, Example: OrderMail{Ticket: "Fz0vSm9obkRvZS1leGFtcGxl"},
})

// An OrderQuery selects orders of a shop.
type OrderQuery struct {
	Owned
	State OrderState `json:"state,omitempty" enum:"awaiting_payment,paid,fulfilled,canceled,refunded" doc:"Only these."`
	Paging
}

var ListOrders = declare[OrderQuery, Page[ShopOrder]](Operation{
	Name: "list_orders", Title: "List orders",
	Summary: "Orders of a shop of yours, newest first, with buyer, payment and refunds.",
	HTTP:    Route{"GET", "/api/owner/orders", 200}, For: Owners, Scope: ScopeOrders, ReadOnly: true, Codes: []Code{Forbidden, InvalidCursor},
	Example: OrderQuery{State: OrderPaid},
})

// An OrderDo is what a shop does with an order.
type OrderDo string

const (
	OrderConfirm   OrderDo = "confirm" // the payment has arrived
	OrderDeny      OrderDo = "deny"    // it has not
	OrderPacked    OrderDo = "packed"
	OrderSent      OrderDo = "sent"
	OrderDelivered OrderDo = "delivered"
	OrderPickedUp  OrderDo = "picked_up"
	OrderCancel    OrderDo = "cancel"
	OrderRefund    OrderDo = "refund"
	OrderAnswer    OrderDo = "answer" // the buyer's review
)

// An OrderUpdate is what a shop does with an order.
type OrderUpdate struct {
	ID     string  `json:"id" shape:"order-id" doc:"Id of the order."`
	Do     OrderDo `json:"do" enum:"confirm,deny,packed,sent,delivered,picked_up,cancel,refund,answer" doc:"confirm, deny: the payment has arrived, or not. cancel: what was paid goes back. answer: note, publicly, to the buyer's review."`
	UTR    string  `json:"utr,omitempty" shape:"utr" doc:"With confirm: the bank's reference, if the buyer reported none."`
	Amount Decimal `json:"amount,omitempty" decimal:"true" doc:"With refund, in rupees. Left out: all that is left."`
	Note   string  `json:"note,omitempty" maxLength:"300" doc:"For the buyer."`
}

// Check refuses an amount that is not one of rupees.
func (u OrderUpdate) Check() []Fault { return amountFaults(u.Amount) }

var UpdateOrder = declare[OrderUpdate, ShopOrder](Operation{
	Name: "update_order", Title: "Update an order",
	Summary: "Confirms the payment of an order, says how far it is, cancels it, or refunds all or a part. The buyer is told.",
	HTTP:    Route{"POST", "/api/owner/orders/{id}", 200}, For: Owners, Scope: ScopeOrders, Codes: []Code{NotFound, Conflict},
	Example: OrderUpdate{ID: "ord_01k9y3v6k8e5w9q2x4z7c1m0ad", Do: OrderSent},
})
