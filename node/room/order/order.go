// Package order is the orders of shops (spec §2.6, contract §9): what a basket costs, the stock that an order holds, its way to
// the buyer, and what its money does to it. Package money keeps the books; the money goes to the shop directly.
package order

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"

	"stoa/node/hall"
	"stoa/node/money"
	"stoa/protocol"
	"stoa/storage"
)

// Orders is the room of the orders of shops.
type Orders struct {
	Base string // public address of the node, without a slash at the end
	Name string // what the operator calls it
	DB   *storage.DB
	*money.Money
	MailKey    []byte      // makes the names of mailboxes
	LettersVia func() Send // what it returns is nil on a node that sends no mail
	Words      func(language string) hall.Words
	Receipts   Receipts
	Platforms  *Platforms // nil tells none
}

// A Send sends one letter. The same id is the same letter.
type Send func(ctx context.Context, id, to, subject, text string) error

// Receipts issues the receipts of orders.
type Receipts interface {
	// IssueFor issues the receipt of an order of a shop; test says that no money moved, buyers by which names its buyer is told.
	IssueFor(ctx context.Context, tx *storage.Tx, shop string, in protocol.NewOrderReceipt, known string, test bool, buyers []string) (id string, err error)
	// KnownFor says in it that more is known of the payment.
	KnownFor(ctx context.Context, tx *storage.Tx, id, known string) error
	// AdjustFor adds an adjustment to it, once.
	AdjustFor(ctx context.Context, tx *storage.Tx, id string, a protocol.Adjustment) error
	// ReviewOf returns the review of its order, nil for none; Answer answers it.
	ReviewOf(ctx context.Context, tx *storage.Tx, receipt storage.StoredReceipt) (*protocol.Review, error)
	Answer(ctx context.Context, tx *storage.Tx, receipt, text string) error
}

// New makes the room; the parameters are the fields of Orders.
func New(h hall.House, name string, books *money.Money, mailKey []byte, lettersVia func() Send, receipts Receipts) *Orders {
	o := &Orders{Base: h.Base, Name: name, DB: h.DB, Money: books, MailKey: mailKey, LettersVia: lettersVia, Words: h.Words, Receipts: receipts}
	books.Kinds[protocol.OrderID] = o
	return o
}

// Bind binds the operations of the room.
func (o *Orders) Bind(t *hall.Table) {
	hall.Bind(t, protocol.QuoteOrder, o.Quote)
	hall.Bind(t, protocol.MakeOrder, o.Make)
	hall.Bind(t, protocol.ReadOrder, o.Read)
	hall.Bind(t, protocol.CancelOrder, o.Cancel)
	hall.Bind(t, protocol.ConfirmOrderMail, o.ConfirmMail)
	hall.Bind(t, protocol.ListOrders, o.List)
	hall.Bind(t, protocol.UpdateOrder, o.Update)
	hall.Bind(t, protocol.GetTill, o.GetTill)
	hall.Bind(t, protocol.PutTill, o.PutTill)
	hall.Bind(t, protocol.PutStock, o.PutStock)
	hall.Bind(t, protocol.UCPMakeCheckout, o.MakeCheckout)
	hall.Bind(t, protocol.UCPPutCheckout, o.PutCheckout)
	hall.Bind(t, protocol.UCPCheckout, o.Checkout)
	hall.Bind(t, protocol.UCPCancelCheckout, o.CancelCheckout)
	hall.Bind(t, protocol.UCPOrder, o.PlatformOrder)
	hall.Bind(t, protocol.ReadCheckout, o.ReadCheckout)
}

// Jobs are the handlers of the room's jobs.
func (o *Orders) Jobs() map[storage.JobKind]storage.JobHandler {
	return map[storage.JobKind]storage.JobHandler{
		storage.OrderDueJob:  storage.HandlerOf(o.Due),
		storage.OrderMailJob: storage.HandlerOf(o.Letter),
		storage.OrderTellJob: storage.HandlerOf(o.Tell),
	}
}

