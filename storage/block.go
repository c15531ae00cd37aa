package storage

import (
	"context"
	"maps"
	"slices"
	"time"

	"stoa/protocol"
)

// A blockRow is a block as it is stored.
type blockRow struct {
	protocol.Block
	Post string // "" for none
}

func (r *blockRow) loaded() {
	if r.Post != "" {
		r.Block.Post = &r.Post
	}
}

func blocksOf(rows []blockRow, err error) ([]protocol.Block, error) {
	all := make([]protocol.Block, len(rows))
	for i, r := range rows {
		all[i] = r.Block
	}
	return all, err
}

var blockTable = tableOf[blockRow]("block")

// listBlocks and listNotes name the listings in their cursors.
const (
	listBlocks        = "blocks"
	listNotes         = "notes"
	listModerationLog = "moderation"
	listReview        = "review"
)

// Blocks reads and writes the node's blocks.
type Blocks struct{ tx *Tx }

func (tx *Tx) Blocks() Blocks { return Blocks{tx} }

// Put stores a block, replacing one of the same subject. It is a conflict when there are too many.
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
	r := blockRow{Block: b}
	if b.Post != nil {
		r.Post = *b.Post
	}
	return blockTable.insert(ctx, bs.tx, &r)
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
	return b, err
}

func (bs Blocks) where(ctx context.Context, where string, args ...any) (protocol.Block, error) {
	r, err := find[blockRow](ctx, bs.tx, blockTable.from+`WHERE `+where, args...)
	return r.Block, err
}

// BlockedAs are the values by which a party may be blocked, by kind.
type BlockedAs map[protocol.BlockKind][]string

// Match reports whether an active block of the kind matches one of the values; "" matches none.
func (bs Blocks) Match(ctx context.Context, kind protocol.BlockKind, values ...string) (bool, error) {
	return bs.MatchAny(ctx, BlockedAs{kind: values})
}

// MatchAny reports whether an active block matches one of the values of its kind; "" matches none.
func (bs Blocks) MatchAny(ctx context.Context, as BlockedAs) (bool, error) {
	where, args := activeBlock(bs.tx.Now, as)
	if where == "" {
		return false, nil
	}
	return bs.tx.exists(ctx, `SELECT 1 FROM block WHERE `+where+` LIMIT 1`, args...)
}

// activeBlock is the condition of MatchAny, "" if there are no values.
func activeBlock(now time.Time, as BlockedAs) (where string, args []any) {
	for _, kind := range slices.Sorted(maps.Keys(as)) {
		values := slices.DeleteFunc(slices.Clone(as[kind]), func(v string) bool { return v == "" })
		if len(values) == 0 {
			continue
		}
		where += ` OR kind = ? AND value IN (` + marks(len(values)) + `)`
		args = append(append(args, string(kind)), toAny(values)...)
	}
	if where == "" {
		return "", nil
	}
	return `(` + where[len(` OR `):] + `) AND (expires_at IS NULL OR expires_at > ?)`, append(args, millis(now))
}

// All returns every active block.
func (bs Blocks) All(ctx context.Context) ([]protocol.Block, error) {
	return blocksOf(list[blockRow](ctx, bs.tx, blockTable.from+`WHERE expires_at IS NULL OR expires_at > ? LIMIT ?`, millis(bs.tx.Now), protocol.MaxBlocks))
}

// List returns the active blocks of one kind or of all, newest first.
func (bs Blocks) List(ctx context.Context, q protocol.NodeBlockQuery) (protocol.Page[protocol.Block], error) {
	text, args := blockQuery(q.Kind, millis(bs.tx.Now))
	p, err := newest[blockRow](ctx, bs.tx, listBlocks, "id", q.Limit, q.After, text, args...)
	blocks, err := blocksOf(p.Items, err)
	return protocol.Page[protocol.Block]{Items: blocks, Next: p.Next}, err
}

func blockQuery(kind protocol.BlockKind, now int64) (string, []any) {
	const rest = `(expires_at IS NULL OR expires_at > ?) AND id < ? ORDER BY id DESC LIMIT ?`
	if kind == "" {
		return blockTable.from + `WHERE ` + rest, []any{now}
	}
	return blockTable.from + `WHERE kind = ? AND ` + rest, []any{string(kind), now}
}

// count is how many blocks are stored, including those that have ended but are
// not pruned.
func (bs Blocks) count(ctx context.Context) (int, error) {
	return find[int](ctx, bs.tx, `SELECT count(*) FROM block`)
}

// Prune deletes blocks that have ended, and returns how many.
func (bs Blocks) Prune(ctx context.Context) (int, error) {
	n, err := bs.tx.write(ctx, `DELETE FROM block WHERE expires_at IS NOT NULL AND expires_at <= ?`, millis(bs.tx.Now))
	return int(n), err
}

// writerInsert stores the network from which an anonymous post came.
var writerInsert = insert{Into: `INSERT INTO writer (post_id, network, token_hash) VALUES `, Row: `(?, ?, ?)`}

func (ps Posts) keepWriter(ctx context.Context, p *protocol.StoredPost) error {
	if p.Network == "" {
		return nil
	}
	if !ps.tx.careful() {
		return ps.tx.hold(heldWriters, p.ID, p.Network, blob(p.TokenHash))
	}
	return ps.tx.exec(ctx, writerInsert.Into+writerInsert.Row, p.ID, p.Network, blob(p.TokenHash))
}

// Writer is the network that an anonymous post came from, as a keyed hash;
// ErrNotFound when it is not known or was pruned.
func (ps Posts) Writer(ctx context.Context, postID string) (string, error) {
	return find[string](ctx, ps.tx, `SELECT network FROM writer WHERE post_id = ? AND network <> ''`, postID)
}

// OpenedBy reports whether the secret with a hash is that of an anonymous post.
func (ps Posts) OpenedBy(ctx context.Context, postID string, hash [32]byte) (bool, error) {
	return ps.tx.exists(ctx, `SELECT 1 FROM writer WHERE post_id = ? AND token_hash = ?`, postID, hash[:])
}

// PruneWriters deletes the networks of posts made before a time, at most a thousand
// per call, and returns how many. Ids sort by time.
func (ps Posts) PruneWriters(ctx context.Context, before time.Time) (int, error) {
	last := protocol.NewID(protocol.PostID, before)
	gone, err := ps.tx.deleteSome(ctx, "writer", "post_id", `network <> '' AND post_id < ? AND token_hash IS NULL ORDER BY post_id LIMIT 1000`, last)
	if err != nil || gone > 0 {
		return gone, err
	}
	n, err := ps.tx.write(ctx, `UPDATE writer SET network = '' WHERE post_id IN (
		SELECT post_id FROM writer WHERE network <> '' AND post_id < ? ORDER BY post_id LIMIT 1000)`, last)
	return int(n), err
}
