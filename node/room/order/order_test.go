package order_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"maps"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/identity/key"
	"stoa/node/hall"
	"stoa/node/money"
	"stoa/node/out/pay"
	"stoa/node/out/pay/paytest"
	"stoa/node/out/pay/razorpay"
	"stoa/node/out/pay/sandbox"
	"stoa/node/out/pay/upi"
	"stoa/node/room/attention"
	"stoa/node/room/order"
	"stoa/node/room/reputation"
	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/storage"
	"stoa/storage/storagetest"
)

var start = time.Date(2026, 11, 1, 9, 0, 0, 0, time.UTC)

// world is the rooms of orders, bids and receipts on a database with a clock that the test moves.
type world struct {
	*order.Orders
	pays    *attention.Attention
	reviews *reputation.Reputation
	t       testing.TB
	db      *storage.DB
	now     *atomic.Int64 // Unix milliseconds
	sent    []string      // letters
	mu      sync.Mutex    // guards sent
	dal     string        // variant of the item dal, which is not counted
	last    string        // of the item last
}

func each(t *testing.T, fn func(w *world)) {
	t.Parallel()
	storagetest.EachConfig(t, func(t *testing.T, c storage.Config) { fn(open(t, c)) })
}

func open(t testing.TB, c storage.Config) *world {
	w := &world{t: t, now: new(atomic.Int64)}
	w.now.Store(start.UnixMilli())
	c.Now = func() time.Time { return time.UnixMilli(w.now.Load()) }
	w.db = must.Get(storage.Open(t.Context(), c))(t)
	t.Cleanup(func() {
		require.NoError(t, w.db.Check(context.Background()), "the invariants of the database hold")
		require.NoError(t, w.db.Close())
	})
	h := hall.House{Base: "https://n1.example", DB: w.db, Private: true, Words: english}
	signer := must.Get(key.GenerateEd25519())(t)
	sealer := must.Get(key.NewSealer(make([]byte, 32)))(t)
	books := &money.Money{Base: h.Base, DB: w.db, Seal: sealer, Kinds: map[string]money.Kind{}}
	vendor := httptest.NewServer(paytest.NewRazorpay("rzp_live_1", "secret-key", "whsec-one", c.Now))
	t.Cleanup(vendor.Close)
	books.Pay = func(a money.Account) (pay.Provider, error) {
		switch a.Provider {
		case protocol.PaySandbox:
			return sandbox.New(sandbox.Options{Enabled: true, Secret: a.WebhookSecrets[0], Page: h.Base + "/pay/sandbox", Now: c.Now})
		case protocol.PayRazorpay:
			return razorpay.New(razorpay.Account{KeyID: a.KeyID, KeySecret: a.KeySecret, WebhookSecrets: a.WebhookSecrets, Client: vendor.Client(), Base: vendor.URL})
		}
		return upi.New(a.VPA, a.Name, c.Now)
	}
	floors := must.Get(protocol.ParseReviewFloors(nil))(t)
	w.reviews = reputation.New(h, signer, nil, nil, nil, floors, func(p *storage.StoredProfile, at time.Time) protocol.Author {
		return protocol.Author{Name: p.Draft.Name, Handle: &p.Draft.Handle}
	}, true)
	w.reviews.MailKey = []byte("mail key")
	w.pays = attention.New(h, true, books, nil, nil)
	w.Orders = order.New(h, "n1.example", books, []byte("mail key"), func() order.Send { return w.send }, w.reviews)
	w.shop()
	return w
}

type plain struct{}

func english(string) hall.Words                      { return plain{} }
func (plain) Text(key string, args ...any) string    { return fmt.Sprintf(key, args...) }
func (plain) Time(t time.Time, layout string) string { return t.Format(layout) }

func (w *world) send(_ context.Context, _, to, subject, text string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sent = append(w.sent, to+"\n"+subject+"\n"+text)
	return nil
}