// A private is what is sealed of an order.
type private struct {
	protocol.OrderBuyer
	Token    string `json:"token"` // of its page, for letters
	Language string `json:"language,omitempty"`
}

func (o *Orders) seal(id string, p private) ([]byte, error) {
	raw, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	return o.Seal.Seal(storage.PurposeOrder(id), raw), nil
}

// buyerOf opens who bought; after a year nobody knows.
func (o *Orders) buyerOf(x *storage.StoredOrder) (p private, err error) {
	if len(x.Sealed) == 0 {
		return p, nil
	}
	raw, err := o.Seal.Open(storage.PurposeOrder(x.ID), x.Sealed)
	if err != nil {
		return p, err
	}
	return p, json.Unmarshal(raw, &p)
}

// BuyerOf opens who bought, for the archive of the shop.
func (o *Orders) BuyerOf(x *storage.StoredOrder) (protocol.OrderBuyer, error) {
	p, err := o.buyerOf(x)
	return p.OrderBuyer, err
}

// till returns the till of a shop with its payment account, nil for none. A shop that never wrote one has a closed one.
func (o *Orders) till(ctx context.Context, tx *storage.Tx, handle string) (*storage.Till, *storage.PaymentAccount, error) {
	t, err := tx.Tills().ByHandle(ctx, handle)
	if errors.Is(err, storage.ErrNotFound) {
		t, err = &storage.Till{Handle: handle}, nil
	}
	if err != nil {
		return nil, nil, err
	}
	all, err := tx.PaymentAccounts().OfProfile(ctx, handle)
	for i := range all {
		if all[i].RetiredAt == nil {
			return t, &all[i], err
		}
	}
	return t, nil, err
}

// shown is a till as answers have it.
func shown(t *storage.Till, account *storage.PaymentAccount) protocol.Till {
	out := protocol.Till{TillDraft: t.Terms, Now: account != nil, Test: account != nil && account.Test, Untrusted: true}
	out.Handle = t.Handle
	out.Taking = t.Open && (account != nil || t.Terms.PayOnDelivery && t.Terms.Delivery || t.Terms.PayAtPickup && t.Terms.Pickup)
	if !t.UpdatedAt.IsZero() {
		out.UpdatedAt = &t.UpdatedAt
	}
	return out
}

// business returns the shop of the caller. Its row is not locked: tills are locked before profiles.
func business(ctx context.Context, tx *storage.Tx, c protocol.Caller, handle string) (*storage.StoredProfile, error) {
	handle, err := c.ActsAs(handle)
	if err != nil {
		return nil, err
	}
	p, err := tx.Profiles().Own(ctx, handle)
	if err != nil {
		return nil, storage.IfMissing(err, protocol.NoAgent(handle))
	}
	if p.Draft.Kind != protocol.Business {
		return nil, protocol.Invalid(protocol.Fault{Pointer: "/handle", Code: "not-for-kind",
			Detail: "@" + handle + " is a person; only businesses take orders"})
	}
	return p, nil
}

// GetTill returns how a shop takes orders.
func (o *Orders) GetTill(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.OwnInput) (protocol.Till, error) {
	p, err := business(ctx, tx, c, in.Handle)
	if err != nil {
		return protocol.Till{}, err
	}
	t, account, err := o.till(ctx, tx, p.Draft.Handle)
	if err != nil {
		return protocol.Till{}, err
	}
	return shown(t, account), nil
}

// PutTill replaces how a shop takes orders.
func (o *Orders) PutTill(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.TillDraft) (protocol.Till, error) {
	p, err := business(ctx, tx, c, in.Handle)
	if err != nil {
		return protocol.Till{}, err
	}
	t, account, err := o.till(ctx, tx, p.Draft.Handle)
	if err != nil {
		return protocol.Till{}, err
	}
	t.Open, t.Terms = in.Open, in
	if err := tx.Tills().Put(ctx, t); err != nil {
		return protocol.Till{}, err
	}
	return shown(t, account), nil
}

