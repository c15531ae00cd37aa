package moderation

import (
	"context"
	"slices"
	"strings"
	"time"

	"stoa/protocol"
	"stoa/storage"
)

// shown is the number of reports and notes that are listed with a post in the queue.
const shown = 20

// Queue lists the posts that wait for an operator's decision.
func (m *Moderation) Queue(ctx context.Context, tx *storage.Tx, _ protocol.Caller, in protocol.ReviewQuery) (protocol.Page[protocol.ReviewItem], error) {
	out := protocol.Page[protocol.ReviewItem]{Items: []protocol.ReviewItem{}}
	var posts []protocol.StoredPost
	if in.State == protocol.ReviewHidden {
		page, err := tx.Posts().ListHidden(ctx, in.Size(), in.After)
		if err != nil {
			return out, err
		}
		posts, out.Next = page.Items, page.Next
	} else {
		page, err := tx.Moderation().ListReview(ctx, in.Size(), in.After)
		if err != nil {
			return out, err
		}
		out.Next = page.Next
		for _, id := range page.Items {
			p, err := tx.Posts().ByID(ctx, id)
			if err != nil {
				return out, err
			}
			if p.State == protocol.Visible || in.State == protocol.ReviewWaiting {
				posts = append(posts, *p)
			}
		}
	}
	for i := range posts {
		item, err := review(ctx, tx, &posts[i])
		if err != nil {
			return out, err
		}
		if caused(item, in.Cause) {
			out.Items = append(out.Items, item)
		}
	}
	return out, nil
}

// caused reports whether one of the reports of a post is of that origin.
func caused(item protocol.ReviewItem, by protocol.ReviewCause) bool {
	return by == "" || slices.ContainsFunc(item.Reports, func(r protocol.ReportView) bool { return (r.Node != nil) == (by == protocol.CauseFlags) })
}

func review(ctx context.Context, tx *storage.Tx, p *protocol.StoredPost) (protocol.ReviewItem, error) {
	item := protocol.ReviewItem{Post: p.Post, State: p.State, Reports: []protocol.ReportView{}, Untrusted: true}
	var err error
	if item.Reason, _, err = tx.Posts().Standing(ctx, p.ID); err != nil {
		return item, err
	}
	if item.Open, err = tx.Moderation().OpenReports(ctx, p.ID); err != nil {
		return item, err
	}
	reports, err := tx.Moderation().ListReports(ctx, p.ID, shown)
	if err != nil {
		return item, err
	}
	for _, r := range reports {
		view := protocol.ReportView{Reporter: r.Reporter, Reason: r.Reason, At: r.At, Spent: r.Spent}
		if r.Domain != "" {
			view.Node = &r.Domain
		}
		item.Reports = append(item.Reports, view)
	}
	notes, err := tx.Moderation().ListNotes(ctx, protocol.NoteQuery{Subject: p.ID, Paging: protocol.Paging{Limit: shown}})
	item.Notes = notes.Items
	return item, err
}

// Hide hides a post by an operator's decision. A post that reports have hidden stays hidden and
// leaves the queue.
func (m *Moderation) Hide(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.Decision) (protocol.PostStanding, error) {
	p, err := find(ctx, tx, in.ID)
	if err != nil {
		return protocol.PostStanding{}, err
	}
	why := strings.TrimSuffix("operator: "+in.Reason, ": ")
	switch reason, _, err := tx.Posts().Standing(ctx, in.ID); {
	case err != nil:
		return protocol.PostStanding{}, err
	case p.State == protocol.Hidden && reason == byReports: // it was announced when the reports hid it
		if err := tx.Posts().SetState(ctx, in.ID, protocol.Hidden, why); err != nil {
			return protocol.PostStanding{}, err
		}
		return m.recordDecision(ctx, tx, c, in, "hide", why)
	case p.State != protocol.Visible:
		return protocol.PostStanding{}, stateError(p.State, "the post is already %s", p.State)
	}
	if err := m.hide(ctx, tx, p, why, in.Reason); err != nil {
		return protocol.PostStanding{}, err
	}
	return m.recordDecision(ctx, tx, c, in, "hide", why)
}

