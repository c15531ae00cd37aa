package order

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"stoa/node/money"
	"stoa/protocol"
	"stoa/storage"
)

// Checkout returns a checkout or a cart to its platform.
func (o *Orders) Checkout(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.CheckoutDraft) (protocol.Checkout, error) {
	x, err := mine(ctx, tx, c, in.Session)
	if err == nil && isCart(x.ID) && over(x, tx.Now) {
		err = noCheckout
	}
	if err != nil {
		return protocol.Checkout{}, err
	}
	return o.checkout(ctx, tx, x)
}

// ReadCheckout returns a checkout to who has the address of its page.
func (o *Orders) ReadCheckout(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.OrderInput) (protocol.Checkout, error) {
	x, err := o.byPage(ctx, tx, cmp.Or(in.Token, c.ReadToken))
	if err != nil {
		return protocol.Checkout{}, err
	}
	return o.checkout(ctx, tx, x)
}

func (o *Orders) byPage(ctx context.Context, tx *storage.Tx, token string) (*storage.StoredCheckout, error) {
	if token == "" {
		return nil, protocol.Errorf(protocol.Unauthorized, "send the last part of the checkout's address")
	}
	x, err := tx.Checkouts().ByToken(ctx, protocol.SecretHash(token))
	if err == nil && isCart(x.ID) {
		err = storage.ErrNotFound
	}
	return x, storage.IfMissing(err, noCheckout)
}

// checkout returns a checkout as it is now: prices and stock are read again.
func (o *Orders) checkout(ctx context.Context, tx *storage.Tx, x *storage.StoredCheckout) (out protocol.Checkout, err error) {
	who, err := o.handedOver(x)
	if err != nil {
		return out, err
	}
	if x.State == storage.CheckoutOrdered {
		err = o.ordered(ctx, tx, x, &out)
	} else {
		out.Buyer = who.CheckoutBuyer
		err = o.unordered(ctx, tx, x, &out)
	}
	out.ID, out.ExpiresAt, out.Untrusted = x.ID, x.ExpiresAt, true
	if out.Status == protocol.CheckoutIncomplete || out.Status == protocol.CheckoutEscalates {
		out.Token = who.Token
	}
	return out, err
}

// unordered returns a checkout or a cart that is no order yet.
func (o *Orders) unordered(ctx context.Context, tx *storage.Tx, x *storage.StoredCheckout, out *protocol.Checkout) error {
	held, err := tx.Tills().Held(ctx, x.ID)
	if err == nil {
		out.BasketQuote, err = o.quote(ctx, tx, protocol.Basket{Items: x.Items}, func(s storage.Stocked, variant string) int {
			s.Held, s.Strangers = s.Held-held[variant], s.Strangers-held[variant]
			return strangersMay(s)
		})
	}
	if err != nil {
		return err
	}
	out.Pay, out.Notes = cmp.Or(x.Pay, protocol.PayNow), []protocol.CheckoutNote{}
	if out.Handle != "" {
		shop, err := tx.Profiles().ByHandle(ctx, out.Handle)
		if err != nil {
			return err
		}
		out.Returns, out.Support = shop.Draft.Returns, protocol.TakesSupport(shop.Draft.Policy())
	}
	sum := paiseOf(out.Sum)
	out.Totals = []protocol.OrderTotal{{Type: "subtotal", Amount: sum}}
	if t := out.Till; t.Delivery && t.Pickup {
		out.Notes = append(out.Notes, protocol.CheckoutNote{Type: "info", Code: "delivery_price",
			Detail: "delivery costs " + protocol.FormatRupees(paiseOf(out.Carriage)) + " more; the person chooses it, or fetches"})
	} else if t.Delivery {
		out.Totals = append(out.Totals, protocol.OrderTotal{Type: "fulfillment", Amount: paiseOf(out.Carriage)})
		sum += paiseOf(out.Carriage)
	}
	out.Totals = append(out.Totals, protocol.OrderTotal{Type: "total", Amount: sum})
	for i, l := range out.Lines {
		if was, known := x.Prices[l.Item.ID]; known && was != l.Item.Price {
			out.Notes = append(out.Notes, protocol.CheckoutNote{Type: "warning", Code: "price_changed", Path: lineAt(i) + ".item.price",
				Detail: "it was " + protocol.FormatRupees(was)})
		}
	}
	switch {
	case isCart(x.ID):
	case x.State != storage.CheckoutOpen, over(x, tx.Now):
		out.Status = protocol.CheckoutCanceled
		return nil
	default:
		out.Notes = append(out.Notes, lacks(out)...)
	}
	for _, f := range out.Faults {
		n := protocol.CheckoutNote{Type: "error", Code: f.Code, Detail: f.Detail}
		for i, l := range out.Lines {
			if l.Item.ID == f.ID {
				n.Path = lineAt(i)
			}
		}
		out.Notes = append(out.Notes, n)
	}
	out.Status = protocol.CheckoutEscalates
	for _, n := range out.Notes {
		if n.Type == "error" {
			out.Status = protocol.CheckoutIncomplete
		}
	}
	return nil
}

