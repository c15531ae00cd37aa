package attention_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"stoa/node/money"
	"stoa/node/out/pay"
	"stoa/node/out/pay/paytest"
	"stoa/protocol"
	"stoa/storage"
)

// runJobs does what is due. A job for which crash reports true is done and its outcome is lost.
func (w *world) runJobs(crash func(storage.Job) bool) {
	w.t.Helper()
	for {
		jobs, _, err := w.db.ClaimJobs(context.Background(), "test", 10, 2*time.Minute)
		if err != nil {
			w.t.Fatal(err)
		}
		if len(jobs) == 0 {
			return
		}
		for _, j := range jobs {
			after, err := w.handle(j)
			if err == nil && (crash == nil || !crash(j)) {
				err = w.finish(j, after)
			}
			if err != nil {
				w.t.Errorf("%s: %v", j.Kind, err)
				return
			}
		}
	}
}

// handle does the outgoing calls of a job and returns what is to be written.
func (w *world) handle(j storage.Job) (func(context.Context, *storage.Tx) error, error) {
	handlers := w.Jobs()
	maps.Copy(handlers, w.Money.Jobs())
	handlers[storage.DropJob] = func(_ context.Context, j storage.Job) (func(context.Context, *storage.Tx) error, error) {
		return func(ctx context.Context, tx *storage.Tx) error { return tx.Threads().DropAll(ctx, string(j.Args)) }, nil
	}
	if handle := handlers[j.Kind]; handle != nil {
		return handle(context.Background(), j)
	}
	return nil, nil
}

// finish ends a job with what it writes, as a worker does.
func (w *world) finish(j storage.Job, after func(context.Context, *storage.Tx) error) error {
	return w.write(func(ctx context.Context, tx *storage.Tx) error {
		if err := tx.Jobs().Finish(ctx, j.ID); err != nil || after == nil {
			return err
		}
		return after(ctx, tx)
	})
}

// market opens a board that is paid by the vendor.
func (w *world) market(in protocol.AttentionDraft) *paytest.Vendor {
	w.t.Helper()
	v := paytest.NewVendor(func() time.Time { return time.UnixMilli(w.now.Load()) })
	w.Pay = func(money.Account) (pay.Provider, error) { return v, nil }
	w.person("asha", protocol.Person)
	draft := protocol.PaymentDraft{Provider: protocol.PayRazorpay, KeyID: "rzp_test_1", KeySecret: "secret-key", WebhookSecrets: []string{"whsec-one"}}
	if _, err := w.account("asha", draft); err != nil {
		w.t.Fatal(err)
	}
	if _, err := w.board("asha", in); err != nil {
		w.t.Fatal(err)
	}
	return v
}

func (w *world) bids(c protocol.Caller, amount string) (got protocol.BidReceipt, err error) {
	return does(w, w.Bid, c, protocol.NewBid{Handle: "asha", Amount: protocol.Decimal(amount), Message: "Yarn from Panipat.", Name: "Meera"})
}

// delivers applies an event as the job of a webhook does.
func (w *world) delivers(ev pay.Event) (outcome string) {
	w.t.Helper()
	outcome, err := w.deliver(ev)
	if err != nil {
		w.t.Error(err)
	}
	return outcome
}

func (w *world) deliver(ev pay.Event) (outcome string, err error) {
	err = w.write(func(ctx context.Context, tx *storage.Tx) error {
		bid, err := tx.Bids().ByID(ctx, ev.Ref[:len(ev.Ref)-2])
		if err != nil {
			return err
		}
		account, err := tx.PaymentAccounts().ByID(ctx, bid.Account)
		if err == nil {
			outcome, err = w.Apply(ctx, tx, account, ev)
		}
		return err
	})
	return outcome, err
}

func (w *world) bid(id string) (got protocol.OwnBid) {
	w.t.Helper()
	if err := w.read(func(ctx context.Context, tx *storage.Tx) (err error) {
		got, err = w.GetBid(ctx, tx, owner("asha"), protocol.OwnBidRef{ID: id})
		return err
	}); err != nil {
		w.t.Fatal(err)
	}
	return got
}

// kept is the sum of the board's ledger.
func (w *world) kept() (sum int64) {
	w.t.Helper()
	if err := w.read(func(ctx context.Context, tx *storage.Tx) error {
		b, err := tx.AttentionBoards().ByHandle(ctx, "asha")
		if err != nil {
			return err
		}
		return tx.Payments().Ledger(ctx, b.ID, start.Add(-time.Hour), start.AddDate(80, 0, 0), func(l storage.LedgerLine) error {
			sum += l.Paise
			return nil
		})
	}); err != nil {
		w.t.Fatal(err)
	}
	return sum
}

func keyed(n int) protocol.Caller {
	return protocol.Caller{Standing: protocol.Signed, KeyID: fmt.Sprintf("key-%d", n), Network: "net-keys"}
}

func unknown(n int) protocol.Caller {
	return protocol.Caller{Standing: protocol.Proof, Network: fmt.Sprintf("net-%d", n)}
}

// states counts the history of a bid.
func states(b protocol.OwnBid) (all []protocol.BidState) {
	for _, m := range b.History {
		all = append(all, m.State)
	}
	return slices.Clip(all)
}
