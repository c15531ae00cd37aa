package storage

import (
	"context"
	"time"
)

// A BlockedBy says that an actor of another server blocks an actor of this node.
type BlockedBy struct {
	Actor, LocalActor string
	URI               string // of the Block
	Domain            string // registrable, of the actor
	At                time.Time
}

// MaxBlockedByOfDomain limits how many of one domain are stored. [StockBlockedBy] limits them in all.
const MaxBlockedByOfDomain = 2000

const blockedByOfDomain = `SELECT count(*) FROM (SELECT 1 FROM blocked_by WHERE domain = ? LIMIT ?) r`

var blockedByTable = tableOf[BlockedBy]("blocked_by")

// PutBlock stores that an actor blocks one of this node, unless its domain has reached the limit.
func (ps Peers) PutBlock(ctx context.Context, b BlockedBy) error {
	if err := ps.tx.dirty(); err != nil {
		return err
	}
	b.At = ps.tx.Now
	n, err := find[int](ctx, ps.tx, blockedByOfDomain, b.Domain, MaxBlockedByOfDomain)
	if err != nil || n >= MaxBlockedByOfDomain {
		return err
	}
	return blockedByTable.put(ctx, ps.tx, &b, "actor, local_actor", "uri")
}

// Blocks reports whether an actor of another server blocks one of this node.
func (ps Peers) Blocks(ctx context.Context, actor, localActor string) (bool, error) {
	return ps.tx.exists(ctx, `SELECT 1 FROM blocked_by WHERE actor = ? AND local_actor = ?`, actor, localActor)
}

// DropBlock deletes the block of an actor by the id of its Block, or by whom it blocks.
func (ps Peers) DropBlock(ctx context.Context, actor, what string) error {
	return ps.tx.exec(ctx, `DELETE FROM blocked_by WHERE actor = ? AND (uri = ? OR local_actor = ?)`, actor, what, what)
}
