package protocol

import (
	"fmt"
	"strconv"
	"time"
)

// Order receipts: what a shop gives a buyer who has paid, signed by the node (spec §2.6). Line items and adjustments have the shapes of
// UCP's dev.ucp.shopping.order.

// OrderReceiptType is the header typ of the JWS of a receipt.
const OrderReceiptType = "order-receipt+jwt"

// Limits of receipts.
const (
	MaxOrderReceipts   = 20_000 // of one profile that are kept; the oldest are deleted beyond it
	MaxAdjustments     = 50
	MaxReceiptToken    = 4096 // bytes of a JWS
	maxOrderDaysBefore = 366  // how old a payment may be
)

// OrderReceiptClaims are the claims of the JWS of a receipt.
type OrderReceiptClaims struct {
	Issuer   string `json:"iss" doc:"Address of the node that signed."`
	Order    string `json:"sub" doc:"The shop's own number of the order."`
	Agent    string `json:"agent,omitempty" doc:"Chain identity of the shop, eip155:<chainId>:<registry>:<agentId>; absent without one."`
	Shop     string `json:"shop" doc:"The profile of the shop on that node."`
	Client   string `json:"client,omitempty" doc:"Account that may review the order, eip155:<chainId>:<address>; absent when the shop does not know it."`
	Amount   string `json:"amount" doc:"Decimal string."`
	Currency string `json:"currency"`
	PaidAt   int64  `json:"paidAt" doc:"Seconds since 1970."`
	IssuedAt int64  `json:"iat" doc:"Seconds since 1970."`
	ID       string `json:"jti" pattern:"^rcpt_"`
	Known    string `json:"known,omitempty" enum:"provider,confirmed,stated" doc:"How the payment is known: by the payment provider, as the buyer reported it and the shop confirmed, or from the shop alone. Left out: from the shop alone."`
	Test     bool   `json:"test,omitempty" doc:"TEST: no money moved."`
}

// ForeignReceiptID is the id that a node which did not issue a receipt has for it, so that no other node
// can choose an id of this one.
func ForeignReceiptID(issuer, id string, paidAt time.Time) string {
	return RemoteID(ReceiptID, paidAt, issuer+" "+id)
}

// An OrderTotal is a part of a price (UCP total).
type OrderTotal struct {
	Type        string `json:"type" minLength:"1" maxLength:"40" doc:"subtotal, discount, fulfillment, tax, fee, total or a word of the shop."`
	DisplayText string `json:"display_text,omitempty" maxLength:"80" doc:"What to call it."`
	Amount      int64  `json:"amount" minimum:"-1000000000000" maximum:"1000000000000" doc:"Minor units of the currency."`
}

// An OrderItem is what was bought (UCP item).
type OrderItem struct {
	ID    string `json:"id" minLength:"1" maxLength:"80" doc:"Its id or sku in the catalog."`
	Title string `json:"title" minLength:"1" maxLength:"120" doc:"Name of the item."`
	Price int64  `json:"price" minimum:"0" maximum:"1000000000000" doc:"Price of one, in minor units."`
}

// An OrderQuantity counts pieces of a line (UCP).
type OrderQuantity struct {
	Original  int64 `json:"original,omitempty" minimum:"0" maximum:"1000000000" doc:"As it was ordered."`
	Total     int64 `json:"total" minimum:"0" maximum:"1000000000" doc:"After returns and cancellations."`
	Fulfilled int64 `json:"fulfilled" minimum:"0" maximum:"1000000000" doc:"Delivered so far."`
}

// An OrderLine is a line item (UCP order_line_item).
type OrderLine struct {
	ID       string        `json:"id" minLength:"1" maxLength:"80" doc:"Your own; unique within the order."`
	Item     OrderItem     `json:"item" doc:"What was bought."`
	Quantity OrderQuantity `json:"quantity" doc:"How many."`
	Totals   []OrderTotal  `json:"totals" maxItems:"10" doc:"What the line costs, in parts."`
	Status   string        `json:"status" enum:"processing,partial,fulfilled,removed" doc:"removed when the quantity is 0; otherwise how much is delivered."`
	ParentID string        `json:"parent_id,omitempty" maxLength:"80" doc:"Line that this one is a part of."`
}

