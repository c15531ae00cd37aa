package storage

import (
	"context"
	"time"

	"stoa/protocol"

	"github.com/uptrace/bun"
)

// A Follower is a remote actor that follows an actor of this node.
type Follower struct {
	LocalActor, Actor, Inbox, SharedInbox, Host, FollowID string
	Stoa                                                  bool // a node of our own kind, which pulls
	CreatedAt                                             time.Time
}

type followerRow struct {
	bun.BaseModel `bun:"table:follower"`
	LocalActor    string `bun:",pk"`
	Actor         string `bun:",pk"`
	Inbox         string
	SharedInbox   string
	Host          string
	FollowID      string
	Stoa          bool
	CreatedAt     int64
}

func (r followerRow) follower() Follower {
	return Follower{LocalActor: r.LocalActor, Actor: r.Actor, Inbox: r.Inbox, SharedInbox: r.SharedInbox, Host: r.Host,
		FollowID: r.FollowID, Stoa: r.Stoa, CreatedAt: moment(r.CreatedAt)}
}

// PutFollower stores a follower, or what is new about one that is known.
func (tx *Tx) PutFollower(ctx context.Context, f Follower) error {
	return tx.put(ctx, &followerRow{LocalActor: f.LocalActor, Actor: f.Actor, Inbox: f.Inbox, SharedInbox: f.SharedInbox, Host: f.Host,
		FollowID: f.FollowID, Stoa: f.Stoa, CreatedAt: millis(tx.Now)}, "local_actor, actor", "inbox", "shared_inbox", "host", "follow_id", "stoa")
}

// DeleteFollower ends a follow; none to end is no error.
func (tx *Tx) DeleteFollower(ctx context.Context, localActor, actor string) error {
	_, err := tx.write(ctx, `DELETE FROM follower WHERE local_actor = ? AND actor = ?`, localActor, actor)
	return err
}

// Followers returns the followers of an actor, in the order of their ids.
func (tx *Tx) Followers(ctx context.Context, localActor string, limit int, after string) (protocol.Page[Follower], error) {
	limit = bounded(limit)
	const listing = "followers"
	from, err := longPosition(listing, after)
	if err != nil {
		return protocol.Page[Follower]{}, err
	}
	var rows []followerRow
	err = tx.selectFrom(&rows).Where("local_actor = ?", localActor).Where("actor > ?", from).Order("actor").Limit(int64(limit) + 1).Scan(tx.in(ctx))
	return page(convert(rows, followerRow.follower), limit, listing, func(f Follower) string { return f.Actor }), err
}

// CountFollowers is how many follow an actor.
func (tx *Tx) CountFollowers(ctx context.Context, localActor string) (n int, err error) {
	err = tx.row(ctx, `SELECT count(*) FROM follower WHERE local_actor = ?`, localActor).Scan(&n)
	return n, err
}

// IsPeer reports whether somebody of a host follows an actor of this node, or one
// of its boards is followed.
func (tx *Tx) IsPeer(ctx context.Context, host string) (bool, error) {
	var n int
	err := tx.row(ctx, isPeer, host, host).Scan(&n)
	if err == ErrNotFound {
		return false, nil
	}
	return err == nil, err
}

const isPeer = `SELECT 1 FROM follower WHERE host = ? UNION ALL SELECT 1 FROM subscription WHERE host = ? LIMIT 1`

// Follows reports whether an actor follows one of this node.
func (tx *Tx) Follows(ctx context.Context, localActor, actor string) (bool, error) {
	var n int
	err := tx.row(ctx, `SELECT 1 FROM follower WHERE local_actor = ? AND actor = ?`, localActor, actor).Scan(&n)
	if err == ErrNotFound {
		return false, nil
	}
	return err == nil, err
}

// DropDeadFollowers ends the follows of up to a thousand inboxes of a board that
// are given up, with their cursors, and returns how many inboxes.
func (tx *Tx) DropDeadFollowers(ctx context.Context, board string) (int, error) {
	const dead = `SELECT inbox FROM outlet WHERE board = ? AND state = 'dead' ORDER BY inbox LIMIT 1000`
	_, err := tx.write(ctx, `DELETE FROM follower WHERE local_actor = ?
		AND (CASE WHEN shared_inbox <> '' THEN shared_inbox ELSE inbox END) IN (`+dead+`)`, board, board)
	if err != nil {
		return 0, err
	}
	n, err := tx.write(ctx, `DELETE FROM outlet WHERE board = ? AND inbox IN (`+dead+`)`, board, board)
	return int(n), err
}
