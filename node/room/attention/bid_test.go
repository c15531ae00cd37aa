package attention_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/node/money"
	"stoa/node/out/pay"
	"stoa/node/out/pay/upi"
	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/storage"
)

// TestBid_HoldLapses: an unpaid hold ends exactly 20 minutes after the bid, not a millisecond
// before.
func TestBid_HoldLapses(t *testing.T) {
	each(t, func(w *world) {
		w.market(protocol.AttentionDraft{Slots: 1})
		got := must.Get(w.bids(keyed(1), "500"))(w.t)
		require.Equal(w.t, protocol.HoldReserving, *got.Bid.Hold)
		require.Equal(w.t, start.Add(20*time.Minute), got.HoldExpiresAt)
		_, err := w.bids(keyed(2), "500")
		require.Equal(w.t, protocol.SlotTaken, protocol.CodeOf(err))
		require.Equal(w.t, got.HoldExpiresAt, *protocol.AsError(err).Slot.SlotAt)

		w.pass(20*time.Minute - time.Millisecond)
		w.runJobs(nil)
		require.Equal(w.t, protocol.BidHeld, w.bid(got.Bid.ID).State)
		out := must.Get(w.check("500", ""))(w.t)
		require.False(w.t, out.WouldGetSlot)

		w.pass(time.Millisecond)
		require.Equal(w.t, protocol.BidLapsed, w.bid(got.Bid.ID).State, "also before the job ran")
		out = must.Get(w.check("500", ""))(w.t)
		require.True(w.t, out.WouldGetSlot)
		w.runJobs(nil)
		require.Equal(w.t, []protocol.BidState{protocol.BidHeld, protocol.BidLapsed}, states(w.bid(got.Bid.ID)))
		require.Equal(w.t, protocol.HoldReserving, *must.Get(w.bids(keyed(2), "500"))(w.t).Bid.Hold)
	})
}

// TestBid_Crowds: nobody keeps more slots than the board has, and strangers no more than half.
func TestBid_Crowds(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		who  func(int) protocol.Caller
		kept int
	}{
		"64 bidders with keys":                {keyed, 5},
		"64 anonymous bidders":                {func(int) protocol.Caller { return unknown(1) }, 1},
		"64 anonymous bidders of 64 networks": {unknown, 3},
	} {
		t.Run(name, func(t *testing.T) {
			anyEngine(t, func(w *world) {
				w.market(protocol.AttentionDraft{Slots: 5})
				var all sync.WaitGroup
				var mu sync.Mutex
				kept := 0
				for n := range 64 {
					all.Go(func() {
						got, err := w.bids(tt.who(n), "500")
						mu.Lock()
						defer mu.Unlock()
						if err == nil && *got.Bid.Hold == protocol.HoldReserving {
							kept++
						}
						if code := protocol.CodeOf(err); err != nil && code != protocol.SlotTaken && code != protocol.Conflict && code != protocol.PowRequired {
							t.Error(err)
						}
					})
				}
				all.Wait()
				require.Equal(w.t, tt.kept, kept)
				require.Equal(w.t, 5-tt.kept, must.Get(w.readBoard())(w.t).FreeSlots)
			})
		})
	}
}

// TestBid_Limits: one unpaid bid on a board, and after three lapsed holds no slot is kept.
func TestBid_Limits(t *testing.T) {
	each(t, func(w *world) {
		w.market(protocol.AttentionDraft{Slots: 5})
		for range 3 {
			require.Equal(w.t, protocol.HoldReserving, *must.Get(w.bids(keyed(1), "500"))(w.t).Bid.Hold)
			require.Equal(w.t, protocol.Conflict, protocol.CodeOf(must.Err(w.bids(keyed(1), "600"))))
			w.pass(20 * time.Minute)
			w.runJobs(nil)
		}
		got := must.Get(w.bids(keyed(1), "500"))(w.t)
		require.Equal(w.t, protocol.HoldCompeting, *got.Bid.Hold)
		w.pass(24 * time.Hour)
		w.runJobs(nil)
		got = must.Get(w.bids(keyed(1), "500"))(w.t)
		require.Equal(w.t, protocol.HoldReserving, *got.Bid.Hold)
		require.Equal(w.t, protocol.Forbidden, protocol.CodeOf(must.Err(w.bids(owner("asha"), "500"))))
		require.Equal(w.t, protocol.BelowFloor, protocol.CodeOf(must.Err(w.bids(keyed(2), "99.99"))))
	})
}

