package storage

import (
	"context"
	"slices"
	"time"

	"stoa/protocol"
)

const blockColumns = `id, kind, value, post, reason, note, actor, created_at, expires_at`

// listBlocks and listNotes name the listings in their cursors.
const (
	listBlocks        = "blocks"
	listNotes         = "notes"
	listModerationLog = "moderation"
	listReview        = "review"
)

func scanBlock(s scanner) (b protocol.Block, err error) {
	var post string
	var created int64
	var expires *int64
	err = s.Scan(&b.ID, &b.Kind, &b.Value, &post, &b.Reason, &b.Note, &b.Actor, &created, &expires)
	if post != "" {
		b.Post = &post
	}
	b.CreatedAt, b.ExpiresAt = moment(created), momentPtr(expires)
	return b, err
}

// Blocks reads and writes the node's blocks.
type Blocks struct{ tx *Tx }

func (tx *Tx) Blocks() Blocks { return Blocks{tx} }

// Put stores a block, replacing one of the same subject, and informs this process;
// other processes check once a second. It is a conflict when there are too many.
// Calls run one after another, also over several processes.
func (bs Blocks) Put(ctx context.Context, b protocol.Block) error {
	if err := bs.tx.dirty(); err != nil {
		return err
	}
	if err := bs.tx.lockName(ctx, "blocks"); err != nil {
		return err
	}
	if _, err := bs.tx.write(ctx, `DELETE FROM block WHERE kind = ? AND value = ?`, string(b.Kind), b.Value); err != nil {
		return err
	}
	n, err := bs.count(ctx)
	if err != nil {
		return err
	}
	if n >= protocol.MaxBlocks {
		return protocol.Errorf(protocol.Conflict, "there are %d blocks already; lift some", n)
	}
	post := ""
	if b.Post != nil {
		post = *b.Post
	}
	_, err = bs.tx.write(ctx, `INSERT INTO block (`+blockColumns+`) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		b.ID, string(b.Kind), b.Value, post, b.Reason, b.Note, b.Actor, millis(b.CreatedAt), millisPtr(b.ExpiresAt))
	bs.tx.wake(TopicRules)
	return err
}

// Delete removes a block and returns it; ErrNotFound without one.
func (bs Blocks) Delete(ctx context.Context, id string) (protocol.Block, error) {
	if err := bs.tx.dirty(); err != nil {
		return protocol.Block{}, err
	}
	b, err := bs.where(ctx, `id = ?`, id)
	if err != nil {
		return b, err
	}
	_, err = bs.tx.write(ctx, `DELETE FROM block WHERE id = ?`, id)
	bs.tx.wake(TopicRules)
	return b, err
}

func (bs Blocks) where(ctx context.Context, where string, args ...any) (protocol.Block, error) {
	rows, err := bs.tx.query(ctx, `SELECT `+blockColumns+` FROM block WHERE `+where, args...)
	all, err := collect(rows, err, scanBlock)
	if err == nil && len(all) == 0 {
		err = ErrNotFound
	}
	if err != nil {
		return protocol.Block{}, err
	}
	return all[0], nil
}

// Match reports whether an active block of the kind matches one of the values; "" matches none.
func (bs Blocks) Match(ctx context.Context, kind protocol.BlockKind, values ...string) (bool, error) {
	values = slices.DeleteFunc(values, func(v string) bool { return v == "" })
	if len(values) == 0 {
		return false, nil
	}
	return bs.matchAny(ctx, kind, values)
}

// MatchHost reports whether an active block matches a host or a domain above it.
func (bs Blocks) MatchHost(ctx context.Context, host string) (bool, error) {
	return bs.matchAny(ctx, protocol.BlockHost, suffixes(host))
}

func (bs Blocks) matchAny(ctx context.Context, kind protocol.BlockKind, values []string) (bool, error) {
	var one int
	err := bs.tx.row(ctx, `SELECT 1 FROM block WHERE (expires_at IS NULL OR expires_at > ?) AND kind = ? AND value IN (`+marks(len(values))+`) LIMIT 1`,
		append([]any{millis(bs.tx.Now), string(kind)}, toAny(values)...)...).Scan(&one)
	if err == ErrNotFound {
		return false, nil
	}
	return err == nil, err
}

// All returns every active block.
func (bs Blocks) All(ctx context.Context) ([]protocol.Block, error) {
	rows, err := bs.tx.query(ctx, `SELECT `+blockColumns+` FROM block WHERE expires_at IS NULL OR expires_at > ? LIMIT ?`, millis(bs.tx.Now), protocol.MaxBlocks)
	return collect(rows, err, scanBlock)
}

// List returns the active blocks of one kind or of all, newest first.
func (bs Blocks) List(ctx context.Context, q protocol.NodeBlockQuery) (protocol.Page[protocol.Block], error) {
	limit := bounded(q.Limit)
	before, err := textPosition(listBlocks, q.After)
	if err != nil {
		return protocol.Page[protocol.Block]{}, err
	}
	text, args := blockQuery(q.Kind, before, millis(bs.tx.Now), limit+1)
	rows, err := bs.tx.query(ctx, text, args...)
	all, err := collect(rows, err, scanBlock)
	return page(all, limit, listBlocks, func(b protocol.Block) string { return b.ID }), err
}

func blockQuery(kind protocol.BlockKind, before string, now int64, limit int) (string, []any) {
	const rest = `id < ? AND (expires_at IS NULL OR expires_at > ?) ORDER BY id DESC LIMIT ?`
	if kind == "" {
		return `SELECT ` + blockColumns + ` FROM block WHERE ` + rest, []any{before, now, limit}
	}
	return `SELECT ` + blockColumns + ` FROM block WHERE kind = ? AND ` + rest, []any{string(kind), before, now, limit}
}

// textPosition is the id in a cursor; without a cursor it sorts after all ids.
func textPosition(listing, after string) (string, error) {
	p, err := protocol.ParseCursor(listing, after)
	if p == "" {
		p = "~"
	}
	return p, err
}

// count is how many blocks are stored, including those that have ended but are
// not pruned.
func (bs Blocks) count(ctx context.Context) (n int, err error) {
	err = bs.tx.row(ctx, `SELECT count(*) FROM block`).Scan(&n)
	return n, err
}

// Prune deletes blocks that have ended, and returns how many.
func (bs Blocks) Prune(ctx context.Context) (int, error) {
	n, err := bs.tx.write(ctx, `DELETE FROM block WHERE expires_at IS NOT NULL AND expires_at <= ?`, millis(bs.tx.Now))
	return int(n), err
}

// writerInsert stores the network from which an anonymous post came.
var writerInsert = insert{Into: `INSERT INTO writer (post_id, network) VALUES `, Row: `(?, ?)`}

func (ps Posts) keepWriter(ctx context.Context, p *protocol.StoredPost) error {
	if p.Network == "" {
		return nil
	}
	if !ps.tx.careful() {
		return ps.tx.hold(heldWriters, p.ID, p.Network)
	}
	_, err := ps.tx.write(ctx, writerInsert.Into+writerInsert.Row, p.ID, p.Network)
	return err
}

// Writer is the network that an anonymous post came from, as a keyed hash;
// ErrNotFound when it is not known or was pruned.
func (ps Posts) Writer(ctx context.Context, postID string) (network string, err error) {
	err = ps.tx.row(ctx, `SELECT network FROM writer WHERE post_id = ?`, postID).Scan(&network)
	return network, err
}

// PruneWriters deletes the networks of posts made before a time, at most a thousand
// per call, and returns how many. Ids sort by time.
func (ps Posts) PruneWriters(ctx context.Context, before time.Time) (int, error) {
	return ps.tx.deleteSome(ctx, "writer", "post_id", `post_id < ? ORDER BY post_id LIMIT 1000`, protocol.NewID(protocol.PostID, before))
}
