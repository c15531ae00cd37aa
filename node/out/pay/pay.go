// Package pay has the interface of the providers through which the person that a bidder acts for
// pays the owner of an attention board. The money goes to the owner directly: each provider is
// opened with the owner's own address or keys, and the node never holds an amount.
//
// A provider does no storage and no retries. It makes one attempt and returns an error that says
// whether another one is safe ([ErrTemporary]). Webhooks ([Provider.ParseWebhook]) and the poller
// ([Provider.FetchLink]) return the same [Event], so that one state machine takes both.
//
// Amounts are int64 paise. Ids of events and payments are unique within one account at one
// provider only: an owner who knows the webhook secret of an account can sign any id, so rows must
// be unique by account too, never by provider and id alone.
//
// The providers are in packages below: upi, sandbox, razorpay. Package paytest has the exercise
// that each of them passes, and a server that answers as Razorpay does.
package pay

import (
	"context"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"
)

// A LinkRequest asks for a payment link.
type LinkRequest struct {
	Ref         string // of [Ref]; the same Ref always gives the same link
	AmountPaise int64
	Currency    string    // INR
	Description string    // shown to the payer
	ExpiresAt   time.Time // the link takes no payment afterwards, to the second
	ReturnURL   string    // where the payer's browser returns to; "" for nowhere
	Notes       map[string]string
}

// A Link is where to pay.
type Link struct {
	ProviderID string // of the link at the provider
	URL        string // https page of the provider; "" when the node's own page takes the payment
	UPI        string // upi://pay link, also the text of the QR code; "" for none
	ExpiresAt  time.Time
}

// A Kind says what an event reports.
type Kind string

// Kinds of events.
const (
	Paid         Kind = "paid"          // one payment of the whole amount of the link, or more
	Partial      Kind = "partial"       // one payment of less than that
	Expired      Kind = "expired"       // the link takes no payment any more; a late one is still possible
	Cancelled    Kind = "cancelled"     // the same, after CancelLink or by the owner at the provider
	RefundDone   Kind = "refund_done"   // the money of a refund has left the owner's account
	RefundFailed Kind = "refund_failed" // it has not, and the provider does not try again
	Ignored      Kind = "ignored"       // well signed, and nothing to do
)

// An Event is one thing that a provider reports. Events come more than once, late, and in any order.
type Event struct {
	Provider    string // Provider.Name
	EventID     string // the same when the same report comes again
	Kind        Kind
	Ref         string // of the link; "" in refunds of providers that do not repeat it
	ProviderID  string // of the link; "" as Ref
	PaymentID   string // of Paid, Partial and refunds
	RefundID    string // of refunds
	Reference   string // the bank's reference of the payment (UTR, RRN), where the provider gives it
	AmountPaise int64  // of this payment or this refund, never a sum
	Currency    string
	OccurredAt  time.Time // the provider's clock
}

// A RefundStatus is what a provider says about a refund.
type RefundStatus string

// The states of a refund.
const (
	RefundPending RefundStatus = "pending"
	RefundOK      RefundStatus = "done"
	RefundNot     RefundStatus = "failed"
)

// A Refund is one refund at the provider.
type Refund struct {
	ID     string
	Status RefundStatus
}

// Caps are what a provider can do. A zero bound is none.
type Caps struct {
	MinExpiry, MaxExpiry time.Duration // of a link, from the moment of its creation
	MinPaise, MaxPaise   int64         // of a payment and of a refund
	Refunds              bool          // Refund and FetchRefund work; otherwise the owner refunds by hand
	Cancel               bool          // CancelLink works
	Webhook              bool          // ParseWebhook works
	Poll                 bool          // FetchLink returns events
	ManualConfirm        bool          // the owner confirms payments: the provider is a Confirmer
	Instant              bool          // CreateLink asks nobody
	Test                 bool          // no money moves: bids are labelled TEST and never federate
}

// A Provider is one account at one provider. It is safe for concurrent use. A method that Caps does
// not announce returns ErrUnsupported.
type Provider interface {
	// Name is the provider's name on the wire, in lower case: it is stored.
	Name() string
	Caps() Caps

	// Check asks the provider whether it accepts the account. Nothing is changed.
	Check(ctx context.Context) error

	// CreateLink returns the link for r.Ref, and makes it when there is none yet, so that it may be
	// called again after ErrTemporary. Errors: ErrAmount, ErrExpiry (r.ExpiresAt is too near or too
	// far), ErrRefUsed (the link of this Ref is closed, or has another amount).
	CreateLink(ctx context.Context, r LinkRequest) (Link, error)

	// FetchLink returns what has happened to a link: an event for each of its payments, refunded
	// ones too, and one for its end. Error: ErrUnknown.
	FetchLink(ctx context.Context, providerID string) ([]Event, error)

	// CancelLink closes a link. It returns nil when the link is cancelled or expired, before or
	// now; ErrPaid when it has a payment; ErrUnknown. A payment that the payer began before may
	// still arrive.
	CancelLink(ctx context.Context, providerID string) error

	// ParseWebhook returns the events of a webhook request. Errors: ErrSignature; ErrMalformed when
	// the signature is right and the body cannot be read.
	ParseWebhook(h http.Header, rawBody []byte) ([]Event, error)

	// Refund pays back paise of a payment. The same key is the same refund; its amount must not
	// change. Errors: ErrAmount, ErrUnknown, ErrRefused (more than is left of the payment).
	Refund(ctx context.Context, paymentID, idemKey string, paise int64) (Refund, error)

	// FetchRefund returns a refund's present state, for those whose webhook did not come.
	FetchRefund(ctx context.Context, refundID string) (Refund, error)
}

// A Confirmer is a Provider whose payments nobody reports: the payer gives the bank's reference and
// the owner confirms it.
type Confirmer interface {
	Provider

	// Confirm returns the event of a payment that the owner has seen at the bank. The PaymentID is
	// made from the UTR, so that one UTR is one payment.
	Confirm(ref, utr string, paise int64, at time.Time) (Event, error)
}

// Clip returns the first n characters of a text, for fields that providers limit.
func Clip(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	return strings.TrimSpace(string([]rune(s)[:n]))
}