// PutStock counts pieces of variants of the shop.
func (o *Orders) PutStock(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.StockDraft) (protocol.None, error) {
	none := protocol.None{}
	p, err := business(ctx, tx, c, in.Handle)
	if err != nil {
		return none, err
	}
	t, _, err := o.till(ctx, tx, p.Draft.Handle)
	if err == nil && t.ID == "" {
		err = tx.Tills().Put(ctx, t)
	}
	if err != nil {
		return none, err
	}
	found, err := named(ctx, tx, p.Draft.Handle, in.Stock)
	if err != nil {
		return none, err
	}
	for i, x := range in.Stock {
		v := found[x.ID]
		if v == nil || v.shop.Draft.Handle != p.Draft.Handle {
			return none, protocol.Invalid(protocol.Fault{Pointer: "/stock/" + strconv.Itoa(i) + "/id", Code: "unknown",
				Detail: "@" + p.Draft.Handle + " sells no such variant; an item with variants is counted by variant"})
		}
		if err := tx.Tills().PutStock(ctx, t.ID, v.ID, x.Pieces); err != nil {
			return none, err
		}
	}
	return none, nil
}

// named returns the variants that a shop counts, by id or by SKU.
func named(ctx context.Context, tx *storage.Tx, shop string, stock []protocol.StockCount) (map[string]*variant, error) {
	var ids, skus []string
	for _, x := range stock {
		if protocol.IsID(protocol.ItemID, x.ID) || protocol.IsID(protocol.VariantID, x.ID) {
			ids = append(ids, x.ID)
			continue
		}
		item, _, _ := strings.Cut(x.ID, "/")
		skus = append(skus, item)
	}
	items, err := tx.Items().IDsOfSKUs(ctx, shop, skus)
	if err != nil {
		return nil, err
	}
	found, err := variants(ctx, tx, append(ids, slices.Collect(maps.Values(items))...))
	if err != nil {
		return nil, err
	}
	for _, x := range stock {
		if sku, of, has := strings.Cut(x.ID, "/"); !has && items[sku] != "" {
			found[x.ID] = found[items[sku]]
		} else if has {
			for _, v := range found {
				if v.item == items[sku] && v.SKU == of {
					found[x.ID] = v
				}
			}
		}
	}
	return found, nil
}

// A variant is a form of an item on sale, with its shop.
type variant struct {
	storage.StoredVariant
	item  string // id
	title string
	shop  *storage.StoredProfile
}

// variants returns what ids of variants, or of items without any, name; an unknown id is missing.
func variants(ctx context.Context, tx *storage.Tx, ids []string) (map[string]*variant, error) {
	found, err := tx.Items().ByIDs(ctx, ids)
	if err != nil {
		return nil, err
	}
	out := map[string]*variant{}
	for i := range found {
		item := &found[i]
		all := item.Variants()
		for n := range all {
			v := &variant{all[n], item.ID, item.Draft.Name, item.Merchant}
			for _, option := range v.Options {
				v.title += ", " + option.Label
			}
			v.title = protocol.Shorten(v.title, 120)
			out[v.ID] = v
		}
		if len(all) == 1 {
			out[item.ID] = out[all[0].ID]
		}
	}
	return out, nil
}

// A basket is what items cost now.
type basket struct {
	shop   *storage.StoredProfile // nil when nothing is on sale
	lines  []protocol.OrderLine
	sum    int64
	faults []protocol.BasketFault
}

