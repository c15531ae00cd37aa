package storage

import (
	"context"
	"time"
)

// A Subscription is a board of another node that this node follows, and how far its
// log has been applied.
type Subscription struct {
	Board, Host, NodeActor, LogURL, Epoch string
	LastSeq                               int64 // of the log under Epoch; 0 is before the first
	Head                                  int64 // number of its newest entry, by the last page of the log that was read; 0 when none was
	State                                 SubscriptionState
	FollowID                              string
	CheckedAt, NextAt                     time.Time
	Failures                              int
	LastError                             string
	OKAt                                  time.Time // when its log was last read; zero: not since it is noted
	SignedHead                            []byte    `db:",null"` // the last head that the board's node signed, as received; nil: none yet
}

// A SubscriptionState is the state of our Follow.
type SubscriptionState string

const (
	SubscriptionPending  SubscriptionState = "pending"
	SubscriptionAccepted SubscriptionState = "accepted"
	SubscriptionRejected SubscriptionState = "rejected"
)

var subscriptionTable = tableOf[Subscription]("subscription")

// Subscriptions reads and writes the boards of other nodes that this node follows.
type Subscriptions struct{ tx *Tx }

func (tx *Tx) Subscriptions() Subscriptions { return Subscriptions{tx} }

// Put stores a subscription. Epoch and number of an existing one are unchanged:
// they are set by Advance and Reset.
func (ss Subscriptions) Put(ctx context.Context, s Subscription) error {
	if s.State == "" {
		s.State = SubscriptionPending
	}
	return subscriptionTable.put(ctx, ss.tx, &s, "board", "host", "node_actor", "log_url", "head", "state", "follow_id", "checked_at", "next_at",
		"failures", "last_error", "signed_head", "ok_at")
}

// NoteFollow records the delivery of the Follow of a pending subscription. One that
// was answered meanwhile is unchanged.
func (ss Subscriptions) NoteFollow(ctx context.Context, board string, failures int, lastError string) error {
	return ss.tx.exec(ctx, `UPDATE subscription SET failures = ?, last_error = ? WHERE board = ? AND state = ?`,
		failures, lastError, board, string(SubscriptionPending))
}

// ByBoard returns a subscription; ErrNotFound when there is none.
func (ss Subscriptions) ByBoard(ctx context.Context, board string) (*Subscription, error) {
	return orNil(find[Subscription](ctx, ss.tx, subscriptionTable.from+`WHERE board = ?`, board))
}

// maxSubscriptions limits a listing of them.
const maxSubscriptions = 10_000

// List returns every subscription, by board.
func (ss Subscriptions) List(ctx context.Context) ([]Subscription, error) {
	return list[Subscription](ctx, ss.tx, subscriptionTable.from+`ORDER BY board LIMIT ?`, maxSubscriptions)
}

// ListDue returns boards of accepted ones that are due and for which no walk waits: as many as, with the walks that wait, are n, and at least one. Those whose
// log was read last time come before those that fail, and of each those that are due longest.
func (ss Subscriptions) ListDue(ctx context.Context, n int) ([]string, error) {
	return list[string](ctx, ss.tx, dueSubscriptions, millis(ss.tx.Now), n, n, n)
}

// WalkName and the board are the name of the job that reads its log.
const WalkName = "pull:"

const dueSubscriptions = `SELECT board FROM subscription s WHERE state = 'accepted' AND next_at <= ? AND NOT EXISTS (SELECT 1 FROM job j
	WHERE j.dedupe = '` + WalkName + `' || s.board AND j.state = 'waiting' AND j.dedupe IS NOT NULL) ORDER BY (failures > 0), next_at
	LIMIT (SELECT CASE WHEN count(*) < ? THEN ? - count(*) ELSE 1 END FROM (SELECT 1 FROM job WHERE state = 'waiting' AND kind = 'pull' LIMIT ?) r)`

// HastenAll makes accepted ones due earlier by a time, and keeps their order.
func (ss Subscriptions) HastenAll(ctx context.Context, by time.Duration) error {
	now := millis(ss.tx.Now)
	return ss.tx.exec(ctx, `UPDATE subscription SET next_at = next_at - ? WHERE state = 'accepted' AND next_at > ?`, by.Milliseconds(), now)
}

// Hasten makes an accepted subscription due now. It is false when there is none.
func (ss Subscriptions) Hasten(ctx context.Context, board string) (bool, error) {
	n, err := ss.tx.write(ctx, `UPDATE subscription SET next_at = ? WHERE board = ? AND state = 'accepted'`, millis(ss.tx.Now), board)
	return n > 0, err
}

// Advance moves from one number to the next under an epoch, in the transaction
// that applies the entries between. It is false, and changes nothing, when the
// subscription is not (or no longer) at that number: then another worker has
// applied them, and the caller undoes its work by returning an error.
func (ss Subscriptions) Advance(ctx context.Context, board, epoch string, fromSeq, toSeq int64) (ok bool, err error) {
	n, err := ss.tx.write(ctx, `UPDATE subscription SET last_seq = ? WHERE board = ? AND epoch = ? AND last_seq = ?`, toSeq, board, epoch, fromSeq)
	return n == 1, err
}

// Reset begins at the start of the log under another epoch, which ends a conflict. It
// is false when the subscription is not under the epoch from.
func (ss Subscriptions) Reset(ctx context.Context, board, from, to string) (ok bool, err error) {
	n, err := ss.tx.write(ctx, `UPDATE subscription SET epoch = ?, last_seq = 0, head = 0, signed_head = NULL WHERE board = ? AND epoch = ?`,
		to, board, from)
	if err != nil || n != 1 {
		return false, err
	}
	return true, ss.forget(ctx, board)
}

// Soon makes an accepted subscription due at a time, unless it is due earlier.
func (ss Subscriptions) Soon(ctx context.Context, board string, at time.Time) error {
	return ss.tx.exec(ctx, `UPDATE subscription SET next_at = ? WHERE board = ? AND state = 'accepted' AND next_at > ?`, millis(at), board, millis(at))
}

// Delete deletes a subscription, with the shops of its host; it is no error if there is none.
func (ss Subscriptions) Delete(ctx context.Context, board string) error {
	s, err := ss.ByBoard(ctx, board)
	if err != nil {
		return orNothing(err)
	}
	if _, err := ss.tx.write(ctx, `DELETE FROM subscription WHERE board = ?`, board); err != nil {
		return err
	}
	if err := ss.tx.RemoteAgents().DropHost(ctx, s.Host); err != nil {
		return err
	}
	return ss.forget(ctx, board)
}
