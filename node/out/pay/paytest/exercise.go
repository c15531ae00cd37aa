// Package paytest has what tests of payments need: the exercise that every provider passes, and a
// server that answers as Razorpay does.
package paytest

import (
	"bytes"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/node/out/pay"
	"stoa/protocol"
	"stoa/protocol/must"
)

// A Rail is a provider under test with the payer's side of it.
type Rail struct {
	Provider pay.Provider
	Now      func() time.Time // the provider's clock

	// Pay pays paise of a link and returns the webhooks that the provider makes for it. It is nil
	// where the owner confirms payments.
	Pay func(t *testing.T, l pay.Link, paise int64) []Hook
}

// A Hook is one webhook request.
type Hook struct {
	Header http.Header
	Body   []byte
}

const bid = "bid_01j0000000000000000000000a" // a bid's id has this length

// Exercise runs what every provider must do. open returns a new account without links.
func Exercise(t *testing.T, open func(t *testing.T) Rail) {
	for name, check := range map[string]func(*testing.T, Rail){
		"caps": exerciseCaps, "links": exerciseLinks, "refused links": exerciseRefused, "what it cannot do": exerciseUnsupported,
		"payment": exercisePayment, "forged webhook": exerciseForged, "refund": exerciseRefund, "cancel": exerciseCancel,
		"confirm": exerciseConfirm,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check(t, open(t))
		})
	}
}

// Request returns a request for a link of ₹1,500 that ends in 20 minutes.
func (r Rail) Request(n int) pay.LinkRequest {
	return pay.LinkRequest{
		Ref: pay.Ref(bid, n), AmountPaise: 1500_00, Currency: protocol.Rupee, Description: "Attention bid", ReturnURL: "https://n1.example/pay/t",
		ExpiresAt: r.Now().Add(20 * time.Minute).Truncate(time.Second), Notes: map[string]string{"bid": bid},
	}
}

func (r Rail) link(t *testing.T, n int) pay.Link {
	t.Helper()
	l := must.Get(r.Provider.CreateLink(t.Context(), r.Request(n)))(t)
	return l
}

// paid makes a link, pays it and returns the event of the first webhook that is not ignored.
func (r Rail) paid(t *testing.T, paise int64) (pay.Link, Hook, pay.Event) {
	t.Helper()
	l := r.link(t, 1)
	for _, h := range r.Pay(t, l, paise) {
		events := must.Get(r.Provider.ParseWebhook(h.Header, h.Body))(t)
		for _, e := range events {
			if e.Kind != pay.Ignored {
				return l, h, e
			}
		}
	}
	require.Fail(t, "no webhook reports the payment")
	return l, Hook{}, pay.Event{}
}

func exerciseCaps(t *testing.T, r Rail) {
	name, caps := r.Provider.Name(), r.Provider.Caps()
	require.Regexp(t, "^[a-z]{2,20}$", name)
	require.NoError(t, r.Provider.Check(t.Context()))
	require.NotEqual(t, caps.Webhook || caps.Poll, caps.ManualConfirm, "a payment is reported, or the owner confirms it")
	require.LessOrEqual(t, caps.MinExpiry, 20*time.Minute, "a hold of 20 minutes has a link")
	require.LessOrEqual(t, caps.MinPaise, int64(100), "the least floor of a board can be paid")
	_, confirms := r.Provider.(pay.Confirmer)
	require.Equal(t, caps.ManualConfirm, confirms)
}

func exerciseLinks(t *testing.T, r Rail) {
	first := r.link(t, 1)
	require.NotEmpty(t, first.ProviderID)
	require.LessOrEqual(t, len(first.ProviderID), 120)
	require.WithinDuration(t, r.Request(1).ExpiresAt, first.ExpiresAt, 0)
	require.True(t, strings.HasPrefix(first.URL, "https://") || first.URL == "" && strings.HasPrefix(first.UPI, "upi://pay?"), "%+v", first)
	require.Equal(t, first, r.link(t, 1), "the same reference is the same link")
	require.NotEqual(t, first.ProviderID, r.link(t, 2).ProviderID)
}

