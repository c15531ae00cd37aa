package attention_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/node/out/pay"
	"stoa/node/out/pay/paytest"
	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/storage"
)

// away is a vendor that answers nothing.
func away(*http.Request) paytest.Fault { return paytest.Unavailable }

// export is the CSV of a month.
func (w *world) export(month string) (csv string) {
	w.t.Helper()
	csv = must.Get(sees(w, w.Export, owner("asha"), protocol.MonthQuery{Month: month}))(w.t)
	return csv
}

// given has the owner refund a part of a payment in the vendor's own pages.
func (r *rail) given(payment string, paise int64) {
	r.t.Helper()
	must.Get(r.api.GiveBack(payment, paise))(r.t)
}

// TestProviderRefund: what the owner sends back in the provider's own pages is in the books, whatever the bid's state and the order of
// the webhooks. A live bid that has all of its money back leaves the board.
func TestProviderRefund(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		paid    int64
		happens func(r *rail, bid, payment string)
		state   protocol.BidState
		kept    int64 // of the money, when all refunds are made
		refunds int   // in the books
	}{
		"all of a live bid": {700_00, func(r *rail, bid, payment string) { r.given(payment, 700_00); r.deliver() }, protocol.BidRefunded, 0, 1},
		"all, each webhook twice": {700_00, func(r *rail, bid, payment string) {
			r.given(payment, 700_00)
			for _, h := range r.api.Hooks() {
				require.Equal(r.t, 200, r.post(h))
				require.Equal(r.t, 200, r.post(h))
				h.Header = h.Header.Clone()
				h.Header.Set("X-Razorpay-Event-Id", "evt_another0000000")
				require.Equal(r.t, 200, r.post(h))
			}
		}, protocol.BidRefunded, 0, 1},
		"all but a part":       {700_00, func(r *rail, bid, payment string) { r.given(payment, 699_00); r.deliver() }, protocol.BidLive, 1_00, 1},
		"all but half a rupee": {700_00, func(r *rail, bid, payment string) { r.given(payment, 699_50); r.deliver() }, protocol.BidRefunded, 50, 1},
		"all, in two parts": {700_00, func(r *rail, bid, payment string) {
			r.given(payment, 300_00)
			r.deliver()
			require.Equal(r.t, protocol.BidLive, r.bid(bid).State)
			require.Equal(r.t, "300.00", r.bid(bid).Receipt.Refunded.Amount)
			r.given(payment, 400_00)
			r.deliver()
		}, protocol.BidRefunded, 0, 2},
		"all of it, while more than the bid was paid": {750_00, func(r *rail, bid, payment string) {
			r.given(payment, 700_00)
			r.deliver()
		}, protocol.BidRefunded, 0, 2},
		"a part, then removed": {700_00, func(r *rail, bid, payment string) {
			r.given(payment, 300_00)
			r.deliver()
			r.removed(bid)
		}, protocol.BidRefunded, 0, 2},
		"a part, then the board closes": {700_00, func(r *rail, bid, payment string) {
			r.given(payment, 300_00)
			r.deliver()
			r.pass(7 * 12 * time.Hour)
			r.closes("asha")
		}, protocol.BidRefunded, 200_00, 2},
		"a part of an ended one": {700_00, func(r *rail, bid, payment string) {
			r.pass(8 * 24 * time.Hour)
			r.jobs()
			r.given(payment, 300_00)
			r.deliver()
		}, protocol.BidEnded, 400_00, 1},
		"all of an ended one": {700_00, func(r *rail, bid, payment string) {
			r.pass(8 * 24 * time.Hour)
			r.jobs()
			r.given(payment, 700_00)
			r.deliver()
		}, protocol.BidRefunded, 0, 1},
		"a part, while all of it is to be refunded and the vendor is away": {700_00, func(r *rail, bid, payment string) {
			r.api.SetFault(away)
			r.removed(bid)
			r.given(payment, 300_00)
			r.deliver()
			require.Equal(r.t, protocol.BidRefunding, r.bid(bid).State)
			r.api.SetFault(nil)
			r.pass(time.Hour)
			r.jobs()
		}, protocol.BidRefunded, 0, 2},
		"of what was paid in part": {600_00, func(r *rail, bid, payment string) { r.deliver() }, protocol.BidHeld, 0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			anyEngine(t, func(w *world) {
				r := w.rail("rzp_live_1", protocol.AttentionDraft{Slots: 1})
				bid, link := r.bidden()
				payment := must.Get(r.api.Pay(link, tt.paid))(w.t)
				r.deliver()
				tt.happens(r, bid, payment)
				r.settled()
				got := w.bid(bid)
				require.Equal(w.t, tt.state, got.State)
				require.Equal(w.t, tt.kept, w.kept())
				require.Len(w.t, got.Refunds, tt.refunds)
				board, err := w.readBoard()
				if strings.Contains(name, "closes") {
					return
				}
				require.NoError(w.t, err)
				require.Len(w.t, board.Bids, map[bool]int{true: 1}[tt.state == protocol.BidLive])
				if tt.state == protocol.BidRefunded && name[:3] == "all" && !strings.Contains(name, "ended") {
					require.Equal(w.t, []protocol.BidState{"held", "live", "removed", "refunding", "refunded"}, states(got))
					require.Equal(w.t, "refunded by the owner at the payment provider", *got.Reason)
				}
			})
		})
	}
}