func (w *world) pass(d time.Duration) { w.now.Add(d.Milliseconds()) }

func does[In, Out any](w *world, fn func(context.Context, *storage.Tx, protocol.Caller, In) (Out, error), c protocol.Caller, in In) (out Out, err error) {
	err = w.db.Write(context.Background(), func(ctx context.Context, tx *storage.Tx) (err error) {
		out, err = fn(ctx, tx, c, in)
		return err
	})
	return out, err
}

func owner(handle string) protocol.Caller {
	return protocol.Caller{Standing: protocol.Session, Account: "acc_" + handle, Handle: handle, Handles: []string{handle}, Network: "net-" + handle}
}

func stranger(n int) protocol.Caller { return protocol.Caller{Network: fmt.Sprintf("net-%d", n)} }
func known(n int) protocol.Caller {
	return protocol.Caller{Standing: protocol.Session, Account: fmt.Sprintf("acc_%d", n), Network: fmt.Sprintf("known-%d", n)}
}

// shop makes the shop rao with dal at ₹120 and the item last at ₹80, of which one piece is left.
func (w *world) shop() {
	t := w.t
	require.NoError(t, w.db.Write(t.Context(), func(ctx context.Context, tx *storage.Tx) error {
		p := &storage.StoredProfile{Draft: protocol.ProfileDraft{Handle: "rao", Name: "Rao Foods", Kind: protocol.Business}}
		if _, err := tx.Profiles().Put(ctx, p); err != nil {
			return err
		}
		if _, _, err := tx.Merchants().Put(ctx, "rao", protocol.MerchantDraft{Category: "food"}); err != nil {
			return err
		}
		price := func(amount string) *protocol.MoneyDraft {
			return &protocol.MoneyDraft{Currency: "INR", Amount: protocol.Decimal(amount)}
		}
		if _, err := tx.Items().Put(ctx, "rao", protocol.ItemDraft{SKU: "dal", Name: "Toor dal", Price: price("120")},
			protocol.ItemDraft{SKU: "last", Name: "Last thali", Price: price("80")}); err != nil {
			return err
		}
		for sku, id := range map[string]*string{"dal": &w.dal, "last": &w.last} {
			i, err := tx.Items().BySKU(ctx, "rao", sku)
			if err != nil {
				return err
			}
			*id = i.Variants()[0].ID
		}
		return nil
	}))
	must.Get(does(w, w.PutTill, owner("rao"), protocol.TillDraft{Open: true, Pickup: true, Delivery: true, DeliveryPrice: "40", FreeFrom: "500",
		Area: []string{"5600"}, PayOnDelivery: true}))(t)
	w.account(protocol.PaymentDraft{Provider: protocol.PayUPI, VPA: "rao@okbank"})
	w.stock(w.last, 1)
}

func (w *world) account(in protocol.PaymentDraft) protocol.PaymentAccount {
	return must.Get(does(w, w.pays.PutAccount, owner("rao"), in))(w.t)
}

func (w *world) stock(variant string, n int) {
	w.t.Helper()
	must.Get(does(w, w.PutStock, owner("rao"), protocol.StockDraft{Stock: []protocol.StockCount{{ID: variant, Pieces: &n}}}))(w.t)
}

func (w *world) left(variant string) storage.Stocked {
	w.t.Helper()
	var s storage.Stocked
	require.NoError(w.t, w.db.Read(w.t.Context(), func(ctx context.Context, tx *storage.Tx) error {
		till, err := tx.Tills().ByHandle(ctx, "rao")
		if err == nil {
			s, err = tx.Tills().Stock(ctx, till.ID, variant)
		}
		return err
	}))
	return s
}

func wants(n int, variant string, pieces int) protocol.NewOrder {
	return protocol.NewOrder{Basket: protocol.Basket{Items: []protocol.BasketItem{{ID: variant, Quantity: pieces}}}, Way: protocol.ByPickup, Pay: protocol.PayNow,
		OrderBuyer: protocol.OrderBuyer{Name: "Ravi", Mail: fmt.Sprintf("ravi%d@example.org", n)}}
}

