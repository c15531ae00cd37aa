package order

import (
	"context"
	"errors"
	"strings"
	"time"

	"stoa/node/money"
	"stoa/protocol"
	"stoa/storage"
)

// maxEvents is how many events an order keeps: the newest beside the first.
const maxEvents = 60

// move notes an event of an order, which may have another state then, and tells the buyer.
func (o *Orders) move(ctx context.Context, tx *storage.Tx, x *storage.StoredOrder, to protocol.OrderState, what, note string) error {
	x.Lapsed = to == protocol.OrderCanceled && (x.Lapsed || byClock[note])
	x.State, x.MovedAt = to, tx.Now
	x.Moves++
	x.Events = append(x.Events, protocol.OrderEvent{What: what, At: tx.Now, Note: note})
	if len(x.Events) > maxEvents {
		x.Events = append(x.Events[:1:1], x.Events[2:]...)
	}
	if err := tx.Orders().Save(ctx, x); err != nil {
		return err
	}
	if err := o.tellPlatform(ctx, tx, x); err != nil {
		return err
	}
	if told[what] == "" || o.LettersVia() == nil || !x.Paid && what == "canceled" && x.Lapsed {
		return nil
	}
	return money.Enqueue(ctx, tx, storage.OrderMailJob, "mail "+x.ID, money.Job{ID: x.ID, N: len(x.Events) - 1}, tx.Now)
}

// tellShop notifies the owner of a shop of an order. The title has no word of the buyer.
func (o *Orders) tellShop(ctx context.Context, tx *storage.Tx, x *storage.StoredOrder, what string) error {
	till, err := tx.Tills().ByID(ctx, x.Till)
	if err != nil || till.Handle == "" {
		return err
	}
	text := what + " " + title(x) + ", " + protocol.FormatRupees(x.Paise)
	if x.Test {
		text = "TEST: " + text
	}
	return tx.Notify(ctx, protocol.Notice{Handle: till.Handle, Event: protocol.OrderChanged, Subject: x.ID, Title: text})
}

// view returns an order as its buyer and its shop see it.
func (o *Orders) view(ctx context.Context, tx *storage.Tx, x *storage.StoredOrder) (protocol.ShopOrder, error) {
	who, err := o.buyerOf(x)
	if err != nil {
		return protocol.ShopOrder{}, err
	}
	out := protocol.ShopOrder{
		ID: x.ID, Handle: x.Handle, Shop: x.Shop, State: x.State, Claimed: x.Claimed, Lines: x.Lines, Totals: x.Totals, Total: rupees(x.Paise), Way: x.Way,
		Pay: x.Pay, Test: x.Test, Buyer: who.OrderBuyer, MadeAt: x.MadeAt, Events: x.Events, Refunds: []protocol.BidRefund{}, Known: protocol.OrNil(x.Known),
		UTR: protocol.OrNil(x.UTR), Note: x.Note, MailConfirmed: x.MailConfirmed, Untrusted: true,
	}
	if x.State == protocol.OrderAwaiting && !x.HoldUntil.IsZero() {
		if out.HoldUntil = &x.HoldUntil; !x.HoldUntil.After(tx.Now) { // the job runs in a moment
			out.State, out.HoldUntil = protocol.OrderCanceled, nil
		}
	}
	if x.Account != "" {
		account, err := tx.PaymentAccounts().ByID(ctx, x.Account)
		if err != nil {
			return out, err
		}
		out.Provider = string(account.Provider)
	}
	if x.Receipt != "" {
		r, err := tx.OrderReceipts().ByID(ctx, x.Receipt)
		if err == nil {
			out.Receipt = &r.Token
			if out.Review, err = o.Receipts.ReviewOf(ctx, tx, r); err != nil {
				return out, err
			}
		} else if !errors.Is(err, storage.ErrNotFound) {
			return out, err
		}
	}
	if !x.Paid {
		return out, nil
	}
	refunds, err := tx.Refunds().Of(ctx, x.ID)
	for i := range refunds {
		out.Refunds = append(out.Refunds, money.RefundView(&refunds[i]))
	}
	return out, err
}

// byToken returns the order that a secret opens.
func byToken(ctx context.Context, tx *storage.Tx, c protocol.Caller, token string) (*storage.StoredOrder, error) {
	if token == "" {
		token = c.ReadToken
	}
	if token == "" {
		return nil, protocol.Errorf(protocol.Unauthorized, "send the last part of the order's address")
	}
	x, err := tx.Orders().ByToken(ctx, protocol.SecretHash(token))
	return x, storage.IfMissing(err, protocol.Errorf(protocol.NotFound, "there is no such order"))
}