// An AdjustedLine says how many of a line an adjustment is about.
type AdjustedLine struct {
	ID       string `json:"id" minLength:"1" maxLength:"80" doc:"Id of the line."`
	Quantity int64  `json:"quantity" minimum:"-1000000000" maximum:"1000000000" doc:"Negative for returns."`
}

// An Adjustment is what happened to an order after it was paid (UCP adjustment): a refund, a return, a
// credit. Adjustments are only added.
type Adjustment struct {
	ID          string         `json:"id" minLength:"1" maxLength:"80" doc:"The shop's own; unique within the order."`
	Type        string         `json:"type" minLength:"1" maxLength:"40" doc:"refund, return, credit, price_adjustment, dispute, cancellation or a word of the shop."`
	OccurredAt  time.Time      `json:"occurred_at" doc:"When it happened."`
	Status      string         `json:"status" enum:"pending,completed,failed" doc:"How far it is."`
	LineItems   []AdjustedLine `json:"line_items,omitempty" maxItems:"100" doc:"Lines that it is about."`
	Totals      []OrderTotal   `json:"totals,omitempty" maxItems:"10" doc:"Negative for money that the buyer gets back."`
	Description string         `json:"description,omitempty" maxLength:"300" doc:"Why, in words."`
}

// Back returns what a completed adjustment changes of what was paid, in minor units, negative for money that the
// buyer gets back: its part total, otherwise the sum of its parts; 0 while it is not completed.
func (a Adjustment) Back() (minor int64) {
	if a.Status != "completed" {
		return 0
	}
	for _, t := range a.Totals {
		if t.Type == "total" {
			return t.Amount
		}
		minor += t.Amount
	}
	return minor
}

// A NewOrderReceipt is a receipt to issue.
type NewOrderReceipt struct {
	Owned
	Order     string      `json:"order" pattern:"^[!-~]{1,80}$" maxLength:"80" doc:"Your own number of the order, without spaces."`
	Client    string      `json:"client,omitempty" pattern:"^(eip155:[1-9][0-9]{0,18}:)?0x[0-9a-fA-F]{40}$" doc:"Account of the buyer on the chain of your identity, as 0x… or eip155:<chainId>:0x…. Only it can review the order with this receipt."`
	Buyer     string      `json:"buyer,omitempty" line:"true" maxLength:"80" doc:"Your own reference to the buyer, such as a customer number; no name. Only you see it."`
	Total     MoneyDraft  `json:"total" doc:"What was paid."`
	PaidAt    time.Time   `json:"paidAt" doc:"When it was paid."`
	LineItems []OrderLine `json:"lineItems,omitempty" maxItems:"100" doc:"What was bought, in the shape of UCP. Only you see it."`
}

// Check returns the faults that tags cannot express.
func (n NewOrderReceipt) Check() []Fault {
	var faults []Fault
	if minor, fault := n.Total.Minor(); fault != nil {
		faults = append(faults, Fault{"/total" + fault.Pointer, fault.Code, fault.Detail})
	} else if minor == 0 {
		faults = append(faults, Fault{"/total/amount", "out-of-range", "must be more than zero: a receipt is for an order that was paid"})
	}
	seen := map[string]bool{}
	for i, l := range n.LineItems {
		at := "/lineItems/" + strconv.Itoa(i)
		if seen[l.ID] {
			faults = append(faults, Fault{at + "/id", "repeated", "another line has this id"})
		}
		seen[l.ID] = true
		if l.Quantity.Fulfilled > l.Quantity.Total {
			faults = append(faults, Fault{at + "/quantity/fulfilled", "out-of-range", "must not be more than total"})
		}
	}
	return faults
}

