package attention_test

import (
	"context"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/node/provider/pay"
	"stoa/protocol"
	"stoa/storage"
)

// removed has the owner of the board remove a live bid, whose money goes back.
func (w *world) removed(id string) {
	w.t.Helper()
	require.NoError(w.t, w.write(func(ctx context.Context, tx *storage.Tx) error {
		_, err := w.Remove(ctx, tx, owner("asha"), protocol.BidRemoval{OwnBidRef: protocol.OwnBidRef{ID: id}, Reason: "spam"})
		return err
	}))
	w.runJobs(nil)
}

// TestRefund_Again: a refund that failed at the provider, or that it refused, is made under another
// key: under the same one the provider only repeats its answer.
func TestRefund_Again(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]func(*vendor){
		"fails there":     func(v *vendor) { v.answer = pay.RefundNot },
		"is refused":      func(v *vendor) { v.refund = pay.Fail(pay.ErrRefused, "the balance is too low") },
		"no valid key":    func(v *vendor) { v.refund = pay.Fail(pay.ErrCredentials, "401") },
		"fails after all": func(v *vendor) { v.answer, v.later = pay.RefundPending, pay.RefundNot },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			each(t, func(w *world) {
				v := w.market(protocol.AttentionDraft{Slots: 1})
				one, err := w.bids(keyed(1), "700")
				require.NoError(w.t, err)
				require.Equal(w.t, "live", w.delivers(v.pays(one.Bid.ID, 700_00)))
				fail(v)
				w.removed(one.Bid.ID)
				w.pass(time.Hour)
				w.runJobs(nil)
				got := w.bid(one.Bid.ID)
				require.Equal(w.t, protocol.BidRefundFailed, got.State)
				require.Equal(w.t, "failed", got.Refunds[0].State)
				v.refund, v.answer, v.later = nil, "", ""
				w.pass(22 * time.Hour)
				w.runJobs(nil)
				require.Equal(w.t, protocol.BidRefundFailed, w.bid(one.Bid.ID).State, "a day later, not before")
				w.pass(2 * time.Hour)
				w.runJobs(nil)
				require.Equal(w.t, protocol.BidRefunded, w.bid(one.Bid.ID).State)
				keys := slices.Sorted(maps.Keys(v.refunds))
				require.Equal(w.t, got.Refunds[0].ID+"-1", keys[len(keys)-1])
				require.Zero(w.t, w.kept())
				require.Zero(w.t, v.balance())
			})
		})
	}
}

// TestRefund_AtTheProvider: a refund that the owner makes in the provider's own pages is found by its
// payment and its amount, once.
func TestRefund_AtTheProvider(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		v := w.market(protocol.AttentionDraft{Slots: 1})
		one, err := w.bids(keyed(1), "700")
		require.NoError(w.t, err)
		paid := v.pays(one.Bid.ID, 700_00)
		require.Equal(w.t, "live", w.delivers(paid))
		event := func(kind pay.Kind, id string, paise int64) pay.Event {
			return pay.Event{Provider: "razorpay", EventID: "evt_" + id, Kind: kind, PaymentID: paid.PaymentID, RefundID: id, AmountPaise: paise, Currency: "INR"}
		}
		v.answer = pay.RefundPending
		w.removed(one.Bid.ID)
		first := w.bid(one.Bid.ID).Refunds[0]
		require.Equal(w.t, "ordered", first.State)
		for _, want := range []string{"the refund failed", "unknown refund"} {
			require.Equal(w.t, want, w.outcomeOf(event(pay.RefundFailed, first.Reference, 700_00)))
		}
		v.status[first.Reference] = pay.RefundNot
		w.pass(2 * time.Hour)
		w.runJobs(nil)
		require.Equal(w.t, protocol.BidRefundFailed, w.bid(one.Bid.ID).State, "the job of the failed one does nothing")
		require.Len(w.t, v.refunds, 1)

		require.Equal(w.t, "unknown refund", w.outcomeOf(event(pay.RefundFailed, "rfnd_hand", 700_00)))
		for _, want := range []string{"refunded", "a repeat"} {
			require.Equal(w.t, want, w.outcomeOf(event(pay.RefundDone, "rfnd_hand", 700_00)))
		}
		got := w.bid(one.Bid.ID)
		require.Equal(w.t, protocol.BidRefunded, got.State)
		require.Equal(w.t, "rfnd_hand", got.Refunds[0].Reference)
		require.Zero(w.t, w.kept())
		w.pass(48 * time.Hour)
		w.runJobs(nil)
		require.Len(w.t, v.refunds, 1, "no other one is made")
	})
}
