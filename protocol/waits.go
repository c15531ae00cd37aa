package protocol

import "time"

// A WaitKind is a kind of thing that waits for an owner.
type WaitKind string

// Kinds, the most urgent first.
const (
	PaymentsWait WaitKind = "payments" // reported payments to confirm
	DisputesWait WaitKind = "disputes" // payments that their payers say they made
	RefundsWait  WaitKind = "refunds"  // to make by hand
	OrdersWait   WaitKind = "orders"   // of the shop: payments to confirm, goods to hand over, refunds to make
	MeetingsWait WaitKind = "meetings" // requests to decide
	MessagesWait WaitKind = "messages" // conversations with new messages
)

// WaitKinds is every kind, in that order.
var WaitKinds = []WaitKind{PaymentsWait, DisputesWait, RefundsWait, OrdersWait, MeetingsWait, MessagesWait}

// A Wait is what of one kind waits for the owner of a profile.
type Wait struct {
	Handle string     `json:"handle"`
	What   WaitKind   `json:"what" enum:"payments,disputes,refunds,orders,meetings,messages"`
	Count  int        `json:"count" minimum:"1" maximum:"100" doc:"100 stands for more."`
	Until  *time.Time `json:"until" doc:"When the first of them ends by itself; null for never."`
}

// Waiting is everything that waits for the owner of an account.
type OwnerWaits struct {
	Count int    `json:"count" doc:"Of all kinds together."`
	Items []Wait `json:"items" doc:"What ends first, first."`
}

var ListWaiting = declare[None, OwnerWaits](Operation{
	Name: "list_waiting", Title: "List what waits for you",
	Summary: "Payments to confirm, refunds to make, orders, meeting requests to decide and new messages of the account's profiles.",
	HTTP:    Route{"GET", "/api/owner/waiting", 200}, Doors: HTTP, For: Owners, Access: Session, ReadOnly: true, Codes: []Code{Forbidden}, Example: None{},
})
