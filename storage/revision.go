package storage

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"stoa/protocol"
)

// Revise gives a post the text of p: title, body, tags, warning, language and mentions, with what its author signed for them and
// how the author was verified. p.EditedAt is the time of the change. Kind, parent, author and time of the post stay. The
// earlier text is kept as a revision. A post that has MaxRevisions is not changed: conflict; a deleted one is gone.
func (ps Posts) Revise(ctx context.Context, id string, p *protocol.StoredPost) error {
	if err := ps.tx.settleWords(); err != nil {
		return err
	}
	if err := ps.tx.dirty(); err != nil {
		return err
	}
	old, seq, err := ps.lock(ctx, id)
	switch {
	case err != nil:
		return err
	case old.State == protocol.Deleted:
		return protocol.Errorf(protocol.Gone, "the post was deleted")
	case old.Revisions >= protocol.MaxRevisions:
		return protocol.Errorf(protocol.Conflict, "the post was changed %d times, and cannot be changed again; delete it and write a new one", old.Revisions)
	}
	text := *old
	if err := ps.tx.whole(ctx, seq, &text); err != nil {
		return err
	}
	if err := ps.leave(ctx, seq, old); err != nil {
		return err
	}
	if _, err := ps.tx.write(ctx, `INSERT INTO post_revision (post, n, title, body, warning, written_at) VALUES (?, ?, ?, ?, ?, ?)`,
		id, old.Revisions+1, old.Title, text.Body, old.Warning, millis(old.WrittenAt())); err != nil {
		return err
	}
	if old.State == protocol.Visible {
		if err := ps.unindex(ctx, old, seq); err != nil {
			return err
		}
	}
	a := &p.Author
	a.Complete(ps.tx.Now)
	if _, err := ps.tx.write(ctx, `UPDATE post SET title = ?, body = ?, tags = ?, warning = ?, sensitive = ?, language = ?, mentions = ?,
		evidence = ?, statement = ?, object = ?, edited_at = ?, revisions = revisions + 1, author_method = ?, author_keyid = ?,
		proof_level = ?, proof_subject = ?, proof_block = ?, proof_at = ?, proof_owner = ?, proof_hash = ? WHERE seq = ?`,
		p.Title, p.Body, encodeTags(p.Tags), p.Warning, p.Sensitive, p.Language, encodeMentions(p.Mentions),
		blob(p.Evidence), blob(p.Statement), blob(p.Object), millisPtr(p.EditedAt), string(a.Method), orNull(a.KeyID),
		string(a.Proof.Level), proofSubject(a), a.Proof.Block, millisPtr(a.Proof.CheckedAt), orNull(a.Proof.Owner), orNull(a.Proof.BlockHash), seq); err != nil {
		return err
	}
	if err := ps.tx.Feed().change(ctx, id, func(item *protocol.FeedItem) {
		item.Subject.Title, item.Summary = p.Title, protocol.PostSummary(old.Kind, p.Title)
	}); err != nil || old.State != protocol.Visible {
		return err
	}
	now := *old
	now.Title, now.Body, now.Tags = p.Title, p.Body, p.Tags
	return ps.index(ctx, &now, seq)
}

// Revisions returns the earlier texts of a post, the oldest first.
func (ps Posts) Revisions(ctx context.Context, id string) ([]protocol.Revision, error) {
	rows, err := ps.tx.query(ctx, `SELECT title, body, warning, written_at FROM post_revision WHERE post = ? ORDER BY n`, id)
	return collect(rows, err, func(s scanner) (r protocol.Revision, err error) {
		var at int64
		err = s.Scan(&r.Title, &r.Body, &r.Warning, &at)
		r.WrittenAt = moment(at)
		return r, err
	})
}

// change changes the feed item of a subject, if there is one.
func (fd Feed) change(ctx context.Context, subject string, change func(*protocol.FeedItem)) error {
	var seq int64
	var doc string
	err := fd.tx.row(ctx, `SELECT seq, doc FROM feed WHERE subject_id = ? AND doc <> ''`, subject).Scan(&seq, &doc)
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	var item protocol.FeedItem
	if err := json.Unmarshal([]byte(doc), &item); err != nil {
		return fmt.Errorf("decode feed item: %w", err)
	}
	change(&item)
	raw, err := json.Marshal(item)
	if err != nil {
		return fmt.Errorf("encode feed item: %w", err)
	}
	_, err = fd.tx.write(ctx, `UPDATE feed SET doc = ? WHERE subject_id = ? AND seq = ?`, string(raw), subject, seq)
	return err
}
