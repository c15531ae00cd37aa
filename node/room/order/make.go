package order

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"stoa/node/money"
	"stoa/protocol"
	"stoa/storage"
)

// Make makes an order: prices are those of now, pieces are held, and the payment link is asked for.
func (o *Orders) Make(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.NewOrder) (protocol.MadeOrder, error) {
	var none protocol.MadeOrder
	b, err := o.priced(ctx, tx, in.Basket)
	if err != nil {
		return none, err
	}
	if len(b.faults) > 0 {
		return none, refused(in.Basket, b.faults)
	}
	handle := b.shop.Draft.Handle
	p, err := tx.Profiles().ByHandle(ctx, handle)
	if err != nil {
		return none, storage.IfMissing(err, protocol.NoAgent(handle))
	}
	t, account, err := o.till(ctx, tx, handle)
	if err != nil {
		return none, err
	}
	var from *storage.StoredCheckout
	if in.Checkout != "" {
		if from, err = o.begin(ctx, tx, in.Checkout); err != nil {
			return none, err
		}
		in.Items = from.Items
	}
	if b, err = o.priced(ctx, tx, in.Basket); err != nil || len(b.faults) > 0 { // now that the till is locked
		return none, errors.Join(err, refused(in.Basket, b.faults))
	}
	if handle != b.shop.Draft.Handle || from != nil && from.Till != t.ID {
		return none, protocol.Errorf(protocol.Conflict, "the basket has changed; look at it, and order again")
	}
	if err := o.admit(ctx, tx, c, p, t, account, in); err != nil {
		return none, err
	}
	x := &storage.StoredOrder{
		ID: protocol.NewID(protocol.OrderID, tx.Now), Till: t.ID, State: protocol.OrderAwaiting, Paise: b.sum, Buyer: c.ID(), Anonymous: !c.Known(),
		Mailbox: storage.MailboxOf(o.MailKey, in.Mail), MadeAt: tx.Now, MovedAt: tx.Now, Moves: 1,
		OrderDoc: storage.OrderDoc{
			Handle: handle, Shop: p.Draft.Name, Lines: b.lines, Way: in.Way, Pay: in.Pay, Note: t.Terms.Note, Client: in.Client, By: c.Handle,
			Totals: []protocol.OrderTotal{{Type: "subtotal", Amount: b.sum}},
			Events: []protocol.OrderEvent{{What: "made", At: tx.Now}},
		},
	}
	if in.Way == protocol.ByDelivery {
		carriage := t.Terms.Carriage(b.sum)
		x.Paise += carriage
		x.Totals = append(x.Totals, protocol.OrderTotal{Type: "fulfillment", Amount: carriage})
	}
	x.Totals = append(x.Totals, protocol.OrderTotal{Type: "total", Amount: x.Paise})
	if want, _ := in.Total.Paise(); in.Total != "" && want != x.Paise {
		return none, protocol.Errorf(protocol.Conflict, "it costs %s now: look at the prices, and order again", protocol.FormatRupees(x.Paise))
	}
	token := protocol.NewReadToken()
	x.TokenHash = protocol.SecretHash(token)
	if x.Sealed, err = o.seal(x.ID, private{in.OrderBuyer, token, in.Language}); err != nil {
		return none, err
	}
	if from != nil {
		x.Checkout, x.Release = from.ID, from.Release
		if from.Signed {
			x.Platform, x.Webhook = from.Platform, from.Webhook
		}
		if err := o.become(ctx, tx, from, x, in.Checkout); err != nil {
			return none, err
		}
	}
	if err := o.store(ctx, tx, x, t, account, c); err != nil {
		return none, err
	}
	view, err := o.view(ctx, tx, x)
	return protocol.MadeOrder{Order: view, Token: token}, err
}