func (w *world) order(token string) protocol.ShopOrder {
	w.t.Helper()
	return must.Get(does(w, w.Read, protocol.Caller{}, protocol.OrderInput{Token: token}))(w.t)
}

func (w *world) does(id string, do protocol.OrderDo) (protocol.ShopOrder, error) {
	return does(w, w.Update, owner("rao"), protocol.OrderUpdate{ID: id, Do: do})
}

// jobs runs every job that is due, until none is.
func (w *world) jobs() {
	w.t.Helper()
	handlers := w.Orders.Jobs()
	for _, more := range []map[storage.JobKind]storage.JobHandler{w.Money.Jobs(), w.reviews.Jobs()} {
		maps.Copy(handlers, more)
	}
	for range 200 {
		all, _, err := w.db.ClaimJobs(w.t.Context(), "test", 20, 2*time.Minute)
		require.NoError(w.t, err)
		if len(all) == 0 {
			return
		}
		for _, j := range all {
			var after func(context.Context, *storage.Tx) error
			if h := handlers[j.Kind]; h != nil {
				after = must.Get(h(w.t.Context(), j))(w.t)
			}
			require.NoError(w.t, w.db.Write(w.t.Context(), func(ctx context.Context, tx *storage.Tx) error {
				if err := tx.Jobs().Finish(ctx, j.ID); err != nil || after == nil {
					return err
				}
				return after(ctx, tx)
			}))
		}
	}
	w.t.Fatal("jobs without end")
}

// TestOrder_Stock: pieces are counted by id, by SKU and, of an item with variants, by both SKUs; the first settings of a shop may come twice at once.
func TestOrder_Stock(t *testing.T) {
	each(t, func(w *world) {
		require.NoError(w.t, w.db.Write(w.t.Context(), func(ctx context.Context, tx *storage.Tx) error {
			_, err := tx.Items().Put(ctx, "rao", protocol.ItemDraft{SKU: "rice", Name: "Rice", Price: &protocol.MoneyDraft{Currency: "INR", Amount: "90"},
				Options:  []protocol.ItemOption{{Name: "Size", Values: []string{"1 kg", "5 kg"}}},
				Variants: []protocol.VariantDraft{{SKU: "1kg", Options: []string{"1 kg"}}, {SKU: "5kg", Options: []string{"5 kg"}}}})
			if err != nil {
				return err
			}
			_, err = tx.Profiles().Put(ctx, &storage.StoredProfile{Draft: protocol.ProfileDraft{Handle: "sita", Name: "Sita", Kind: protocol.Business}})
			return err
		}))
		count := func(c protocol.Caller, id string) error {
			_, err := does(w, w.PutStock, c, protocol.StockDraft{Stock: []protocol.StockCount{{ID: id, Pieces: new(7)}}})
			return err
		}
		for _, id := range []string{w.dal, "last", "rice/5kg"} {
			require.NoError(w.t, count(owner("rao"), id), id)
		}
		require.Equal(w.t, 7, w.left(w.last).Pieces)
		require.Equal(w.t, 7, w.left(w.dal).Pieces)
		for _, id := range []string{"none", "rice", "rice/9kg", "/1kg"} {
			require.Equal(w.t, protocol.Validation, protocol.CodeOf(count(owner("rao"), id)), id)
		}
		require.Equal(w.t, protocol.Validation, protocol.CodeOf(count(owner("sita"), "last")))
		var group sync.WaitGroup
		for range 8 {
			group.Go(func() { must.Get(does(w, w.PutTill, owner("sita"), protocol.TillDraft{Pickup: true}))(w.t) })
		}
		group.Wait()
	})
}