// Restore makes a hidden post visible again. Its earlier reporters cannot hide it a second time.
func (m *Moderation) Restore(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.Decision) (protocol.PostStanding, error) {
	p, err := find(ctx, tx, in.ID)
	if err == nil && p.State != protocol.Hidden {
		err = stateError(p.State, "the post is %s, not hidden", p.State)
	}
	if err != nil {
		return protocol.PostStanding{}, err
	}
	if hidden, err := tx.Posts().ByHidden(ctx, p); err != nil {
		return protocol.PostStanding{}, err
	} else if hidden { // it is shown again with the profile
		if err := tx.Posts().SetState(ctx, in.ID, protocol.Hidden, storage.Concealed); err != nil {
			return protocol.PostStanding{}, err
		}
		return m.recordDecision(ctx, tx, c, in, "restore", in.Reason)
	}
	if err := tx.Posts().SetState(ctx, in.ID, protocol.Visible, in.Reason); err != nil {
		return protocol.PostStanding{}, err
	}
	if err := tx.Moderation().Log(ctx, protocol.ActionRestore, "post", in.ID, in.Reason); err != nil {
		return protocol.PostStanding{}, err
	}
	if err := m.Distribute(ctx, tx, p, storage.LogRestore); err != nil {
		return protocol.PostStanding{}, err
	}
	return m.recordDecision(ctx, tx, c, in, "restore", in.Reason)
}

// Forward reports a post to the server of its author.
func (m *Moderation) Forward(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.ReportForward) (protocol.None, error) {
	p, err := find(ctx, tx, in.ID)
	switch {
	case err != nil:
		return protocol.None{}, err
	case p.State == protocol.Deleted:
		return protocol.None{}, stateError(p.State, "the post was deleted")
	case p.Node == nil || p.Author.Actor == nil:
		return protocol.None{}, protocol.Errorf(protocol.Conflict, "the post was made on this node; hide or delete it")
	}
	said := "Reported to " + *p.Node
	notes, err := tx.Moderation().ListNotes(ctx, protocol.NoteQuery{Subject: p.ID, Paging: protocol.Paging{Limit: protocol.MaxLimit}})
	if err != nil {
		return protocol.None{}, err
	}
	if slices.ContainsFunc(notes.Items, func(n protocol.ModerationNote) bool { return strings.HasPrefix(n.Text, said) }) {
		return protocol.None{}, protocol.Errorf(protocol.Conflict, "the post was reported to %s already, as its notes say", *p.Node)
	}
	if in.Comment != "" {
		said += ": " + in.Comment
	}
	note := protocol.ModerationNote{ID: protocol.NewID(protocol.NoteID, tx.Now), Subject: p.ID, Text: said, Actor: actor(c), At: tx.Now}
	if err := tx.Moderation().InsertNote(ctx, note); err != nil {
		return protocol.None{}, err
	}
	args := storage.ReportJobArgs{ID: protocol.NewID(protocol.ActivityID, tx.Now), Post: p.ID, Comment: in.Comment, At: tx.Now.UnixMilli()}
	if err := tx.Moderation().EnqueueReport(ctx, *p.Node, args); err != nil {
		return protocol.None{}, err
	}
	return protocol.None{}, tx.Audit(ctx, actor(c), "report forward", p.ID, in.Comment)
}

