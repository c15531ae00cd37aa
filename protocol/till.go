package protocol

import (
	"regexp"
	"slices"
	"strings"
	"time"
)

// Orders of shops (contract §9). The money goes to the shop directly; the node holds none. What a buyer does has no
// operation of the public API: it is done on pages.

// Limits of orders.
const (
	MaxOrderItems  = 50             // different variants of one order
	MaxPieces      = 999            // of one variant
	MaxOpenOrders  = 3              // of one buyer, unpaid, at one shop
	MaxOrdersNode  = 10             // of one buyer, unpaid, on the node
	OrderClaimFor  = 48 * time.Hour // for the shop: to confirm what is reported as paid, or to take up what a stranger pays later
	UnprovedOrders = 600            // made within an hour on the node by callers whom it does not know
)

// SharedOrders bounds the unpaid orders of one shop.
var SharedOrders = Shared{300}

// An OrderState is the state of an order.
type OrderState string

const (
	OrderAwaiting   OrderState = "awaiting_payment" // not paid yet, or on delivery
	OrderPaid       OrderState = "paid"
	OrderFulfilled  OrderState = "fulfilled" // paid and handed over
	OrderCanceled   OrderState = "canceled"  // by the buyer, the shop or the clock; what was paid goes back
	OrderIsRefunded OrderState = "refunded"  // all of the money is back
)

var orderMoves = map[OrderState][]OrderState{
	OrderAwaiting:  {OrderPaid, OrderCanceled},
	OrderPaid:      {OrderFulfilled, OrderCanceled, OrderIsRefunded},
	OrderFulfilled: {OrderIsRefunded},
	OrderCanceled:  {OrderPaid, OrderIsRefunded}, // a late payment
}

// May reports whether an order may go from one state to another.
func (s OrderState) May(to OrderState) bool { return slices.Contains(orderMoves[s], to) }

// How an order reaches its buyer, and when it is paid.
const (
	ByDelivery = "delivery"
	ByPickup   = "pickup"
	PayNow     = "now"
	PayLater   = "later" // when it is handed over
)

// How the payment of an order is known (contract §9).
const (
	KnownProvider  = "provider"  // by the provider's event
	KnownConfirmed = "confirmed" // the buyer, whom the node knows, reported it and the shop confirmed it
	KnownStated    = "stated"    // the shop alone says so
)

// A TillDraft is how a shop takes orders, as its owner writes it.
type TillDraft struct {
	Owned
	Open          bool     `json:"open,omitempty" doc:"Take orders: needs put_payment_account too."`
	Pickup        bool     `json:"pickup,omitempty" doc:"Buyers may fetch."`
	Delivery      bool     `json:"delivery,omitempty" doc:"You deliver."`
	DeliveryPrice Decimal  `json:"deliveryPrice,omitempty" decimal:"true" doc:"In rupees."`
	FreeFrom      Decimal  `json:"freeFrom,omitempty" decimal:"true" doc:"Delivery is free from this sum."`
	Area          []string `json:"area,omitempty" maxItems:"50" doc:"PIN codes, or their first digits, that you deliver to. None: all."`
	PayOnDelivery bool     `json:"payOnDelivery,omitempty" doc:"May be paid on delivery."`
	PayAtPickup   bool     `json:"payAtPickup,omitempty" doc:"May be paid when fetched."`
	Note          string   `json:"note,omitempty" maxLength:"500" doc:"For buyers, before they pay."`
}

var pinPart = regexp.MustCompile(`^[1-9][0-9]{0,5}$`)

