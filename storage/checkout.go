package storage

import (
	"context"
	"time"

	"stoa/protocol"
)

// States of a checkout. One that is over, or ended with its time, is not open either.
const (
	CheckoutOpen    = "open"
	CheckoutEnded   = "canceled"
	CheckoutOrdered = "ordered"
)

// A StoredCheckout is a checkout or a cart of UCP, as it is stored.
type StoredCheckout struct {
	ID          string
	TokenHash   [32]byte // of the secret of its page
	Till        string
	State       string
	Platform    string // address of the profile of the platform that made it, "" for none
	Signed      bool   // and its key signed the request
	Site        string // of that platform
	Free        bool   // the site had room for it; otherwise it used that of all
	Maker       string // as limits know it
	Mailbox     []byte `db:",null"`
	Cart        string `db:",null"` // that it began with
	OrderID     string `db:",null"`
	MadeAt      time.Time
	HoldUntil   time.Time `db:",null"` // zero where it holds nothing
	ExpiresAt   time.Time // an open one ends
	EndsAt      time.Time // the row ends
	Sealed      []byte    // who buys, encrypted
	CheckoutDoc `db:"doc"`
}

// A CheckoutDoc is what is stored of a checkout and no statement looks for.
type CheckoutDoc struct {
	Items   []protocol.BasketItem `json:"items"`
	Prices  map[string]int64      `json:"prices,omitempty"` // of one piece, by variant, when it was filled
	Pay     string                `json:"pay,omitempty"`
	Holds   int                   `json:"holds,omitempty"` // how often it began to hold
	Release string                `json:"release"`
	Webhook string                `json:"webhook,omitempty"`
}

var checkoutTable = tableOf[StoredCheckout]("checkout")

// Checkouts reads and writes checkouts and carts.
type Checkouts struct{ tx *Tx }

func (tx *Tx) Checkouts() Checkouts { return Checkouts{tx} }

var (
	checkoutByID    = checkoutTable.from + `WHERE id = ?`
	checkoutByToken = checkoutTable.from + `WHERE token_hash = ?`
	checkoutOfCart  = checkoutTable.from + `WHERE cart = ? AND state = 'open' AND expires_at > ? ORDER BY id DESC LIMIT 1`
	checkoutsOfMail = checkoutTable.from + `WHERE mailbox = ? AND maker = ? AND till = ? AND state = 'open' AND id <> ? ORDER BY id LIMIT 100`
)

// ByID returns a checkout; ErrNotFound when there is none. Who changes it locks the till first.
func (cs Checkouts) ByID(ctx context.Context, id string) (*StoredCheckout, error) {
	return cs.one(ctx, checkoutByID, id)
}

func (cs Checkouts) one(ctx context.Context, query string, args ...any) (*StoredCheckout, error) {
	return pointer(find[StoredCheckout](ctx, cs.tx, query, args...))
}

// ByToken returns the checkout whose page has that secret, by its hash.
func (cs Checkouts) ByToken(ctx context.Context, hash [32]byte) (*StoredCheckout, error) {
	return cs.one(ctx, checkoutByToken, hash[:])
}

// OfCart returns the open checkout that began with a cart; ErrNotFound when there is none.
func (cs Checkouts) OfCart(ctx context.Context, cart string) (*StoredCheckout, error) {
	return cs.one(ctx, checkoutOfCart, cart, millis(cs.tx.Now))
}

// OfMailbox returns the other open checkouts of a maker at a shop for a mailbox.
func (cs Checkouts) OfMailbox(ctx context.Context, x *StoredCheckout) ([]StoredCheckout, error) {
	return list[StoredCheckout](ctx, cs.tx, checkoutsOfMail, x.Mailbox, x.Maker, x.Till, x.ID)
}

// Insert stores a new checkout.
func (cs Checkouts) Insert(ctx context.Context, x *StoredCheckout) error {
	return checkoutTable.insert(ctx, cs.tx, x)
}

// Save stores what may change of a checkout. The till is locked.
func (cs Checkouts) Save(ctx context.Context, x *StoredCheckout) error {
	return checkoutTable.update(ctx, cs.tx, x, "id", "till", "state", "mailbox", "order_id", "hold_until", "ends_at", "sealed", "doc")
}

// Delete deletes a cart.
func (cs Checkouts) Delete(ctx context.Context, id string) error {
	return cs.tx.exec(ctx, `DELETE FROM checkout WHERE id = ?`, id)
}

const (
	freeCheckouts   = `SELECT count(*) FROM (SELECT 1 FROM checkout WHERE site = ? AND free AND made_at > ? LIMIT 1000) r`
	sharedCheckouts = `SELECT count(*) FROM (SELECT 1 FROM checkout WHERE NOT free AND made_at > ? LIMIT 1000) r`
)

// CountMade counts what was made within an hour: by platforms of a site out of its own room, and by all others. A concurrent count waits
// for this transaction to end.
func (cs Checkouts) CountMade(ctx context.Context, site string) (own, others int, err error) {
	since := millis(cs.tx.Now.Add(-time.Hour))
	if err := cs.tx.lockName(ctx, "checkouts of "+site); err != nil {
		return 0, 0, err
	}
	if site != "" {
		if err := cs.tx.row(ctx, freeCheckouts, site, since).Scan(&own); err != nil {
			return 0, 0, err
		}
	}
	return own, others, cs.tx.row(ctx, sharedCheckouts, since).Scan(&others)
}

const checkoutsHolding = `SELECT h.order_id, h.till, h.variant, h.pieces, h.anonymous FROM order_hold h JOIN checkout c ON c.id = h.order_id
	WHERE h.till = ? AND h.variant = ? AND c.maker <> ? ORDER BY h.order_id LIMIT 1000`

// Holding returns what the open checkouts of others than a maker hold of a variant, the oldest first.
func (cs Checkouts) Holding(ctx context.Context, till, variant, maker string) ([]HeldPieces, error) {
	return list[HeldPieces](ctx, cs.tx, checkoutsHolding, till, variant, maker)
}

// ReleaseDue frees what the checkouts of a till hold whose time is over, and whose job has not run yet.
func (cs Checkouts) ReleaseDue(ctx context.Context, till string) error {
	const due = `till = ? AND hold_until <= ?`
	now := millis(cs.tx.Now)
	if err := cs.tx.exec(ctx, `DELETE FROM order_hold WHERE order_id IN (SELECT id FROM checkout WHERE `+due+`)`, till, now); err != nil {
		return err
	}
	return cs.tx.exec(ctx, `UPDATE checkout SET hold_until = NULL WHERE `+due, till, now)
}
