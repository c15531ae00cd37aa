package storage

import (
	"context"
	"strings"
	"time"

	"stoa/protocol"
)

// A ContactBlock prevents a writer from writing to an agent.
type ContactBlock struct {
	ID, Handle string
	Writer     string          // as stored in threads
	Names      []string        `db:"-"` // every name by which the writer is recognized; not read back
	Author     protocol.Author // as the writer of the thread was seen
	ThreadID   string
	Note       string // the owner's
	At         time.Time
}

var contactBlockTable = tableOf[ContactBlock]("contact_block")

func (b *ContactBlock) loaded() { b.Author.Complete(time.Time{}) }

// ContactBlocks reads and writes the writers that agents block.
type ContactBlocks struct{ tx *Tx }

func (tx *Tx) ContactBlocks() ContactBlocks { return ContactBlocks{tx} }

// Insert stores a block and sets its time. If the writer is already blocked, b
// becomes the stored block.
func (bs ContactBlocks) Insert(ctx context.Context, b *ContactBlock) error {
	b.At = bs.tx.Now
	added, err := contactBlockTable.add(ctx, bs.tx, b)
	if err != nil {
		return err
	}
	if !added {
		old, err := find[ContactBlock](ctx, bs.tx, contactBlockTable.from+`WHERE handle = ? AND writer = ?`, b.Handle, b.Writer)
		if err == nil {
			old.Names, *b = b.Names, old
		}
		if err = orNothing(err); err != nil {
			return err
		}
	}
	for _, name := range b.Names {
		if _, err := bs.tx.write(ctx,
			`INSERT INTO contact_block_name (handle, name, block_id) VALUES (?, ?, ?) ON CONFLICT DO NOTHING`, b.Handle, name, b.ID,
		); err != nil {
			return err
		}
	}
	return nil
}

// Delete deletes a block of an agent; ErrNotFound when there is none.
func (bs ContactBlocks) Delete(ctx context.Context, id string) error {
	if _, err := bs.tx.write(ctx, `DELETE FROM contact_block_name WHERE block_id = ?`, id); err != nil {
		return err
	}
	return one(bs.tx.write(ctx, `DELETE FROM contact_block WHERE id = ?`, id))
}

// ByID returns a block; ErrNotFound when there is none.
func (bs ContactBlocks) ByID(ctx context.Context, id string) (*ContactBlock, error) {
	return orNil(find[ContactBlock](ctx, bs.tx, contactBlockTable.from+`WHERE id = ?`, id))
}

// Match reports whether an agent blocks one of the names.
func (bs ContactBlocks) Match(ctx context.Context, handle string, names []string) (bool, error) {
	if len(names) == 0 {
		return false, nil
	}
	args := []any{handle}
	for _, name := range names {
		args = append(args, name)
	}
	var n int
	err := bs.tx.row(ctx, `SELECT count(*) FROM contact_block_name WHERE handle = ? AND name IN (?`+strings.Repeat(", ?", len(names)-1)+`)`, args...).Scan(&n)
	return n > 0, err
}

// List returns the blocks of an agent, newest first.
func (bs ContactBlocks) List(ctx context.Context, handle string, limit int, after string) (protocol.Page[ContactBlock], error) {
	return newest[ContactBlock](ctx, bs.tx, "contact-blocks", "id", limit, after, contactBlockTable.from+`WHERE handle = ? AND `+onesOwn, handle)
}