// TestOrder_UPI: an order is paid by UPI, which its buyer reports and the shop confirms; it is handed over, and refunded in parts.
func TestOrder_UPI(t *testing.T) {
	each(t, func(w *world) {
		in := wants(1, w.dal, 2)
		in.Way, in.Street, in.PIN, in.Total = protocol.ByDelivery, "4 Gandhi Bazaar", "560004", "280"
		made := must.Get(does(w, w.Make, known(1), in))(w.t)
		require.Equal(w.t, "280.00", made.Order.Total.Amount)
		payment := must.Get(does(w, w.pays.GetPayment, protocol.Caller{}, protocol.PaymentInput{PayToken: made.Token}))(w.t)
		require.Equal(w.t, "ready", payment.Link)
		require.Contains(w.t, *payment.UPI, "am=280.00")

		require.Equal(w.t, protocol.Conflict, protocol.CodeOf(must.Err(w.does(made.Order.ID, protocol.OrderSent))), "it is not paid")
		claim := protocol.PaymentClaim{PayToken: made.Token, UTR: "431298765012"}
		require.Equal(w.t, protocol.BidClaimed, must.Get(does(w, w.pays.Claim, protocol.Caller{}, claim))(w.t).State)
		w.pass(time.Hour)
		w.jobs()
		require.True(w.t, w.order(made.Token).Claimed, "it waits for the shop")
		got := must.Get(w.does(made.Order.ID, protocol.OrderConfirm))(w.t)
		require.Equal(w.t, protocol.OrderPaid, got.State)
		require.Equal(w.t, protocol.KnownConfirmed, *got.Known)
		require.NotNil(w.t, got.Receipt)
		require.Equal(w.t, protocol.Conflict, protocol.CodeOf(must.Err(w.does(made.Order.ID, protocol.OrderConfirm))))

		must.Get(w.does(made.Order.ID, protocol.OrderSent))(w.t)
		require.Equal(w.t, protocol.OrderFulfilled, must.Get(w.does(made.Order.ID, protocol.OrderDelivered))(w.t).State)
		half := protocol.OrderUpdate{ID: made.Order.ID, Do: protocol.OrderRefund, Amount: "80", Note: "A packet was torn."}
		got = must.Get(does(w, w.Update, owner("rao"), half))(w.t)
		require.Equal(w.t, "manual", got.Refunds[0].State)
		done := func(id string) {
			must.Get(does(w, w.pays.MarkRefunded, owner("rao"), protocol.RefundDone{ID: id, Reference: "431298765999"}))(w.t)
		}
		done(got.Refunds[0].ID)
		require.Equal(w.t, protocol.OrderFulfilled, w.order(made.Token).State)
		half.Amount = "200.01"
		require.Equal(w.t, protocol.Conflict, protocol.CodeOf(must.Err(does(w, w.Update, owner("rao"), half))), "more than is left")
		half.Amount = ""
		w.pass(time.Second)
		got = must.Get(does(w, w.Update, owner("rao"), half))(w.t)
		done(got.Refunds[1].ID)
		require.Equal(w.t, protocol.OrderIsRefunded, w.order(made.Token).State)
		w.jobs()
		require.Len(w.t, w.sent, 7, "paid, sent, delivered, and each refund when it is owed and made")
		require.Contains(w.t, w.sent[0], "ravi1@example.org\nYour order at Rao Foods\nYour order is paid.")
		require.Contains(w.t, w.sent[0], "https://n1.example/order/"+made.Token)
		require.NoError(w.t, w.db.Read(w.t.Context(), func(ctx context.Context, tx *storage.Tx) error {
			x := must.Get(tx.Orders().ByID(ctx, made.Order.ID))(w.t)
			r := must.Get(tx.OrderReceipts().ByID(ctx, x.Receipt))(w.t)
			require.Len(w.t, r.Adjustments, 2)
			require.True(w.t, r.Refunded())
			return nil
		}))
	})
}

