package storage

import (
	"context"
	"time"

	"stoa/protocol"
)

// A Follower is a remote actor that follows an actor of this node.
type Follower struct {
	LocalActor, Actor, Inbox, SharedInbox, Host, FollowID string
	Stoa                                                  bool // a stoa node, which pulls
	CreatedAt                                             time.Time
}

var followerTable = tableOf[Follower]("follower")

// Followers reads and writes the followers of the actors of this node.
type Followers struct{ tx *Tx }

func (tx *Tx) Followers() Followers { return Followers{tx} }

// Put stores a follower, or updates a known one.
func (fs Followers) Put(ctx context.Context, f Follower) error {
	f.CreatedAt = fs.tx.Now
	added, err := followerTable.add(ctx, fs.tx, &f)
	if err == nil && added {
		return fs.add(ctx, f.LocalActor, 1)
	}
	if err != nil {
		return err
	}
	return fs.tx.exec(ctx, `UPDATE follower SET inbox = ?, shared_inbox = ?, host = ?, follow_id = ?, stoa = ? WHERE local_actor = ? AND actor = ?`,
		f.Inbox, f.SharedInbox, f.Host, f.FollowID, f.Stoa, f.LocalActor, f.Actor)
}

// add updates the number of followers of an actor.
func (fs Followers) add(ctx context.Context, localActor string, n int64) error {
	if n == 0 {
		return nil
	}
	return fs.tx.exec(ctx, `INSERT INTO follower_count (local_actor, n) VALUES (?, ?)
		ON CONFLICT (local_actor) DO UPDATE SET n = follower_count.n + EXCLUDED.n`, localActor, n)
}

// Delete deletes a follower; it is no error if there is none.
func (fs Followers) Delete(ctx context.Context, localActor, actor string) error {
	gone, err := fs.tx.write(ctx, `DELETE FROM follower WHERE local_actor = ? AND actor = ?`, localActor, actor)
	if err != nil {
		return err
	}
	return fs.add(ctx, localActor, -gone)
}

// List returns the followers of an actor, in the order of their ids.
func (fs Followers) List(ctx context.Context, localActor string, limit int, after string) (protocol.Page[Follower], error) {
	limit = bounded(limit)
	const listing = "followers"
	from, err := longPosition(listing, after)
	if err != nil {
		return protocol.Page[Follower]{}, err
	}
	found, err := list[Follower](ctx, fs.tx, followerTable.from+`WHERE local_actor = ? AND actor > ? ORDER BY actor LIMIT ?`, localActor, from, limit+1)
	return page(found, limit, listing, func(f Follower) string { return f.Actor }), err
}

// Count is the number of followers of an actor.
func (fs Followers) Count(ctx context.Context, localActor string) (int, error) {
	return orZero(find[int](ctx, fs.tx, `SELECT n FROM follower_count WHERE local_actor = ?`, localActor))
}

// Has reports whether an actor of a host follows an actor of this node, or one of
// the host's boards is followed.
func (ps Peers) Has(ctx context.Context, host string) (bool, error) {
	return ps.tx.exists(ctx, isPeer, host, host)
}

const isPeer = `SELECT 1 FROM follower WHERE host = ? UNION ALL SELECT 1 FROM subscription WHERE host = ? LIMIT 1`

// Has reports whether an actor follows one of this node.
func (fs Followers) Has(ctx context.Context, localActor, actor string) (bool, error) {
	return fs.tx.exists(ctx, `SELECT 1 FROM follower WHERE local_actor = ? AND actor = ?`, localActor, actor)
}

// DropDead deletes the followers with up to a hundred dead inboxes of a board,
// with their cursors, and returns how many inboxes.
func (fs Followers) DropDead(ctx context.Context, board string) (int, error) {
	dead, err := list[string](ctx, fs.tx, `SELECT inbox FROM outlet WHERE board = ? AND state = 'dead' ORDER BY cursor, inbox LIMIT 100`, board)
	if err != nil || len(dead) == 0 {
		return 0, err
	}
	args := []any{board}
	for _, inbox := range dead {
		args = append(args, inbox)
	}
	gone, err := fs.tx.write(ctx, `DELETE FROM follower WHERE local_actor = ?
		AND (CASE WHEN shared_inbox <> '' THEN shared_inbox ELSE inbox END) IN (`+marks(len(dead))+`)`, args...)
	if err == nil {
		err = fs.add(ctx, board, -gone)
	}
	if err != nil {
		return 0, err
	}
	n, err := fs.tx.write(ctx, `DELETE FROM outlet WHERE board = ? AND inbox IN (`+marks(len(dead))+`)`, args...)
	return int(n), err
}
