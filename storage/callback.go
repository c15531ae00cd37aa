package storage

import (
	"context"
	"time"

	"stoa/protocol"
)

// A StoredCallback is the delivery of one reply to the callback address of its
// thread's writer.
type StoredCallback struct {
	ID, Handle, ThreadID, URL string // ID is the message's
	N                         int    // of the message in its thread
	State                     protocol.CallbackState
	Attempts                  int // in all
	Tries                     int // since it was made or replayed
	Status                    int // HTTP status of the last answer, 0 none
	LastError                 string
	CreatedAt, NextAt, Until  time.Time
}

const callbackColumns = `id, handle, thread_id, n, url, state, attempts, tries, status, last_error, created_at, next_at, until`

func scanCallback(s scanner) (c StoredCallback, err error) {
	var created, next, until int64
	err = s.Scan(&c.ID, &c.Handle, &c.ThreadID, &c.N, &c.URL, &c.State, &c.Attempts, &c.Tries, &c.Status, &c.LastError, &created, &next, &until)
	c.CreatedAt, c.NextAt, c.Until = moment(created), moment(next), moment(until)
	return c, err
}

// Callbacks reads and writes the deliveries of replies to callbacks.
type Callbacks struct{ tx *Tx }

func (tx *Tx) Callbacks() Callbacks { return Callbacks{tx} }

// Insert stores a waiting delivery.
func (cs Callbacks) Insert(ctx context.Context, c *StoredCallback) error {
	c.CreatedAt = cs.tx.Now
	_, err := cs.tx.write(ctx, `INSERT INTO callback (`+callbackColumns+`) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		c.ID, c.Handle, c.ThreadID, c.N, c.URL, string(c.State), c.Attempts, c.Tries, c.Status, c.LastError,
		millis(c.CreatedAt), millis(c.NextAt), millis(c.Until))
	return err
}

// ByID returns a delivery; ErrNotFound when there is none. In a writing
// transaction its row is locked.
func (cs Callbacks) ByID(ctx context.Context, id string) (*StoredCallback, error) {
	query := `SELECT ` + callbackColumns + ` FROM callback WHERE id = ?`
	if cs.tx.writes() {
		if err := cs.tx.dirty(); err != nil {
			return nil, err
		}
		query += cs.tx.db.engine.ForUpdate()
	}
	rows, err := cs.tx.query(ctx, query, id)
	found, err := collect(rows, err, scanCallback)
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, ErrNotFound
	}
	return &found[0], nil
}

// Save stores the mutable fields of a delivery.
func (cs Callbacks) Save(ctx context.Context, c *StoredCallback) error {
	return one(cs.tx.write(ctx, `UPDATE callback SET state = ?, attempts = ?, tries = ?, status = ?, last_error = ?, next_at = ?, until = ? WHERE id = ?`,
		string(c.State), c.Attempts, c.Tries, c.Status, c.LastError, millis(c.NextAt), millis(c.Until), c.ID))
}

// End ends the waiting deliveries of a thread whose receiver refuses them, and
// disables those of later replies.
func (cs Callbacks) End(ctx context.Context, threadID, why string) error {
	if _, err := cs.tx.write(ctx, `UPDATE thread SET callback = '' WHERE id = ?`, threadID); err != nil {
		return err
	}
	_, err := cs.tx.write(ctx, `UPDATE callback SET state = 'gone', last_error = ? WHERE thread_id = ? AND state = 'waiting'`, why, threadID)
	return err
}

// List returns the deliveries of an agent's replies, newest first; state and
// threadID may be "". The caller checks that the thread is one with the agent.
func (cs Callbacks) List(
	ctx context.Context, handle string, state protocol.CallbackState, threadID string, limit int, after string,
) (protocol.Page[StoredCallback], error) {
	limit = bounded(limit)
	listing := "callbacks-" + string(state) + threadID
	before, err := positionID(listing, after)
	if err != nil {
		return protocol.Page[StoredCallback]{}, err
	}
	text, args := callbacksQuery(handle, state, threadID, before, limit+1)
	rows, err := cs.tx.query(ctx, text, args...)
	found, err := collect(rows, err, scanCallback)
	return page(found, limit, listing, func(c StoredCallback) string { return c.ID }), err
}

func callbacksQuery(handle string, state protocol.CallbackState, threadID, before string, limit int) (text string, args []any) {
	where, args, rest := `handle = ?`, []any{handle}, onesOwn
	switch {
	case threadID != "" && state != "": // a thread has few, so their state needs no index
		where, args = `thread_id = ? AND state = ?`, []any{threadID, string(state)}
	case threadID != "":
		where, args = `thread_id = ?`, []any{threadID}
	case state != "":
		where, args, rest = `handle = ? AND state = ?`, []any{handle, string(state)}, onesOwnState
	}
	return `SELECT ` + callbackColumns + ` FROM callback WHERE ` + where + ` AND ` + rest, append(args, before, limit)
}

const oldCallbacks = `id < ? AND state <> 'waiting' ORDER BY id LIMIT 1000`

// Prune deletes finished deliveries of messages from before a time, at most a
// thousand per call, and returns how many. Ids sort by time.
func (cs Callbacks) Prune(ctx context.Context, before time.Time) (int, error) {
	return cs.tx.deleteSome(ctx, "callback", "id", oldCallbacks, protocol.NewID(protocol.MessageID, before))
}
