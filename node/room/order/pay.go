package order

import (
	"context"
	"errors"
	"fmt"
	"time"

	"stoa/node/money"
	"stoa/node/out/pay"
	"stoa/protocol"
	"stoa/storage"
)

// A paid is an order as what is paid for (money.Subject).
type paid struct {
	*Orders
	x *storage.StoredOrder
}

// Subject returns an order, its till locked (money.Kind).
func (o *Orders) Subject(ctx context.Context, tx *storage.Tx, id string) (money.Subject, error) {
	x, err := locked(ctx, tx, id)
	return paid{o, x}, err
}

func (p paid) Due() money.Due {
	x := p.x
	return money.Due{
		ID: x.ID, Book: x.Till, Account: x.Account, Paise: x.Paise, Test: x.Test, At: x.MadeAt, Until: x.HoldUntil,
		What: "Order at @" + x.Handle, Page: p.Base + "/order/" + x.ID,
	}
}

func (p paid) Link() *storage.PayLink                             { return &p.x.Link }
func (p paid) SaveLink(ctx context.Context, tx *storage.Tx) error { return tx.Orders().Save(ctx, p.x) }
func (p paid) Waits() bool                                        { return p.x.State == protocol.OrderAwaiting && !p.x.Claimed }

// Payable: what the clock ended may be paid late, if its pieces are still there; what somebody canceled not.
func (p paid) Payable() bool {
	return p.x.State == protocol.OrderAwaiting || p.x.State == protocol.OrderCanceled && p.x.Lapsed
}

// Arrived notes that money came in.
func (p paid) Arrived(ctx context.Context, tx *storage.Tx) error {
	p.x.Paid = true
	return tx.Orders().Save(ctx, p.x)
}

// Place decides about a paid order: it is the buyer's, or, when its pieces were sold meanwhile, all of the money goes back.
func (p paid) Place(ctx context.Context, tx *storage.Tx, payment *storage.StoredPayment) (string, error) {
	x := p.x
	if x.State == protocol.OrderCanceled {
		if _, err := p.hold(ctx, tx, x, false); protocol.CodeOf(err) == protocol.Validation {
			return "sold out", p.Owe(ctx, tx, p, payment, payment.Paise, "it was paid late, and is sold out", true)
		} else if err != nil {
			return "", err
		}
		for _, l := range x.Lines { // held for the moment, since they are sold below
			if _, err := tx.Tills().Stock(ctx, x.Till, l.Item.ID); err == nil {
				err = tx.Tills().Hold(ctx, x, l.Item.ID, int(l.Quantity.Total))
				if err != nil {
					return "", err
				}
			} else if !errors.Is(err, storage.ErrNotFound) {
				return "", err
			}
		}
	}
	if err := tx.Payments().Place(ctx, payment); err != nil {
		return "", err
	}
	payment.Placed = true
	x.Known = protocol.KnownProvider
	if payment.Provider == protocol.PayUPI {
		x.Reported = x.UTR != "" && payment.PaymentID == "utr:"+x.UTR
		x.Known = knownBy(x)
	}
	return "paid", p.sold(ctx, tx, x, payment.PaidAt)
}

// sold makes an order paid: its pieces are sold, both sides are told, and the node issues its receipt.
func (o *Orders) sold(ctx context.Context, tx *storage.Tx, x *storage.StoredOrder, at time.Time) error {
	if err := tx.Tills().Sell(ctx, x); err != nil {
		return err
	}
	over := handed(x)
	x.Claimed, x.HoldUntil, x.Lapsed, x.Paid = false, time.Time{}, false, true
	in := protocol.NewOrderReceipt{
		Order: x.ID, Client: x.Client, Total: protocol.MoneyDraft{Currency: protocol.Rupee, Amount: protocol.Decimal(rupees(x.Paise).Amount)},
		PaidAt: at, LineItems: x.Lines,
	}
	till, err := tx.Tills().ByID(ctx, x.Till)
	if err == nil && till.Handle != "" {
		x.Receipt, err = o.Receipts.IssueFor(ctx, tx, till.Handle, in, x.Known, x.Test, buyersOf(x))
	}
	if err != nil {
		return err
	}
	if err := o.move(ctx, tx, x, protocol.OrderPaid, "paid", ""); err != nil {
		return err
	}
	if over {
		return o.fulfil(ctx, tx, x)
	}
	return o.tellShop(ctx, tx, x, "A paid order:")
}

