package storage

import (
	"context"
	"errors"
	"time"

	"stoa/protocol"
)

// A Till is how a shop takes orders, as it is stored.
type Till struct {
	ID        string
	Handle    string `db:",null"` // "" once the profile is deleted
	Open      bool
	Terms     protocol.TillDraft `db:"doc"`
	UpdatedAt time.Time
}

var tillTable = tableOf[Till]("till")

// Tills reads and writes tills, and the stock of their shops.
type Tills struct{ tx *Tx }

func (tx *Tx) Tills() Tills { return Tills{tx} }

var (
	tillByHandle = tillTable.from + `WHERE handle = ?`
	tillByID     = tillTable.from + `WHERE id = ?`
)

// ByHandle returns the till of a shop; ErrNotFound when it never had one. In a writing transaction the row is locked: one writer
// decides about the orders and the stock of a shop at a time.
func (ts Tills) ByHandle(ctx context.Context, handle string) (*Till, error) {
	return pointer(findLocked[Till](ctx, ts.tx, tillByHandle, handle))
}

// ByID is ByHandle by the till's id.
func (ts Tills) ByID(ctx context.Context, id string) (*Till, error) {
	return pointer(findLocked[Till](ctx, ts.tx, tillByID, id))
}

// Put stores a till. A new one gets an id, or that of one which another process has made meanwhile.
func (ts Tills) Put(ctx context.Context, t *Till) error {
	if t.ID == "" { // two processes may find none at once
		if err := ts.tx.lockName(ctx, "till "+t.Handle); err != nil {
			return err
		}
		switch here, err := ts.ByHandle(ctx, t.Handle); {
		case err == nil:
			t.ID = here.ID
		case errors.Is(err, ErrNotFound):
			t.ID = protocol.NewID(protocol.TillID, ts.tx.Now)
		default:
			return err
		}
	}
	t.UpdatedAt = ts.tx.Now
	return tillTable.put(ctx, ts.tx, t, "id", "open", "doc", "updated_at")
}

const tillOwes = `SELECT 1 FROM shop_order WHERE till = ? AND state IN ('awaiting_payment', 'paid')
	UNION ALL SELECT 1 FROM refund WHERE board = ? AND state <> 'done' LIMIT 1`

// drop separates the till of a profile that is deleted from its handle. ErrOwing while orders are under way.
func (ts Tills) drop(ctx context.Context, handle string) error {
	t, err := ts.ByHandle(ctx, handle)
	if err != nil {
		return orNothing(err)
	}
	if owes, err := ts.tx.exists(ctx, tillOwes, t.ID, t.ID); err != nil {
		return err
	} else if owes {
		return ErrOwing
	}
	if err := ts.tx.exec(ctx, `DELETE FROM stock WHERE till = ?`, t.ID); err != nil {
		return err
	}
	return ts.tx.exec(ctx, `UPDATE till SET handle = NULL, open = FALSE, doc = '{}' WHERE id = ?`, t.ID)
}

// A Stocked is how many pieces of a variant a shop has, and how many of them orders hold.
type Stocked struct {
	Pieces    int
	Held      int
	Strangers int // of Held, by buyers whom the node does not know
}

// Free is how many pieces nobody holds.
func (s Stocked) Free() int { return s.Pieces - s.Held }

const (
	stockOf = `SELECT pieces FROM stock WHERE till = ? AND variant = ?`
	heldOf  = `SELECT COALESCE(sum(pieces), 0), COALESCE(sum(CASE WHEN anonymous THEN pieces ELSE 0 END), 0) FROM order_hold WHERE till = ? AND variant = ?`
)

// Stock returns what is left of a variant; ErrNotFound when nobody counts it.
func (ts Tills) Stock(ctx context.Context, till, variant string) (s Stocked, err error) {
	if err := ts.tx.row(ctx, stockOf, till, variant).Scan(&s.Pieces); err != nil {
		return s, err
	}
	return s, ts.tx.row(ctx, heldOf, till, variant).Scan(&s.Held, &s.Strangers)
}

// PutStock counts a variant anew, or no more with nil. The till is locked.
func (ts Tills) PutStock(ctx context.Context, till, variant string, pieces *int) error {
	if pieces == nil {
		return ts.tx.exec(ctx, `DELETE FROM stock WHERE till = ? AND variant = ?`, till, variant)
	}
	return ts.tx.exec(ctx, `INSERT INTO stock (till, variant, pieces) VALUES (?, ?, ?) ON CONFLICT (till, variant) DO UPDATE SET pieces = excluded.pieces`,
		till, variant, *pieces)
}

// Sell takes the pieces that an order holds out of the stock. What the shop has counted anew since may be less.
func (ts Tills) Sell(ctx context.Context, o *StoredOrder) error {
	held, err := ts.held(ctx, o.ID)
	for _, h := range held {
		if err == nil {
			err = ts.tx.exec(ctx, `UPDATE stock SET pieces = CASE WHEN pieces > ? THEN pieces - ? ELSE 0 END WHERE till = ? AND variant = ?`,
				h.Pieces, h.Pieces, o.Till, h.Variant)
		}
	}
	if err != nil {
		return err
	}
	return ts.Release(ctx, o.ID)
}

// Restock puts pieces of a paid order back, where they are still counted.
func (ts Tills) Restock(ctx context.Context, o *StoredOrder) error {
	for _, l := range o.Lines {
		if err := ts.tx.exec(ctx, `UPDATE stock SET pieces = pieces + ? WHERE till = ? AND variant = ?`, l.Quantity.Total, o.Till, l.Item.ID); err != nil {
			return err
		}
	}
	return nil
}

// HeldPieces is a row of order_hold: what an order or a checkout holds of a variant.
type HeldPieces struct {
	OrderID, Till, Variant string
	Pieces                 int
	Anonymous              bool
}

var holdTable = tableOf[HeldPieces]("order_hold")

func (ts Tills) held(ctx context.Context, order string) ([]HeldPieces, error) {
	return list[HeldPieces](ctx, ts.tx, holdTable.from+`WHERE order_id = ? ORDER BY variant`, order)
}

// Held returns what an order or a checkout holds.
func (ts Tills) Held(ctx context.Context, order string) (map[string]int, error) {
	all, err := ts.held(ctx, order)
	pieces := map[string]int{}
	for _, h := range all {
		pieces[h.Variant] = h.Pieces
	}
	return pieces, err
}

// HoldFor stores that a checkout holds pieces of a counted variant.
func (ts Tills) HoldFor(ctx context.Context, x *StoredCheckout, variant string, pieces int) error {
	return holdTable.insert(ctx, ts.tx, &HeldPieces{x.ID, x.Till, variant, pieces, true})
}

// Hold stores that an order holds pieces of a counted variant.
func (ts Tills) Hold(ctx context.Context, o *StoredOrder, variant string, pieces int) error {
	return holdTable.insert(ctx, ts.tx, &HeldPieces{o.ID, o.Till, variant, pieces, o.Anonymous})
}

// Release ends what an order holds.
func (ts Tills) Release(ctx context.Context, order string) error {
	return ts.tx.exec(ctx, `DELETE FROM order_hold WHERE order_id = ?`, order)
}
