package order

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"time"

	"stoa/node/money"
	"stoa/protocol"
	"stoa/protocol/netx"
	"stoa/storage"
)

// A handover is what is sealed of a checkout.
type handover struct {
	protocol.CheckoutBuyer
	Token string `json:"token"` // of its page
}

func isCart(id string) bool { return protocol.IsID(protocol.CartID, id) }

// MakeCheckout makes a checkout, which holds what it can of its basket, or a cart.
func (o *Orders) MakeCheckout(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.CheckoutDraft) (protocol.Checkout, error) {
	none := protocol.Checkout{}
	if in.From != "" {
		cart, err := lockedCheckout(ctx, tx, c, in.From)
		if err == nil && (!isCart(cart.ID) || over(cart, tx.Now)) {
			err = noCheckout
		}
		if err != nil {
			return none, err
		}
		if x, err := tx.Checkouts().OfCart(ctx, cart.ID); err == nil {
			return o.checkout(ctx, tx, x)
		} else if !errors.Is(err, storage.ErrNotFound) {
			return none, err
		}
		who, err := o.handedOver(cart)
		if err != nil {
			return none, err
		}
		in.Items, in.Buyer = cart.Items, who.CheckoutBuyer
	}
	kind, last := protocol.CheckoutID, protocol.CheckoutFor
	if in.Cart {
		kind, last = protocol.CartID, protocol.CartFor
	}
	platform, signed := c.Platform()
	if !signed {
		platform = in.Profile
	}
	x := &storage.StoredCheckout{ID: protocol.NewID(kind, tx.Now), State: storage.CheckoutOpen, Platform: platform, Signed: signed,
		Maker: c.ID(), Cart: in.From, MadeAt: tx.Now, ExpiresAt: tx.Now.Add(last), EndsAt: tx.Now.Add(last + protocol.CheckoutKept)}
	if err := budget(ctx, tx, x); err != nil {
		return none, err
	}
	return o.fill(ctx, tx, x, in, protocol.NewReadToken(), tx.Checkouts().Insert)
}

// PutCheckout replaces an open checkout or a cart.
func (o *Orders) PutCheckout(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.CheckoutDraft) (protocol.Checkout, error) {
	x, err := lockedCheckout(ctx, tx, c, in.Session)
	if err != nil {
		return protocol.Checkout{}, err
	}
	if x.State != storage.CheckoutOpen || over(x, tx.Now) {
		return protocol.Checkout{Refused: &protocol.CheckoutNote{Code: "checkout_closed", Detail: "it is ordered, canceled or over; make a new one"}}, nil
	}
	who, err := o.handedOver(x)
	if err != nil {
		return protocol.Checkout{}, err
	}
	return o.fill(ctx, tx, x, in, who.Token, tx.Checkouts().Save)
}

// noCheckout is the answer for one that does not exist, and for one of another platform.
var noCheckout = protocol.Errorf(protocol.NotFound, "there is no such checkout, cart or order, or it is over")

// mine returns a checkout of the caller's: one whose platform signed is for requests with its signature, any other for who has its id.
func mine(ctx context.Context, tx *storage.Tx, c protocol.Caller, id string) (*storage.StoredCheckout, error) {
	x, err := tx.Checkouts().ByID(ctx, id)
	if err != nil {
		return nil, storage.IfMissing(err, noCheckout)
	}
	if platform, signed := c.Platform(); x.Signed && !(signed && platform == x.Platform) {
		return nil, noCheckout
	}
	return x, nil
}

// lockedCheckout is mine, with the till of the shop locked.
func lockedCheckout(ctx context.Context, tx *storage.Tx, c protocol.Caller, id string) (*storage.StoredCheckout, error) {
	x, err := mine(ctx, tx, c, id)
	if err != nil {
		return nil, err
	}
	if _, err := tx.Tills().ByID(ctx, x.Till); err != nil && !errors.Is(err, storage.ErrNotFound) {
		return nil, err
	}
	return mine(ctx, tx, c, id)
}

func over(x *storage.StoredCheckout, now time.Time) bool { return !x.ExpiresAt.After(now) }

// budget decides where the room for a new checkout comes from: platforms of one site whose profile was read have some of their own,
// all others share what the node has.
func budget(ctx context.Context, tx *storage.Tx, x *storage.StoredCheckout) error {
	if u, err := url.Parse(x.Platform); err == nil && x.Platform != "" {
		x.Site = netx.Registrable(u.Host)
	}
	own, others, err := tx.Checkouts().CountMade(ctx, x.Site)
	if err != nil {
		return err
	}
	if x.Free = x.Site != "" && own < protocol.FreeCheckouts; x.Free || others < protocol.UnprovedCheckouts {
		return nil
	}
	return &protocol.Error{Code: protocol.RateLimited, RetryAfter: 10 * time.Minute,
		Detail: "too many checkouts were made here within an hour by callers without room of their own; send UCP-Agent with your profile, or come back later"}
}