// Read returns an order to who has the address of its page.
func (o *Orders) Read(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.OrderInput) (protocol.ShopOrder, error) {
	x, err := byToken(ctx, tx, c, in.Token)
	if err != nil {
		return protocol.ShopOrder{}, err
	}
	return o.view(ctx, tx, x)
}

// Cancel ends an order that is not paid, for its buyer.
func (o *Orders) Cancel(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.OrderInput) (protocol.ShopOrder, error) {
	x, err := byToken(ctx, tx, c, in.Token)
	if err != nil {
		return protocol.ShopOrder{}, err
	}
	if x, err = locked(ctx, tx, x.ID); err != nil {
		return protocol.ShopOrder{}, err
	}
	switch {
	case x.State == protocol.OrderCanceled:
		return o.view(ctx, tx, x)
	case x.State != protocol.OrderAwaiting, x.Claimed, happened(x, "packed", "sent", "delivered", "picked_up"):
		return protocol.ShopOrder{}, protocol.Errorf(protocol.Conflict, "the order cannot be canceled here any more; ask the shop")
	}
	if err := o.end(ctx, tx, x, "by the buyer"); err != nil {
		return protocol.ShopOrder{}, err
	}
	if x.Pay == protocol.PayLater {
		if err := o.tellShop(ctx, tx, x, "The buyer canceled the order:"); err != nil {
			return protocol.ShopOrder{}, err
		}
	}
	return o.view(ctx, tx, x)
}

// List lists the orders of a shop of the caller.
func (o *Orders) List(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.OrderQuery) (protocol.Page[protocol.ShopOrder], error) {
	out := protocol.Page[protocol.ShopOrder]{Items: []protocol.ShopOrder{}}
	handle, err := c.ActsAs(in.Handle)
	if err != nil {
		return out, err
	}
	t, err := tx.Tills().ByHandle(ctx, handle)
	if err != nil {
		return out, storage.IfMissing(err, nil)
	}
	found, err := tx.Orders().List(ctx, t.ID, in.State, in.Size(), in.After)
	out.Next = found.Next
	for i := range found.Items {
		if err != nil {
			return out, err
		}
		var one protocol.ShopOrder
		one, err = o.view(ctx, tx, &found.Items[i])
		out.Items = append(out.Items, one)
	}
	return out, err
}

// Update is what a shop does with an order.
func (o *Orders) Update(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.OrderUpdate) (protocol.ShopOrder, error) {
	none := protocol.ShopOrder{}
	missing := protocol.Errorf(protocol.NotFound, "there is no order with that id at a shop of yours")
	x, err := tx.Orders().ByID(ctx, in.ID)
	if err != nil {
		return none, storage.IfMissing(err, missing)
	}
	till, err := tx.Tills().ByID(ctx, x.Till)
	if err != nil {
		return none, err
	}
	if till.Handle == "" || !c.Owns(till.Handle) && c.Standing != protocol.Operator {
		return none, missing
	}
	if x, err = tx.Orders().ByID(ctx, in.ID); err != nil {
		return none, err
	}
	if err := o.do(ctx, tx, x, in); err != nil {
		return none, err
	}
	if err := tx.Audit(ctx, c.Actor(), "order "+string(in.Do), x.ID, ""); err != nil {
		return none, err
	}
	if x, err = tx.Orders().ByID(ctx, in.ID); err != nil {
		return none, err
	}
	return o.view(ctx, tx, x)
}

func (o *Orders) do(ctx context.Context, tx *storage.Tx, x *storage.StoredOrder, in protocol.OrderUpdate) error {
	note := strings.TrimSpace(in.Note)
	open := x.State == protocol.OrderPaid || x.State == protocol.OrderAwaiting && x.Pay == protocol.PayLater
	switch in.Do {
	case protocol.OrderConfirm:
		return o.confirm(ctx, tx, x, in.UTR)
	case protocol.OrderDeny:
		if !x.Claimed {
			return protocol.Errorf(protocol.Conflict, "the buyer reported no payment that waits for you")
		}
		x.Claimed, x.HoldUntil = false, tx.Now.Add(protocol.HoldFor)
		if err := o.move(ctx, tx, x, x.State, "denied", note); err != nil {
			return err
		}
		return o.watch(ctx, tx, x)
	case protocol.OrderCancel:
		return o.cancel(ctx, tx, x, note)
	case protocol.OrderAnswer:
		if note == "" {
			return protocol.Invalid(protocol.Fault{Pointer: "/note", Code: "required", Detail: "is the answer, and required"})
		}
		if err := o.Receipts.Answer(ctx, tx, x.Receipt, note); err != nil {
			return err
		}
		return o.move(ctx, tx, x, x.State, "answered", note)
	case protocol.OrderRefund:
		return o.refund(ctx, tx, x, in.Amount, note)
	case protocol.OrderPacked, protocol.OrderSent, protocol.OrderDelivered, protocol.OrderPickedUp:
		if !open {
			return protocol.Errorf(protocol.Conflict, "the order is %s; only one that is paid, or paid later, is handed over", x.State)
		}
		x.HoldUntil = time.Time{} // of one that is paid later: the shop has taken it up
	}
	if in.Do == protocol.OrderPacked || in.Do == protocol.OrderSent {
		if x.Events[len(x.Events)-1].What == string(in.Do) {
			return nil
		}
		return o.move(ctx, tx, x, x.State, string(in.Do), note)
	}
	if !handed(x) {
		for i := range x.Lines {
			x.Lines[i].Quantity.Fulfilled, x.Lines[i].Status = x.Lines[i].Quantity.Total, "fulfilled"
		}
		if err := o.move(ctx, tx, x, x.State, string(in.Do), note); err != nil {
			return err
		}
	}
	if x.State != protocol.OrderPaid {
		return nil
	}
	return o.fulfil(ctx, tx, x)
}

