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

var callbackTable = tableOf[StoredCallback]("callback")

// Callbacks reads and writes the deliveries of replies to callbacks.
type Callbacks struct{ tx *Tx }

func (tx *Tx) Callbacks() Callbacks { return Callbacks{tx} }

// Insert stores a waiting delivery.
func (cs Callbacks) Insert(ctx context.Context, c *StoredCallback) error {
	c.CreatedAt = cs.tx.Now
	return callbackTable.insert(ctx, cs.tx, c)
}

// ByID returns a delivery; ErrNotFound when there is none. In a writing
// transaction its row is locked.
func (cs Callbacks) ByID(ctx context.Context, id string) (*StoredCallback, error) {
	return orNil(findLocked[StoredCallback](ctx, cs.tx, callbackTable.from+`WHERE id = ?`, id))
}

// Save stores the mutable fields of a delivery.
func (cs Callbacks) Save(ctx context.Context, c *StoredCallback) error {
	return callbackTable.update(ctx, cs.tx, c, "id", "state", "attempts", "tries", "status", "last_error", "next_at", "until")
}

// End ends the waiting deliveries of a thread whose receiver refuses them, and
// disables those of later replies.
func (cs Callbacks) End(ctx context.Context, threadID, why string) error {
	if _, err := cs.tx.write(ctx, `UPDATE thread SET callback = '' WHERE id = ?`, threadID); err != nil {
		return err
	}
	return cs.tx.exec(ctx, `UPDATE callback SET state = 'gone', last_error = ? WHERE thread_id = ? AND state = 'waiting'`, why, threadID)
}

// List returns the deliveries of an agent's replies, newest first; state and
// threadID may be "". The caller checks that the thread is one with the agent.
func (cs Callbacks) List(
	ctx context.Context, handle string, state protocol.CallbackState, threadID string, limit int, after string,
) (protocol.Page[StoredCallback], error) {
	text, args := callbacksQuery(handle, state, threadID)
	return newest[StoredCallback](ctx, cs.tx, "callbacks-"+string(state)+threadID, "id", limit, after, text, args...)
}

func callbacksQuery(handle string, state protocol.CallbackState, threadID string) (text string, args []any) {
	where, args, rest := `handle = ?`, []any{handle}, onesOwn
	switch {
	case threadID != "" && state != "": // a thread has few, so their state needs no index
		where, args = `thread_id = ? AND state = ?`, []any{threadID, string(state)}
	case threadID != "":
		where, args = `thread_id = ?`, []any{threadID}
	case state != "":
		where, args, rest = `handle = ? AND state = ?`, []any{handle, string(state)}, onesOwnState
	}
	return callbackTable.from + `WHERE ` + where + ` AND ` + rest, args
}

const oldCallbacks = `id < ? AND state <> 'waiting' ORDER BY id LIMIT 1000`

// Prune deletes finished deliveries of messages from before a time, at most a
// thousand per call, and returns how many. Ids sort by time.
func (cs Callbacks) Prune(ctx context.Context, before time.Time) (int, error) {
	return cs.tx.deleteSome(ctx, "callback", "id", oldCallbacks, protocol.NewID(protocol.MessageID, before))
}