// priced returns what the items of a basket cost now, and why some cannot be ordered. Pieces of one variant are one line.
func (o *Orders) priced(ctx context.Context, tx *storage.Tx, in protocol.Basket) (b basket, err error) {
	ids := make([]string, len(in.Items))
	for i, x := range in.Items {
		ids[i] = x.ID
	}
	found, err := variants(ctx, tx, ids)
	if err != nil {
		return b, err
	}
	at := map[string]int{}
	for _, x := range in.Items {
		fault := func(code, detail string) {
			b.faults = append(b.faults, protocol.BasketFault{ID: x.ID, Code: code, Detail: detail})
		}
		v := found[x.ID]
		switch {
		case v == nil:
			fault("item_unavailable", "no such item is on sale here; of an item with several variants name one")
			continue
		case b.shop != nil && b.shop.Draft.Handle != v.shop.Draft.Handle:
			fault("other_shop", "an order is of one shop; order this one from @"+v.shop.Draft.Handle)
			continue
		case v.Availability == protocol.OutOfStock || v.Availability == protocol.Discontinued:
			b.shop = v.shop
			fault("out_of_stock", "it is sold out")
			continue
		case v.Currency != protocol.Rupee || v.Minor <= 0:
			b.shop = v.shop
			fault("no_price", "it has no price in rupees; ask the shop")
			continue
		}
		b.shop = v.shop
		n, again := at[v.ID]
		if !again {
			n = len(b.lines)
			at[v.ID] = n
			b.lines = append(b.lines, protocol.OrderLine{ID: strconv.Itoa(n + 1), Item: protocol.OrderItem{ID: v.ID, Title: v.title, Price: v.Minor},
				Status: "processing"})
		}
		l := &b.lines[n]
		l.Quantity.Original += int64(x.Quantity)
		l.Quantity.Total = l.Quantity.Original
		l.Totals = []protocol.OrderTotal{{Type: "total", Amount: l.Item.Price * l.Quantity.Total}}
		b.sum += l.Item.Price * int64(x.Quantity)
	}
	return b, nil
}

// Quote returns what a basket costs now.
func (o *Orders) Quote(ctx context.Context, tx *storage.Tx, _ protocol.Caller, in protocol.Basket) (protocol.BasketQuote, error) {
	return o.quote(ctx, tx, in, func(s storage.Stocked, _ string) int { return s.Free() })
}

// quote returns what a basket costs; free is how many pieces of a counted variant it may have.
func (o *Orders) quote(ctx context.Context, tx *storage.Tx, in protocol.Basket, free func(s storage.Stocked, variant string) int) (
	protocol.BasketQuote, error) {
	b, err := o.priced(ctx, tx, in)
	out := protocol.BasketQuote{Lines: b.lines, Sum: rupees(b.sum), Faults: b.faults, Carriage: rupees(0), Mail: o.LettersVia() != nil, Untrusted: true}
	if out.Lines == nil {
		out.Lines = []protocol.OrderLine{}
	}
	if out.Faults == nil {
		out.Faults = []protocol.BasketFault{}
	}
	if err != nil || b.shop == nil {
		return out, err
	}
	t, account, err := o.till(ctx, tx, b.shop.Draft.Handle)
	if err != nil {
		return out, err
	}
	out.Handle, out.Shop, out.Till = b.shop.Draft.Handle, b.shop.Draft.Name, shown(t, account)
	out.Carriage = rupees(t.Terms.Carriage(b.sum))
	for _, l := range b.lines {
		switch s, err := tx.Tills().Stock(ctx, t.ID, l.Item.ID); {
		case err == nil && int64(free(s, l.Item.ID)) < l.Quantity.Total:
			out.Faults = append(out.Faults, soldOut(l, free(s, l.Item.ID)))
		case err != nil && !errors.Is(err, storage.ErrNotFound):
			return out, err
		}
	}
	return out, nil
}

func soldOut(l protocol.OrderLine, free int) protocol.BasketFault {
	detail := "it is sold out, or others are buying the last of it; try again in 20 minutes"
	if free > 0 {
		detail = "only " + strconv.Itoa(free) + " are left"
	}
	return protocol.BasketFault{ID: l.Item.ID, Code: "out_of_stock", Detail: detail}
}

func rupees(paise int64) protocol.Money { return protocol.MoneyOf(protocol.Rupee, paise) }