// Check returns the faults that tags cannot express.
func (d TillDraft) Check() (faults []Fault) {
	for _, x := range []struct {
		at     string
		amount Decimal
	}{{"/deliveryPrice", d.DeliveryPrice}, {"/freeFrom", d.FreeFrom}} {
		if _, fault := x.amount.Paise(); x.amount != "" && fault != nil {
			faults = append(faults, Fault{x.at, fault.Code, fault.Detail})
		}
	}
	for _, pin := range d.Area {
		if !pinPart.MatchString(pin) {
			faults = append(faults, Fault{"/area", "wrong-shape", "each is a PIN code of six digits, or its first digits"})
			break
		}
	}
	if d.Open && !d.Pickup && !d.Delivery {
		faults = append(faults, Fault{"/delivery", "required", "say how orders reach buyers: by delivery, pickup or both"})
	}
	return faults
}

// Delivers reports whether the shop delivers to a PIN code.
func (d TillDraft) Delivers(pin string) bool {
	return len(d.Area) == 0 || slices.ContainsFunc(d.Area, func(part string) bool { return strings.HasPrefix(pin, part) })
}

// Later reports whether what reaches the buyer so may be paid then.
func (d TillDraft) Later(way string) bool {
	return way == ByDelivery && d.PayOnDelivery || way == ByPickup && d.PayAtPickup
}

// Carriage is the price of delivery for items of a sum, in paise.
func (d TillDraft) Carriage(sum int64) int64 {
	price, _ := d.DeliveryPrice.Paise()
	if free, _ := d.FreeFrom.Paise(); d.FreeFrom != "" && sum >= free {
		return 0
	}
	return price
}

// A Till is how a shop takes orders.
type Till struct {
	TillDraft
	Now       bool       `json:"now" doc:"Orders can be paid at once: it has a payment account."`
	Taking    bool       `json:"taking" doc:"It takes orders now: it is open and has a payment account."`
	Test      bool       `json:"test" doc:"TEST: no money moves."`
	UpdatedAt *time.Time `json:"updatedAt" nullable:"true"`
	Untrusted bool       `json:"untrusted_content" doc:"Always true."`
}

var GetTill = declare[OwnInput, Till](Operation{
	Name: "get_till", Title: "Get how you take orders",
	Summary: "How a shop of yours takes orders: delivery, its price and area, and payment on delivery.",
	HTTP:    Route{"GET", "/api/owner/till", 200}, Doors: HTTP, For: Owners, Scope: ScopeOrders, ReadOnly: true, Codes: []Code{Forbidden},
	Example: OwnInput{},
})

var PutTill = declare[TillDraft, Till](Operation{
	Name: "put_till", Title: "Write how you take orders",
	Summary: "Replaces how a shop of yours takes orders. Orders made before keep their terms.",
	HTTP:    Route{"PUT", "/api/owner/till", 200}, Doors: HTTP, For: Owners, Scope: ScopeOrders, Replaces: GetTill.Operation, Codes: []Code{Forbidden},
	Example: TillDraft{Open: true, Delivery: true, DeliveryPrice: "40", Area: []string{"5600"}, PayOnDelivery: true},
})

// A StockCount is how many pieces are left of a variant.
type StockCount struct {
	ID     string `json:"id" pattern:"^[A-Za-z0-9][A-Za-z0-9._/-]{0,128}$" doc:"Of the variant, or of an item without variants; or its SKU, of a variant item/variant."`
	Pieces *int   `json:"pieces,omitempty" minimum:"0" maximum:"1000000" doc:"Left out: not counted."`
}

// A StockDraft counts pieces.
type StockDraft struct {
	Owned
	Stock []StockCount `json:"stock" minItems:"1" maxItems:"1000" doc:"What to count; others stay."`
}

var PutStock = declare[StockDraft, None](Operation{
	Name: "put_stock", Title: "Count your stock",
	Summary: "Says how many pieces of variants are left to sell. Orders hold and take them; what is not counted never runs out.",
	HTTP:    Route{"PUT", "/api/owner/stock", 204}, Doors: HTTP, For: Owners, Scope: ScopeOrders, Inward: true, Codes: []Code{Forbidden, NotFound},
	Example: StockDraft{Stock: []StockCount{{ID: "var_01k9y3v6k8e5w9q2x4z7c1m0a0", Pieces: new(12)}}},
})
