// Package sandbox is a payment provider that moves no money, for development. A link leads to a page
// of this node with a button for each thing that a payer can do; the node sends what a real provider
// would send, signed, to its own webhook, so that the same code runs. It keeps nothing: a link's id
// says its reference, amount and end, so that restarts and several processes do not matter.
//
// It is made only where the node's settings enable it. Its bids are labelled TEST and never federate.
package sandbox

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"stoa/node/out/pay"
	"stoa/protocol"
)

// Name is the provider's name.
const Name = "sandbox"

// Options of a sandbox.
type Options struct {
	Enabled bool             // the node's setting; New fails without it
	Secret  string           // signs the webhooks of one account, 32 bytes or more
	Page    string           // address of the page with the buttons, without the link's id
	Now     func() time.Time // nil for the system's clock
}

// A Provider is one account at the sandbox.
type Provider struct {
	secret, page string
	now          func() time.Time
}

var _ pay.Provider = (*Provider)(nil)

// New returns an account. It fails with pay.ErrDisabled where the sandbox is not enabled.
func New(o Options) (*Provider, error) {
	if !o.Enabled {
		return nil, pay.ErrDisabled
	}
	if len(o.Secret) < 32 {
		return nil, pay.Fail(pay.ErrAccount, "the sandbox's secret must have 32 bytes or more")
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Provider{secret: o.Secret, page: strings.TrimSuffix(o.Page, "/"), now: o.Now}, nil
}

// Name implements pay.Provider.
func (p *Provider) Name() string { return Name }

// Caps implements pay.Provider.
func (p *Provider) Caps() pay.Caps {
	return pay.Caps{MinPaise: 100, Refunds: true, Cancel: true, Webhook: true, Instant: true, Test: true}
}

// Check implements pay.Provider.
func (p *Provider) Check(context.Context) error { return nil }

// CreateLink implements pay.Provider.
func (p *Provider) CreateLink(_ context.Context, r pay.LinkRequest) (pay.Link, error) {
	if err := p.Caps().Admit(r, p.now()); err != nil {
		return pay.Link{}, err
	}
	l := ticket{r.Ref, r.AmountPaise, time.Unix(r.ExpiresAt.Unix(), 0)}
	return pay.Link{ProviderID: l.id(), URL: p.page + "/" + url.PathEscape(l.id()), ExpiresAt: l.until}, nil
}

// FetchLink implements pay.Provider: the sandbox remembers no payments.
func (p *Provider) FetchLink(context.Context, string) ([]pay.Event, error) {
	return nil, pay.ErrUnsupported
}

// CancelLink implements pay.Provider. A payer who presses a button afterwards pays late.
func (p *Provider) CancelLink(_ context.Context, providerID string) error {
	_, err := parseTicket(providerID)
	return err
}

// Refund implements pay.Provider: it is done at once.
func (p *Provider) Refund(_ context.Context, paymentID, idemKey string, paise int64) (pay.Refund, error) {
	if err := p.Caps().AdmitRefund(paise); err != nil {
		return pay.Refund{}, err
	}
	if !strings.HasPrefix(paymentID, paymentPrefix) {
		return pay.Refund{}, pay.Fail(pay.ErrUnknown, "the sandbox has no payment %q", paymentID)
	}
	sum := sha256.Sum256([]byte(paymentID + "\n" + idemKey))
	return pay.Refund{ID: refundPrefix + hex.EncodeToString(sum[:8]), Status: pay.RefundOK}, nil
}

// FetchRefund implements pay.Provider.
func (p *Provider) FetchRefund(_ context.Context, refundID string) (pay.Refund, error) {
	if !strings.HasPrefix(refundID, refundPrefix) {
		return pay.Refund{}, pay.Fail(pay.ErrUnknown, "the sandbox has no refund %q", refundID)
	}
	return pay.Refund{ID: refundID, Status: pay.RefundOK}, nil
}

const (
	linkPrefix    = "sbx_"
	paymentPrefix = "sbxpay_"
	refundPrefix  = "sbxref_"
)

// A ticket is what a link's id says.
type ticket struct {
	ref   string
	paise int64
	until time.Time
}

// id is sbx_<paise>_<end>_<ref>: the reference is last because it has characters of its own.
func (t ticket) id() string {
	return fmt.Sprintf("%s%d_%d_%s", linkPrefix, t.paise, t.until.Unix(), t.ref)
}

func parseTicket(id string) (ticket, error) {
	rest, ok := strings.CutPrefix(id, linkPrefix)
	paise, rest, _ := strings.Cut(rest, "_")
	until, ref, _ := strings.Cut(rest, "_")
	amount, err1 := strconv.ParseInt(paise, 10, 64)
	seconds, err2 := strconv.ParseInt(until, 10, 64)
	t := ticket{ref, amount, time.Unix(seconds, 0)}
	if !ok || err1 != nil || err2 != nil || amount < 1 || amount > protocol.MaxMinor || ref == "" || len(ref) > pay.MaxRef || t.id() != id {
		return ticket{}, pay.Fail(pay.ErrUnknown, "the sandbox has no such link")
	}
	return t, nil
}