// TestOrder_LastPiece: of a hundred who order the last piece at once, one holds it, whether the node knows them or not.
func TestOrder_LastPiece(t *testing.T) {
	t.Parallel()
	for name, who := range map[string]func(int) protocol.Caller{"known": known, "strangers": stranger} {
		t.Run(name, func(t *testing.T) {
			each(t, func(w *world) {
				var group sync.WaitGroup
				var made atomic.Int64
				for n := range 100 {
					group.Go(func() {
						_, err := does(w, w.Make, who(n), wants(n, w.last, 1))
						if err == nil {
							made.Add(1)
							return
						}
						require.Equal(w.t, protocol.Validation, protocol.CodeOf(err), "%v", err)
					})
				}
				group.Wait()
				require.Equal(w.t, 1, w.left(w.last).Held)
				require.Len(w.t, must.Get(does(w, w.List, owner("rao"), protocol.OrderQuery{State: protocol.OrderAwaiting}))(w.t).Items, 1)
				if name == "known" {
					require.EqualValues(w.t, 1, made.Load())
				}
			})
		})
	}
}

// TestOrder_Strangers: buyers whom the node does not know hold half of a variant at most, and the oldest gives way; a known buyer
// takes what strangers hold where pieces lack.
func TestOrder_Strangers(t *testing.T) {
	each(t, func(w *world) {
		w.stock(w.last, 6)
		tokens := []string{}
		for n := range 4 {
			tokens = append(tokens, must.Get(does(w, w.Make, stranger(n), wants(n, w.last, 1)))(w.t).Token)
			w.pass(time.Second)
		}
		require.Equal(w.t, protocol.OrderCanceled, w.order(tokens[0]).State)
		require.Equal(w.t, 3, w.left(w.last).Held)
		require.Equal(w.t, protocol.Validation, protocol.CodeOf(must.Err(does(w, w.Make, stranger(9), wants(9, w.last, 4)))), "more than half")
		must.Get(does(w, w.Make, known(1), wants(11, w.last, 5)))(w.t)
		require.Equal(w.t, protocol.OrderCanceled, w.order(tokens[2]).State)
		require.Equal(w.t, protocol.OrderAwaiting, w.order(tokens[3]).State)
		require.Equal(w.t, storage.Stocked{Pieces: 6, Held: 6, Strangers: 1}, w.left(w.last))
		require.Equal(w.t, protocol.Validation, protocol.CodeOf(must.Err(does(w, w.Make, known(2), wants(12, w.last, 2)))))

		w.pass(protocol.HoldFor)
		w.jobs()
		require.Equal(w.t, storage.Stocked{Pieces: 6}, w.left(w.last), "after 20 minutes all is free")
	})
}

// TestOrder_Taken: what a stranger orders to pay when it is handed over waits two days for the shop to take it up. Nobody is sent mail for it, and
// what its shop has taken up does not give way.
func TestOrder_Taken(t *testing.T) {
	each(t, func(w *world) {
		later := func(n int) protocol.NewOrder {
			in := wants(n, w.dal, 1)
			in.Way, in.Street, in.PIN, in.Pay = protocol.ByDelivery, "4 Gandhi Bazaar", "560004", protocol.PayLater
			return in
		}
		ignored := must.Get(does(w, w.Make, stranger(1), later(1)))(w.t)
		taken := must.Get(does(w, w.Make, stranger(2), later(2)))(w.t)
		of := must.Get(does(w, w.Make, known(3), later(3)))(w.t)
		must.Get(w.does(taken.Order.ID, protocol.OrderPacked))(w.t)
		require.NoError(w.t, w.db.Read(w.t.Context(), func(ctx context.Context, tx *storage.Tx) error {
			x := must.Get(tx.Orders().ByID(ctx, ignored.Order.ID))(w.t)
			old := must.Get(tx.Orders().Strangers(ctx, x.Till, 10))(w.t)
			require.Len(w.t, old, 1)
			require.Equal(w.t, ignored.Order.ID, old[0].ID)
			return nil
		}))
		w.pass(protocol.OrderClaimFor)
		w.jobs()
		require.Equal(w.t, protocol.OrderCanceled, w.order(ignored.Token).State)
		require.Equal(w.t, protocol.OrderAwaiting, w.order(taken.Token).State)
		require.Equal(w.t, protocol.OrderAwaiting, w.order(of.Token).State)
		require.Len(w.t, w.sent, 1, "packed")
	})
}

