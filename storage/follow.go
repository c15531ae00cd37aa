package storage

import (
	"context"
	"encoding/json"
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

// add updates the numbers of followers of an actor and of all.
func (fs Followers) add(ctx context.Context, localActor string, n int64) error {
	if n == 0 {
		return nil
	}
	return fs.tx.exec(ctx, `INSERT INTO follower_count (local_actor, n) VALUES (?, ?), ('', ?)
		ON CONFLICT (local_actor) DO UPDATE SET n = follower_count.n + EXCLUDED.n`, localActor, n, n)
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

// Count is the number of followers of an actor, of all with "".
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

const (
	inboxOfFollower = `(CASE WHEN shared_inbox <> '' THEN shared_inbox ELSE inbox END)`
	followedBy      = `SELECT local_actor FROM follower WHERE actor = ? LIMIT ?`
	followersOfHost = `SELECT count(*) FROM (SELECT 1 FROM follower WHERE host = ? LIMIT ?) r`
	behindInbox     = `SELECT 1 FROM follower WHERE local_actor = ? AND ` + inboxOfFollower + ` = ? LIMIT 1`
	notBehindBoth   = `SELECT 1 FROM follower WHERE local_actor = ? AND ` + inboxOfFollower + ` = ?
		AND NOT EXISTS (SELECT 1 FROM follower g WHERE g.local_actor = ? AND g.actor = follower.actor AND g.created_at < ?) LIMIT 1`
)

// Remove deletes a follower, and the cursor of its inbox if no other one is behind it. It is no error if there is none.
func (fs Followers) Remove(ctx context.Context, localActor, actor string) error {
	if err := fs.tx.dirty(); err != nil {
		return err
	}
	inbox, err := find[string](ctx, fs.tx, `SELECT `+inboxOfFollower+` FROM follower WHERE local_actor = ? AND actor = ?`, localActor, actor)
	if err != nil {
		return orNothing(err)
	}
	if err := fs.Delete(ctx, localActor, actor); err != nil {
		return err
	}
	if used, err := fs.tx.exists(ctx, behindInbox, localActor, inbox); err != nil || used {
		return err
	}
	return fs.tx.Outlets().Delete(ctx, localActor, inbox)
}

// Reject is Remove by the owner of the actor, whose server is told; ErrNotFound if there is none.
func (fs Followers) Reject(ctx context.Context, localActor, actor string) error {
	if err := fs.tx.dirty(); err != nil {
		return err
	}
	f, err := find[Follower](ctx, fs.tx, followerTable.from+`WHERE local_actor = ? AND actor = ?`, localActor, actor)
	if err != nil {
		return err
	}
	if err := fs.Remove(ctx, localActor, actor); err != nil {
		return err
	}
	args, err := json.Marshal(f)
	if err != nil {
		return err
	}
	return fs.tx.Enqueue(ctx, Job{Kind: RejectJob, Lane: "to:" + f.Host, Args: args})
}

// RemoveInbox deletes the followers behind an inbox, and its cursor.
func (fs Followers) RemoveInbox(ctx context.Context, localActor, inbox string) error {
	gone, err := fs.tx.write(ctx, `DELETE FROM follower WHERE local_actor = ? AND `+inboxOfFollower+` = ?`, localActor, inbox)
	if err == nil {
		err = fs.add(ctx, localActor, -gone)
	}
	if err != nil {
		return err
	}
	return fs.tx.Outlets().Delete(ctx, localActor, inbox)
}

// A GoneArgs is the argument of DropFollowersJob: an agent whose profile is deleted.
type GoneArgs struct {
	Actor   string   `json:"actor"`
	Board   string   `json:"board"`             // the inboxes that read this log are told, those after After; the agent's own log, then the board's. "": all are told
	After   string   `json:"after"`             // an inbox
	Inboxes []string `json:"inboxes,omitempty"` // those of people of other servers who have letters of the agent; they are told first
}

// EnqueueDrop queues the job that tells other servers that an agent is gone, and deletes its followers.
func (fs Followers) EnqueueDrop(ctx context.Context, a GoneArgs) error {
	args, err := json.Marshal(a)
	if err != nil {
		return err
	}
	return fs.tx.Enqueue(ctx, Job{Kind: DropFollowersJob, Lane: "followers " + a.Actor, Args: args})
}

// Drop deletes up to a thousand followers of an actor, and as many cursors of their inboxes. It reports whether there may be more.
func (fs Followers) Drop(ctx context.Context, localActor string) (more bool, err error) {
	const some = 1000
	gone, err := fs.tx.deleteSome(ctx, "follower", "local_actor, actor", `local_actor = ? ORDER BY actor LIMIT 1000`, localActor)
	if err == nil {
		err = fs.add(ctx, localActor, -int64(gone))
	}
	if err != nil {
		return false, err
	}
	outlets, err := fs.tx.deleteSome(ctx, "outlet", "board, inbox", `board = ? ORDER BY inbox LIMIT 1000`, localActor)
	return gone == some || outlets == some, err
}

// FollowedBy returns up to n actors of this node that an actor follows.
func (fs Followers) FollowedBy(ctx context.Context, actor string, n int) ([]string, error) {
	return list[string](ctx, fs.tx, followedBy, actor, n)
}

// OfHost is how many follows of actors of this node a host has, up to most.
func (fs Followers) OfHost(ctx context.Context, host string, most int) (int, error) {
	return find[int](ctx, fs.tx, followersOfHost, host, most)
}

// AllFollow reports whether everyone behind an inbox who follows one actor followed another one too before a time.
func (fs Followers) AllFollow(ctx context.Context, inbox, localActor, other string, before time.Time) (bool, error) {
	some, err := fs.tx.exists(ctx, notBehindBoth, localActor, inbox, other, millis(before))
	return err == nil && !some, err
}