func lineAt(i int) string { return fmt.Sprintf("$.line_items[%d]", i) }

func paiseOf(m protocol.Money) int64 {
	paise, _ := protocol.Decimal(m.Amount).Paise()
	return paise
}

// lacks says what is wrong with a checkout besides its basket.
func lacks(out *protocol.Checkout) (notes []protocol.CheckoutNote) {
	wrong := func(code, path, detail string) {
		notes = append(notes, protocol.CheckoutNote{Type: "error", Code: code, Path: path, Detail: detail})
	}
	if _, err := protocol.ParseMail(out.Buyer.Mail); out.Buyer.Mail == "" {
		wrong("field_required", "$.buyer.email", "the person's mail address is required: the shop sends mail about the order there")
	} else if err != nil {
		wrong("invalid_email", "$.buyer.email", "it is not a mail address")
	}
	if t := out.Till; !t.Pickup && out.Buyer.PIN != "" && !t.Delivers(out.Buyer.PIN) {
		wrong("address_undeliverable", "", "the shop does not deliver to "+out.Buyer.PIN)
	}
	if !out.Till.Taking {
		wrong("shop_closed", "", "the shop takes no orders here now")
	}
	return notes
}

// ordered returns a checkout that became an order.
func (o *Orders) ordered(ctx context.Context, tx *storage.Tx, x *storage.StoredCheckout, out *protocol.Checkout) error {
	order, err := tx.Orders().ByID(ctx, x.OrderID)
	if err != nil {
		return storage.IfMissing(err, noCheckout)
	}
	out.Order, out.Totals, out.Pay, out.Notes, out.Status = order.ID, order.Totals, order.Pay, []protocol.CheckoutNote{}, protocol.CheckoutEscalates
	out.Handle, out.Shop, out.Lines, out.Faults = order.Handle, order.Shop, order.Lines, []protocol.BasketFault{}
	out.Sum, out.Carriage, out.Till.Test = rupees(order.Paise), rupees(0), order.Test
	switch waits := order.HoldUntil.IsZero() || order.HoldUntil.After(tx.Now); {
	case placed(order):
		out.Status = protocol.CheckoutCompleted
	case order.State == protocol.OrderCanceled, !waits:
		out.Status = protocol.CheckoutCanceled
	}
	return nil
}

// placed reports whether an order completes its checkout: it was paid, or is paid when it is handed over.
func placed(x *storage.StoredOrder) bool { return x.Pay == protocol.PayLater || happened(x, "paid") }

// begin takes over what a checkout holds, for the order that a person makes of it. The till is locked.
func (o *Orders) begin(ctx context.Context, tx *storage.Tx, token string) (*storage.StoredCheckout, error) {
	x, err := o.byPage(ctx, tx, token)
	if err != nil {
		return nil, err
	}
	if x.State != storage.CheckoutOpen || over(x, tx.Now) {
		return nil, protocol.Errorf(protocol.Conflict, "this basket was ordered, canceled, or waited too long; begin again")
	}
	return x, tx.Tills().Release(ctx, x.ID)
}

// become makes a checkout the order's; what its platform said of the buyer is forgotten.
func (o *Orders) become(ctx context.Context, tx *storage.Tx, x *storage.StoredCheckout, order *storage.StoredOrder, token string) error {
	sealed, err := json.Marshal(handover{Token: token})
	if err != nil {
		return err
	}
	x.Sealed = o.Seal.Seal(storage.PurposeOrder(x.ID), sealed)
	x.State, x.OrderID, x.HoldUntil, x.EndsAt = storage.CheckoutOrdered, order.ID, time.Time{}, tx.Now.Add(protocol.OrderedKept)
	return tx.Checkouts().Save(ctx, x)
}

// PlatformOrder returns an order to the platform whose signed checkout it began with.
func (o *Orders) PlatformOrder(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.CheckoutDraft) (out protocol.Checkout, err error) {
	x, err := tx.Orders().ByID(ctx, in.Session)
	if err != nil {
		return out, storage.IfMissing(err, noCheckout)
	}
	if platform, signed := c.Platform(); !signed || x.Platform != platform || !placed(x) {
		return out, noCheckout
	}
	out.Untrusted = true
	out.Placed, err = forPlatform(ctx, tx, x)
	return out, err
}

// forPlatform is an order without its buyer.
func forPlatform(ctx context.Context, tx *storage.Tx, x *storage.StoredOrder) (*protocol.PlatformOrder, error) {
	out := &protocol.PlatformOrder{ID: x.ID, Checkout: x.Checkout, Handle: x.Handle, Shop: x.Shop, State: x.State, Lines: x.Lines, Totals: x.Totals,
		Way: x.Way, Pay: x.Pay, Events: x.Events, Refunds: []protocol.BidRefund{}, Returned: x.Returned, Test: x.Test, Release: x.Release}
	refunds, err := tx.Refunds().Of(ctx, x.ID)
	for i := range refunds {
		out.Refunds = append(out.Refunds, money.RefundView(&refunds[i]))
	}
	return out, err
}
