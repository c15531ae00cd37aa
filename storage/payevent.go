package storage

import (
	"context"
	"time"
)

// A PayEvent is an event of a payment provider, as received. Its signature was checked before it was
// stored.
type PayEvent struct {
	ID       int64 `db:",auto"`
	Provider string
	Account  string // id of the payment account
	EventID  string
	Subject  string `db:"bid"`        // the bid or order of the link that it is about, "" for none
	Payment  string `db:"payment_id"` // id of the payment at the provider, "" for none
	Head     []byte `db:",text"`      // the events in it, as they were read, as JSON
	Raw      []byte // the body as received; empty in a listing
	At       time.Time
	DoneAt   *time.Time // when it was applied; nil before
	Outcome  string     // what became of it, in words
}

var payEventTable = tableOf[PayEvent]("pay_event")

// InsertEvent stores an event; ErrExists when it was stored before.
func (ps Payments) InsertEvent(ctx context.Context, e *PayEvent) error {
	if err := ps.tx.dirty(); err != nil {
		return err
	}
	stored := *e
	stored.Subject, stored.Payment, stored.At = storable(e.Subject), storable(e.Payment), ps.tx.Now
	text, args, err := payEventTable.statement(&stored, " ON CONFLICT DO NOTHING RETURNING id")
	if err != nil {
		return err
	}
	if e.ID, err = find[int64](ctx, ps.tx, text, args...); err == ErrNotFound {
		return ErrExists
	}
	return err
}

// EventByID returns an event that was not applied yet; ErrNotFound when there is none.
func (ps Payments) EventByID(ctx context.Context, id int64) (*PayEvent, error) {
	return pointer(find[PayEvent](ctx, ps.tx, `SELECT id, provider, account, event_id, raw, head FROM pay_event WHERE id = ? AND done_at IS NULL`, id))
}

// EndEvent notes what became of an event.
func (ps Payments) EndEvent(ctx context.Context, id int64, outcome string) error {
	return ps.tx.exec(ctx, `UPDATE pay_event SET done_at = ?, outcome = ? WHERE id = ?`, millis(ps.tx.Now), storable(outcome), id)
}

// What events are looked for by: the subject or the payment's id at its provider, both with the account that signed them; the provider's id of
// the event. They come without their body, the oldest first, at most 100.
const (
	EventsOfSubject = `bid = ? AND bid <> '' AND account = ?`
	EventsOfPayment = `payment_id = ? AND payment_id <> '' AND account = ?`
	EventsNamed     = `event_id = ?`
)

func eventsQuery(by string) string {
	return `SELECT id, provider, account, event_id, bid, payment_id, head, at, done_at, outcome FROM pay_event WHERE ` + by + ` ORDER BY id LIMIT 100`
}

// Events returns the events that are found by a key.
func (ps Payments) Events(ctx context.Context, by string, key ...any) ([]PayEvent, error) {
	return list[PayEvent](ctx, ps.tx, eventsQuery(by), key...)
}

const eventsWithOutcome = `SELECT id FROM pay_event WHERE payment_id = ? AND payment_id <> '' AND account = ? AND outcome = ? ORDER BY id LIMIT 20`

// ReopenEvents makes the events about a payment that ended with an outcome wait to be applied again, and returns their numbers.
func (ps Payments) ReopenEvents(ctx context.Context, account, payment, outcome string) ([]int64, error) {
	ids, err := list[int64](ctx, ps.tx, eventsWithOutcome, payment, account, outcome)
	for _, id := range ids {
		if _, err := ps.tx.write(ctx, `UPDATE pay_event SET done_at = NULL, outcome = '' WHERE id = ?`, id); err != nil {
			return nil, err
		}
	}
	return ids, err
}

const oldPayEvents = `done_at IS NOT NULL AND done_at < ? ORDER BY done_at LIMIT 500`

// PruneEvents deletes events that were applied before a time, at most 500 per call, and returns
// how many.
func (ps Payments) PruneEvents(ctx context.Context, before time.Time) (int, error) {
	return ps.tx.deleteSome(ctx, "pay_event", "id", oldPayEvents, millis(before))
}
