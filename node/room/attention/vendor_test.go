package attention_test

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"stoa/node/money"
	"stoa/node/out/pay"
	"stoa/protocol"
	"stoa/storage"
)

// vendor is a payment provider that keeps a book, which the node's ledger is compared with.
type vendor struct {
	mu      sync.Mutex // guards the rest
	now     func() time.Time
	links   map[string]pay.LinkRequest // by reference
	paid    map[string]int64           // by payment id
	refunds map[string]int64           // by key
	of      map[string]string          // payment of a refund
	status  map[string]pay.RefundStatus
	link    error            // what CreateLink answers
	refund  error            // what Refund answers
	answer  pay.RefundStatus // of new refunds; "" done
	later   pay.RefundStatus // what becomes of a pending one; "" done
	lost    bool             // Refund makes the refund, and its answer does not arrive
}

func newVendor(now func() time.Time) *vendor {
	return &vendor{now: now, links: map[string]pay.LinkRequest{}, paid: map[string]int64{}, refunds: map[string]int64{},
		of: map[string]string{}, status: map[string]pay.RefundStatus{}}
}

func (v *vendor) Name() string { return "razorpay" }
func (v *vendor) Caps() pay.Caps {
	return pay.Caps{MinPaise: 100, Refunds: true, Cancel: true, Webhook: true}
}
func (v *vendor) Check(context.Context) error { return nil }

func (v *vendor) CreateLink(_ context.Context, r pay.LinkRequest) (pay.Link, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.link != nil {
		return pay.Link{}, v.link
	}
	v.links[r.Ref] = r
	return pay.Link{ProviderID: "plink_" + r.Ref, URL: "https://pay.example/" + r.Ref, ExpiresAt: r.ExpiresAt}, nil
}

func (v *vendor) FetchLink(context.Context, string) ([]pay.Event, error) { return nil, nil }
func (v *vendor) CancelLink(context.Context, string) error               { return nil }
func (v *vendor) ParseWebhook(http.Header, []byte) ([]pay.Event, error)  { return nil, pay.ErrSignature }

func (v *vendor) Refund(_ context.Context, payment, key string, paise int64) (pay.Refund, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.refund != nil {
		return pay.Refund{}, v.refund
	}
	if before, made := v.refunds[key]; made && before != paise {
		return pay.Refund{}, pay.ErrRefused
	}
	if _, made := v.refunds[key]; !made && v.left(payment) < paise {
		return pay.Refund{}, pay.ErrRefused
	}
	v.refunds[key], v.of[key] = paise, payment
	if v.status[key] == "" {
		v.status[key] = pay.RefundOK
		if v.answer != "" && !strings.HasSuffix(key, "-3") { // within the week in which it is tried
			v.status[key] = v.answer
		}
	}
	if v.lost {
		return pay.Refund{}, pay.Fail(pay.ErrTemporary, "no answer")
	}
	return pay.Refund{ID: key, Status: v.status[key]}, nil
}

func (v *vendor) FetchRefund(_ context.Context, id string) (pay.Refund, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.status[id] == pay.RefundPending {
		v.status[id] = cmp.Or(v.later, pay.RefundOK)
	}
	return pay.Refund{ID: id, Status: v.status[id]}, nil
}

// pays notes a payment in the book and returns its event.
func (v *vendor) pays(bid string, paise int64) pay.Event {
	v.mu.Lock()
	defer v.mu.Unlock()
	id := fmt.Sprintf("pay_%d", len(v.paid)+1)
	v.paid[id] = paise
	return pay.Event{
		Provider: "razorpay", EventID: "evt_" + id, Kind: pay.Paid, Ref: pay.Ref(bid, 1), PaymentID: id, AmountPaise: paise, Currency: "INR", OccurredAt: v.now(),
	}
}

// left is what is not refunded of a payment, nor on its way.
func (v *vendor) left(payment string) int64 {
	left := v.paid[payment]
	for key, paise := range v.refunds {
		if v.of[key] == payment && v.status[key] != pay.RefundNot {
			left -= paise
		}
	}
	return left
}

// gives notes in the book what the owner refunds of a payment in the vendor's own pages, and returns its event.
func (v *vendor) gives(bid, payment string, paise int64) pay.Event {
	v.mu.Lock()
	defer v.mu.Unlock()
	id := fmt.Sprintf("rfnd_own_%d", len(v.refunds)+1)
	v.refunds[id], v.of[id], v.status[id] = paise, payment, pay.RefundOK
	return pay.Event{
		Provider: "razorpay", EventID: "evt_" + id, Kind: pay.RefundDone, Ref: pay.Ref(bid, 1), PaymentID: payment, RefundID: id, AmountPaise: paise,
		Currency: "INR", OccurredAt: v.now(),
	}
}

// balance is what the vendor's book says the owner has.
func (v *vendor) balance() (sum int64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for paise := range maps.Values(v.paid) {
		sum += paise
	}
	for key, paise := range v.refunds {
		if v.status[key] == pay.RefundOK {
			sum -= paise
		}
	}
	return sum
}

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
func (w *world) market(in protocol.AttentionDraft) *vendor {
	w.t.Helper()
	v := newVendor(func() time.Time { return time.UnixMilli(w.now.Load()) })
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
	err = w.write(func(ctx context.Context, tx *storage.Tx) error {
		got, err = w.Bid(ctx, tx, c, protocol.NewBid{Handle: "asha", Amount: protocol.Decimal(amount), Message: "Yarn from Panipat.", Name: "Meera"})
		return err
	})
	return got, err
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
