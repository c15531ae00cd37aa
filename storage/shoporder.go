package storage

import (
	"context"
	"time"

	"stoa/protocol"
)

// A StoredOrder is an order of a shop, as it is stored.
type StoredOrder struct {
	ID, Till  string
	State     protocol.OrderState
	Claimed   bool // the buyer reported a payment that the shop has neither confirmed nor denied
	Paise     int64
	Buyer     string // who made it, as limits know it
	Mailbox   [32]byte
	Anonymous bool   // a buyer whom the node does not know
	Test      bool   // no money moves
	Paid      bool   // it has, or had, money: never deleted
	UTR       string `db:",null"`
	Account   string // id of the payment account, "" when it is paid on delivery by other means
	TokenHash [32]byte
	MadeAt    time.Time
	HoldUntil time.Time `db:",null"` // zero where nothing ends it
	MovedAt   time.Time
	Moves     int
	Sealed    []byte // who bought, encrypted
	OrderDoc  `db:"doc"`
}

// An OrderDoc is what is stored of an order and no statement looks for.
type OrderDoc struct {
	Handle   string                `json:"handle"` // of the shop when it was made
	Shop     string                `json:"shop"`   // its name
	Lines    []protocol.OrderLine  `json:"lines"`
	Totals   []protocol.OrderTotal `json:"totals"`
	Way      string                `json:"way"`
	Pay      string                `json:"pay"`
	Note     string                `json:"note,omitempty"`
	Client   string                `json:"client,omitempty"`
	Known    string                `json:"known,omitempty"`   // how the payment is known
	Receipt  string                `json:"receipt,omitempty"` // id
	Link     PayLink               `json:"link"`
	Claims   int                   `json:"claims,omitempty"`
	Lapsed   bool                  `json:"lapsed,omitempty"`   // the clock ended it: a late payment may pay for it
	Returned int64                 `json:"returned,omitempty"` // paise that the shop gave back in hand
	By       string                `json:"by,omitempty"`       // the profile of this node that made it
	Events   []protocol.OrderEvent `json:"events"`

	Checkout string `json:"checkout,omitempty"` // of UCP, that it began with
	Platform string `json:"platform,omitempty"` // whose signature made that, by the address of its profile
	Release  string `json:"release,omitempty"`  // of UCP
	Webhook  string `json:"webhook,omitempty"`  // where the platform is told

	MailConfirmed bool `json:"mailConfirmed,omitempty"` // the buyer has read a letter about it
	Reported      bool `json:"reported,omitempty"`      // the reference of its payment is the one that the buyer reported
}

var orderTable = tableOf[StoredOrder]("shop_order")

// Orders reads and writes the orders of shops.
type Orders struct{ tx *Tx }

func (tx *Tx) Orders() Orders { return Orders{tx} }

var (
	orderByID    = orderTable.from + `WHERE id = ?`
	orderByToken = orderTable.from + `WHERE token_hash = ?`
)

// ByID returns an order; ErrNotFound when there is none. Who changes it locks the till first.
func (os Orders) ByID(ctx context.Context, id string) (*StoredOrder, error) {
	return pointer(find[StoredOrder](ctx, os.tx, orderByID, id))
}

// ByToken returns the order whose page has that secret, by its hash.
func (os Orders) ByToken(ctx context.Context, hash [32]byte) (*StoredOrder, error) {
	return pointer(find[StoredOrder](ctx, os.tx, orderByToken, hash[:]))
}

// Insert stores a new order; ErrExists when its mailbox has an unpaid one at the shop.
func (os Orders) Insert(ctx context.Context, o *StoredOrder) error {
	return orderTable.create(ctx, os.tx, o)
}

// Save stores what may change of an order. The till is locked.
func (os Orders) Save(ctx context.Context, o *StoredOrder) error {
	return orderTable.update(ctx, os.tx, o, "id", "state", "claimed", "paid", "utr", "account", "hold_until", "moved_at", "moves", "doc")
}

var dueOrders = orderTable.from + `WHERE till = ? AND state = 'awaiting_payment' AND hold_until <= ? ORDER BY hold_until LIMIT 200`

// ListDue returns the unpaid orders of a till whose hold is over.
func (os Orders) ListDue(ctx context.Context, till string) ([]StoredOrder, error) {
	return list[StoredOrder](ctx, os.tx, dueOrders, till, millis(os.tx.Now))
}

var strangersOrders = orderTable.from + `WHERE till = ? AND state = 'awaiting_payment' AND anonymous AND NOT claimed AND hold_until IS NOT NULL
	ORDER BY made_at LIMIT ?`

// Strangers returns the unpaid orders of buyers whom the node does not know, the oldest first: none that is
// reported as paid, or that its shop has taken up.
func (os Orders) Strangers(ctx context.Context, till string, most int) ([]StoredOrder, error) {
	return list[StoredOrder](ctx, os.tx, strangersOrders, till, most)
}