// PaidAhead is how far a payment may be after the issue of its receipt, because clocks differ.
const PaidAhead = 5 * time.Minute

// CheckPaidAt refuses a time of payment that lies in the future or more than a year back.
func (n NewOrderReceipt) CheckPaidAt(now time.Time) *Fault {
	if n.PaidAt.After(now.Add(PaidAhead)) || n.PaidAt.Before(now.AddDate(0, 0, -maxOrderDaysBefore)) {
		return &Fault{"/paidAt", "out-of-range", fmt.Sprintf("must be in the past, and at most %d days ago", maxOrderDaysBefore)}
	}
	return nil
}

// An OrderReceipt is a receipt as the shop sees it.
type OrderReceipt struct {
	ID          string       `json:"id" pattern:"^rcpt_" doc:"The claim jti; of a receipt that another node issued, its id here."`
	Issuer      string       `json:"issuer" doc:"Address of the node that issued it: another's when it came with an archive."`
	Handle      string       `json:"handle" doc:"The shop."`
	Order       string       `json:"order"`
	Agent       *string      `json:"agent" nullable:"true" doc:"Chain identity of the shop when it was issued; null for none."`
	Client      *string      `json:"client" nullable:"true" doc:"Account that may review the order; null when not known."`
	Buyer       string       `json:"buyer"`
	Total       Money        `json:"total"`
	PaidAt      time.Time    `json:"paidAt"`
	IssuedAt    time.Time    `json:"issuedAt"`
	RevokedAt   *time.Time   `json:"revokedAt" nullable:"true"`
	Reason      *string      `json:"reason" nullable:"true" doc:"Why it was revoked; only you see it."`
	Reviewable  bool         `json:"reviewable" doc:"It names an identity and a client, so that a review with it can count."`
	LineItems   []OrderLine  `json:"lineItems"`
	Adjustments []Adjustment `json:"adjustments"`
	Receipt     string       `json:"receipt" doc:"The receipt itself, to give to the buyer: a compact JWS."`
	Untrusted   bool         `json:"untrusted_content" enum:"true" doc:"Always true."`
}

var exampleReceipt = "rcpt_01k9y3v6k8e5w9q2x4z7c1m0ad"

var exampleReceiptDraft = NewOrderReceipt{Order: "R-1042", Client: "0x70997970c51812dc3a010c7d01b50e0d17dc79c8",
	Total: MoneyDraft{Rupee, "180.00"}, PaidAt: time.Date(2026, 11, 20, 9, 30, 0, 0, time.UTC)}

var IssueOrderReceipt = declare[NewOrderReceipt, OrderReceipt](Operation{
	Name: "issue_order_receipt", Title: "Issue an order receipt",
	Summary: "Signs a receipt for an order that a buyer has paid. With it the buyer can prove the order, and review it on the chain.",
	Description: "The receipt is a compact JWS by a key of this node's directory; anyone can verify it (stoa verify receipt). " +
		"The same order again returns the receipt that it has; other facts for it are a conflict until that receipt is revoked.",
	HTTP: Route{"POST", "/api/owner/order-receipts", 201}, For: Owners, Idempotent: true, Scope: ScopeOrders, Codes: []Code{Forbidden, Conflict},
	Example: exampleReceiptDraft,
})

// An OrderReceiptQuery selects receipts of a shop.
type OrderReceiptQuery struct {
	Owned
	Order string `json:"order,omitempty" maxLength:"80" doc:"Only those of this order."`
	Paging
}

