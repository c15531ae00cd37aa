package storage

import (
	"context"
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

// PutBlock stores a block, replacing one of the same subject, and informs this
// process; other processes check once a second. It is a conflict when there are too
// many. Calls run one after another, also over several processes.
func (tx *Tx) PutBlock(ctx context.Context, b protocol.Block) error {
	if err := tx.dirty(); err != nil {
		return err
	}
	if err := tx.lockName(ctx, "blocks"); err != nil {
		return err
	}
	if _, err := tx.write(ctx, `DELETE FROM block WHERE kind = ? AND value = ?`, string(b.Kind), b.Value); err != nil {
		return err
	}
	n, err := tx.CountBlocks(ctx)
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
	_, err = tx.write(ctx, `INSERT INTO block (`+blockColumns+`) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		b.ID, string(b.Kind), b.Value, post, b.Reason, b.Note, b.Actor, millis(b.CreatedAt), millisPtr(b.ExpiresAt))
	tx.batch.opTopics[TopicRules] = true
	return err
}

// DeleteBlock removes a block and returns it; ErrNotFound without one.
func (tx *Tx) DeleteBlock(ctx context.Context, id string) (protocol.Block, error) {
	if err := tx.dirty(); err != nil {
		return protocol.Block{}, err
	}
	b, err := tx.blockWhere(ctx, `id = ?`, id)
	if err != nil {
		return b, err
	}
	_, err = tx.write(ctx, `DELETE FROM block WHERE id = ?`, id)
	tx.batch.opTopics[TopicRules] = true
	return b, err
}

func (tx *Tx) blockWhere(ctx context.Context, where string, args ...any) (protocol.Block, error) {
	rows, err := tx.query(ctx, `SELECT `+blockColumns+` FROM block WHERE `+where, args...)
	all, err := collect(rows, err, scanBlock)
	if err == nil && len(all) == 0 {
		err = ErrNotFound
	}
	if err != nil {
		return protocol.Block{}, err
	}
	return all[0], nil
}

// Blocked reports whether an active block of the kind matches the value.
func (tx *Tx) Blocked(ctx context.Context, kind protocol.BlockKind, value string) (bool, error) {
	if value == "" {
		return false, nil
	}
	return tx.blockedAny(ctx, kind, []string{value})
}

// HostBlocked reports whether an active block matches a host or a domain above it.
func (tx *Tx) HostBlocked(ctx context.Context, host string) (bool, error) {
	return tx.blockedAny(ctx, protocol.BlockHost, suffixes(host))
}

func (tx *Tx) blockedAny(ctx context.Context, kind protocol.BlockKind, values []string) (bool, error) {
	var one int
	err := tx.row(ctx, `SELECT 1 FROM block WHERE (expires_at IS NULL OR expires_at > ?) AND kind = ? AND value IN (`+marks(len(values))+`) LIMIT 1`,
		append([]any{millis(tx.Now), string(kind)}, toAny(values)...)...).Scan(&one)
	if err == ErrNotFound {
		return false, nil
	}
	return err == nil, err
}

// AllBlocks returns every active block.
func (tx *Tx) AllBlocks(ctx context.Context) ([]protocol.Block, error) {
	rows, err := tx.query(ctx, `SELECT `+blockColumns+` FROM block WHERE expires_at IS NULL OR expires_at > ? LIMIT ?`, millis(tx.Now), protocol.MaxBlocks)
	return collect(rows, err, scanBlock)
}

// ListBlocks returns the active blocks of one kind or of all, newest first.
func (tx *Tx) ListBlocks(ctx context.Context, q protocol.NodeBlockQuery) (protocol.Page[protocol.Block], error) {
	limit := bounded(q.Limit)
	before, err := textPosition(listBlocks, q.After)
	if err != nil {
		return protocol.Page[protocol.Block]{}, err
	}
	text, args := blockQuery(q.Kind, before, millis(tx.Now), limit+1)
	rows, err := tx.query(ctx, text, args...)
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

// CountBlocks is how many blocks are stored, including those that have ended but
// are not pruned.
func (tx *Tx) CountBlocks(ctx context.Context) (n int, err error) {
	err = tx.row(ctx, `SELECT count(*) FROM block`).Scan(&n)
	return n, err
}

// PruneBlocks deletes blocks that have ended, and returns how many.
func (tx *Tx) PruneBlocks(ctx context.Context) (int, error) {
	n, err := tx.write(ctx, `DELETE FROM block WHERE expires_at IS NOT NULL AND expires_at <= ?`, millis(tx.Now))
	return int(n), err
}

// writerInsert stores the network from which an anonymous post came.
var writerInsert = insert{into: `INSERT INTO writer (post_id, network) VALUES `, row: `(?, ?)`}

func (tx *Tx) keepWriter(ctx context.Context, p *protocol.StoredPost) error {
	if p.Network == "" {
		return nil
	}
	if b := tx.batch; !b.careful {
		b.writers.add(p.ID, p.Network)
		return nil
	}
	_, err := tx.write(ctx, writerInsert.into+writerInsert.row, p.ID, p.Network)
	return err
}

// WriterOf is the network that an anonymous post came from, as a keyed hash;
// ErrNotFound when it is not known or was pruned.
func (tx *Tx) WriterOf(ctx context.Context, postID string) (network string, err error) {
	err = tx.row(ctx, `SELECT network FROM writer WHERE post_id = ?`, postID).Scan(&network)
	return network, err
}

// PruneWriters deletes the networks of posts made before a time, at most a thousand
// per call, and returns how many. Ids sort by time.
func (tx *Tx) PruneWriters(ctx context.Context, before time.Time) (int, error) {
	return tx.deleteSome(ctx, "writer", "post_id", `post_id < ? ORDER BY post_id LIMIT 1000`, protocol.NewID(protocol.PostID, before))
}