// refused is the error of a basket that cannot be ordered, nil for one that can.
func refused(in protocol.Basket, all []protocol.BasketFault) error {
	if len(all) == 0 {
		return nil
	}
	faults := make([]protocol.Fault, 0, len(all))
	for _, f := range all {
		at := "/items"
		for i, x := range in.Items {
			if x.ID == f.ID {
				at = "/items/" + strconv.Itoa(i)
			}
		}
		faults = append(faults, protocol.Fault{Pointer: at, Code: f.Code, Detail: f.Detail})
	}
	return protocol.Invalid(faults...)
}

// admit decides whether the caller may order like this at all.
func (o *Orders) admit(ctx context.Context, tx *storage.Tx, c protocol.Caller, p *storage.StoredProfile, t *storage.Till,
	account *storage.PaymentAccount, in protocol.NewOrder) error {
	handle, terms := p.Draft.Handle, t.Terms
	switch {
	case !shown(t, account).Taking:
		return protocol.Errorf(protocol.Conflict, "@%s takes no orders here now", handle)
	case c.Owns(handle):
		return protocol.Errorf(protocol.Forbidden, "this is your own shop")
	case in.Way == protocol.ByDelivery && !terms.Delivery, in.Way == protocol.ByPickup && !terms.Pickup:
		return protocol.Invalid(protocol.Fault{Pointer: "/way", Code: "not-allowed", Detail: "the shop does not offer it"})
	case in.Way == protocol.ByDelivery && !terms.Delivers(in.PIN):
		return protocol.Invalid(protocol.Fault{Pointer: "/pin", Code: "address_undeliverable", Detail: "the shop does not deliver there"})
	case in.Pay == protocol.PayLater && !terms.Later(in.Way), in.Pay == protocol.PayNow && account == nil:
		return protocol.Invalid(protocol.Fault{Pointer: "/pay", Code: "not-allowed", Detail: "the shop does not offer it"})
	}
	blocked, err := tx.ContactBlocks().Match(ctx, handle, c.KnownAs(c.ID()))
	if err != nil {
		return err
	}
	if blocked {
		return protocol.Errorf(protocol.ContactRefused, "@%s does not accept orders from you", handle)
	}
	if err := o.endDue(ctx, tx, t.ID); err != nil {
		return err
	}
	n, err := tx.Orders().CountBuyer(ctx, t.ID, c.ID())
	switch {
	case err != nil:
		return err
	case n.AtShop >= protocol.MaxOpenOrders || n.OnNode >= protocol.MaxOrdersNode:
		return protocol.Errorf(protocol.Conflict, "you, or somebody in your network, has %d unpaid orders; pay or cancel one, or wait until one ends",
			max(n.AtShop, n.OnNode))
	case !c.Known() && n.Hour >= protocol.UnprovedOrders:
		return protocol.Errorf(protocol.Conflict, "too many orders were made here within an hour by buyers who are not signed in; sign in, or come back later")
	}
	give := protocol.SharedOrders.Admit(c, n.Unpaid)
	if give.Known > 0 {
		return protocol.Errorf(protocol.Conflict, "too many orders of @%s wait for their payment; come back later", handle)
	}
	if give.Strangers == 0 {
		return nil
	}
	old, err := tx.Orders().Strangers(ctx, t.ID, give.Strangers)
	if err == nil && len(old) < give.Strangers {
		return protocol.Errorf(protocol.Conflict, "too many orders of @%s wait; come back later", handle)
	}
	for i := range old {
		err = errors.Join(err, o.end(ctx, tx, &old[i], gaveWay))
	}
	return err
}

const (
	gaveWay     = "gave way to newer orders: too many waited unpaid"
	lapsed      = "not paid within 20 minutes"
	unconfirmed = "the shop did not confirm the payment in time"
	untaken     = "the shop did not take it up in time"
)

// byClock are the reasons for which nobody ended an order.
var byClock = map[string]bool{gaveWay: true, lapsed: true, unconfirmed: true, untaken: true}

