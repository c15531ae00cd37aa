package storage

import (
	"context"

	"stoa/protocol"
)

// SetState moves a post between its states (contract §5) with a reason; the same
// state again changes only the reason. Hidden and deleted posts leave lists,
// search, feed and their parent's count; visible restores a hidden one and marks
// its reports as spent. Deleting clears title, body, tags, names, evidence,
// statement and object, and is final: any later change is a gone error. The entries
// of the board's log are changed by Logs.Redact.
func (ps Posts) SetState(ctx context.Context, id string, state protocol.PostState, reason string) error {
	if err := ps.tx.settleWords(); err != nil {
		return err
	}
	if err := ps.tx.dirty(); err != nil {
		return err
	}
	p, seq, err := ps.lock(ctx, id)
	if err != nil {
		return err
	}
	if p.State == protocol.Deleted && state != protocol.Deleted {
		return protocol.Errorf(protocol.Gone, "the post was deleted")
	}
	if _, err := ps.tx.write(ctx, `UPDATE post SET state = ?, reason = ? WHERE seq = ?`, string(state), reason, seq); err != nil {
		return err
	}
	if err := ps.tx.Moderation().reviewed(ctx, seq); err != nil {
		return err
	}
	if p.State != state {
		if err := ps.tx.Reactions().revokeQuotes(ctx, p, state); err != nil {
			return err
		}
	}
	switch {
	case p.State == state:
		return nil
	case p.State == protocol.Visible:
		if err = ps.unshow(ctx, p, seq); err == nil {
			err = ps.unresolve(ctx, p)
		}
		if err == nil { // other servers' reports are decided
			_, err = ps.tx.write(ctx, `UPDATE report SET spent = TRUE WHERE post_id = ? AND domain <> '' AND NOT spent`, id)
		}
	case state == protocol.Visible:
		if _, err = ps.tx.write(ctx, `UPDATE report SET spent = TRUE WHERE post_id = ? AND NOT spent`, id); err == nil {
			err = ps.show(ctx, p, seq)
		}
	}
	if err != nil {
		return err
	}
	if state == protocol.Deleted {
		return ps.wipe(ctx, p, seq)
	}
	return ps.tx.Feed().SetVisible(ctx, id, state == protocol.Visible)
}

// show adds a post to the lists that hold only visible posts.
func (ps Posts) show(ctx context.Context, p *protocol.StoredPost, seq int64) error {
	if err := ps.index(ctx, p, seq); err != nil {
		return err
	}
	if err := ps.countReply(ctx, p, 1); err != nil {
		return err
	}
	return ps.resolve(ctx, p)
}

// unshow undoes show.
func (ps Posts) unshow(ctx context.Context, p *protocol.StoredPost, seq int64) error {
	if err := ps.unindex(ctx, p, seq); err != nil {
		return err
	}
	return ps.countReply(ctx, p, -1)
}

func (ps Posts) index(ctx context.Context, p *protocol.StoredPost, seq int64) error {
	for _, tag := range tagKeys(p.Tags) {
		if _, err := ps.tx.write(ctx, tagInsert.Into+tagInsert.Row, tag, string(p.Kind), p.Author.Verified, seq); err != nil {
			return err
		}
	}
	return ps.holdWords(p, seq)
}

func (ps Posts) unindex(ctx context.Context, p *protocol.StoredPost, seq int64) error {
	for _, tag := range tagKeys(p.Tags) {
		if _, err := ps.tx.write(ctx, `DELETE FROM post_tag WHERE tag = ? AND kind = ? AND verified = ? AND seq = ?`,
			tag, string(p.Kind), p.Author.Verified, seq); err != nil {
			return err
		}
	}
	if err := ps.uncount(ctx, p, seq); err != nil {
		return err
	}
	return postWords.drop(ctx, ps.tx, seq, postText(p))
}

func (ps Posts) countReply(ctx context.Context, p *protocol.StoredPost, by int) error {
	if p.InReplyTo == nil {
		return nil
	}
	if _, err := ps.tx.write(ctx, `UPDATE post SET reply_count = reply_count + ? WHERE `+byID, append([]any{by}, idRange(*p.InReplyTo)...)...); err != nil {
		return err
	}
	if p.Root == nil { // its thread is larger than one write may join to its parent's
		return nil
	}
	return ps.countThread(ctx, *p.Root, by)
}

