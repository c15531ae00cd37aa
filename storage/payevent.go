package storage

import (
	"context"
	"time"
)

// A PayEvent is an event of a payment provider, as received. Its signature was checked before it was
// stored.
type PayEvent struct {
	ID       int64
	Provider string
	Account  string // id of the payment account
	EventID  string
	Head     []byte // the events in it, as they were read, as JSON
	Raw      []byte // the body as received
}

// InsertEvent stores an event; ErrExists when it was stored before.
func (ps Payments) InsertEvent(ctx context.Context, e *PayEvent) error {
	if err := ps.tx.dirty(); err != nil {
		return err
	}
	err := ps.tx.row(ctx, `INSERT INTO pay_event (provider, account, event_id, at, raw, head) VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING RETURNING id`,
		e.Provider, e.Account, e.EventID, millis(ps.tx.Now), e.Raw, string(e.Head)).Scan(&e.ID)
	if err == ErrNotFound {
		return ErrExists
	}
	return err
}

// EventByID returns an event that was not applied yet; ErrNotFound when there is none.
func (ps Payments) EventByID(ctx context.Context, id int64) (*PayEvent, error) {
	e := &PayEvent{ID: id}
	var head []byte
	err := ps.tx.row(ctx, `SELECT provider, account, event_id, raw, head FROM pay_event WHERE id = ? AND done_at IS NULL`, id).
		Scan(&e.Provider, &e.Account, &e.EventID, &e.Raw, &head)
	e.Head = head
	return e, err
}

// EndEvent notes what became of an event.
func (ps Payments) EndEvent(ctx context.Context, id int64, outcome string) error {
	_, err := ps.tx.write(ctx, `UPDATE pay_event SET done_at = ?, outcome = ? WHERE id = ?`, millis(ps.tx.Now), storable(outcome), id)
	return err
}

const oldPayEvents = `done_at IS NOT NULL AND done_at < ? ORDER BY done_at LIMIT 500`

// PruneEvents deletes events that were applied before a time, at most 500 per call, and returns
// how many.
func (ps Payments) PruneEvents(ctx context.Context, before time.Time) (int, error) {
	return ps.tx.deleteSome(ctx, "pay_event", "id", oldPayEvents, millis(before))
}
