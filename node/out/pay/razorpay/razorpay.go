// Package razorpay is a client of Razorpay's Payment Links with an owner's own keys: links that end
// with the hold, webhooks, refunds. It was written against the vendor's documentation of April 2026.
// The vendor's Go library is not used: it has no contexts, loses the HTTP status (a 503 becomes a bad
// request, so that nothing can be retried safely) and does not compare signatures in constant time.
package razorpay

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"stoa/node/out/pay"
	"stoa/protocol"
)

// Name is the provider's name.
const Name = "razorpay"

const defaultBase = "https://api.razorpay.com"

// Bounds of the vendor. Links of less than 15 minutes and of more than six months are refused.
const (
	minExpiry      = 15 * time.Minute
	maxExpiry      = 180 * 24 * time.Hour
	maxDescription = 2048 // characters
	maxNotes       = 15
	maxNote        = 255 // characters of a name or a value
	minIdemKey     = 10
	maxIdemKey     = 64
)

// An Account is an owner's account and the way to the vendor.
type Account struct {
	KeyID, KeySecret string
	WebhookSecrets   []string         // newest first; retries are signed with the secret of the first attempt
	Client           *http.Client     // of node/out/outbound
	Base             string           // of the API: for tests only, never an owner's setting
	Now              func() time.Time // nil for the system's clock
}

// A Provider is one account. It is safe for concurrent use.
type Provider struct{ a Account }

var _ pay.Provider = (*Provider)(nil)

// New returns the provider of an account. Without webhook secrets every webhook is refused, and
// only the poller sees payments.
func New(a Account) (*Provider, error) {
	if a.Base == "" {
		a.Base = defaultBase
	}
	if a.Now == nil {
		a.Now = time.Now
	}
	switch {
	case !isKeyID(a.KeyID):
		return nil, pay.Fail(pay.ErrAccount, "a Razorpay key id begins with rzp_live_ or rzp_test_")
	case a.KeySecret == "" || strings.ContainsFunc(a.KeySecret, func(r rune) bool { return r <= ' ' || r > '~' }):
		return nil, pay.Fail(pay.ErrAccount, "a Razorpay key secret has visible ASCII characters only")
	case len(a.WebhookSecrets) > protocol.MaxWebhookSecrets:
		return nil, pay.Fail(pay.ErrAccount, "at most %d webhook secrets", protocol.MaxWebhookSecrets)
	case a.Client == nil:
		return nil, pay.Fail(pay.ErrAccount, "no HTTP client")
	}
	for _, s := range a.WebhookSecrets {
		if s == "" {
			return nil, pay.Fail(pay.ErrAccount, "an empty webhook secret")
		}
	}
	return &Provider{a}, nil
}

func isKeyID(s string) bool {
	return (strings.HasPrefix(s, "rzp_live_") || strings.HasPrefix(s, "rzp_test_")) && isID(s)
}

// Name implements pay.Provider.
func (p *Provider) Name() string { return Name }

// Caps implements pay.Provider. With test keys no money moves.
func (p *Provider) Caps() pay.Caps {
	return pay.Caps{
		MinExpiry: minExpiry, MaxExpiry: maxExpiry, MinPaise: 100, Refunds: true, Cancel: true, Poll: true,
		Webhook: true, Test: strings.HasPrefix(p.a.KeyID, "rzp_test_"),
	}
}

// Check implements pay.Provider: it lists one link.
func (p *Provider) Check(ctx context.Context) error {
	return p.call(ctx, http.MethodGet, "/v1/payment_links?count=1", nil, nil, &struct{}{})
}

// CreateLink implements pay.Provider. The vendor takes each reference once. When the reference is
// taken, or it is too late for a new link, an earlier attempt may have got further than its answer,
// and the link is looked up.
func (p *Provider) CreateLink(ctx context.Context, r pay.LinkRequest) (pay.Link, error) {
	now := p.a.Now()
	if err := p.Caps().Admit(r, now); errors.Is(err, pay.ErrExpiry) && r.ExpiresAt.After(now) {
		return p.earlier(ctx, r, err)
	} else if err != nil {
		return pay.Link{}, err
	}
	in := newLink{
		Amount: r.AmountPaise, Currency: r.Currency, ReferenceID: r.Ref, Description: pay.Clip(r.Description, maxDescription),
		ExpireBy: r.ExpiresAt.Unix(), Notes: notes(r.Notes),
	}
	if r.ReturnURL != "" {
		in.CallbackURL, in.CallbackMethod = r.ReturnURL, "get"
	}
	var l link
	err := p.call(ctx, http.MethodPost, "/v1/payment_links", nil, in, &l)
	switch {
	case says(err, "already attempted"):
		return p.earlier(ctx, r, pay.Fail(pay.ErrTemporary, "razorpay: the link of %s exists and is not listed yet", r.Ref))
	case says(err, "15 minutes"):
		return pay.Link{}, &pay.Failure{Kind: pay.ErrExpiry, Status: http.StatusBadRequest, Text: "razorpay: the link would expire too soon", Err: err}
	case err != nil:
		return pay.Link{}, err
	}
	return l.usable(r)
}

