package ucpapi

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"stoa/protocol"
)

// Orders are for the platform whose signature began them. Who buys, and where it goes, the person told the shop, not the platform.

type expectation struct {
	ID          string            `json:"id"`
	Lines       []lineCount       `json:"line_items"`
	Method      string            `json:"method_type"`
	Destination map[string]string `json:"destination"`
}

type lineCount struct {
	ID       string `json:"id"`
	Quantity int64  `json:"quantity"`
}

type fulfillmentEvent struct {
	ID          string      `json:"id"`
	At          time.Time   `json:"occurred_at"`
	Type        string      `json:"type"`
	Lines       []lineCount `json:"line_items"`
	Description string      `json:"description,omitempty"`
}

type fulfillment struct {
	Expectations []expectation      `json:"expectations"`
	Events       []fulfillmentEvent `json:"events"`
}

type accepted struct {
	Term term `json:"accepted_term"`
}

type order struct {
	UCP         protocol.UCPMeta      `json:"ucp"`
	ID          string                `json:"id"`
	Label       string                `json:"label"`
	Checkout    string                `json:"checkout_id"`
	Permalink   string                `json:"permalink_url"`
	Lines       []protocol.OrderLine  `json:"line_items"`
	Fulfillment fulfillment           `json:"fulfillment"`
	Adjustments []protocol.Adjustment `json:"adjustments"`
	Currency    string                `json:"currency"`
	Totals      []protocol.OrderTotal `json:"totals"`
	Payment     *accepted             `json:"payment,omitempty"`
	Messages    []message             `json:"messages,omitempty"`
	Untrusted   bool                  `json:"untrusted_content"`
}

// getOrder is get_order. The platform is authenticated by its signature.
func getOrder(ctx context.Context, x *exchange, _ *object) (any, error) {
	got, err := x.ask(ctx, protocol.UCPOrder.Operation, protocol.CheckoutDraft{Session: x.named()})
	if protocol.CodeOf(err) == protocol.NotFound {
		return x.failed("not_found", "there is no such order of the platform that signed this request"), nil
	}
	if err != nil {
		return nil, err
	}
	return orderOf(got.Placed, x.c.Base, x.meta(), x.terms), nil
}

// OrderBody is an order as the webhook of its platform gets it.
func OrderBody(o *protocol.PlatformOrder, base string) ([]byte, error) {
	meta := protocol.UCPMeta{Version: o.Release, Capabilities: map[string][]protocol.UCPEntity{protocol.UCPOrders: {{Version: o.Release}}}}
	return json.Marshal(orderOf(o, base, meta, false))
}

// eventTypes are UCP's words for what happens to an order.
var eventTypes = map[string]string{"packed": "processing", "sent": "shipped", "delivered": "delivered", "picked_up": "picked_up"}

func orderOf(o *protocol.PlatformOrder, base string, meta protocol.UCPMeta, withTerms bool) *order {
	out := &order{UCP: meta, ID: o.ID, Label: "Order at " + o.Shop, Checkout: o.Checkout, Permalink: base + "/order/" + o.ID, Lines: o.Lines,
		Fulfillment: fulfillment{[]expectation{}, []fulfillmentEvent{}}, Adjustments: []protocol.Adjustment{}, Currency: protocol.Rupee, Totals: o.Totals,
		Untrusted: true}
	if o.Test {
		out.Label = "TEST: " + out.Label
		out.Messages = []message{info("test", "", "TEST: no money moved")}
	}
	all, back := []lineCount{}, []protocol.AdjustedLine{}
	for i := range out.Lines {
		l := &out.Lines[i]
		all, back = append(all, lineCount{l.ID, l.Quantity.Total}), append(back, protocol.AdjustedLine{ID: l.ID, Quantity: -l.Quantity.Total})
		l.Totals = lineTotals(l.Item.Price * l.Quantity.Original)
		if o.State == protocol.OrderCanceled {
			l.Quantity.Total, l.Quantity.Fulfilled, l.Status = 0, 0, "removed"
		}
	}
	if o.State != protocol.OrderCanceled {
		method := map[string]string{protocol.ByDelivery: "shipping", protocol.ByPickup: "pickup"}[o.Way]
		out.Fulfillment.Expectations = []expectation{{"1", all, method, map[string]string{"address_country": "IN"}}}
	}
	for i, e := range o.Events {
		switch {
		case eventTypes[e.What] != "":
			id := fmt.Sprintf("%s-%d", e.What, e.At.UnixMilli())
			out.Fulfillment.Events = append(out.Fulfillment.Events, fulfillmentEvent{id, e.At.UTC(), eventTypes[e.What], all, e.Note})
		case e.What == "canceled" && o.State == protocol.OrderCanceled && i == lastOf(o.Events, "canceled"):
			out.Adjustments = append(out.Adjustments, protocol.Adjustment{ID: "canceled", Type: "cancellation", OccurredAt: e.At.UTC(), Status: "completed",
				LineItems: back, Description: e.Note})
		}
	}
	refund := func(id string, at time.Time, status string, paise int64) {
		out.Adjustments = append(out.Adjustments, protocol.Adjustment{ID: id, Type: "refund", OccurredAt: at.UTC(), Status: status,
			Totals: []protocol.OrderTotal{{Type: "total", Amount: -paise}}})
	}
	for _, r := range o.Refunds {
		at, status := o.Events[len(o.Events)-1].At, "pending"
		if r.DoneAt != nil {
			at, status = *r.DoneAt, "completed"
		}
		refund(r.ID, at, status, minor(r.Amount).Amount)
	}
	if o.Returned > 0 {
		refund("in-hand", o.Events[len(o.Events)-1].At, "completed", o.Returned)
	}
	if withTerms && o.Pay == protocol.PayLater {
		total := int64(0)
		for _, t := range o.Totals {
			if t.Type == "total" {
				total = t.Amount
			}
		}
		out.Payment = &accepted{term{protocol.PayLater, "Pay when it is handed over",
			[]schedule{{protocol.PayLater, "deferred", description{"Paid to the shop when the order is handed over."}, total}}}}
	}
	return out
}

func lastOf(all []protocol.OrderEvent, what string) (last int) {
	for i, e := range all {
		if e.What == what {
			last = i
		}
	}
	return last
}