// TestPaid_Table is the table of what may happen to a payment.
func TestPaid_Table(t *testing.T) {
	anyEngine(t, func(w *world) {
		v := w.market(protocol.AttentionDraft{Slots: 1, ProtectHours: new(0), SlotDays: 7})
		one := must.Get(w.bids(keyed(1), "700"))(w.t)
		w.runJobs(nil)
		require.Contains(w.t, v.Links, pay.Ref(one.Bid.ID, 1))
		ev := v.Pays(one.Bid.ID, 700_00)
		require.Equal(w.t, "live", w.delivers(ev))
		require.Equal(w.t, "a repeat", w.delivers(ev))
		require.Equal(w.t, "a repeat", w.delivers(ev))
		require.Equal(w.t, protocol.BidLive, w.bid(one.Bid.ID).State)
		require.Equal(w.t, "2026-27/000001", w.bid(one.Bid.ID).Receipt.Number)

		require.Equal(w.t, "paid twice", w.delivers(v.Pays(one.Bid.ID, 700_00)))
		w.runJobs(nil)
		require.EqualValues(w.t, 700_00, w.kept(), "the second payment went back")
		require.Equal(w.t, protocol.BidLive, w.bid(one.Bid.ID).State)

		two := must.Get(w.bids(keyed(2), "710"))(w.t)
		require.Equal(w.t, protocol.HoldCompeting, *two.Bid.Hold)
		require.Equal(w.t, "paid in part", w.delivers(v.Pays(two.Bid.ID, 709_99)))
		w.runJobs(nil)
		require.Equal(w.t, protocol.BidHeld, w.bid(two.Bid.ID).State)
		other := v.Pays(two.Bid.ID, 710_00)
		other.Currency = "USD"
		require.Equal(w.t, "another currency", w.delivers(other))

		three := must.Get(w.bids(keyed(3), "715"))(w.t)
		w.pass(10*time.Minute - 0)
		require.Equal(w.t, "live, paid too much", w.delivers(v.Pays(three.Bid.ID, 720_50)))
		w.runJobs(nil)
		outbid := w.bid(one.Bid.ID)
		require.Equal(w.t, []protocol.BidState{protocol.BidHeld, protocol.BidLive, protocol.BidOutbid, protocol.BidRefunding, protocol.BidRefunded}, states(outbid))
		unused := protocol.UnusedRefund(700_00, start, start.Add(7*24*time.Hour), start.Add(10*time.Minute), 0)
		require.Equal(w.t, "699.30", protocol.MoneyOf("INR", unused).Amount)
		require.Equal(w.t, "699.30", outbid.Receipt.Refunded.Amount)

		require.Equal(w.t, "no slot", w.delivers(v.Pays(two.Bid.ID, 710_00)), "the loser is compared with the new lowest")
		w.runJobs(nil)
		require.Equal(w.t, protocol.BidRefunded, w.bid(two.Bid.ID).State)
		require.Equal(w.t, "paid twice", w.delivers(v.Pays(two.Bid.ID, 710_00)))
		w.runJobs(nil)
		require.Equal(w.t, v.Balance(), w.kept())

		w.pass(7 * 24 * time.Hour)
		w.runJobs(nil)
		require.Equal(w.t, protocol.BidEnded, w.bid(three.Bid.ID).State)
		unknown := pay.Event{Kind: pay.Paid, Ref: "bid_01k9y3v6k8e5w9q2x4z7c1m0ad-1", PaymentID: "x", AmountPaise: 1, Currency: "INR"}
		require.Equal(w.t, "unknown reference", w.outcomeOf(unknown))
	})
}

// outcomeOf applies an event that may be of no bid.
func (w *world) outcomeOf(ev pay.Event) (outcome string) {
	require.NoError(w.t, w.write(func(ctx context.Context, tx *storage.Tx) error {
		all, err := tx.PaymentAccounts().OfProfile(ctx, "asha")
		require.NoError(w.t, err)
		outcome, err = w.Apply(ctx, tx, &all[0], ev)
		return err
	}))
	return outcome
}