// TestOrder_Unconfirmed: a payment that the buyer reported and the shop confirms after its time pays for the order; with a reference that the
// buyer did not report it is the shop's word alone.
func TestOrder_Unconfirmed(t *testing.T) {
	each(t, func(w *world) {
		made := must.Get(does(w, w.Make, known(1), wants(1, w.dal, 1)))(w.t)
		must.Get(does(w, w.pays.Claim, protocol.Caller{}, protocol.PaymentClaim{PayToken: made.Token, UTR: "431298765012"}))(w.t)
		w.pass(protocol.OrderClaimFor)
		w.jobs()
		require.Equal(w.t, protocol.OrderCanceled, w.order(made.Token).State)
		in := protocol.OrderUpdate{ID: made.Order.ID, Do: protocol.OrderConfirm, UTR: "431298765013"}
		got := must.Get(does(w, w.Update, owner("rao"), in))(w.t)
		require.Equal(w.t, protocol.OrderPaid, got.State)
		require.Equal(w.t, protocol.KnownStated, *got.Known)
	})
}

// TestOrder_Late: money for an order that the clock ended pays for it while its pieces are there, and goes back otherwise.
func TestOrder_Late(t *testing.T) {
	each(t, func(w *world) {
		first := must.Get(does(w, w.Make, known(1), wants(1, w.last, 1)))(w.t)
		w.pass(protocol.HoldFor)
		w.jobs()
		require.Equal(w.t, protocol.OrderCanceled, w.order(first.Token).State)
		second := must.Get(does(w, w.Make, known(2), wants(2, w.last, 1)))(w.t)
		confirm := func(id, utr string) protocol.ShopOrder {
			return must.Get(does(w, w.Update, owner("rao"), protocol.OrderUpdate{ID: id, Do: protocol.OrderConfirm, UTR: utr}))(w.t)
		}
		require.Equal(w.t, protocol.OrderPaid, confirm(second.Order.ID, "431298765001").State)
		require.Equal(w.t, protocol.KnownStated, *w.order(second.Token).Known, "the buyer reported nothing")
		require.Equal(w.t, storage.Stocked{}, w.left(w.last))
		late := confirm(first.Order.ID, "431298765002")
		require.Equal(w.t, protocol.OrderCanceled, late.State)
		require.Equal(w.t, "80.00", late.Refunds[0].Amount.Amount)
		must.Get(does(w, w.pays.MarkRefunded, owner("rao"), protocol.RefundDone{ID: late.Refunds[0].ID, Reference: "431298765777"}))(w.t)
		require.Equal(w.t, protocol.OrderIsRefunded, w.order(first.Token).State)

		// The shop cancels the paid one: its money goes back, and the piece is for sale again, for one who pays late.
		third := must.Get(does(w, w.Make, known(3), wants(3, w.dal, 1)))(w.t)
		require.Equal(w.t, protocol.OrderCanceled, must.Get(w.does(second.Order.ID, protocol.OrderCancel))(w.t).State)
		require.Equal(w.t, storage.Stocked{Pieces: 1}, w.left(w.last))
		w.pass(protocol.HoldFor)
		w.jobs()
		require.Equal(w.t, protocol.OrderPaid, confirm(third.Order.ID, "431298765003").State)
	})
}

