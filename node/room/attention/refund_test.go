package attention_test

import (
	"context"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/node/out/pay"
	"stoa/node/out/pay/paytest"
	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/storage"
)

// removed has the owner of the board remove a live bid, whose money goes back.
func (w *world) removed(id string) {
	w.t.Helper()
	must.Get(does(w, w.Remove, owner("asha"), protocol.BidRemoval{OwnBidRef: protocol.OwnBidRef{ID: id}, Reason: "spam"}))(w.t)
	w.runJobs(nil)
}

// TestRefund_Again: a refund that failed at the provider, or that it refused, is made under another
// key: under the same one the provider only repeats its answer.
func TestRefund_Again(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]func(*paytest.Vendor){
		"fails there":     func(v *paytest.Vendor) { v.Answer = pay.RefundNot },
		"is refused":      func(v *paytest.Vendor) { v.Refused = pay.Fail(pay.ErrRefused, "the balance is too low") },
		"no valid key":    func(v *paytest.Vendor) { v.Refused = pay.Fail(pay.ErrCredentials, "401") },
		"fails after all": func(v *paytest.Vendor) { v.Answer, v.Later = pay.RefundPending, pay.RefundNot },
	} {
		t.Run(name, func(t *testing.T) {
			anyEngine(t, func(w *world) {
				v := w.market(protocol.AttentionDraft{Slots: 1})
				one := must.Get(w.bids(keyed(1), "700"))(w.t)
				require.Equal(w.t, "live", w.delivers(v.Pays(one.Bid.ID, 700_00)))
				fail(v)
				w.removed(one.Bid.ID)
				w.pass(time.Hour)
				w.runJobs(nil)
				got := w.bid(one.Bid.ID)
				require.Equal(w.t, protocol.BidRefundFailed, got.State)
				require.Equal(w.t, "failed", got.Refunds[0].State)
				v.Refused, v.Answer, v.Later = nil, "", ""
				w.pass(22 * time.Hour)
				w.runJobs(nil)
				require.Equal(w.t, protocol.BidRefundFailed, w.bid(one.Bid.ID).State, "a day later, not before")
				w.pass(2 * time.Hour)
				w.runJobs(nil)
				require.Equal(w.t, protocol.BidRefunded, w.bid(one.Bid.ID).State)
				keys := slices.Sorted(maps.Keys(v.Refunds))
				require.Equal(w.t, got.Refunds[0].ID+"-1", keys[len(keys)-1])
				require.Zero(w.t, w.kept())
				require.Zero(w.t, v.Balance())
			})
		})
	}
}

// TestRefund_AtTheProvider: a refund that the owner makes in the provider's own pages is found by its
// payment and its amount, once.
func TestRefund_AtTheProvider(t *testing.T) {
	each(t, func(w *world) {
		v := w.market(protocol.AttentionDraft{Slots: 1})
		one := must.Get(w.bids(keyed(1), "700"))(w.t)
		paid := v.Pays(one.Bid.ID, 700_00)
		require.Equal(w.t, "live", w.delivers(paid))
		event := func(kind pay.Kind, id string, paise int64) pay.Event {
			return pay.Event{Provider: "razorpay", EventID: "evt_" + id, Kind: kind, PaymentID: paid.PaymentID, RefundID: id, AmountPaise: paise, Currency: "INR"}
		}
		v.Answer = pay.RefundPending
		w.removed(one.Bid.ID)
		first := w.bid(one.Bid.ID).Refunds[0]
		require.Equal(w.t, "ordered", first.State)
		for _, want := range []string{"the refund failed", "unknown refund"} {
			require.Equal(w.t, want, w.outcomeOf(event(pay.RefundFailed, first.Reference, 700_00)))
		}
		v.Status[first.Reference] = pay.RefundNot
		w.pass(2 * time.Hour)
		w.runJobs(nil)
		require.Equal(w.t, protocol.BidRefundFailed, w.bid(one.Bid.ID).State, "the job of the failed one does nothing")
		require.Len(w.t, v.Refunds, 1)

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
		require.Len(w.t, v.Refunds, 1, "no other one is made")
	})
}