// Dismiss keeps a reported post visible and closes its reports.
func (m *Moderation) Dismiss(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.Decision) (protocol.PostStanding, error) {
	p, err := find(ctx, tx, in.ID)
	if err == nil && p.State != protocol.Visible {
		err = stateError(p.State, "the post is %s; restore it", p.State)
	}
	if err != nil {
		return protocol.PostStanding{}, err
	}
	spent, err := tx.Moderation().SpendReports(ctx, in.ID)
	if err == nil && spent == 0 {
		err = protocol.Errorf(protocol.Conflict, "the post has no open report")
	}
	if err == nil {
		err = tx.Moderation().Log(ctx, protocol.ActionDismiss, "post", in.ID, in.Reason)
	}
	if err != nil {
		return protocol.PostStanding{}, err
	}
	return m.recordDecision(ctx, tx, c, in, "dismiss", in.Reason)
}

// decidedBefore returns when the reports of a post were decided about before the last dismissal: zero for
// never. Reports from before that stay decided.
func decidedBefore(ctx context.Context, tx *storage.Tx, id string) (time.Time, error) {
	entries, err := tx.AuditLog().Of(ctx, id, "post dismiss", "post restore", "post reopen")
	undone := 1 // of the dismissals to come, the oldest is the one that is undone now
	for _, e := range entries {
		switch {
		case e.Action == "post reopen":
			undone++
		case e.Action == "post dismiss" && undone > 0:
			undone--
		default:
			return e.At, err
		}
	}
	return time.Time{}, err
}

// Reopen undoes Dismiss. No report hides the post by that; the next one may.
func (m *Moderation) Reopen(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.Decision) (protocol.PostStanding, error) {
	p, err := find(ctx, tx, in.ID)
	if err == nil && p.State != protocol.Visible {
		err = stateError(p.State, "the post is %s", p.State)
	}
	if err != nil {
		return protocol.PostStanding{}, err
	}
	before, err := decidedBefore(ctx, tx, in.ID)
	if err != nil {
		return protocol.PostStanding{}, err
	}
	open, err := tx.Moderation().ReopenReports(ctx, in.ID, before)
	if err == nil && open == 0 {
		err = protocol.Errorf(protocol.Conflict, "the post has no report that was dismissed")
	}
	if err != nil {
		return protocol.PostStanding{}, err
	}
	return m.recordDecision(ctx, tx, c, in, "reopen", in.Reason)
}

// Remove deletes a post for good, hidden or not.
func (m *Moderation) Remove(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.Decision) (protocol.PostStanding, error) {
	if _, err := m.Delete(ctx, tx, c, protocol.PostRef{ID: in.ID}); err != nil {
		return protocol.PostStanding{}, err
	}
	why := strings.TrimSuffix("operator: "+in.Reason, ": ")
	if err := tx.Posts().SetState(ctx, in.ID, protocol.Deleted, why); err != nil {
		return protocol.PostStanding{}, err
	}
	if err := tx.Moderation().Log(ctx, protocol.ActionDelete, "post", in.ID, in.Reason); err != nil {
		return protocol.PostStanding{}, err
	}
	return m.recordDecision(ctx, tx, c, in, "delete", why)
}

// stateError returns the error for a post whose state does not allow a decision.
func stateError(s protocol.PostState, format string, args ...any) error {
	if s == protocol.Deleted {
		return protocol.Errorf(protocol.Gone, "the post was deleted")
	}
	return protocol.Errorf(protocol.Conflict, format, args...)
}

// recordDecision writes a decision and its note to the audit log, and returns the state of the post.
func (m *Moderation) recordDecision(
	ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.Decision, action, why string,
) (protocol.PostStanding, error) {
	if err := tx.Audit(ctx, actor(c), "post "+action, in.ID, in.Reason); err != nil {
		return protocol.PostStanding{}, err
	}
	if in.Note != "" {
		if _, err := m.AddNote(ctx, tx, c, protocol.NewNote{Subject: in.ID, Text: in.Note}); err != nil {
			return protocol.PostStanding{}, err
		}
	}
	p, err := tx.Posts().ByID(ctx, in.ID)
	if err != nil {
		return protocol.PostStanding{}, err
	}
	return protocol.PostStanding{ID: p.ID, State: p.State, Reason: why}, nil
}