var strangersHolding = `SELECT ` + orderTable.columnsOf("o.") + ` FROM order_hold h JOIN shop_order o ON o.id = h.order_id
	WHERE h.till = ? AND h.variant = ? AND h.anonymous AND o.state = 'awaiting_payment' ORDER BY h.order_id LIMIT 1000`

// Holding returns those of Strangers that hold pieces of a variant.
func (os Orders) Holding(ctx context.Context, till, variant string) ([]StoredOrder, error) {
	return list[StoredOrder](ctx, os.tx, strangersHolding, till, variant)
}

// Pieces returns how many pieces of a variant an order has.
func (o *StoredOrder) Pieces(variant string) (n int) {
	for _, l := range o.Lines {
		if l.Item.ID == variant {
			n += int(l.Quantity.Total)
		}
	}
	return n
}

// A BuyerCount is what limits a buyer.
type BuyerCount struct {
	AtShop, OnNode int              // unpaid orders
	Unpaid         protocol.Waiting // of everybody at the shop
	Hour           int              // orders of buyers whom the node does not know, on the node, within an hour
}

const (
	ordersAtShop = `SELECT count(*) FROM shop_order WHERE buyer = ? AND till = ? AND state = 'awaiting_payment'`
	ordersOnNode = `SELECT count(*) FROM shop_order WHERE buyer = ? AND state = 'awaiting_payment'`
	ordersUnpaid = `SELECT count(*) - COALESCE(sum(CASE WHEN anonymous THEN 1 ELSE 0 END), 0), COALESCE(sum(CASE WHEN anonymous THEN 1 ELSE 0 END), 0)
		FROM shop_order WHERE till = ? AND state = 'awaiting_payment'`
	ordersUnproved = `SELECT count(*) FROM (SELECT 1 FROM shop_order WHERE anonymous AND made_at > ? LIMIT 1000) r`
)

// CountBuyer counts the orders that limit a buyer. A concurrent count of the same buyer waits for this transaction to end.
func (os Orders) CountBuyer(ctx context.Context, till, buyer string) (c BuyerCount, err error) {
	if err := os.tx.lockName(ctx, "buyer "+buyer); err != nil {
		return c, err
	}
	if err := os.tx.row(ctx, ordersAtShop, buyer, till).Scan(&c.AtShop); err != nil {
		return c, err
	}
	if err := os.tx.row(ctx, ordersOnNode, buyer).Scan(&c.OnNode); err != nil {
		return c, err
	}
	if err := os.tx.row(ctx, ordersUnproved, millis(os.tx.Now.Add(-time.Hour))).Scan(&c.Hour); err != nil {
		return c, err
	}
	return c, os.tx.row(ctx, ordersUnpaid, till).Scan(&c.Unpaid.Known, &c.Unpaid.Strangers)
}

// List returns the orders of a till, newest first; state "" is every state.
func (os Orders) List(ctx context.Context, till string, state protocol.OrderState, limit int, after string) (protocol.Page[StoredOrder], error) {
	text, args := ordersQuery(till, state)
	return newest[StoredOrder](ctx, os.tx, "orders-"+string(state), "id", limit, after, text, args...)
}

func ordersQuery(till string, state protocol.OrderState) (text string, args []any) {
	if state == "" {
		return orderTable.from + `WHERE till = ? AND ` + onesOwn, []any{till}
	}
	return orderTable.from + `WHERE till = ? AND state = ? AND ` + onesOwnState, []any{till, string(state)}
}

// UTRClaimed reports whether another order of the shop waits for its payment with the reference.
func (os Orders) UTRClaimed(ctx context.Context, till, utr, except string) (bool, error) {
	id, err := find[string](ctx, os.tx, `SELECT id FROM shop_order WHERE till = ? AND utr = ? AND claimed AND utr IS NOT NULL`, till, utr)
	return err == nil && id != except, orNothing(err)
}

const unpaidOrders = `NOT paid AND state = 'canceled' AND moved_at < ? ORDER BY moved_at LIMIT 500`

// Prune deletes orders that were never paid and ended before a time, at most 500 per call, and returns how many.
func (os Orders) Prune(ctx context.Context, before time.Time) (int, error) {
	return os.tx.deleteSome(ctx, "shop_order", "id", unpaidOrders, millis(before))
}

const knownBuyers = `length(sealed) > 0 AND state IN ('fulfilled', 'canceled', 'refunded') AND moved_at < ? ORDER BY moved_at LIMIT 500`

// ForgetBuyers forgets who bought of orders that have been over since before a time, at most 500 per call, and returns how many.
func (os Orders) ForgetBuyers(ctx context.Context, before time.Time) (int, error) {
	n, err := os.tx.write(ctx, `UPDATE shop_order SET sealed = ? WHERE id IN (SELECT id FROM shop_order WHERE `+knownBuyers+`)`, []byte{}, millis(before))
	return int(n), err
}