// usable returns the link to show, if it is the one that was asked for and can be paid or is paid.
func (l link) usable(r pay.LinkRequest) (pay.Link, error) {
	u, err := url.Parse(l.ShortURL)
	switch {
	case l.Status == "cancelled" || l.Status == "expired":
		return pay.Link{}, pay.Fail(pay.ErrRefUsed, "razorpay: the link of %s is %s", r.Ref, l.Status)
	case l.ReferenceID != r.Ref || int64(l.Amount) != r.AmountPaise || l.currency() != r.Currency:
		return pay.Link{}, pay.Fail(pay.ErrRefUsed, "razorpay: the link of %s has another amount", r.Ref)
	case !isID(l.ID) || err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil:
		return pay.Link{}, pay.Fail(pay.ErrTemporary, "razorpay: the answer has no link")
	}
	return pay.Link{ProviderID: l.ID, URL: l.ShortURL, ExpiresAt: time.Unix(int64(l.ExpireBy), 0)}, nil
}

// earlier returns the link that an earlier attempt made, or the error none when there is none.
func (p *Provider) earlier(ctx context.Context, r pay.LinkRequest, none error) (pay.Link, error) {
	var found struct {
		Links []link `json:"payment_links"`
	}
	if err := p.call(ctx, http.MethodGet, "/v1/payment_links?reference_id="+url.QueryEscape(r.Ref), nil, nil, &found); err != nil {
		return pay.Link{}, err
	}
	for _, l := range found.Links {
		if l.ReferenceID == r.Ref { // the vendor's filter is not trusted to be exact
			return l.usable(r)
		}
	}
	return pay.Link{}, none
}

// CancelLink implements pay.Provider.
func (p *Provider) CancelLink(ctx context.Context, providerID string) error {
	if !isID(providerID) {
		return pay.Fail(pay.ErrUnknown, "razorpay: no such link")
	}
	err := p.call(ctx, http.MethodPost, "/v1/payment_links/"+providerID+"/cancel", nil, struct{}{}, &link{})
	if !refused(err) {
		return err
	}
	l, fetchErr := p.fetch(ctx, providerID) // only a created link is cancelled: look at what it is
	switch {
	case fetchErr != nil:
		return fetchErr
	case l.Status == "cancelled" || l.Status == "expired":
		return nil
	case l.Status == "paid" || l.Status == "partially_paid":
		return pay.Fail(pay.ErrPaid, "razorpay: the link has a payment")
	}
	return err
}

func (p *Provider) fetch(ctx context.Context, providerID string) (l link, err error) {
	if !isID(providerID) {
		return link{}, pay.Fail(pay.ErrUnknown, "razorpay: no such link")
	}
	return l, p.call(ctx, http.MethodGet, "/v1/payment_links/"+providerID, nil, nil, &l)
}

// Refund implements pay.Provider. A key must have 10 to 64 letters, digits, hyphens or underscores.
func (p *Provider) Refund(ctx context.Context, paymentID, idemKey string, paise int64) (pay.Refund, error) {
	if err := p.Caps().AdmitRefund(paise); err != nil {
		return pay.Refund{}, err
	}
	switch {
	case !isID(paymentID):
		return pay.Refund{}, pay.Fail(pay.ErrUnknown, "razorpay: no such payment")
	case len(idemKey) < minIdemKey || len(idemKey) > maxIdemKey || !isID(strings.ReplaceAll(idemKey, "-", "_")):
		return pay.Refund{}, pay.Fail(pay.ErrRefused, "razorpay: a refund's key has %d to %d letters, digits, - or _", minIdemKey, maxIdemKey)
	}
	var r refund
	in := newRefund{Amount: paise, Speed: "normal"}
	if err := p.call(ctx, http.MethodPost, "/v1/payments/"+paymentID+"/refund", http.Header{"X-Refund-Idempotency": {idemKey}}, in, &r); err != nil {
		return pay.Refund{}, err
	}
	return r.refund()
}

// FetchRefund implements pay.Provider.
func (p *Provider) FetchRefund(ctx context.Context, refundID string) (pay.Refund, error) {
	if !isID(refundID) {
		return pay.Refund{}, pay.Fail(pay.ErrUnknown, "razorpay: no such refund")
	}
	var r refund
	if err := p.call(ctx, http.MethodGet, "/v1/refunds/"+refundID, nil, nil, &r); err != nil {
		return pay.Refund{}, err
	}
	return r.refund()
}

// isID reports whether s can be part of a path: no id of the vendor has other characters.
func isID(s string) bool {
	if s == "" || len(s) > 64 {
		return false
	}
	return !strings.ContainsFunc(s, func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z') && r != '_'
	})
}

func notes(in map[string]string) map[string]string {
	out := map[string]string{}
	for k, v := range in {
		if len(out) < maxNotes {
			out[pay.Clip(k, maxNote)] = pay.Clip(v, maxNote)
		}
	}
	return out
}