// TestOrder_LateAlone: money that comes late, for more than there is room for, ends nobody's order.
func TestOrder_LateAlone(t *testing.T) {
	each(t, func(w *world) {
		w.stock(w.last, 4)
		late := must.Get(does(w, w.Make, known(1), wants(1, w.last, 4)))(w.t)
		w.pass(protocol.HoldFor)
		w.jobs()
		kept := must.Get(does(w, w.Make, stranger(2), wants(2, w.last, 1)))(w.t)
		w.pass(time.Second)
		in := wants(3, w.last, 1)
		in.Way, in.Street, in.PIN, in.Pay = protocol.ByDelivery, "4 Gandhi Bazaar", "560004", protocol.PayLater
		must.Get(does(w, w.Make, stranger(3), in))(w.t)
		got := must.Get(does(w, w.Update, owner("rao"), protocol.OrderUpdate{ID: late.Order.ID, Do: protocol.OrderConfirm, UTR: "431298765001"}))(w.t)
		require.Equal(w.t, protocol.OrderCanceled, got.State)
		require.Equal(w.t, "320.00", got.Refunds[0].Amount.Amount, "what is paid when it is handed over stays, so there is no room")
		require.Equal(w.t, protocol.OrderAwaiting, w.order(kept.Token).State)
		require.Equal(w.t, storage.Stocked{Pieces: 4, Held: 2, Strangers: 2}, w.left(w.last))
	})
}

// TestOrder_Sandbox: an order by the sandbox is paid by its webhook, labelled TEST, and its receipt names no account.
func TestOrder_Sandbox(t *testing.T) {
	each(t, func(w *world) {
		w.account(protocol.PaymentDraft{Provider: protocol.PaySandbox})
		in := wants(1, w.last, 1)
		in.Client = "0x70997970c51812dc3a010c7d01b50e0d17dc79c8"
		made := must.Get(does(w, w.Make, stranger(1), in))(w.t)
		require.True(w.t, made.Order.Test)
		must.Get(does(w, w.pays.Press, protocol.Caller{}, protocol.SandboxPress{PayToken: made.Token, Button: string(sandbox.PayTwice)}))(w.t)
		w.jobs()
		got := w.order(made.Token)
		require.Equal(w.t, protocol.OrderPaid, got.State)
		require.Equal(w.t, protocol.KnownProvider, *got.Known)
		require.Len(w.t, got.Refunds, 1, "it was paid twice")
		require.NoError(w.t, w.db.Read(w.t.Context(), func(ctx context.Context, tx *storage.Tx) error {
			x := must.Get(tx.Orders().ByID(ctx, made.Order.ID))(w.t)
			r := must.Get(tx.OrderReceipts().ByID(ctx, x.Receipt))(w.t)
			require.Empty(w.t, r.Client)
			claims := must.Get(base64.RawURLEncoding.DecodeString(strings.Split(r.Token, ".")[1]))(w.t)
			require.Contains(w.t, string(claims), `"known":"provider","test":true`)
			return nil
		}))
		require.True(w.t, strings.HasPrefix(w.sent[0], "ravi1@example.org\nTEST: Your order at Rao Foods\n"))
	})
}