// wipe leaves a tombstone: kind, time and parent of the post.
func (ps Posts) wipe(ctx context.Context, p *protocol.StoredPost, seq int64) error {
	id := p.ID
	if _, err := ps.tx.write(ctx, `UPDATE post SET title = '', body = '', tags = '[]', author_name = '', author_claimed = '', resolved_by = NULL, mentions = '',
		warning = '', evidence = NULL, statement = NULL, object = NULL WHERE seq = ?`, seq); err != nil {
		return err
	}
	if err := ps.leave(ctx, seq, p); err != nil {
		return err
	}
	if err := ps.tx.Feed().wipe(ctx, id); err != nil {
		return err
	}
	if _, err := ps.tx.write(ctx, `DELETE FROM post_revision WHERE post = ?`, id); err != nil {
		return err
	}
	if _, err := ps.tx.write(ctx, `UPDATE writer SET token_hash = NULL WHERE post_id = ? AND token_hash IS NOT NULL`, id); err != nil {
		return err
	}
	_, err := ps.tx.write(ctx, `UPDATE report SET reason = '' WHERE post_id = ? AND reason <> ''`, id)
	return err
}

// SetVerdict stores whether this node could verify the author's own key, by which
// key, and a note. The feed item is updated. A post of another node counts as
// signed when it is verified, otherwise as claimed by that node. The resolution of
// the post, or by the post, is updated too.
func (ps Posts) SetVerdict(ctx context.Context, id string, proof protocol.AuthorProof, keyid, note string) error {
	verified := proof.Level != protocol.ByNothing
	if err := ps.tx.settleWords(); err != nil {
		return err
	}
	if err := ps.tx.dirty(); err != nil {
		return err
	}
	p, seq, err := ps.lock(ctx, id)
	if err != nil {
		return err
	}
	if p.State == protocol.Visible {
		if err := ps.unindex(ctx, p, seq); err != nil {
			return err
		}
	}
	var key *string
	if keyid != "" {
		key = &keyid
	}
	method := p.Author.Method
	if p.Node != nil {
		method = protocol.ByFederation
		if verified {
			method = protocol.BySignature
		}
	}
	a := &p.Author
	a.Verified, a.Method, a.KeyID, a.Proof = verified, method, key, proof
	a.Complete(ps.tx.Now)
	if _, err := ps.tx.write(ctx, `UPDATE post SET author_name = ?, author_claimed = ?, verified = ?, author_method = ?, author_keyid = ?, verdict_note = ?,
		proof_level = ?, proof_subject = ?, proof_block = ?, proof_at = ?, proof_owner = ?, proof_hash = ? WHERE seq = ?`,
		a.Name, a.ClaimedName, verified, string(method), orNull(key), note, string(a.Proof.Level), proofSubject(a), a.Proof.Block,
		millisPtr(a.Proof.CheckedAt), orNull(a.Proof.Owner), orNull(a.Proof.BlockHash), seq); err != nil {
		return err
	}
	if err := ps.tx.Feed().setVerdict(ctx, p.ID, *a); err != nil {
		return err
	}
	if err := ps.findResolution(ctx, p, seq); err != nil || p.State != protocol.Visible {
		return err
	}
	if err := ps.index(ctx, p, seq); err != nil {
		return err
	}
	if err := ps.unresolve(ctx, p); err != nil { // with another key it may have another author
		return err
	}
	return ps.resolve(ctx, p)
}

// setVerdict updates the author of the feed item of a post.
func (fd Feed) setVerdict(ctx context.Context, postID string, a protocol.Author) error {
	return fd.change(ctx, postID, func(item *protocol.FeedItem) {
		act := &item.Actor
		act.Name, act.ClaimedName, act.Verified, act.Method, act.KeyID, act.Proof = a.Name, a.ClaimedName, a.Verified, a.Method, a.KeyID, a.Proof
	})
}

// Standing is what the operator and the author see with a post: the reason of its
// state, and the note of the last verification of its author.
func (ps Posts) Standing(ctx context.Context, id string) (reason, verdict string, err error) {
	err = ps.tx.row(ctx, `SELECT reason, verdict_note FROM post WHERE `+byID, idRange(id)...).Scan(&reason, &verdict)
	return reason, verdict, err
}