func (o *Orders) fulfil(ctx context.Context, tx *storage.Tx, x *storage.StoredOrder) error {
	return o.move(ctx, tx, x, protocol.OrderFulfilled, "fulfilled", "")
}

func happened(x *storage.StoredOrder, whats ...string) bool {
	for _, e := range x.Events {
		for _, what := range whats {
			if e.What == what {
				return true
			}
		}
	}
	return false
}

func handed(x *storage.StoredOrder) bool { return happened(x, "delivered", "picked_up") }

// cancel ends an order for its shop. What was paid goes back, and its pieces are for sale again.
func (o *Orders) cancel(ctx context.Context, tx *storage.Tx, x *storage.StoredOrder, note string) error {
	switch x.State {
	case protocol.OrderAwaiting:
		if note == "" {
			note = "by the shop"
		}
		return o.end(ctx, tx, x, note)
	case protocol.OrderCanceled:
		return nil
	case protocol.OrderPaid:
	default:
		return protocol.Errorf(protocol.Conflict, "the order is %s; refund it instead", x.State)
	}
	if err := tx.Tills().Restock(ctx, x); err != nil {
		return err
	}
	if err := o.move(ctx, tx, x, protocol.OrderCanceled, "canceled", note); err != nil {
		return err
	}
	return o.refund(ctx, tx, x, "", "")
}

// refund sends money of a paid order back.
func (o *Orders) refund(ctx context.Context, tx *storage.Tx, x *storage.StoredOrder, amount protocol.Decimal, note string) error {
	if !happened(x, "paid") || x.State == protocol.OrderIsRefunded {
		return protocol.Errorf(protocol.Conflict, "the order is %s; there is nothing to refund", x.State)
	}
	kept, err := money.Kept(ctx, tx, paid{o, x}.Due())
	if err != nil {
		return err
	}
	if x.Account == "" {
		kept -= x.Returned
	}
	paise := kept
	if amount != "" {
		paise, _ = amount.Paise()
	}
	if paise <= 0 || paise > kept {
		return protocol.Errorf(protocol.Conflict, "at most %s can be refunded", protocol.FormatRupees(kept))
	}
	if note == "" {
		note = "refunded by the shop"
	}
	if err := o.move(ctx, tx, x, x.State, "refund", rupees(paise).Amount+" INR: "+note); err != nil {
		return err
	}
	if x.Account == "" { // what was paid in hand goes back in hand
		x.Returned += paise
		return o.returned(ctx, tx, x, paise)
	}
	payment, err := money.Placed(ctx, tx, x.ID)
	if err == nil && payment == nil {
		err = errors.New("order " + x.ID + " was paid without a payment")
	}
	if err != nil {
		return err
	}
	return o.Owe(ctx, tx, paid{o, x}, payment, paise, note, true)
}

// returned notes a refund that the shop made in hand.
func (o *Orders) returned(ctx context.Context, tx *storage.Tx, x *storage.StoredOrder, paise int64) error {
	if x.Receipt != "" {
		id := "refund-" + rupees(x.Returned).Amount
		if err := o.Receipts.AdjustFor(ctx, tx, x.Receipt, adjustment(id, paise, tx.Now.Truncate(time.Second))); err != nil {
			return err
		}
	}
	if x.Returned < x.Paise || !x.State.May(protocol.OrderIsRefunded) {
		return tx.Orders().Save(ctx, x)
	}
	return o.move(ctx, tx, x, protocol.OrderIsRefunded, "refunded", "")
}