// TestRefund_Once: whatever the provider answers, and in whatever order, the money goes back once. An answer that does
// not arrive is of a refund that was made.
func TestRefund_Once(t *testing.T) {
	t.Parallel()
	lost := func(v *paytest.Vendor) { v.Lost = true }
	refused := func(v *paytest.Vendor) { v.Refused = pay.Fail(pay.ErrRefused, "the balance is too low") }
	keys := func(v *paytest.Vendor) { v.Refused = pay.Fail(pay.ErrCredentials, "401") }
	down := func(v *paytest.Vendor) { v.Refused = pay.Fail(pay.ErrTemporary, "503") }
	waits := func(v *paytest.Vendor) { v.Answer = pay.RefundPending }
	for name, answers := range map[string][]func(*paytest.Vendor){
		"no answer":                                   {lost},
		"no answer twice":                             {lost, lost},
		"no answer, then refused":                     {lost, refused},
		"no answer, then refused twice":               {lost, refused, refused},
		"no answer, then no valid key":                {lost, keys},
		"no answer, then away, then refused":          {lost, down, refused},
		"refused, then no answer, then refused":       {refused, lost, refused},
		"away, then refused, then no answer":          {down, refused, lost},
		"refused, then no answer, no valid key, away": {refused, lost, keys, down},
		"away, then pending":                          {down, waits},
		"no answer of one that is pending":            {func(v *paytest.Vendor) { lost(v); waits(v) }, refused},
		"no valid key, no answer, no answer, refused": {keys, lost, lost, refused},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := single(t)
			v := w.market(protocol.AttentionDraft{Slots: 1})
			one := must.Get(w.bids(keyed(1), "700"))(t)
			require.Equal(t, "live", w.delivers(v.Pays(one.Bid.ID, 700_00)))
			for i, answer := range answers {
				v.Refused, v.Answer, v.Lost = nil, "", false
				answer(v)
				if i == 0 {
					w.removed(one.Bid.ID)
					continue
				}
				w.pass(25 * time.Hour)
				w.runJobs(nil)
			}
			v.Refused, v.Answer, v.Lost = nil, "", false
			for range 3 {
				w.pass(25 * time.Hour)
				w.runJobs(nil)
			}
			require.Equal(t, protocol.BidRefunded, w.bid(one.Bid.ID).State)
			require.Zero(t, v.Balance(), "the provider's book: %v", v.Refunds)
			require.Zero(t, w.kept())
		})
	}
}

// TestRefund_ByHand: the owner makes a refund that the provider does not; not one that the provider is making, and
// what is done is done once.
func TestRefund_ByHand(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		answer func(*paytest.Vendor)
		code   protocol.Code
	}{
		"pending at the provider": {func(v *paytest.Vendor) { v.Answer = pay.RefundPending }, protocol.Conflict},
		"asked for, no answer":    {func(v *paytest.Vendor) { v.Lost = true }, protocol.Conflict},
		"refused":                 {func(v *paytest.Vendor) { v.Refused = pay.Fail(pay.ErrRefused, "no") }, ""},
		"done":                    {func(*paytest.Vendor) {}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := single(t)
			v := w.market(protocol.AttentionDraft{Slots: 1})
			one := must.Get(w.bids(keyed(1), "700"))(t)
			require.Equal(t, "live", w.delivers(v.Pays(one.Bid.ID, 700_00)))
			tt.answer(v)
			w.removed(one.Bid.ID)
			before := w.bid(one.Bid.ID).Refunds[0]
			_, err := does(w, w.MarkRefunded, owner("asha"), protocol.RefundDone{ID: before.ID, Reference: "by hand"})
			require.Equal(t, tt.code, protocol.CodeOf(err))
			if tt.code != "" || name == "done" {
				require.Equal(t, before, w.bid(one.Bid.ID).Refunds[0])
			}
			if tt.code != "" {
				require.EqualValues(t, 700_00, w.kept())
				return
			}
			require.Zero(t, w.kept())
			require.NoError(t, w.write(func(ctx context.Context, tx *storage.Tx) error {
				r := must.Get(tx.Refunds().ByID(ctx, before.ID))(t)
				r.Reference = "again"
				return tx.Refunds().Save(ctx, r)
			}))
			require.Zero(t, w.kept(), "its line of the ledger is there once")
			require.NotEqual(t, "again", w.bid(one.Bid.ID).Refunds[0].Reference)
		})
	}
}

// TestRefund_Week: a refund that the provider refuses is asked for each day of a week, and no longer.
func TestRefund_Week(t *testing.T) {
	t.Parallel()
	w := single(t)
	v := w.market(protocol.AttentionDraft{Slots: 1})
	one := must.Get(w.bids(keyed(1), "700"))(t)
	require.Equal(t, "live", w.delivers(v.Pays(one.Bid.ID, 700_00)))
	v.Refused = pay.Fail(pay.ErrRefused, "the balance is too low")
	w.removed(one.Bid.ID)
	for range 9 {
		w.pass(25 * time.Hour)
		w.runJobs(nil)
	}
	v.Refused = nil
	w.pass(25 * time.Hour)
	w.runJobs(nil)
	require.Equal(t, protocol.BidRefundFailed, w.bid(one.Bid.ID).State)
	require.Empty(t, v.Refunds)
}
