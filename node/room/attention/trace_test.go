package attention_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/storage"
)

func (w *world) traced(of string) (got protocol.MoneyTraces, err error) {
	return sees(w, w.Trace, protocol.Caller{Standing: protocol.Operator}, protocol.TraceQuery{ID: of})
}

// life is a trace as lines: after how long, and what.
func life(t protocol.MoneyTrace) (steps, next []string) {
	line := func(s protocol.MoneyStep) string {
		var parts []string
		if s.At != nil {
			parts = append(parts, s.At.Sub(start).Round(time.Second).String())
		}
		parts = append(parts, s.What)
		if s.Amount != nil {
			parts = append(parts, s.Amount.Currency+" "+s.Amount.Amount)
		}
		if s.Note != "" {
			parts = append(parts, "("+s.Note+")")
		}
		return strings.Join(parts, " ")
	}
	for _, s := range t.Steps {
		steps = append(steps, line(s))
	}
	for _, s := range t.Next {
		next = append(next, line(s))
	}
	return steps, next
}

// TestTrace: every id that somebody has of a payment leads to its life and to what has to happen next.
func TestTrace(t *testing.T) {
	each(t, func(w *world) {
		r := w.rail("rzp_live_1", protocol.AttentionDraft{Slots: 1})
		bid, link := r.bidden()
		one := must.Get(w.traced(bid))(w.t)
		_, next := life(one.Items[0])
		require.Equal(w.t, []string{"20m0s the payer pays; otherwise the bid lapses", "30s the payment provider is asked for payments"}, next)
		r.pass(20 * time.Second)
		payment := must.Get(r.api.Pay(link, 750_00))(w.t)
		h := r.api.Hooks()[0]
		require.Equal(w.t, 200, r.post(h))
		r.pass(time.Minute)
		r.api.SetFault(away)
		w.removed(bid)
		r.pass(time.Minute)
		refund := w.bid(bid).Refunds[1]
		all := must.Get(w.traced(bid))(w.t)
		steps, next := life(all.Items[0])
		require.Equal(w.t, []string{
			"0s bid made", "0s payment link made", "20s bid live", "20s payment arrived INR 750.00 (it paid for the slot)",
			"20s event of the payment provider INR 750.00 (the bid went live; what was paid too much goes back)",
			"20s refund owed INR 50.00 (more was paid than was due)", "1m20s bid removed (spam)", "1m20s refund begun (the refund was ordered)",
			"1m20s refund owed INR 700.00 (removed by the owner of the board)",
		}, steps)
		require.Len(w.t, next, 3)
		require.Contains(w.t, next[1], "the payment provider makes the refund, and is asked how far it is INR 50.00")
		require.Contains(w.t, next[2], "the refund is requested, there is no answer yet, and it is tried again INR 700.00 (")
		for _, of := range []string{
			w.bid(bid).Payments[0].ID, payment, refund.ID, h.Header.Get("X-Razorpay-Event-Id"), w.bid(bid).Refunds[0].Reference, w.bid(bid).Payments[0].Reference,
		} {
			same, err := w.traced(of)
			require.NoError(w.t, err, of)
			require.Equal(w.t, all, same, of)
		}
		r.api.SetFault(nil)
		r.settled()
		r.pass(time.Hour)
		r.jobs()
		done := must.Get(w.traced(bid))(w.t)
		for _, s := range done.Items[0].Next {
			require.Equal(w.t, "the payment provider is asked for payments", s.What)
		}
		for _, of := range []string{"bid_01k9y3v6k8e5w9q2x4z7c1m0ad", "431298769999", "evt_none", "pay_none", "' OR 1=1"} {
			require.Equal(w.t, protocol.NotFound, protocol.CodeOf(must.Err(w.traced(of))), of)
		}
		for _, secret := range []string{"whsec", "secret-key", "payer@"} {
			require.NotContains(w.t, fmt.Sprintf("%+v", done), secret)
		}
	})
}

// TestTrace_UPI: a payer says he paid; the operator sees what waits for whom. A provider's event of no bid is found by its id.
func TestTrace_UPI(t *testing.T) {
	each(t, func(w *world) {
		w.opened(protocol.AttentionDraft{Slots: 1})
		got := must.Get(w.bids(keyed(1), "700"))(w.t)
		require.NoError(w.t, w.claims(got.StatusToken, utr(1)))
		next := func() []string {
			all := must.Get(w.traced(utr(1)))(w.t)
			require.Len(w.t, all.Items, 1)
			_, next := life(all.Items[0])
			return next
		}
		require.Equal(w.t, []string{"12h0m0s the owner confirms or denies the payment; otherwise it is not confirmed"}, next())
		w.pass(13 * time.Hour)
		w.runJobs(nil)
		require.Equal(w.t, []string{"nothing happens, unless the owner confirms the payment after all"}, next())
		require.NoError(w.t, w.disputes(keyed(1), got.Bid.ID, "", utr(1)))
		require.Equal(w.t, []string{"the payer disputes it: the owner has to confirm or deny the payment"}, next())
		require.NoError(w.t, w.confirms(owner("asha"), got.Bid.ID, "800"))
		require.Equal(w.t, []string{
			"181h0m0s its time on the board is over", "the owner has to send the money back and mark the refund as made INR 100.00",
		}, next())
	})
}

// TestTrace_Own: an owner sees the payments of the own board, and no others.
func TestTrace_Own(t *testing.T) {
	each(t, func(w *world) {
		w.opened(protocol.AttentionDraft{Slots: 1})
		got := must.Get(w.bids(keyed(1), "700"))(w.t)
		require.NoError(w.t, w.claims(got.StatusToken, utr(1)))
		require.NoError(w.t, w.confirms(owner("asha"), got.Bid.ID, ""))
		for _, of := range []string{got.Bid.ID, utr(1), w.bid(got.Bid.ID).Payments[0].ID} {
			for who, want := range map[string]protocol.Code{"asha": "", "ravi": protocol.NotFound} {
				err := w.read(func(ctx context.Context, tx *storage.Tx) error {
					return must.Err(w.TraceOwn(ctx, tx, owner(who), protocol.TraceQuery{ID: of}))
				})
				require.Equal(w.t, want, protocol.CodeOf(err), "%s %s", who, of)
			}
		}
	})
}
