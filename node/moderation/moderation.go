// Package moderation is the room of reports and what follows from them: five
// distinct reports hide a post, the operator restores or hides one (spec §3,
// contract §4, §5).
package moderation

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"

	"stoa/protocol"
	"stoa/storage"
)

// Moderation keeps one node's board decent.
type Moderation struct {
	BoardID string // name of the board's log
}

// Report notes one report. Distinct reporters are distinct verified identities
// or distinct client networks, each with its own solved proof of work; one that
// reports twice counts once. What is stored of a reporter cannot be linked to
// its reports of other posts.
func (m *Moderation) Report(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.NewReport) (protocol.ReportReceipt, error) {
	p, err := find(ctx, tx, in.ID)
	if err != nil {
		return protocol.ReportReceipt{}, err
	}
	if p.State != protocol.Visible {
		return protocol.ReportReceipt{}, protocol.Errorf(protocol.Gone, "this post is no longer public")
	}
	fresh, distinct, err := tx.InsertReport(ctx, in.ID, reporter(in.ID, c), in.Reason)
	if err != nil {
		return protocol.ReportReceipt{}, err
	}
	if fresh && distinct >= protocol.ReportsToHide {
		if err := m.hide(ctx, tx, p, "five distinct reports"); err != nil {
			return protocol.ReportReceipt{}, err
		}
	}
	return protocol.ReportReceipt{ID: in.ID, Accepted: fresh}, nil
}

// ReportFrom notes a report that a trusted node hands on. A node counts as one
// reporter, however many of its readers reported.
func (m *Moderation) ReportFrom(ctx context.Context, tx *storage.Tx, postID, node, reason string) error {
	_, err := m.Report(ctx, tx, protocol.Caller{Standing: protocol.Federated, KeyID: "node " + node}, protocol.NewReport{ID: postID, Reason: reason})
	if code := protocol.CodeOf(err); code == protocol.NotFound || code == protocol.Gone {
		return nil
	}
	return err
}

// reporter is who reports, hashed together with the post.
func reporter(postID string, c protocol.Caller) string {
	sum := sha256.Sum256([]byte("report\x00" + postID + "\x00" + c.ID()))
	return hex.EncodeToString(sum[:16])
}

// Hide takes a post off the public lists, on the operator's word.
func (m *Moderation) Hide(ctx context.Context, tx *storage.Tx, id, why string) error {
	p, err := find(ctx, tx, id)
	if err != nil {
		return err
	}
	if p.State != protocol.Visible {
		return protocol.Errorf(protocol.Conflict, "the post is %s already", p.State)
	}
	if err := tx.Audit(ctx, "operator", "hide", id, why); err != nil {
		return err
	}
	return m.hide(ctx, tx, p, "operator: "+why)
}

// hide hides. The hiding of a post of another node stays here: only the board
// that a post belongs to speaks about it to others.
func (m *Moderation) hide(ctx context.Context, tx *storage.Tx, p *protocol.StoredPost, why string) error {
	if err := tx.SetPostState(ctx, p.ID, protocol.Hidden, why); err != nil {
		return err
	}
	return m.tell(ctx, tx, p, "hide")
}

// Restore puts a hidden post back. The reporters of before cannot hide it again.
func (m *Moderation) Restore(ctx context.Context, tx *storage.Tx, id, why string) error {
	p, err := find(ctx, tx, id)
	if err != nil {
		return err
	}
	if p.State != protocol.Hidden {
		return protocol.Errorf(protocol.Conflict, "the post is %s, not hidden", p.State)
	}
	if err := tx.SetPostState(ctx, id, protocol.Visible, why); err != nil {
		return err
	}
	if err := tx.Audit(ctx, "operator", "restore", id, why); err != nil {
		return err
	}
	return m.tell(ctx, tx, p, "restore")
}

func (m *Moderation) tell(ctx context.Context, tx *storage.Tx, p *protocol.StoredPost, kind string) error {
	if p.Board != m.BoardID {
		return nil
	}
	_, err := tx.AppendLog(ctx, m.BoardID, kind, p.ID, nil)
	return err
}

func find(ctx context.Context, tx *storage.Tx, id string) (*protocol.StoredPost, error) {
	p, err := tx.PostByID(ctx, id)
	if errors.Is(err, storage.ErrNotFound) {
		return nil, protocol.Errorf(protocol.NotFound, "there is no post of that id")
	}
	return p, err
}