// TestProviderRefund_Order: the news of a refund waits for that of its payment. That of another account changes nothing.
func TestProviderRefund_Order(t *testing.T) {
	each(t, func(w *world) {
		r := w.rail("rzp_live_1", protocol.AttentionDraft{Slots: 1})
		bid, link := r.bidden()
		payment := must.Get(r.api.Pay(link, 700_00))(w.t)
		paid := r.api.Hooks()
		r.given(payment, 700_00)
		require.Equal(w.t, 200, r.post(r.api.Hooks()[0]))
		require.Equal(w.t, protocol.BidHeld, w.bid(bid).State)
		require.Equal(w.t, []string{"unknown payment"}, w.outcomes(payment))
		require.Equal(w.t, 200, r.post(paid[0]))
		require.Equal(w.t, protocol.BidRefunded, w.bid(bid).State)
		require.Equal(w.t, []string{"refunded by the owner", "live"}, w.outcomes(payment))
		require.Zero(w.t, w.kept())

		other := &rail{world: w, api: r.api, client: r.client}
		w.person("ravi", protocol.Person)
		account := must.Get(w.account("ravi", protocol.PaymentDraft{
			Provider: protocol.PayRazorpay, KeyID: "rzp_live_2", KeySecret: "secret-key", WebhookSecrets: []string{"whsec-two"},
		}))(w.t)
		other.hook = strings.Split(r.hook, "/hooks/")[0] + strings.TrimPrefix(*account.WebhookURL, w.Base)
		second, link := r.bidden()
		payment = must.Get(r.api.Pay(link, 700_00))(w.t)
		r.deliver()
		r.given(payment, 700_00)
		h := r.api.Hooks()[0]
		h.Header.Set("X-Razorpay-Signature", pay.MAC("whsec-two", h.Body))
		require.Equal(w.t, 200, other.post(h), "another owner signs what it likes")
		require.Equal(w.t, protocol.BidLive, w.bid(second).State)
		require.Equal(w.t, int64(700_00), w.kept())
	})
}

// outcomes are those of the stored events about a payment, the oldest first.
func (w *world) outcomes(payment string) (all []string) {
	w.t.Helper()
	require.NoError(w.t, w.read(func(ctx context.Context, tx *storage.Tx) error {
		b, err := tx.AttentionBoards().ByHandle(ctx, "asha")
		if err != nil {
			return err
		}
		events, err := tx.Payments().Events(ctx, storage.EventsOfPayment, payment, b.Account)
		for _, e := range events {
			all = append(all, e.Outcome)
		}
		return err
	}))
	return all
}