// Unlinked ends an order that cannot be paid.
func (p paid) Unlinked(ctx context.Context, tx *storage.Tx) error {
	if err := p.end(ctx, tx, p.x, p.x.Link.Failed); err != nil {
		return err
	}
	return p.tellShop(ctx, tx, p.x, "No payment link could be made: check your payment account. The order:")
}

// TellRefund tells the shop of a refund to make.
func (p paid) TellRefund(ctx context.Context, tx *storage.Tx, failed bool) error {
	if failed {
		return p.tellShop(ctx, tx, p.x, "A refund failed, of the order:")
	}
	return p.tellShop(ctx, tx, p.x, "A refund to make, of the order:")
}

// TakenBack has nothing to do: Refund follows.
func (p paid) TakenBack(context.Context, *storage.Tx, string) error { return nil }

// Refund notes the refunds that are made: on the receipt, and in the state of the order when all of its money is back.
func (p paid) Refund(ctx context.Context, tx *storage.Tx, step money.Step) error {
	x := p.x
	if step != money.Made && step != money.Part {
		return nil
	}
	all, err := tx.Refunds().Of(ctx, x.ID)
	if err != nil {
		return err
	}
	back, told := int64(0), false
	for _, r := range all {
		if !r.Whole || r.State != storage.RefundDone {
			continue
		}
		back += r.Paise
		if told = r.DoneAt.Equal(tx.Now); x.Receipt != "" {
			if err := p.Receipts.AdjustFor(ctx, tx, x.Receipt, adjustment(r.ID, r.Paise, *r.DoneAt)); err != nil {
				return err
			}
		}
	}
	if protocol.SentBack(x.Paise, back) && x.State.May(protocol.OrderIsRefunded) {
		return p.move(ctx, tx, x, protocol.OrderIsRefunded, "refunded", "")
	}
	if !told {
		return nil
	}
	return p.move(ctx, tx, x, x.State, "refunded", "a part")
}

func adjustment(id string, paise int64, at time.Time) protocol.Adjustment {
	return protocol.Adjustment{ID: id, Type: "refund", OccurredAt: at.UTC(), Status: "completed", Totals: []protocol.OrderTotal{{Type: "total", Amount: -paise}}}
}

// ByPayToken returns the order that is paid on the payment page of a secret (money.Payer).
func (o *Orders) ByPayToken(ctx context.Context, tx *storage.Tx, hash [32]byte) (money.Subject, error) {
	x, err := tx.Orders().ByToken(ctx, hash)
	if err == nil && x.Account == "" { // it is paid when it is handed over
		err = storage.ErrNotFound
	}
	return paid{o, x}, err
}

var payStates = map[protocol.OrderState]protocol.BidState{
	protocol.OrderAwaiting: protocol.BidHeld, protocol.OrderPaid: protocol.BidLive, protocol.OrderFulfilled: protocol.BidLive,
	protocol.OrderCanceled: protocol.BidLapsed, protocol.OrderIsRefunded: protocol.BidRefunded,
}

// Payment says what the payment page shows of an order.
func (p paid) Payment(tx *storage.Tx) protocol.Payment {
	x := p.x
	out := protocol.Payment{
		BidID: x.ID, Handle: x.Handle, Payee: x.Shop, Message: title(x), Amount: rupees(x.Paise), State: payStates[x.State], Test: x.Test,
		UTR: protocol.OrNil(x.UTR),
	}
	if x.Claimed {
		out.State = protocol.BidClaimed
	}
	if x.State == protocol.OrderAwaiting && !x.HoldUntil.After(tx.Now) {
		out.State = protocol.BidLapsed
	}
	if out.State == protocol.BidHeld || out.State == protocol.BidClaimed {
		out.HoldExpiresAt = &x.HoldUntil
	}
	if x.State == protocol.OrderAwaiting || x.Lapsed {
		out.ClaimsLeft = max(0, protocol.MaxClaims-x.Claims)
	}
	return out
}

// title names an order by its first line.
func title(x *storage.StoredOrder) string {
	if len(x.Lines) == 0 {
		return ""
	}
	first := fmt.Sprintf("%d × %s", x.Lines[0].Quantity.Total, x.Lines[0].Item.Title)
	if more := len(x.Lines) - 1; more > 0 {
		first += fmt.Sprintf(" + %d", more)
	}
	return first
}