// TestOrder_Later: an order that is paid on delivery waits for its shop, and is the shop's word.
func TestOrder_Later(t *testing.T) {
	each(t, func(w *world) {
		in := wants(1, w.last, 1)
		in.Pay = protocol.PayLater
		require.Equal(w.t, protocol.Validation, protocol.CodeOf(must.Err(does(w, w.Make, stranger(1), in))), "the shop offers it for deliveries alone")
		in.Way, in.Street, in.PIN = protocol.ByDelivery, "4 Gandhi Bazaar", "110001"
		require.ErrorContains(w.t, must.Err(does(w, w.Make, stranger(1), in)), "does not deliver there")
		in.PIN = "560004"
		made := must.Get(does(w, w.Make, stranger(1), in))(w.t)
		require.Equal(w.t, "120.00", made.Order.Total.Amount)
		require.ErrorContains(w.t, must.Err(does(w, w.Make, stranger(2), in)), "sold out", "what is paid on delivery gives no way")
		in.Items[0].ID = w.dal
		require.ErrorContains(w.t, must.Err(does(w, w.Make, stranger(2), in)), "with this mail address")
		w.pass(47 * time.Hour)
		w.jobs()
		must.Get(w.does(made.Order.ID, protocol.OrderSent))(w.t)
		require.Equal(w.t, protocol.OrderAwaiting, must.Get(w.does(made.Order.ID, protocol.OrderDelivered))(w.t).State)
		got := must.Get(w.does(made.Order.ID, protocol.OrderConfirm))(w.t)
		require.Equal(w.t, protocol.OrderFulfilled, got.State)
		require.Equal(w.t, protocol.KnownStated, *got.Known)
		require.Equal(w.t, storage.Stocked{}, w.left(w.last))
		require.Equal(w.t, protocol.OrderIsRefunded, must.Get(w.does(made.Order.ID, protocol.OrderRefund))(w.t).State)

		w.pass(365 * 24 * time.Hour)
		for n := range 2 {
			require.NoError(w.t, w.db.Write(w.t.Context(), func(ctx context.Context, tx *storage.Tx) error {
				require.Equal(w.t, 1-n, must.Get(tx.Orders().ForgetBuyers(ctx, tx.Now.Add(-364*24*time.Hour)))(w.t))
				return nil
			}))
		}
		forgotten := w.order(made.Token)
		require.Empty(w.t, forgotten.Buyer)
		require.Equal(w.t, "120.00", forgotten.Total.Amount)
	})
}

// TestOrder_Refused: what cannot be ordered, and by whom.
func TestOrder_Refused(t *testing.T) {
	t.Parallel()
	storagetest.Any(t, func(t *testing.T, c storage.Config) { refuses(t, open(t, c)) })
}

func refuses(t *testing.T, w *world) {
	code := func(want protocol.Code, c protocol.Caller, change func(*protocol.NewOrder)) {
		t.Helper()
		in := wants(1, w.dal, 1)
		change(&in)
		_, err := does(w, w.Make, c, in)
		require.Equal(t, want, protocol.CodeOf(err), "%v", err)
	}
	code(protocol.Forbidden, owner("rao"), func(*protocol.NewOrder) {})
	code(protocol.Conflict, stranger(1), func(in *protocol.NewOrder) { in.Total = "119" })
	code(protocol.Validation, stranger(1), func(in *protocol.NewOrder) { in.Items[0].ID = "var_01k9y3v6k8e5w9q2x4z7c1m0a0" })
	for n := range protocol.MaxOpenOrders {
		must.Get(does(w, w.Make, stranger(1), wants(10+n, w.dal, 1)))(t)
	}
	code(protocol.Conflict, stranger(1), func(*protocol.NewOrder) {})
	other := must.Get(does(w, w.Make, stranger(2), wants(20, w.dal, 1)))(t)
	_, err := does(w, w.Update, owner("sita"), protocol.OrderUpdate{ID: other.Order.ID, Do: protocol.OrderCancel})
	require.Equal(t, protocol.NotFound, protocol.CodeOf(err))
	require.Equal(t, protocol.NotFound, protocol.CodeOf(must.Err(does(w, w.Read, protocol.Caller{}, protocol.OrderInput{Token: "stoa_read_x"}))))
	require.Equal(t, protocol.OrderCanceled, must.Get(does(w, w.Cancel, protocol.Caller{}, protocol.OrderInput{Token: other.Token}))(t).State)
	require.Equal(t, protocol.OrderCanceled, must.Get(does(w, w.Cancel, protocol.Caller{}, protocol.OrderInput{Token: other.Token}))(t).State)
}