// TestPaid_Late: money that arrives after the hold gets a slot that is free, or goes back.
func TestPaid_Late(t *testing.T) {
	each(t, func(w *world) {
		v := w.market(protocol.AttentionDraft{Slots: 1})
		one := must.Get(w.bids(keyed(1), "700"))(w.t)
		w.pass(21 * time.Minute)
		require.Equal(w.t, "live", w.delivers(v.Pays(one.Bid.ID, 700_00)), "the job has not run: within two minutes it is in time")
		two, err := w.bids(keyed(2), "700")
		require.Equal(w.t, protocol.SlotTaken, protocol.CodeOf(err), two)
		w.pass(25 * time.Hour) // no longer protected
		three := must.Get(w.bids(keyed(3), "800"))(w.t)
		w.pass(time.Hour)
		w.runJobs(nil)
		require.Equal(w.t, protocol.BidLapsed, w.bid(three.Bid.ID).State)
		require.Equal(w.t, "live", w.delivers(v.Pays(three.Bid.ID, 800_00)))
		w.runJobs(nil)
		require.Equal(w.t, protocol.BidRefunded, w.bid(one.Bid.ID).State)
		require.Equal(w.t, v.Balance(), w.kept())
	})
}

// TestRefund_Fails: a refund that the provider refuses is tried for a week. While an earlier request
// may have made it, the key stays.
func TestRefund_Fails(t *testing.T) {
	each(t, func(w *world) {
		v := w.market(protocol.AttentionDraft{Slots: 1})
		one := must.Get(w.bids(keyed(1), "700"))(w.t)
		require.Equal(w.t, "live", w.delivers(v.Pays(one.Bid.ID, 700_00)))
		v.Refused = pay.Fail(pay.ErrTemporary, "503")
		must.Get(does(w, w.Remove, owner("asha"), protocol.BidRemoval{OwnBidRef: protocol.OwnBidRef{ID: one.Bid.ID}, Reason: "spam"}))(w.t)
		w.runJobs(nil)
		require.Equal(w.t, protocol.BidRefunding, w.bid(one.Bid.ID).State)
		v.Refused = pay.Fail(pay.ErrRefused, "the balance is too low")
		w.pass(2 * time.Hour)
		w.runJobs(nil)
		got := w.bid(one.Bid.ID)
		require.Equal(w.t, protocol.BidRefundFailed, got.State)
		require.Equal(w.t, "spam", *got.Reason)
		w.pass(25 * time.Hour)
		w.runJobs(nil)
		v.Refused = nil
		w.pass(25 * time.Hour)
		w.runJobs(nil)
		require.Equal(w.t, protocol.BidRefunded, w.bid(one.Bid.ID).State)
		require.Len(w.t, v.Refunds, 1)
		require.Zero(w.t, w.kept())
		require.Zero(w.t, v.Balance())
	})
}

// TestUPI: a payment that nobody reports is claimed by its UTR and confirmed by the owner; the
// refund is a task of the owner.
func TestUPI(t *testing.T) {
	each(t, func(w *world) {
		w.Pay = func(a money.Account) (pay.Provider, error) {
			return upi.New(a.VPA, a.Name, func() time.Time { return time.UnixMilli(w.now.Load()) })
		}
		w.opened(protocol.AttentionDraft{Slots: 1, ProtectHours: new(0)})
		claim := func(url, utr string) (got protocol.Payment, err error) {
			return does(w, w.Claim, protocol.Caller{}, protocol.PaymentClaim{UTR: utr, PayToken: url[len("https://n1.example/pay/"):]})
		}
		confirm := func(id string) error {
			return must.Err(does(w, w.Confirm, owner("asha"), protocol.PaymentConfirmation{OwnBidRef: protocol.OwnBidRef{ID: id}}))
		}
		one := must.Get(w.bids(unknown(1), "700"))(w.t)
		w.runJobs(nil)
		require.Equal(w.t, protocol.BidClaimed, must.Get(claim(one.PaymentURL, "431298765012"))(w.t).State)
		w.pass(time.Hour)
		w.runJobs(nil)
		require.Equal(w.t, protocol.BidClaimed, w.bid(one.Bid.ID).State, "a claim ends the hold")
		require.Equal(w.t, protocol.SlotTaken, protocol.CodeOf(must.Err(w.bids(unknown(2), "900"))), "and keeps its slot")
		require.NoError(w.t, confirm(one.Bid.ID))
		require.Equal(w.t, protocol.BidLive, w.bid(one.Bid.ID).State)

		two := must.Get(w.bids(unknown(2), "900"))(w.t)
		w.runJobs(nil)
		require.Equal(w.t, protocol.Conflict, protocol.CodeOf(must.Err(claim(two.PaymentURL, "431298765012"))), "one UTR, one bid")
		w.pass(time.Hour)
		require.NoError(w.t, must.Err(claim(two.PaymentURL, "431298765013")), "late, but the money may have left in time")
		w.pass(13 * time.Hour)
		w.runJobs(nil)
		require.Equal(w.t, protocol.BidUnconfirmed, w.bid(two.Bid.ID).State)
		require.NoError(w.t, confirm(two.Bid.ID))
		require.Equal(w.t, protocol.BidLive, w.bid(two.Bid.ID).State)
		outbid := w.bid(one.Bid.ID)
		require.Equal(w.t, protocol.BidRefunding, outbid.State, "a task of the owner at once")
		require.Equal(w.t, "manual", outbid.Refunds[0].State)
		must.Get(does(w, w.MarkRefunded, owner("asha"), protocol.RefundDone{ID: outbid.Refunds[0].ID, Reference: "UTR 431298765099"}))(w.t)
		require.Equal(w.t, protocol.BidRefunded, w.bid(one.Bid.ID).State)
	})
}