// store holds the pieces of a new order and stores it, with its link and the job that ends it.
func (o *Orders) store(ctx context.Context, tx *storage.Tx, x *storage.StoredOrder, t *storage.Till, account *storage.PaymentAccount,
	c protocol.Caller) error {
	counted, err := o.hold(ctx, tx, x, !c.Known())
	if err != nil {
		return err
	}
	if x.Pay == protocol.PayNow {
		x.Account, x.Test, x.HoldUntil = account.ID, account.Test, tx.Now.Add(protocol.HoldFor)
		if err := o.LinkNow(ctx, paid{o, x}, account, tx.Now); err != nil {
			return err
		}
	}
	if x.Pay == protocol.PayLater && x.Anonymous {
		x.HoldUntil = tx.Now.Add(protocol.OrderClaimFor) // until the shop takes it up: anybody can order like this
	}
	if err := tx.Orders().Insert(ctx, x); errors.Is(err, storage.ErrExists) {
		return protocol.Errorf(protocol.Conflict, "an order with this mail address waits unpaid at @%s; pay or cancel that one, or wait until it ends", x.Handle)
	} else if err != nil {
		return err
	}
	for _, l := range x.Lines {
		if counted[l.Item.ID] {
			if err := tx.Tills().Hold(ctx, x, l.Item.ID, int(l.Quantity.Total)); err != nil {
				return err
			}
		}
	}
	if x.Pay == protocol.PayLater {
		return errors.Join(o.tellShop(ctx, tx, x, "A new order, paid when it is handed over:"), o.tellPlatform(ctx, tx, x), o.watch(ctx, tx, x))
	}
	if x.Link.ID == "" {
		if err := o.AskLink(ctx, tx, paid{o, x}.Due()); err != nil {
			return err
		}
	}
	return o.watch(ctx, tx, x)
}