// Claim stores that the buyer says to have paid: the order waits for the shop, and keeps its pieces.
func (p paid) Claim(ctx context.Context, tx *storage.Tx, c protocol.Caller, utr string) error {
	x, err := locked(ctx, tx, p.x.ID)
	if err != nil {
		return err
	}
	account, err := tx.PaymentAccounts().ByID(ctx, x.Account)
	if err != nil {
		return storage.IfMissing(err, protocol.Errorf(protocol.Conflict, "this order is paid when it is handed over"))
	}
	switch {
	case x.Claimed && x.UTR == utr:
		return nil
	case account.Provider != protocol.PayUPI:
		return protocol.Errorf(protocol.Conflict, "payments to this shop are reported by their provider")
	case x.State != protocol.OrderAwaiting && !(x.State == protocol.OrderCanceled && x.Lapsed):
		return protocol.Errorf(protocol.Conflict, "the order is %s; its payment need not be reported", x.State)
	case x.Claims >= protocol.MaxClaims:
		return protocol.Errorf(protocol.Conflict, "%d references were reported for this order, which is the most; ask the shop", x.Claims)
	}
	if err := p.unused(ctx, tx, x, account, utr); err != nil {
		return err
	}
	x.UTR, x.Claims = utr, x.Claims+1
	if x.State == protocol.OrderAwaiting {
		x.Claimed, x.HoldUntil = true, tx.Now.Add(protocol.OrderClaimFor)
	}
	if err := p.move(ctx, tx, x, x.State, "reported", ""); err != nil {
		return err
	}
	if err := p.watch(ctx, tx, x); err != nil {
		return err
	}
	return p.tellShop(ctx, tx, x, "A payment to confirm, of the order:")
}

// unused refuses a reference that was reported for another order, or has confirmed one.
func (o *Orders) unused(ctx context.Context, tx *storage.Tx, x *storage.StoredOrder, account *storage.PaymentAccount, utr string) error {
	used, err := tx.Payments().Exists(ctx, account.Provider, money.PayeeOf(account), "utr:"+utr)
	if err == nil && !used {
		used, err = tx.Orders().UTRClaimed(ctx, x.Till, utr, x.ID)
	}
	if err == nil && used {
		return protocol.Errorf(protocol.Conflict, "this reference was reported for another order; one payment pays one order")
	}
	return err
}

// confirm says that the money of an order has arrived: the shop has seen it at the bank, or in its hand.
func (o *Orders) confirm(ctx context.Context, tx *storage.Tx, x *storage.StoredOrder, utr string) error {
	if x.State != protocol.OrderAwaiting && !(x.State == protocol.OrderCanceled && x.Lapsed) {
		return protocol.Errorf(protocol.Conflict, "the order is %s; there is no payment to confirm", x.State)
	}
	if x.Account == "" { // paid when it was handed over
		if x.State != protocol.OrderAwaiting {
			return protocol.Errorf(protocol.Conflict, "the order is %s; there is no payment to confirm", x.State)
		}
		x.Known = protocol.KnownStated
		return o.sold(ctx, tx, x, tx.Now)
	}
	account, err := tx.PaymentAccounts().ByID(ctx, x.Account)
	if err != nil {
		return err
	}
	provider, err := o.Provider(account)
	if err != nil {
		return err
	}
	confirmer, ok := provider.(pay.Confirmer)
	if utr == "" {
		utr = x.UTR
	}
	switch {
	case !ok:
		return protocol.Errorf(protocol.Conflict, "payments by this provider are not confirmed by hand")
	case utr == "":
		return protocol.Invalid(protocol.Fault{Pointer: "/utr", Code: "required", Detail: "the buyer reported no reference; give that of your bank"})
	}
	used, err := tx.Payments().Exists(ctx, account.Provider, money.PayeeOf(account), "utr:"+utr)
	if err != nil {
		return err
	}
	if used {
		return protocol.Errorf(protocol.Conflict, "this reference has confirmed a payment before; one payment pays one order")
	}
	ev, err := confirmer.Confirm(pay.Ref(x.ID, max(1, x.Link.Attempt)), utr, x.Paise, tx.Now)
	if err != nil {
		return protocol.Errorf(protocol.Conflict, "%s", err.Error())
	}
	_, err = o.Apply(ctx, tx, account, ev)
	return err
}