func exerciseRefused(t *testing.T, r Rail) {
	for name, c := range map[string]struct {
		want   error
		change func(*pay.LinkRequest)
	}{
		"no amount":         {pay.ErrAmount, func(q *pay.LinkRequest) { q.AmountPaise = 0 }},
		"below the least":   {pay.ErrAmount, func(q *pay.LinkRequest) { q.AmountPaise = 99 }},
		"negative":          {pay.ErrAmount, func(q *pay.LinkRequest) { q.AmountPaise = -1500_00 }},
		"more than any":     {pay.ErrAmount, func(q *pay.LinkRequest) { q.AmountPaise = protocol.MaxMinor + 1 }},
		"other currency":    {pay.ErrAmount, func(q *pay.LinkRequest) { q.Currency = "USD" }},
		"already over":      {pay.ErrExpiry, func(q *pay.LinkRequest) { q.ExpiresAt = r.Now() }},
		"no reference":      {pay.ErrRefused, func(q *pay.LinkRequest) { q.Ref = "" }},
		"long reference":    {pay.ErrRefused, func(q *pay.LinkRequest) { q.Ref = strings.Repeat("a", pay.MaxRef+1) }},
		"strange reference": {pay.ErrRefused, func(q *pay.LinkRequest) { q.Ref = "../bid&x=1" }},
	} {
		q := r.Request(1)
		c.change(&q)
		_, err := r.Provider.CreateLink(t.Context(), q)
		require.ErrorIs(t, err, c.want, name)
		require.NotErrorIs(t, err, pay.ErrTemporary, name)
	}
}

func exerciseUnsupported(t *testing.T, r Rail) {
	caps, l := r.Provider.Caps(), r.link(t, 1)
	same := func(can bool, err error, method string) {
		t.Helper()
		require.NotEqual(t, can, errors.Is(err, pay.ErrUnsupported), "%s: caps say %v, answer is %v", method, can, err)
	}
	_, err := r.Provider.FetchLink(t.Context(), l.ProviderID)
	same(caps.Poll, err, "FetchLink")
	_, err = r.Provider.ParseWebhook(http.Header{}, []byte("{}"))
	same(caps.Webhook, err, "ParseWebhook")
	_, err = r.Provider.Refund(t.Context(), "none", "key-0123456789", 100)
	same(caps.Refunds, err, "Refund")
	_, err = r.Provider.FetchRefund(t.Context(), "none")
	same(caps.Refunds, err, "FetchRefund")
	same(caps.Cancel, r.Provider.CancelLink(t.Context(), l.ProviderID), "CancelLink")
}

func exercisePayment(t *testing.T, r Rail) {
	if r.Pay == nil {
		t.Skip("the owner confirms payments")
	}
	q := r.Request(1)
	l, h, e := r.paid(t, q.AmountPaise)
	again := must.Get(r.Provider.ParseWebhook(h.Header, h.Body))(t)
	require.Contains(t, again, e, "a webhook that is delivered again has the same events")
	require.NotEmpty(t, e.EventID)
	require.NotEmpty(t, e.PaymentID)
	require.WithinDuration(t, r.Now(), e.OccurredAt, time.Minute)
	require.Equal(t, pay.Event{
		Provider: r.Provider.Name(), EventID: e.EventID, Kind: pay.Paid, Ref: q.Ref, ProviderID: l.ProviderID, PaymentID: e.PaymentID,
		Reference: e.Reference, AmountPaise: q.AmountPaise, Currency: protocol.Rupee, OccurredAt: e.OccurredAt,
	}, e)
	if !r.Provider.Caps().Poll {
		return
	}
	polled := must.Get(r.Provider.FetchLink(t.Context(), l.ProviderID))(t)
	require.Len(t, polled, 1)
	require.Equal(t, e.PaymentID, polled[0].PaymentID, "poller and webhook name one payment")
	got := polled[0]
	require.Equal(t, []any{e.Kind, e.Ref, e.ProviderID, e.AmountPaise, e.Currency}, []any{got.Kind, got.Ref, got.ProviderID, got.AmountPaise, got.Currency})
	same := must.Get(r.Provider.FetchLink(t.Context(), l.ProviderID))(t)
	require.Equal(t, polled, same, "polling again finds the same events")
}