// hold makes room for the pieces of an order, and returns which of its variants are counted. Buyers whom the node does not know hold
// half of a variant at most together, and the oldest of them gives way: to another of them, and where pieces lack to anybody.
func (o *Orders) hold(ctx context.Context, tx *storage.Tx, x *storage.StoredOrder, stranger bool) (counted map[string]bool, err error) {
	counted = map[string]bool{}
	var gives yield
	for _, l := range x.Lines {
		s, err := tx.Tills().Stock(ctx, x.Till, l.Item.ID)
		if errors.Is(err, storage.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		counted[l.Item.ID] = true
		may := s.Free() // below zero when the shop counted anew
		if stranger {
			may = strangersMay(s)
		}
		n, free := int(l.Quantity.Total), max(0, may)
		if lacking := n - free; lacking > 0 && lacking <= s.Strangers {
			rest, err := o.yields(ctx, tx, x.Till, l.Item.ID, lacking, &gives)
			if err != nil {
				return nil, err
			}
			may += lacking - rest
		}
		if may < n {
			return nil, refused(basketOf(x), []protocol.BasketFault{soldOut(l, free)})
		}
	}
	return counted, o.endAll(ctx, tx, gives)
}

// A yield is what gives way to an order, once there is room for all of it.
type yield struct {
	checkouts []string // their holds
	orders    []storage.StoredOrder
}

// yields adds to what gives way what the oldest checkouts hold of a variant, then the oldest orders of strangers, and returns how many
// pieces still lack. What the buyer reported as paid, and what is paid when it is handed over, stays.
func (o *Orders) yields(ctx context.Context, tx *storage.Tx, till, variant string, pieces int, y *yield) (lacking int, err error) {
	for i := range y.orders { // for another variant of the order
		pieces -= y.orders[i].Pieces(variant)
	}
	handed, err := tx.Checkouts().Holding(ctx, till, variant, "")
	if err != nil {
		return 0, err
	}
	for _, h := range handed {
		if pieces > 0 || slices.Contains(y.checkouts, h.OrderID) {
			pieces -= h.Pieces
			y.checkouts = append(y.checkouts, h.OrderID)
		}
	}
	old, err := tx.Orders().Holding(ctx, till, variant)
	for _, x := range old {
		known := slices.ContainsFunc(y.orders, func(z storage.StoredOrder) bool { return z.ID == x.ID })
		if pieces <= 0 || known || x.Claimed || x.Pay == protocol.PayLater || len(x.Events) > 1 {
			continue
		}
		pieces -= x.Pieces(variant)
		y.orders = append(y.orders, x)
	}
	return pieces, err
}

// endAll ends what gives way.
func (o *Orders) endAll(ctx context.Context, tx *storage.Tx, y yield) error {
	for _, id := range y.checkouts {
		if err := tx.Tills().Release(ctx, id); err != nil {
			return err
		}
	}
	for i := range y.orders {
		if err := o.end(ctx, tx, &y.orders[i], gaveWay); err != nil {
			return err
		}
	}
	return nil
}

func basketOf(x *storage.StoredOrder) (b protocol.Basket) {
	for _, l := range x.Lines {
		b.Items = append(b.Items, protocol.BasketItem{ID: l.Item.ID, Quantity: int(l.Quantity.Total)})
	}
	return b
}

// watch enqueues the job that ends the wait of an order, at exactly that time.
func (o *Orders) watch(ctx context.Context, tx *storage.Tx, x *storage.StoredOrder) error {
	if x.HoldUntil.IsZero() {
		return nil
	}
	return money.Enqueue(ctx, tx, storage.OrderDueJob, "", money.Job{ID: x.ID, N: x.Moves}, x.HoldUntil)
}

// Due ends the wait of an order that nobody paid, or whose reported payment the shop did not confirm.
func (o *Orders) Due(_ context.Context, _ storage.Job, j money.Job) (func(context.Context, *storage.Tx) error, error) {
	return func(ctx context.Context, tx *storage.Tx) error {
		if protocol.IsID(protocol.CheckoutID, j.ID) {
			return releaseCheckout(ctx, tx, j)
		}
		x, err := locked(ctx, tx, j.ID)
		if err != nil || x.Moves != j.N || x.State != protocol.OrderAwaiting || x.HoldUntil.IsZero() {
			return storage.IfMissing(err, nil)
		}
		if x.HoldUntil.After(tx.Now) {
			return o.watch(ctx, tx, x)
		}
		return o.end(ctx, tx, x, lapsed)
	}, nil
}

// endDue ends the orders of a till whose wait is over and whose job has not run yet.
func (o *Orders) endDue(ctx context.Context, tx *storage.Tx, till string) error {
	if err := tx.Checkouts().ReleaseDue(ctx, till); err != nil {
		return err
	}
	due, err := tx.Orders().ListDue(ctx, till)
	for i := range due {
		if err == nil {
			err = o.end(ctx, tx, &due[i], lapsed)
		}
	}
	return err
}

// end cancels an unpaid order: its pieces are free, and its link is closed.
func (o *Orders) end(ctx context.Context, tx *storage.Tx, x *storage.StoredOrder, why string) error {
	switch {
	case x.Claimed && why == lapsed:
		why = unconfirmed
	case x.Pay == protocol.PayLater && why == lapsed:
		why = untaken
	}
	if err := tx.Tills().Release(ctx, x.ID); err != nil {
		return err
	}
	x.Claimed, x.HoldUntil = false, time.Time{}
	if err := o.move(ctx, tx, x, protocol.OrderCanceled, "canceled", why); err != nil {
		return err
	}
	return money.CancelLink(ctx, tx, paid{o, x})
}

// locked returns an order, its till locked.
func locked(ctx context.Context, tx *storage.Tx, id string) (*storage.StoredOrder, error) {
	x, err := tx.Orders().ByID(ctx, id)
	if err != nil {
		return nil, err
	}
	if _, err := tx.Tills().ByID(ctx, x.Till); err != nil {
		return nil, err
	}
	return tx.Orders().ByID(ctx, id)
}
