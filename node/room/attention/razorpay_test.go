package attention_test

import (
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/node/money"
	"stoa/node/out/pay"
	"stoa/node/out/pay/paytest"
	"stoa/node/out/pay/razorpay"
	"stoa/protocol"
	"stoa/protocol/must"
)

// A rail is a board that is paid by Razorpay: the real client and a server that answers as the vendor
// does, whose webhooks come to the room. All of it is over HTTP.
type rail struct {
	*world
	api    *paytest.Razorpay
	client *http.Client
	hook   string // address of the webhook
	people int
}

func (w *world) rail(key string, in protocol.AttentionDraft) *rail {
	w.t.Helper()
	now := func() time.Time { return time.UnixMilli(w.now.Load()) }
	r := &rail{world: w, api: paytest.NewRazorpay(key, "secret-key", "whsec-one", now)}
	vendor := httptest.NewServer(r.api)
	w.t.Cleanup(vendor.Close)
	r.client = vendor.Client()
	w.Pay = func(a money.Account) (pay.Provider, error) {
		return razorpay.New(razorpay.Account{
			KeyID: a.KeyID, KeySecret: a.KeySecret, WebhookSecrets: a.WebhookSecrets, Client: r.client, Base: vendor.URL, Now: now,
		})
	}
	hooks := http.NewServeMux()
	hooks.HandleFunc("POST /hooks/pay/{provider}/{hook}", func(answer http.ResponseWriter, q *http.Request) {
		body, err := io.ReadAll(q.Body)
		if err == nil {
			err = w.Hook(q.Context(), q.PathValue("provider"), q.PathValue("hook"), q.Header, body)
		}
		if err != nil {
			answer.WriteHeader(protocol.CodeOf(err).Status())
		}
	})
	node := httptest.NewServer(hooks)
	w.t.Cleanup(node.Close)
	w.person("asha", protocol.Person)
	got := r.secrets("whsec-one")
	r.hook = node.URL + strings.TrimPrefix(*got.WebhookURL, w.Base)
	must.Get(w.board("asha", in))(w.t)
	return r
}

// secrets sets the webhook secrets of the account.
func (r *rail) secrets(all ...string) protocol.PaymentAccount {
	r.t.Helper()
	got := must.Get(r.account("asha", protocol.PaymentDraft{
		Provider: protocol.PayRazorpay, KeyID: r.api.KeyID, KeySecret: r.api.KeySecret, WebhookSecrets: all,
	}))(r.t)
	return got
}

// bidden makes a bid of ₹700 and returns its id and that of its link at the vendor.
func (r *rail) bidden() (bid, link string) {
	r.t.Helper()
	r.people++
	got := must.Get(r.bids(keyed(r.people), "700"))(r.t)
	r.jobs()
	link, _ = r.api.LinkOf(pay.Ref(got.Bid.ID, 1))
	return got.Bid.ID, link
}

func (r *rail) jobs() { r.t.Helper(); r.runJobs(nil) }

// poll passes the time until the vendor is asked again.
func (r *rail) poll() { r.t.Helper(); r.pass(31 * time.Second); r.jobs() }

func (r *rail) deliver() (accepted int) {
	r.t.Helper()
	accepted = r.api.Deliver(r.t.Context(), r.client, r.hook, paytest.Mischief{})
	r.jobs()
	return accepted
}

// post delivers one webhook and returns the status of the answer.
func (r *rail) post(h paytest.Hook) int {
	r.t.Helper()
	q := must.Get(http.NewRequestWithContext(r.t.Context(), http.MethodPost, r.hook, strings.NewReader(string(h.Body))))(r.t)
	q.Header = h.Header
	answer := must.Get(r.client.Do(q))(r.t)
	require.NoError(r.t, answer.Body.Close())
	r.jobs()
	return answer.StatusCode
}

func (r *rail) paid(link string, paise int64) {
	r.t.Helper()
	must.Get(r.api.Pay(link, paise))(r.t)
}

