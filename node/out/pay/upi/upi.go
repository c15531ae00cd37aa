// Package upi is the payment provider of an owner who has a UPI address and nothing else. The payer
// scans a QR code with a UPI app; bank and payer know of the payment, the node does not. So the
// payer enters the bank's reference (UTR) and the owner, who sees the payment at the bank, confirms
// it. Refunds are made by the owner by hand. Nothing dials out.
package upi

import (
	"context"
	"net/http"
	"strings"
	"time"

	"stoa/node/out/pay"
	"stoa/protocol"
)

// Name is the provider's name.
const Name = "upi"

// maxPaise is what banks let a person pay to a person at once: ₹1,00,000.
const maxPaise = 1_00_000_00

// A Provider takes payments to one UPI address.
type Provider struct {
	vpa, name string
	now       func() time.Time
}

var _ pay.Confirmer = (*Provider)(nil)

// New returns the provider of a payee. The payer's app shows name; now nil is the system's clock.
func New(vpa, name string, now func() time.Time) (*Provider, error) {
	name = strings.Join(strings.Fields(name), " ")
	if !protocol.IsVPA(vpa) {
		return nil, pay.Fail(pay.ErrAccount, "%q is not a UPI address such as asha@okbank", vpa)
	}
	if name == "" {
		return nil, pay.Fail(pay.ErrAccount, "a UPI link needs the payee's name")
	}
	if now == nil {
		now = time.Now
	}
	return &Provider{vpa: vpa, name: name, now: now}, nil
}

// Name implements pay.Provider.
func (p *Provider) Name() string { return Name }

// Caps implements pay.Provider.
func (p *Provider) Caps() pay.Caps {
	return pay.Caps{MinPaise: 100, MaxPaise: maxPaise, ManualConfirm: true, Instant: true}
}

// Check implements pay.Provider. No one can be asked whether the address is in use.
func (p *Provider) Check(context.Context) error { return nil }

// VPA returns the payee's address, which the page shows to be typed.
func (p *Provider) VPA() string { return p.vpa }

// CreateLink implements pay.Provider. The link has no URL: the node's own page shows it.
func (p *Provider) CreateLink(_ context.Context, r pay.LinkRequest) (pay.Link, error) {
	if err := p.Caps().Admit(r, p.now()); err != nil {
		return pay.Link{}, err
	}
	ref := Reference(r.Ref)
	if len(ref) == 0 || len(ref) > maxReference {
		return pay.Link{}, pay.Fail(pay.ErrRefused, "the reference must have 1 to %d letters and digits", maxReference)
	}
	return pay.Link{
		ProviderID: ref, ExpiresAt: r.ExpiresAt,
		UPI: link(p.vpa, p.name, ref, r.Description, r.AmountPaise),
	}, nil
}

// Confirm implements pay.Confirmer.
func (p *Provider) Confirm(ref, utr string, paise int64, at time.Time) (pay.Event, error) {
	if utr = protocol.FoldUTR(utr); !protocol.IsUTR(utr) {
		return pay.Event{}, pay.Fail(pay.ErrRefused, "the bank's reference of a UPI payment (UTR) has 12 digits")
	}
	if paise < 1 || paise > protocol.MaxMinor {
		return pay.Event{}, pay.Fail(pay.ErrAmount, "%s is not an amount that was paid", protocol.FormatRupees(paise))
	}
	return pay.Event{
		Provider: Name, EventID: "utr:" + utr, Kind: pay.Paid, Ref: ref, ProviderID: Reference(ref), PaymentID: "utr:" + utr,
		Reference: utr, AmountPaise: paise, Currency: protocol.Rupee, OccurredAt: at,
	}, nil
}

// FetchLink implements pay.Provider: there is nobody to ask.
func (p *Provider) FetchLink(context.Context, string) ([]pay.Event, error) {
	return nil, pay.ErrUnsupported
}

// CancelLink implements pay.Provider: a QR code that was shown can be paid for ever.
func (p *Provider) CancelLink(context.Context, string) error { return pay.ErrUnsupported }

// ParseWebhook implements pay.Provider.
func (p *Provider) ParseWebhook(http.Header, []byte) ([]pay.Event, error) {
	return nil, pay.ErrUnsupported
}

// Refund implements pay.Provider.
func (p *Provider) Refund(context.Context, string, string, int64) (pay.Refund, error) {
	return pay.Refund{}, pay.ErrUnsupported
}

// FetchRefund implements pay.Provider.
func (p *Provider) FetchRefund(context.Context, string) (pay.Refund, error) {
	return pay.Refund{}, pay.ErrUnsupported
}
