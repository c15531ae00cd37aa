package attention_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/storage"
)

// unconfirmed makes a bid whose reported payment the owner lets pass, and returns its id and status token.
func (w *world) unconfirmed(c protocol.Caller, utr string) (id, token string) {
	w.t.Helper()
	got := must.Get(w.bids(c, "700"))(w.t)
	require.NoError(w.t, w.claims(got.StatusToken, utr))
	w.pass(12 * time.Hour)
	w.runJobs(nil)
	require.Equal(w.t, protocol.BidUnconfirmed, w.bid(got.Bid.ID).State)
	return got.Bid.ID, got.StatusToken
}

func (w *world) claims(token, utr string) error {
	return must.Err(does(w, w.Claim, protocol.Caller{}, protocol.PaymentClaim{PayToken: token, UTR: utr}))
}

func (w *world) disputes(c protocol.Caller, id, token, utr string) error {
	return w.write(func(ctx context.Context, tx *storage.Tx) error {
		in := protocol.PaymentDispute{UTR: utr}
		in.ID, in.StatusToken = id, token
		return must.Err(w.Dispute(ctx, tx, c, in))
	})
}

func (w *world) denies(c protocol.Caller, id string) error {
	return must.Err(does(w, w.Deny, c, protocol.OwnBidRef{ID: id}))
}

func (w *world) confirms(c protocol.Caller, id string, amount protocol.Decimal) error {
	return must.Err(does(w, w.Confirm, c, protocol.PaymentConfirmation{OwnBidRef: protocol.OwnBidRef{ID: id}, Amount: amount}))
}

func utr(n int) string { return fmt.Sprintf("43129876%04d", n) }

// TestDispute: the payer whose payment was not confirmed says so once; the owner confirms or denies it, and nobody else.
func TestDispute(t *testing.T) {
	each(t, func(w *world) {
		w.opened(protocol.AttentionDraft{Slots: 5})
		one, token := w.unconfirmed(keyed(1), utr(1))
		code := func(want protocol.Code, err error) {
			w.t.Helper()
			require.Equal(w.t, want, protocol.CodeOf(err), "%v", err)
		}
		code(protocol.NotFound, w.disputes(keyed(2), one, "", utr(1)))
		code(protocol.NotFound, w.disputes(unknown(1), one, "", utr(1)))
		code(protocol.NotFound, w.disputes(protocol.Caller{}, one, protocol.NewReadToken(), utr(1)))
		code(protocol.Conflict, w.denies(owner("asha"), one)) // nothing waits for a decision
		require.NoError(w.t, w.disputes(protocol.Caller{}, one, token, utr(7)), "with the status token")
		require.NoError(w.t, w.disputes(keyed(1), one, "", utr(7)), "a repeat is the same")
		code(protocol.Conflict, w.disputes(keyed(1), one, "", utr(8))) // once
		code(protocol.Conflict, w.claims(token, utr(8)))
		got := w.bid(one)
		require.Equal(w.t, utr(7), *got.UTR)
		require.NotNil(w.t, got.DisputedAt)
		require.Equal(w.t, []protocol.BidState{"held", "claimed", "unconfirmed", "unconfirmed"}, states(got), "its state is as before")
		code(protocol.NotFound, w.denies(owner("ravi"), one))
		require.NoError(w.t, w.confirms(owner("asha"), one, ""))
		require.Equal(w.t, protocol.BidLive, w.bid(one).State)
		code(protocol.Conflict, w.disputes(keyed(1), one, "", utr(7+1)))

		two, _ := w.unconfirmed(keyed(2), utr(2))
		code(protocol.Conflict, w.disputes(keyed(2), two, "", utr(7))) // a reference that paid another bid
		require.NoError(w.t, w.disputes(keyed(2), two, "", utr(2)))
		require.NoError(w.t, w.denies(owner("asha"), two))
		require.Equal(w.t, protocol.BidUnconfirmed, w.bid(two).State)
		code(protocol.Conflict, w.denies(owner("asha"), two)) // once
		code(protocol.Conflict, w.disputes(keyed(2), two, "", utr(3)))
		require.Contains(w.t, w.bid(two).Note, "denied")

		three, _ := w.unconfirmed(keyed(3), utr(4))
		require.NoError(w.t, w.disputes(keyed(3), three, "", utr(4)))
		require.NoError(w.t, w.confirms(owner("asha"), three, "600"), "what arrived was less")
		require.Equal(w.t, protocol.BidUnconfirmed, w.bid(three).State)
		require.Empty(w.t, w.disputed(), "that is a decision too")
		require.Equal(w.t, "manual", w.bid(three).Refunds[0].State)
	})
}