func (o *Orders) handedOver(x *storage.StoredCheckout) (h handover, err error) {
	raw, err := o.Seal.Open(storage.PurposeOrder(x.ID), x.Sealed)
	if err != nil {
		return h, err
	}
	return h, json.Unmarshal(raw, &h)
}

// fill prices the basket of a checkout, holds its pieces, and stores it.
func (o *Orders) fill(ctx context.Context, tx *storage.Tx, x *storage.StoredCheckout, in protocol.CheckoutDraft, token string,
	store func(context.Context, *storage.StoredCheckout) error) (protocol.Checkout, error) {
	none := protocol.Checkout{}
	b, err := o.priced(ctx, tx, protocol.Basket{Items: in.Items})
	if err != nil {
		return none, err
	}
	refused := cannot(b)
	if refused == nil {
		t, account, err := o.till(ctx, tx, b.shop.Draft.Handle)
		if err != nil {
			return none, err
		}
		switch taking := shown(t, account).Taking; {
		case x.Till != "" && t.ID != x.Till:
			refused = &protocol.CheckoutNote{Code: "one_shop_per_checkout", Detail: "it is of another shop; make a new one"}
		case !taking && !isCart(x.ID):
			refused = &protocol.CheckoutNote{Code: "shop_closed", Detail: "@" + t.Handle + " takes no orders here now"}
		}
		x.Till = t.ID
	}
	if refused != nil {
		out := protocol.Checkout{Refused: refused}
		if b.shop != nil {
			out.Handle = b.shop.Draft.Handle
		}
		return out, nil
	}
	secret, err := json.Marshal(handover{in.Buyer, token})
	if err != nil {
		return none, err
	}
	x.TokenHash, x.Sealed = protocol.SecretHash(token), o.Seal.Seal(storage.PurposeOrder(x.ID), secret)
	x.Items, x.Pay, x.Release, x.Webhook, x.Prices = in.Items, in.Pay, in.Release, in.Webhook, map[string]int64{}
	for _, l := range b.lines {
		x.Prices[l.Item.ID] = l.Item.Price
	}
	if !isCart(x.ID) {
		if err := o.take(ctx, tx, x, in.Buyer.Mail, b.lines); err != nil {
			return none, err
		}
	}
	if err := store(ctx, x); err != nil {
		return none, err
	}
	return o.checkout(ctx, tx, x)
}

// cannot says why a basket makes no checkout at all; nil for one that does, even with faults.
func cannot(b basket) *protocol.CheckoutNote {
	note := &protocol.CheckoutNote{Code: "item_unavailable", Detail: "no item was sent"}
	for _, f := range b.faults {
		note = &protocol.CheckoutNote{Code: f.Code, Detail: f.Detail}
		if f.Code == "other_shop" {
			note.Code, note.Detail = "one_shop_per_checkout", "all items of a checkout are of one shop; make one for each"
			return note
		}
	}
	if len(b.lines) > 0 {
		return nil
	}
	return note
}

// take ends other checkouts of the maker for the mailbox, and holds pieces for this one.
func (o *Orders) take(ctx context.Context, tx *storage.Tx, x *storage.StoredCheckout, mail string, lines []protocol.OrderLine) error {
	if err := tx.Checkouts().ReleaseDue(ctx, x.Till); err != nil {
		return err
	}
	x.Mailbox = nil
	if _, err := protocol.ParseMail(mail); mail != "" && err == nil {
		hash := storage.MailboxOf(o.MailKey, mail)
		x.Mailbox = hash[:]
		others, err := tx.Checkouts().OfMailbox(ctx, x)
		if err != nil {
			return err
		}
		for i := range others {
			if err := o.endCheckout(ctx, tx, &others[i]); err != nil {
				return err
			}
		}
	}
	x.HoldUntil = time.Time{}
	if err := tx.Tills().Release(ctx, x.ID); err != nil {
		return err
	}
	held, err := o.holdCheckout(ctx, tx, x, lines)
	if err != nil || !held {
		return err
	}
	x.Holds++
	x.HoldUntil = tx.Now.Add(protocol.HoldFor)
	if x.ExpiresAt.Before(x.HoldUntil) {
		x.HoldUntil = x.ExpiresAt
	}
	return money.Enqueue(ctx, tx, storage.OrderDueJob, "", money.Job{ID: x.ID, N: x.Holds}, x.HoldUntil)
}

