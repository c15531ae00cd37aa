package razorpay

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"net/url"
	"time"

	"stoa/node/out/pay"
	"stoa/protocol"
)

// MaxWebhook bounds the body of a webhook in bytes.
const MaxWebhook = 1 << 20

const (
	signatureHeader = "X-Razorpay-Signature"
	eventIDHeader   = "X-Razorpay-Event-Id"
)

// webhook is the body of one. Members that are not used are left out: there are dozens.
type webhook struct {
	Event     string `json:"event"`
	CreatedAt number `json:"created_at"`
	Payload   struct {
		Link    *entity[link]    `json:"payment_link"`
		Payment *entity[payment] `json:"payment"`
		Refund  *entity[refund]  `json:"refund"`
	} `json:"payload"`
}

type entity[T any] struct {
	Entity T `json:"entity"`
}

func (e *entity[T]) get() (zero T) {
	if e == nil {
		return zero
	}
	return e.Entity
}

// ParseWebhook implements pay.Provider. The signature is over the body as it came; the event's id is
// in a header that it does not cover, so that nothing may depend on the id alone.
func (p *Provider) ParseWebhook(h http.Header, rawBody []byte) ([]pay.Event, error) {
	if len(rawBody) > MaxWebhook || !pay.Authentic(p.a.WebhookSecrets, rawBody, h.Get(signatureHeader)) {
		return nil, pay.ErrSignature
	}
	var w webhook
	if err := json.Unmarshal(rawBody, &w); err != nil {
		return nil, &pay.Failure{Kind: pay.ErrMalformed, Text: "razorpay: the webhook cannot be read", Err: err}
	}
	e := pay.Event{Provider: Name, EventID: eventID(h, rawBody), Kind: pay.Ignored, Currency: protocol.Rupee, OccurredAt: unix(w.CreatedAt)}
	l, m, r := w.Payload.Link.get(), w.Payload.Payment.get(), w.Payload.Refund.get()
	if w.Payload.Link != nil {
		e.Ref, e.ProviderID, e.Currency = l.ReferenceID, l.ID, l.currency()
	}
	switch w.Event {
	case "payment_link.paid", "payment_link.partially_paid":
		e.Kind = kindOf(l, m.Amount)
		e.PaymentID, e.AmountPaise, e.Currency = m.ID, int64(m.Amount), currency(m.Currency, l.Currency)
		e.Reference = cmp.Or(m.AcquirerData.RRN, m.AcquirerData.Bank)
		if at := unix(m.CreatedAt); at.After(e.OccurredAt) { // some events carry the time of the link
			e.OccurredAt = at
		}
	case "payment_link.expired":
		e.Kind = pay.Expired
	case "payment_link.cancelled":
		e.Kind = pay.Cancelled
	case "refund.processed", "refund.failed":
		e.Kind = pay.RefundDone
		if w.Event == "refund.failed" {
			e.Kind = pay.RefundFailed
		}
		e.PaymentID, e.RefundID, e.AmountPaise = cmp.Or(r.PaymentID, m.ID), r.ID, int64(r.Amount)
		e.Currency = currency(r.Currency, m.Currency)
	}
	if !complete(e) {
		return nil, pay.Fail(pay.ErrMalformed, "razorpay: the webhook %.40q is incomplete", w.Event)
	}
	return []pay.Event{e}, nil
}

// complete reports whether an event has what its kind promises. Its ids become parts of paths.
func complete(e pay.Event) bool {
	switch e.Kind {
	case pay.Paid, pay.Partial:
		return isID(e.ProviderID) && isID(e.PaymentID) && e.AmountPaise > 0
	case pay.Expired, pay.Cancelled:
		return isID(e.ProviderID)
	case pay.RefundDone, pay.RefundFailed:
		return isID(e.PaymentID) && isID(e.RefundID) && e.AmountPaise > 0
	}
	return true
}

// kindOf says what one payment is for a link. The name of the event is not used: the last part of a
// partial payment is "paid" too.
func kindOf(l link, amount number) pay.Kind {
	if amount < l.Amount {
		return pay.Partial
	}
	return pay.Paid
}

// eventID is the vendor's id of an event, or the hash of its body where it is missing or strange.
func eventID(h http.Header, raw []byte) string {
	if id := h.Get(eventIDHeader); isID(id) {
		return id
	}
	sum := sha256.Sum256(raw)
	return "body_" + hex.EncodeToString(sum[:16])
}

// FetchLink implements pay.Provider. Ids of events are made of what they report, so that polling
// again reports the same.
func (p *Provider) FetchLink(ctx context.Context, providerID string) ([]pay.Event, error) {
	l, err := p.fetch(ctx, providerID)
	if err != nil {
		return nil, err
	}
	if l.ID != providerID {
		return nil, pay.Fail(pay.ErrTemporary, "razorpay: the answer has another link")
	}
	var events []pay.Event
	add := func(e pay.Event) {
		e.Provider, e.Ref, e.ProviderID, e.Currency = Name, l.ReferenceID, l.ID, l.currency()
		events = append(events, e)
	}
	for _, m := range l.Payments {
		if !m.took() || !isID(m.PaymentID) || m.Amount == 0 {
			continue
		}
		add(pay.Event{
			EventID: "poll_" + m.PaymentID, Kind: kindOf(l, m.Amount), PaymentID: m.PaymentID, AmountPaise: int64(m.Amount),
			OccurredAt: unix(max(m.CreatedAt, m.UpdatedAt)),
		})
	}
	if len(events) == 0 && l.AmountPaid > 0 { // without the payment's id nothing could be refunded
		return nil, pay.Fail(pay.ErrTemporary, "razorpay: the link is paid and its payment is not listed yet")
	}
	switch l.Status {
	case "expired":
		add(pay.Event{EventID: "poll_expired_" + l.ID, Kind: pay.Expired, OccurredAt: unix(cmp.Or(l.ExpiredAt, l.ExpireBy))})
	case "cancelled":
		add(pay.Event{EventID: "poll_cancelled_" + l.ID, Kind: pay.Cancelled, OccurredAt: unix(cmp.Or(l.CancelledAt, l.UpdatedAt))})
	}
	return events, nil
}

// A Callback is what the payer's browser brings back. It is no proof of a payment, since the payer
// may send an old one again: it is a reason to fetch the link now.
type Callback struct{ LinkID, Ref, Status, PaymentID string }

// Callback returns the callback in the query of a return address, or pay.ErrSignature.
func (p *Provider) Callback(q url.Values) (Callback, error) {
	c := Callback{
		LinkID: q.Get("razorpay_payment_link_id"), Ref: q.Get("razorpay_payment_link_reference_id"),
		Status: q.Get("razorpay_payment_link_status"), PaymentID: q.Get("razorpay_payment_id"),
	}
	signed := c.LinkID + "|" + c.Ref + "|" + c.Status + "|" + c.PaymentID
	if !isID(c.LinkID) || !pay.Authentic([]string{p.a.KeySecret}, []byte(signed), q.Get("razorpay_signature")) {
		return Callback{}, pay.ErrSignature
	}
	return c, nil
}

func unix(n number) time.Time { return time.Unix(int64(n), 0).UTC() }