// TestDispute_States: only a payment that was reported and not confirmed is disputed.
func TestDispute_States(t *testing.T) {
	each(t, func(w *world) {
		w.opened(protocol.AttentionDraft{Slots: 5})
		refused := func(id string) {
			w.t.Helper()
			require.Equal(w.t, protocol.Conflict, protocol.CodeOf(w.disputes(keyed(1), id, "", utr(1))))
		}
		got := must.Get(w.bids(keyed(1), "700"))(w.t)
		refused(got.Bid.ID) // held
		require.NoError(w.t, w.claims(got.StatusToken, utr(1)))
		refused(got.Bid.ID) // claimed
		require.NoError(w.t, w.confirms(owner("asha"), got.Bid.ID, ""))
		refused(got.Bid.ID) // live
		w.removed(got.Bid.ID)
		refused(got.Bid.ID) // refunding
		got = must.Get(w.bids(keyed(1), "700"))(w.t)
		w.pass(time.Hour)
		refused(got.Bid.ID) // lapsed, before the job
		w.runJobs(nil)
		refused(got.Bid.ID)
		got = must.Get(w.bids(keyed(1), "700"))(w.t)
		require.NoError(w.t, w.claims(got.StatusToken, utr(2)))
		w.pass(12 * time.Hour)
		require.NoError(w.t, w.disputes(keyed(1), got.Bid.ID, "", utr(2)), "not confirmed, before the job")
		w.runJobs(nil)
		require.Equal(w.t, []protocol.BidState{"held", "claimed", "unconfirmed", "unconfirmed"}, states(w.bid(got.Bid.ID)))
	})
}

// disputed are the bids whose dispute waits for the owner.
func (w *world) disputed() (ids []string) {
	w.t.Helper()
	require.NoError(w.t, w.read(func(ctx context.Context, tx *storage.Tx) error {
		page, err := w.Bids(ctx, tx, owner("asha"), protocol.BidQuery{Disputed: true})
		for _, b := range page.Items {
			ids = append(ids, b.ID)
		}
		return err
	}))
	return ids
}