// holdCheckout holds all counted pieces of a checkout, or none. Whoever makes one is not known to be a buyer: together they hold half of
// a variant at most, and the oldest give way, but to none of the same maker.
func (o *Orders) holdCheckout(ctx context.Context, tx *storage.Tx, x *storage.StoredCheckout, lines []protocol.OrderLine) (held bool, err error) {
	giveWay := []string{}
	counted := []protocol.OrderLine{}
	for _, l := range lines {
		s, err := tx.Tills().Stock(ctx, x.Till, l.Item.ID)
		if errors.Is(err, storage.ErrNotFound) {
			continue
		}
		if err != nil {
			return false, err
		}
		counted = append(counted, l)
		lacking := int(l.Quantity.Total) - strangersMay(s)
		if lacking <= 0 {
			continue
		}
		others, err := tx.Checkouts().Holding(ctx, x.Till, l.Item.ID, x.Maker)
		for _, h := range others {
			if lacking > 0 {
				giveWay = append(giveWay, h.OrderID)
				lacking -= h.Pieces
			}
		}
		if err != nil || lacking > 0 {
			return false, err
		}
	}
	for _, id := range giveWay {
		if err := tx.Tills().Release(ctx, id); err != nil {
			return false, err
		}
	}
	for _, l := range counted {
		if err := tx.Tills().HoldFor(ctx, x, l.Item.ID, int(l.Quantity.Total)); err != nil {
			return false, err
		}
	}
	return len(counted) > 0, nil
}

// strangersMay is how many more pieces buyers may hold whom the node does not know; less than none when the shop counted anew.
func strangersMay(s storage.Stocked) int {
	return min(s.Free(), (protocol.Shared{Most: s.Pieces}).Strangers()-s.Strangers)
}

// endCheckout cancels an open checkout: its pieces are free.
func (o *Orders) endCheckout(ctx context.Context, tx *storage.Tx, x *storage.StoredCheckout) error {
	if err := tx.Tills().Release(ctx, x.ID); err != nil {
		return err
	}
	x.State, x.HoldUntil, x.EndsAt = storage.CheckoutEnded, time.Time{}, tx.Now.Add(protocol.CheckoutKept)
	return tx.Checkouts().Save(ctx, x)
}

// releaseCheckout ends what a checkout holds, at its time.
func releaseCheckout(ctx context.Context, tx *storage.Tx, j money.Job) error {
	x, err := tx.Checkouts().ByID(ctx, j.ID)
	if err == nil {
		_, err = tx.Tills().ByID(ctx, x.Till)
	}
	if err == nil {
		x, err = tx.Checkouts().ByID(ctx, j.ID)
	}
	if err != nil || x.Holds != j.N || x.HoldUntil.IsZero() {
		return storage.IfMissing(err, nil)
	}
	if err := tx.Tills().Release(ctx, x.ID); err != nil {
		return err
	}
	x.HoldUntil = time.Time{}
	return tx.Checkouts().Save(ctx, x)
}

// CancelCheckout ends a checkout, with its order if that is not paid, or a cart.
func (o *Orders) CancelCheckout(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.CheckoutDraft) (protocol.Checkout, error) {
	x, err := lockedCheckout(ctx, tx, c, in.Session)
	if err != nil {
		return protocol.Checkout{}, err
	}
	out, err := o.checkout(ctx, tx, x)
	if err != nil {
		return out, err
	}
	if isCart(x.ID) {
		return out, tx.Checkouts().Delete(ctx, x.ID)
	}
	closed := protocol.Checkout{Refused: &protocol.CheckoutNote{Code: "not_cancelable", Detail: "it is " + out.Status + "; it cannot be canceled any more"}}
	if out.Status == protocol.CheckoutCompleted || out.Status == protocol.CheckoutCanceled {
		return closed, nil
	}
	if x.State == storage.CheckoutOpen {
		if err := o.endCheckout(ctx, tx, x); err != nil {
			return out, err
		}
		return o.checkout(ctx, tx, x)
	}
	order, err := tx.Orders().ByID(ctx, x.OrderID)
	if err != nil {
		return out, err
	}
	if order.Claimed {
		return closed, nil
	}
	if err := o.end(ctx, tx, order, "by the platform of the buyer"); err != nil {
		return out, err
	}
	return o.checkout(ctx, tx, x)
}