// settled lets the vendor make every refund and compares both books.
func (r *rail) settled() {
	r.t.Helper()
	for range 2 {
		for _, id := range r.api.PendingRefunds() {
			require.NoError(r.t, r.api.SettleRefund(id, true))
		}
		r.deliver()
	}
	var theirs int64
	for b := range maps.Values(r.api.Book()) {
		require.Zero(r.t, b.Pending)
		theirs += b.Paid - b.Refunded
	}
	require.Equal(r.t, theirs, r.kept(), "the ledger is the vendor's book, to the paisa")
}

// TestRazorpay: what is paid is seen by webhook, by asking, or by both, and counts once.
func TestRazorpay(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		happens func(r *rail, link string)
		state   protocol.BidState
		kept    int64 // of the money, when all refunds are made
		times   int   // payments of the bid
	}{
		"webhook alone": {func(r *rail, link string) { r.paid(link, 700_00); require.Equal(r.t, 1, r.deliver()) }, protocol.BidLive, 700_00, 1},
		"asked alone":   {func(r *rail, link string) { r.paid(link, 700_00); r.api.Hooks(); r.poll() }, protocol.BidLive, 700_00, 1},
		"webhook, then asked": {func(r *rail, link string) {
			r.paid(link, 700_00)
			r.deliver()
			r.poll()
		}, protocol.BidLive, 700_00, 1},
		"asked, then webhook": {func(r *rail, link string) {
			r.paid(link, 700_00)
			r.poll()
			require.Equal(r.t, 1, r.deliver())
		}, protocol.BidLive, 700_00, 1},
		"the same webhook three times": {func(r *rail, link string) {
			r.paid(link, 700_00)
			h := r.api.Hooks()[0]
			for range 3 {
				require.Equal(r.t, 200, r.post(h))
			}
			h.Header = h.Header.Clone()
			h.Header.Set("X-Razorpay-Event-Id", "evt_another0000000")
			require.Equal(r.t, 200, r.post(h), "the signature does not cover the event's id")
		}, protocol.BidLive, 700_00, 1},
		"a webhook of last week": {func(r *rail, link string) {
			r.paid(link, 700_00)
			h := r.api.Hooks()[0]
			r.poll()
			r.pass(8 * 24 * time.Hour)
			r.jobs()
			require.Equal(r.t, 200, r.post(h))
		}, protocol.BidEnded, 700_00, 1},
		"signed otherwise": {func(r *rail, link string) {
			r.paid(link, 700_00)
			h := r.api.Hooks()[0]
			for _, signature := range []string{"", strings.Repeat("0", 64), pay.MAC("secret-key", h.Body), pay.MAC("whsec-two", h.Body)} {
				h.Header.Set("X-Razorpay-Signature", signature)
				require.Equal(r.t, 401, r.post(h))
			}
			require.Zero(r.t, r.kept())
			r.poll()
		}, protocol.BidLive, 700_00, 1},
		"signed before the secret was changed": {func(r *rail, link string) {
			r.paid(link, 700_00)
			h := r.api.Hooks()[0]
			r.api.SetSecret("whsec-two")
			r.secrets("whsec-two")
			require.Equal(r.t, 401, r.post(h))
			r.secrets("whsec-two", "whsec-one")
			require.Equal(r.t, 200, r.post(h))
		}, protocol.BidLive, 700_00, 1},
		"a paisa too little":  {func(r *rail, link string) { r.paid(link, 699_99); r.deliver() }, protocol.BidHeld, 0, 1},
		"too little, asked":   {func(r *rail, link string) { r.paid(link, 699_99); r.api.Hooks(); r.poll() }, protocol.BidHeld, 0, 1},
		"more than was asked": {func(r *rail, link string) { r.paid(link, 750_00); r.deliver() }, protocol.BidLive, 700_00, 1},
		"in two parts": {func(r *rail, link string) {
			r.paid(link, 300_00)
			r.paid(link, 400_00)
			require.Equal(r.t, 2, r.deliver())
		}, protocol.BidHeld, 0, 2},
		"two payments, the bank late with both": {func(r *rail, link string) {
			one := must.Get(r.api.Begin(link, 700_00))(r.t)
			two := must.Get(r.api.Begin(link, 700_00))(r.t)
			r.pass(25 * time.Minute)
			r.jobs()
			require.NoError(r.t, r.api.Settle(one))
			require.NoError(r.t, r.api.Settle(two))
			r.deliver()
		}, protocol.BidLive, 700_00, 2},
		"a day late, asked": {func(r *rail, link string) {
			one := must.Get(r.api.Fail(link, 700_00))(r.t)
			for range 24 {
				r.pass(time.Hour)
				r.jobs()
			}
			require.NoError(r.t, r.api.Settle(one))
			r.api.Hooks()
			r.pass(time.Hour)
			r.jobs()
		}, protocol.BidLive, 700_00, 1},
		"never": {func(r *rail, link string) { r.pass(time.Hour); r.jobs(); r.deliver() }, protocol.BidLapsed, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			anyEngine(t, func(w *world) {
				r := w.rail("rzp_live_1", protocol.AttentionDraft{Slots: 3})
				bid, link := r.bidden()
				require.NotEmpty(w.t, link)
				tt.happens(r, link)
				require.Equal(w.t, tt.state, w.bid(bid).State)
				r.settled()
				require.Len(w.t, w.bid(bid).Payments, tt.times)
				require.Equal(w.t, tt.kept, w.kept())
				require.False(w.t, w.bid(bid).Test)
			})
		})
	}
}