// TestDispute_Closes: three known payers whose dispute waits close a board to new bids until the owner has decided; strangers never do, nor
// does one payer alone. The board says what was not confirmed in 90 days.
func TestDispute_Closes(t *testing.T) {
	each(t, func(w *world) {
		w.opened(protocol.AttentionDraft{Slots: 30})
		board := func() protocol.AttentionBoard { return must.Get(w.readBoard())(w.t) }
		for n := range 5 {
			id, token := w.unconfirmed(unknown(n), utr(100+n))
			require.NoError(w.t, w.disputes(protocol.Caller{}, id, token, utr(100+n)))
		}
		require.Equal(w.t, protocol.Unconfirmed{Others: 5}, board().Unconfirmed)
		require.True(w.t, board().Accepting, "strangers close nothing")
		require.Len(w.t, w.disputed(), 5)

		var known []string
		for n := range 3 {
			id, _ := w.unconfirmed(keyed(1), utr(200+n))
			require.NoError(w.t, w.disputes(keyed(1), id, "", utr(200+n)))
			known = append(known, id)
		}
		require.Equal(w.t, protocol.Unconfirmed{Known: 3, Others: 5, Disputed: 1}, board().Unconfirmed, "one payer counts once")
		require.True(w.t, board().Accepting)
		id, token := w.unconfirmed(unknown(9), utr(300))
		require.NoError(w.t, w.disputes(owner("ravi"), id, token, utr(300)), "a stranger's bid, a signed-in payer")
		require.True(w.t, board().Accepting)
		waiting := must.Get(w.bids(keyed(7), "700"))(w.t)
		last, _ := w.unconfirmed(keyed(3), utr(301))
		require.NoError(w.t, w.disputes(keyed(3), last, "", utr(301)))
		require.Equal(w.t, 3, board().Unconfirmed.Disputed)
		require.False(w.t, board().Accepting)
		_, err := w.bids(keyed(4), "700")
		require.Equal(w.t, protocol.Conflict, protocol.CodeOf(err))
		require.ErrorContains(w.t, err, "until its owner decides about payments that 3 payers dispute")
		require.False(w.t, must.Get(w.check("700", ""))(w.t).WouldGetSlot)
		must.Get(does(w, w.PutOwn, owner("asha"), protocol.AttentionDraft{Slots: 30}))(w.t)
		require.False(w.t, board().Accepting, "saving the board opens nothing")
		w.pass(100 * 24 * time.Hour)
		w.runJobs(nil)
		require.False(w.t, board().Accepting, "nor does time")
		require.Equal(w.t, protocol.Unconfirmed{Disputed: 3}, board().Unconfirmed)
		require.Equal(w.t, protocol.BidLapsed, w.bid(waiting.Bid.ID).State)

		for i, id := range known {
			require.False(w.t, board().Accepting, "each is decided")
			if i == 0 {
				require.NoError(w.t, w.confirms(owner("asha"), id, ""))
			} else {
				require.NoError(w.t, w.denies(owner("asha"), id))
			}
		}
		require.True(w.t, board().Accepting)
		require.Equal(w.t, 2, board().Unconfirmed.Disputed)
		must.Get(w.bids(keyed(4), "700"))(w.t)
	})
}

// TestDispute_Kept: a bid whose payment was reported is kept as long as the board counts it, and one that a known payer disputes until it is
// decided.
func TestDispute_Kept(t *testing.T) {
	each(t, func(w *world) {
		w.opened(protocol.AttentionDraft{Slots: 30})
		reported, _ := w.unconfirmed(keyed(1), utr(1))
		disputed, _ := w.unconfirmed(keyed(2), utr(2))
		require.NoError(w.t, w.disputes(keyed(2), disputed, "", utr(2)))
		stranger, token := w.unconfirmed(unknown(3), utr(3))
		require.NoError(w.t, w.disputes(protocol.Caller{}, stranger, token, utr(3)))
		lapsed := must.Get(w.bids(keyed(4), "700"))(w.t)
		w.pass(time.Hour)
		w.runJobs(nil)
		left := func() (all []string) {
			require.NoError(w.t, w.write(func(ctx context.Context, tx *storage.Tx) error {
				for {
					if n, err := tx.Bids().Prune(ctx, tx.Now.Add(-30*24*time.Hour)); n == 0 || err != nil {
						return err
					}
				}
			}))
			require.NoError(w.t, w.read(func(ctx context.Context, tx *storage.Tx) error {
				for _, id := range []string{reported, disputed, stranger, lapsed.Bid.ID} {
					if _, err := tx.Bids().ByID(ctx, id); err == nil {
						all = append(all, id)
					}
				}
				return nil
			}))
			return all
		}
		w.pass(31 * 24 * time.Hour)
		require.Equal(w.t, []string{reported, disputed, stranger}, left())
		w.pass(60 * 24 * time.Hour)
		require.Equal(w.t, []string{disputed}, left())
	})
}
