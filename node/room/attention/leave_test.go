package attention_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/node/money"
	"stoa/node/out/pay"
	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/storage"
)

func (w *world) deletes(handle string) error {
	return w.write(func(ctx context.Context, tx *storage.Tx) error { return tx.Profiles().Delete(ctx, handle) })
}

func (w *world) closes(handle string) {
	w.t.Helper()
	must.Get(does(w, w.Close, owner(handle), protocol.OwnInput{}))(w.t)
	w.runJobs(nil)
}

// TestDeleted_PaidLate: a profile is not deleted while its board has money under way. A payment that
// the bank reports after that is sent back all the same: the secrets of the account stay until then.
func TestDeleted_PaidLate(t *testing.T) {
	each(t, func(w *world) {
		v := w.market(protocol.AttentionDraft{Slots: 3})
		w.Pay = func(a money.Account) (pay.Provider, error) {
			if a.KeySecret == "" {
				return nil, errors.New("no key")
			}
			return v, nil
		}
		late := must.Get(w.bids(keyed(1), "500"))(w.t)
		live := must.Get(w.bids(keyed(2), "700"))(w.t)
		w.delivers(v.Pays(live.Bid.ID, 700_00))
		require.ErrorIs(w.t, w.deletes("asha"), storage.ErrOwing)
		w.pass(20 * time.Minute)
		w.runJobs(nil)
		require.ErrorIs(w.t, w.deletes("asha"), storage.ErrOwing, "one is live")
		w.closes("asha")
		require.NoError(w.t, w.deletes("asha"))

		account := func() (a *storage.PaymentAccount) {
			require.NoError(w.t, w.read(func(ctx context.Context, tx *storage.Tx) error {
				bid, err := tx.Bids().ByID(ctx, late.Bid.ID)
				if err == nil {
					a, err = tx.PaymentAccounts().ByID(ctx, bid.Account)
				}
				return err
			}))
			return a
		}
		require.NotNil(w.t, account().Sealed)
		require.Empty(w.t, account().Handle)
		require.Equal(w.t, "no slot", w.delivers(v.Pays(late.Bid.ID, 500_00)))
		w.runJobs(nil)
		require.Equal(w.t, protocol.BidRefunded, w.stored(late.Bid.ID).State)
		require.Nil(w.t, account().Sealed, "no bid needs them any more")
		ended := w.stored(live.Bid.ID)
		require.EqualValues(w.t, 700_00-protocol.UnusedRefund(700_00, ended.LiveAt, ended.EndsAt, start.Add(20*time.Minute), 0), v.Balance(),
			"the owner has what was used of the live bid")
	})
}

func (w *world) stored(id string) (b *storage.StoredBid) {
	w.t.Helper()
	require.NoError(w.t, w.read(func(ctx context.Context, tx *storage.Tx) (err error) {
		b, err = tx.Bids().ByID(ctx, id)
		return err
	}))
	return b
}

// TestDeleted_UPI: nobody is left to confirm a payment by UPI, so none is reported any more.
func TestDeleted_UPI(t *testing.T) {
	each(t, func(w *world) {
		w.opened(protocol.AttentionDraft{Slots: 1})
		got, err := w.bids(keyed(1), "500")
		require.NoError(w.t, err)
		w.pass(20 * time.Minute)
		w.runJobs(nil)
		payment := func() (p protocol.Payment) {
			p = must.Get(sees(w, w.GetPayment, protocol.Caller{}, protocol.PaymentInput{PayToken: got.StatusToken}))(w.t)
			return p
		}
		require.Equal(w.t, protocol.MaxClaims, payment().ClaimsLeft)
		w.closes("asha")
		require.NoError(w.t, w.deletes("asha"))
		require.Zero(w.t, payment().ClaimsLeft)
		err = w.write(func(ctx context.Context, tx *storage.Tx) error {
			return must.Err(w.Claim(ctx, tx, protocol.Caller{}, protocol.PaymentClaim{PayToken: got.StatusToken, UTR: "412345678901"}))
		})
		require.Equal(w.t, protocol.Conflict, protocol.CodeOf(err))
		require.ErrorContains(w.t, err, "@asha has left this node")
	})
}