// TestOtherCurrency: a payment in another currency is in the books, the refund and the CSV in its own, and all of it goes back.
func TestOtherCurrency(t *testing.T) {
	each(t, func(w *world) {
		r := w.rail("rzp_live_1", protocol.AttentionDraft{Slots: 1})
		bid, link := r.bidden()
		payment := must.Get(r.api.Pay(link, 700_00))(w.t)
		h := r.api.Hooks()[0]
		body := must.JSON[map[string]any](h.Body)(w.t)
		body["payload"].(map[string]any)["payment"].(map[string]any)["entity"].(map[string]any)["currency"] = "usd"
		h.Body = must.Get(json.Marshal(body))(w.t)
		h.Header.Set("X-Razorpay-Signature", pay.MAC("whsec-one", h.Body))
		require.Equal(w.t, 200, r.post(h))
		got := w.bid(bid)
		require.Equal(w.t, protocol.BidHeld, got.State)
		require.Equal(w.t, protocol.Money{Currency: "USD", Amount: "700.00"}, got.Payments[0].Amount)
		require.Equal(w.t, protocol.Money{Currency: "USD", Amount: "700.00"}, got.Refunds[0].Amount)
		require.NoError(w.t, r.api.SettleRefund(r.api.PendingRefunds()[0], true))
		refund := r.api.Hooks()[0]
		refund.Body = []byte(strings.ReplaceAll(string(refund.Body), `"INR"`, `"USD"`))
		refund.Header.Set("X-Razorpay-Signature", pay.MAC("whsec-one", refund.Body))
		require.Equal(w.t, 200, r.post(refund))
		require.Equal(w.t, "done", w.bid(bid).Refunds[0].State)
		lines := strings.Split(strings.TrimSpace(w.export("2026-11")), "\r\n")
		require.Len(w.t, lines, 3)
		require.Contains(w.t, lines[1], ",payment,700.00,USD,")
		require.Contains(w.t, lines[1], payment)
		require.Contains(w.t, lines[2], ",refund,-700.00,USD,")
	})
}

// TestExcess: what is paid beyond a bid goes back from a rupee on; less is nobody's task.
func TestExcess(t *testing.T) {
	for paid, back := range map[int64]int64{700_00: 0, 700_01: 0, 700_99: 0, 701_00: 1_00, 701_50: 1_50} {
		t.Run(fmt.Sprint(paid), func(t *testing.T) {
			each(t, func(w *world) {
				v := w.market(protocol.AttentionDraft{Slots: 1})
				one := must.Get(w.bids(keyed(1), "700"))(w.t)
				w.delivers(v.Pays(one.Bid.ID, paid))
				w.runJobs(nil)
				got := w.bid(one.Bid.ID)
				require.Equal(w.t, protocol.BidLive, got.State)
				require.Equal(w.t, paid-back, w.kept())
				require.Len(w.t, got.Refunds, map[bool]int{true: 1}[back > 0], "%d", paid)
				require.Equal(w.t, "700.00", got.Receipt.Amount.Amount)
			})
		})
	}
}

// TestHold_ProviderAway: a hold lasts 20 minutes to the millisecond, however long the provider was away, and can be paid as soon as it is
// back (spec §3).
func TestHold_ProviderAway(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		away time.Duration
		pays bool
	}{
		"a minute": {time.Minute, true}, "seven minutes": {7 * time.Minute, true}, "nineteen": {19 * time.Minute, true},
		"nineteen, and nobody pays": {19 * time.Minute, false}, "all the time": {20 * time.Minute, false},
	} {
		t.Run(name, func(t *testing.T) {
			anyEngine(t, func(w *world) {
				r := w.rail("rzp_live_1", protocol.AttentionDraft{Slots: 1})
				got := must.Get(r.bids(keyed(1), "700"))(w.t)
				bid := got.Bid.ID
				r.api.SetFault(away)
				ends := start.Add(20*time.Minute - time.Millisecond).UnixMilli()
				for passed := time.Duration(0); w.now.Load() < ends; passed += 5 * time.Second {
					if passed == tt.away {
						r.api.SetFault(nil)
					}
					r.jobs()
					require.Equal(w.t, protocol.BidHeld, w.bid(bid).State, "after %s", passed)
					if link, _ := r.api.LinkOf(pay.Ref(bid, 1)); link != "" {
						break
					}
					w.now.Store(min(ends, w.now.Load()+5000))
				}
				link, status := r.api.LinkOf(pay.Ref(bid, 1))
				if tt.away < 20*time.Minute {
					require.Equal(w.t, "created", status)
				}
				if tt.pays {
					r.paid(link, 700_00)
					r.deliver()
					require.Equal(w.t, protocol.BidLive, w.bid(bid).State)
					return
				}
				w.now.Store(ends)
				r.jobs()
				require.Equal(w.t, protocol.BidHeld, w.bid(bid).State)
				r.pass(time.Millisecond)
				r.jobs()
				require.Equal(w.t, protocol.BidLapsed, w.bid(bid).State)
				if _, status = r.api.LinkOf(pay.Ref(bid, 1)); link != "" {
					require.Equal(w.t, "cancelled", status, "the link ends with the hold")
					require.Equal(w.t, "not paid within 20 minutes", w.bid(bid).History[1].Note)
				} else {
					require.Equal(w.t, "the owner's payment provider made no link", w.bid(bid).History[1].Note)
				}
			})
		})
	}
}