// TestRazorpay_Faults: the vendor fails in every way at each request about a link and a refund; there
// is one link and one refund in the end.
func TestRazorpay_Faults(t *testing.T) {
	anyEngine(t, func(w *world) {
		r := w.rail("rzp_live_1", protocol.AttentionDraft{Slots: 50})
		for _, f := range paytest.Faults {
			r.api.FailNext(f)
			bid, _ := r.bidden()
			r.pass(time.Minute)
			r.jobs()
			link, status := r.api.LinkOf(pay.Ref(bid, 1))
			require.Equal(w.t, "created", status, "%+v", f)
			r.paid(link, 700_00)
			r.deliver()
			require.Equal(w.t, protocol.BidLive, w.bid(bid).State)
			r.api.FailNext(f, f)
			w.removed(bid)
			for range 3 {
				r.pass(2 * time.Minute)
				r.jobs()
			}
			require.Len(w.t, r.api.PendingRefunds(), 1, "%+v", f)
			r.settled()
			require.Equal(w.t, protocol.BidRefunded, w.bid(bid).State)
		}
		require.Len(w.t, slices.Collect(maps.Keys(r.api.Book())), len(paytest.Faults))
		require.Zero(w.t, w.kept())
	})
}

// TestRazorpay_RefundFails: a refund that failed at the vendor is made again and counts once.
func TestRazorpay_RefundFails(t *testing.T) {
	each(t, func(w *world) {
		r := w.rail("rzp_live_1", protocol.AttentionDraft{Slots: 1})
		bid, link := r.bidden()
		r.paid(link, 700_00)
		r.deliver()
		w.removed(bid)
		for range 2 {
			require.NoError(w.t, r.api.SettleRefund(r.api.PendingRefunds()[0], false))
			r.deliver()
			require.Equal(w.t, protocol.BidRefundFailed, w.bid(bid).State)
			r.pass(24 * time.Hour)
			r.jobs()
			require.Equal(w.t, protocol.BidRefunding, w.bid(bid).State)
		}
		r.settled()
		require.Equal(w.t, protocol.BidRefunded, w.bid(bid).State)
		require.Zero(w.t, w.kept())
	})
}

// TestRazorpay_TestKeys: with keys of the vendor's test mode no money moves, which board and bid say.
func TestRazorpay_TestKeys(t *testing.T) {
	each(t, func(w *world) {
		r := w.rail("rzp_test_1", protocol.AttentionDraft{Slots: 1})
		bid, link := r.bidden()
		r.paid(link, 700_00)
		r.deliver()
		require.True(w.t, w.bid(bid).Test)
		b := must.Get(w.readBoard())(w.t)
		require.True(w.t, b.Test)
		require.True(w.t, b.Bids[0].Test)
	})
}