var ListOrderReceipts = declare[OrderReceiptQuery, Page[OrderReceipt]](Operation{
	Name: "list_order_receipts", Title: "List order receipts",
	Summary: "The receipts that a business of yours has issued, newest first, revoked ones included.",
	Description: "The newest 20,000 of a business are kept. A receipt that is deleted stays valid as a document, but no review can count with it any more. " +
		"Receipts of another node that came with an archive are at the end of the list.",
	HTTP: Route{"GET", "/api/owner/order-receipts", 200}, For: Owners, Scope: ScopeOrders, ReadOnly: true, Codes: []Code{Forbidden, InvalidCursor},
	Example: OrderReceiptQuery{Paging: Paging{Limit: 20}},
})

// An OrderReceiptRef names one receipt of the caller's.
type OrderReceiptRef struct {
	Owned
	ID string `json:"id" shape:"receipt-id" doc:"Id of the receipt."`
}

// A ReceiptRevocation revokes one receipt.
type ReceiptRevocation struct {
	OrderReceiptRef
	Reason string `json:"reason,omitempty" maxLength:"300" doc:"For you only."`
}

var RevokeOrderReceipt = declare[ReceiptRevocation, OrderReceipt](Operation{
	Name: "revoke_order_receipt", Title: "Revoke an order receipt",
	Summary:     "Ends a receipt: no review counts with it any more. One that did stays listed, with that reason.",
	Description: "A receipt of another node, which came with an archive, ends on this node only: revoke it there too.",
	HTTP:        Route{"POST", "/api/owner/order-receipts/{id}/revoke", 200}, For: Owners, Idempotent: true, Scope: ScopeOrders,
	Codes:   []Code{Forbidden, NotFound},
	Example: ReceiptRevocation{OrderReceiptRef{ID: exampleReceipt}, "issued twice"},
})

// A NewAdjustment adds to the order of a receipt.
type NewAdjustment struct {
	OrderReceiptRef
	Adjustment Adjustment `json:"adjustment" doc:"What happened to the order, in the shape of UCP."`
}

var AdjustOrder = declare[NewAdjustment, OrderReceipt](Operation{
	Name: "adjust_order", Title: "Add an adjustment to an order",
	Summary: "Records a refund, a return or a credit of an order with a receipt. Adjustments are only added, at most 50. " +
		"After a full refund the review of the order does not count.",
	Description: "The same adjustment again changes nothing; another one with the same id is a conflict. The receipt itself does not change.",
	HTTP:        Route{"POST", "/api/owner/order-receipts/{id}/adjustments", 200}, For: Owners, Idempotent: true, Scope: ScopeOrders, Inward: true,
	Codes: []Code{Forbidden, NotFound, Conflict},
	Example: NewAdjustment{OrderReceiptRef{ID: exampleReceipt}, Adjustment{ID: "refund-1", Type: "refund",
		OccurredAt: time.Date(2026, 11, 21, 9, 30, 0, 0, time.UTC), Status: "completed", Totals: []OrderTotal{{Type: "total", Amount: -18000}}}},
})

// A ReceiptRef names a receipt by its jti.
type ReceiptRef struct {
	ID string `json:"id" shape:"receipt-id" doc:"The claim jti of the receipt."`
}

// A ReceiptStatus is what anyone may know of a receipt.
type ReceiptStatus struct {
	ID        string     `json:"id" pattern:"^rcpt_"`
	Status    string     `json:"status" enum:"valid,revoked,refunded" doc:"refunded: in full, as the shop says."`
	RevokedAt *time.Time `json:"revokedAt" nullable:"true"`
}

var GetReceiptStatus = declare[ReceiptRef, ReceiptStatus](Operation{
	Name: "get_receipt_status", Title: "Is an order receipt revoked",
	Summary:     "Whether an order receipt of this node is valid, revoked or its order refunded, by its jti.",
	Description: "Nothing else of it is shown. Its signature is verified offline with the keys of /.well-known/http-message-signatures-directory.",
	HTTP:        Route{"GET", "/api/public/order-receipts/{id}", 200}, Doors: Everywhere, ReadOnly: true,
	Codes:   []Code{NotFound},
	Example: ReceiptRef{exampleReceipt},
})
