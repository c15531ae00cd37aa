package storage

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"stoa/protocol"
)

// A ContactBlock prevents a writer from writing to an agent.
type ContactBlock struct {
	ID, Handle string
	Writer     string          // as stored in threads
	Names      []string        // every name by which the writer is recognized; not read back
	Author     protocol.Author // as the writer of the thread was seen
	ThreadID   string
	Note       string // the owner's
	At         time.Time
}

const contactBlockColumns = `id, handle, writer, author, thread_id, note, at`

func scanContactBlock(s scanner) (b ContactBlock, err error) {
	var at int64
	var author string
	if err = s.Scan(&b.ID, &b.Handle, &b.Writer, &author, &b.ThreadID, &b.Note, &at); err != nil {
		return b, err
	}
	b.At = moment(at)
	return b, readAuthor(author, &b.Author, time.Time{})
}

// ContactBlocks reads and writes the writers that agents block.
type ContactBlocks struct{ tx *Tx }

func (tx *Tx) ContactBlocks() ContactBlocks { return ContactBlocks{tx} }

// Insert stores a block and sets its time. If the writer is already blocked, b
// becomes the stored block.
func (bs ContactBlocks) Insert(ctx context.Context, b *ContactBlock) error {
	author, err := json.Marshal(b.Author)
	if err != nil {
		return fmt.Errorf("encode author: %w", err)
	}
	b.At = bs.tx.Now
	n, err := bs.tx.write(ctx, `INSERT INTO contact_block (`+contactBlockColumns+`) VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`,
		b.ID, b.Handle, b.Writer, string(author), b.ThreadID, b.Note, millis(b.At))
	if err != nil {
		return err
	}
	if n == 0 {
		rows, err := bs.tx.query(ctx, `SELECT `+contactBlockColumns+` FROM contact_block WHERE handle = ? AND writer = ?`, b.Handle, b.Writer)
		found, err := collect(rows, err, scanContactBlock)
		if err == nil && len(found) == 1 {
			found[0].Names, *b = b.Names, found[0]
		}
		if err != nil {
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
	rows, err := bs.tx.query(ctx, `SELECT `+contactBlockColumns+` FROM contact_block WHERE id = ?`, id)
	found, err := collect(rows, err, scanContactBlock)
	if err == nil && len(found) == 0 {
		err = ErrNotFound
	}
	if err != nil {
		return nil, err
	}
	return &found[0], nil
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
	limit = bounded(limit)
	const listing = "contact-blocks"
	before, err := positionID(listing, after)
	if err != nil {
		return protocol.Page[ContactBlock]{}, err
	}
	rows, err := bs.tx.query(ctx, `SELECT `+contactBlockColumns+` FROM contact_block WHERE handle = ? AND `+onesOwn, handle, before, limit+1)
	found, err := collect(rows, err, scanContactBlock)
	return page(found, limit, listing, func(b ContactBlock) string { return b.ID }), err
}