// TestDenied: who reports payments that never came may not bid on that board again.
func TestDenied(t *testing.T) {
	each(t, func(w *world) {
		w.Pay = func(a money.Account) (pay.Provider, error) { return upi.New(a.VPA, a.Name, time.Now) }
		w.opened(protocol.AttentionDraft{Slots: 3})
		for n := range 3 {
			got := must.Get(w.bids(unknown(1), "700"))(w.t)
			require.NoError(w.t, w.write(func(ctx context.Context, tx *storage.Tx) error {
				if _, err := w.Claim(ctx, tx, protocol.Caller{ReadToken: got.StatusToken}, protocol.PaymentClaim{UTR: fmt.Sprint(431298765000 + n)}); err != nil {
					return err
				}
				return must.Err(w.Deny(ctx, tx, owner("asha"), protocol.OwnBidRef{ID: got.Bid.ID}))
			}))
		}
		require.Equal(w.t, protocol.ContactRefused, protocol.CodeOf(must.Err(w.bids(unknown(1), "700"))))
		must.Get(w.bids(unknown(2), "700"))(w.t)
	})
}

// TestBoard_Closes: live bids get their money for the unused time, and the board leaves the lists.
func TestBoard_Closes(t *testing.T) {
	each(t, func(w *world) {
		v := w.market(protocol.AttentionDraft{Slots: 2, SlotDays: 10})
		require.Equal(w.t, "live", w.delivers(v.Pays(must.Get(w.bids(keyed(1), "1000"))(w.t).Bid.ID, 1000_00)))
		w.pass(24 * time.Hour)
		two := must.Get(w.bids(keyed(2), "1000"))(w.t)
		require.NoError(w.t, w.write(func(ctx context.Context, tx *storage.Tx) error {
			closed, err := w.Close(ctx, tx, owner("asha"), protocol.OwnInput{})
			require.Equal(w.t, protocol.ClosedBoard{Ended: 1, Withdrawn: 1, Refunds: protocol.MoneyOf("INR", 900_00)}, closed)
			return err
		}))
		require.Equal(w.t, "no slot", w.delivers(v.Pays(two.Bid.ID, 1000_00)))
		w.runJobs(nil)
		require.EqualValues(w.t, 100_00, w.kept())
		require.Equal(w.t, v.Balance(), w.kept())
		require.Equal(w.t, protocol.NotFound, protocol.CodeOf(must.Err(w.readBoard())))
	})
}

// TestPromise: a bid that is not answered in time gets its money back, where the owner promised so.
func TestPromise(t *testing.T) {
	each(t, func(w *world) {
		v := w.market(protocol.AttentionDraft{Slots: 2, SlotDays: 5, RespondWithinDays: new(2), RefundIfNoReply: true})
		for n := range 2 {
			got := must.Get(w.bids(keyed(n), "1000"))(w.t)
			require.Equal(w.t, "live", w.delivers(v.Pays(got.Bid.ID, 1000_00)))
			if n == 0 {
				must.Get(does(w, w.Answer, owner("asha"), protocol.BidAnswer{OwnBidRef: protocol.OwnBidRef{ID: got.Bid.ID}, Answer: "Yes."}))(w.t)
			}
		}
		w.pass(48*time.Hour - time.Millisecond)
		w.runJobs(nil)
		b := must.Get(w.readBoard())(w.t)
		require.Len(w.t, b.Bids, 2)
		w.pass(time.Millisecond)
		w.runJobs(nil)
		b = must.Get(w.readBoard())(w.t)
		require.Len(w.t, b.Bids, 1)
		require.True(w.t, b.Bids[0].Answered)
		require.EqualValues(w.t, 1000_00, w.kept())
	})
}