// exerciseForged changes each byte of a good webhook's body and signature in turn.
func exerciseForged(t *testing.T, r Rail) {
	if !r.Provider.Caps().Webhook {
		t.Skip("no webhook")
	}
	_, h, _ := r.paid(t, r.Request(1).AmountPaise)
	for i := range h.Body {
		forged := bytes.Clone(h.Body)
		forged[i] ^= 1
		_, err := r.Provider.ParseWebhook(h.Header, forged)
		require.ErrorIs(t, err, pay.ErrSignature, "byte %d of the body", i)
	}
	_, err := r.Provider.ParseWebhook(h.Header, append(bytes.Clone(h.Body), '\n'))
	require.ErrorIs(t, err, pay.ErrSignature, "a byte more")
	_, err = r.Provider.ParseWebhook(http.Header{}, h.Body)
	require.ErrorIs(t, err, pay.ErrSignature, "no signature")
	refused := 0
	for field := range h.Header {
		for _, value := range []string{"", h.Header.Get(field)[1:], "0" + h.Header.Get(field)[1:] + "0"} {
			other := h.Header.Clone()
			other.Set(field, value)
			if _, err := r.Provider.ParseWebhook(other, h.Body); err != nil {
				require.ErrorIs(t, err, pay.ErrSignature, "%s: %q", field, value)
				refused++
			}
		}
	}
	require.GreaterOrEqual(t, refused, 3, "a changed signature is refused")
}

func exerciseRefund(t *testing.T, r Rail) {
	if !r.Provider.Caps().Refunds {
		t.Skip("the owner refunds by hand")
	}
	_, _, e := r.paid(t, r.Request(1).AmountPaise)
	const key = "refund_01j0000000000000000000000a-1"
	first, err := r.Provider.Refund(t.Context(), e.PaymentID, key, 1000_00)
	require.NoError(t, err)
	require.NotEmpty(t, first.ID)
	require.Contains(t, []pay.RefundStatus{pay.RefundPending, pay.RefundOK}, first.Status)
	again := must.Get(r.Provider.Refund(t.Context(), e.PaymentID, key, 1000_00))(t)
	require.Equal(t, first.ID, again.ID, "the same key is the same refund")
	rest := must.Get(r.Provider.Refund(t.Context(), e.PaymentID, key+"b", 500_00))(t)
	require.NotEqual(t, first.ID, rest.ID)
	fetched := must.Get(r.Provider.FetchRefund(t.Context(), first.ID))(t)
	require.Equal(t, first.ID, fetched.ID)
	_, err = r.Provider.Refund(t.Context(), e.PaymentID, key+"c", 99)
	require.ErrorIs(t, err, pay.ErrAmount)
	_, err = r.Provider.Refund(t.Context(), "pay_none", key+"d", 100)
	require.ErrorIs(t, err, pay.ErrUnknown)
	_, err = r.Provider.FetchRefund(t.Context(), "rfnd_none")
	require.ErrorIs(t, err, pay.ErrUnknown)
}

func exerciseCancel(t *testing.T, r Rail) {
	if !r.Provider.Caps().Cancel {
		t.Skip("links cannot be cancelled")
	}
	l := r.link(t, 1)
	require.NoError(t, r.Provider.CancelLink(t.Context(), l.ProviderID))
	require.NoError(t, r.Provider.CancelLink(t.Context(), l.ProviderID), "again")
	require.ErrorIs(t, r.Provider.CancelLink(t.Context(), "plink_none"), pay.ErrUnknown)
}

func exerciseConfirm(t *testing.T, r Rail) {
	p, ok := r.Provider.(pay.Confirmer)
	if !ok {
		t.Skip("payments are reported")
	}
	q, at := r.Request(1), r.Now()
	e, err := p.Confirm(q.Ref, " 4321 9876 0155 ", q.AmountPaise, at)
	require.NoError(t, err)
	require.Equal(t, pay.Event{
		Provider: p.Name(), EventID: e.EventID, Kind: pay.Paid, Ref: q.Ref, ProviderID: r.link(t, 1).ProviderID, PaymentID: e.PaymentID,
		Reference: "432198760155", AmountPaise: q.AmountPaise, Currency: protocol.Rupee, OccurredAt: at,
	}, e)
	other := must.Get(p.Confirm(pay.Ref(bid, 2), "432198760155", q.AmountPaise, at.Add(time.Hour)))(t)
	require.Equal(t, e.PaymentID, other.PaymentID, "one UTR is one payment")
	require.NotEmpty(t, e.PaymentID)
	for _, utr := range []string{"", "43219876015", "4321987601550", "43219876015x", "०१२३४५६७८९०१", "000000000000"} {
		_, err := p.Confirm(q.Ref, utr, q.AmountPaise, at)
		require.ErrorIs(t, err, pay.ErrRefused, utr)
	}
	_, err = p.Confirm(q.Ref, "432198760155", 0, at)
	require.ErrorIs(t, err, pay.ErrAmount)
}
