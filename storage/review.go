package storage

import (
	"context"
	"strconv"
	"time"

	"stoa/protocol"
)

// A Review is a post that waits for an operator's decision.
type Review struct {
	Post   protocol.StoredPost
	Reason string // of its state
}

// Moderation reads and writes reports, the review queue, operators' notes and the
// public log.
type Moderation struct{ tx *Tx }

func (tx *Tx) Moderation() Moderation { return Moderation{tx} }

// ListReview returns the posts that wait for a decision, newest post first: visible
// ones with open reports, and those that AwaitReview added.
func (ms Moderation) ListReview(ctx context.Context, limit int, after string) (protocol.Page[string], error) {
	type line struct {
		Seq    int64
		PostID string
	}
	p, err := newest[line](ctx, ms.tx, listReview, "seq", limit, after, reviewQuery)
	out := protocol.Page[string]{Items: make([]string, 0, len(p.Items)), Next: p.Next}
	for _, l := range p.Items {
		out.Items = append(out.Items, l.PostID)
	}
	return out, err
}

const reviewQuery = `SELECT seq, post_id FROM review WHERE seq < ? ORDER BY seq DESC LIMIT ?`

// review adds a post to the queue; reviewed removes it.
func (ms Moderation) review(ctx context.Context, seq int64, postID string) error {
	return ms.tx.exec(ctx, `INSERT INTO review (seq, post_id) VALUES (?, ?) ON CONFLICT DO NOTHING`, seq, postID)
}

func (ms Moderation) reviewed(ctx context.Context, seq int64) error {
	return ms.tx.exec(ctx, `DELETE FROM review WHERE seq = ?`, seq)
}

// AwaitReview adds a post to the queue in any state, until its state or reason is
// set again.
func (ms Moderation) AwaitReview(ctx context.Context, postID string) error {
	if err := ms.tx.dirty(); err != nil {
		return err
	}
	_, seq, err := ms.tx.Posts().lock(ctx, postID)
	if err != nil {
		return err
	}
	return ms.review(ctx, seq, postID)
}

const reviewCount = `SELECT count(*) FROM (SELECT 1 FROM review LIMIT 10000) r`

// CountReview is how many posts are in the queue, up to 10,000.
func (ms Moderation) CountReview(ctx context.Context) (int, error) {
	return find[int](ctx, ms.tx, reviewCount)
}

// SpendReports marks the reports of a post as spent, so that they no longer count,
// and removes it from the queue. It returns how many counted.
func (ms Moderation) SpendReports(ctx context.Context, postID string) (int, error) {
	if err := ms.tx.dirty(); err != nil {
		return 0, err
	}
	_, seq, err := ms.tx.Posts().lock(ctx, postID)
	if err != nil {
		return 0, err
	}
	n, err := ms.tx.write(ctx, `UPDATE report SET spent = TRUE WHERE post_id = ? AND NOT spent`, postID)
	if err != nil {
		return 0, err
	}
	return int(n), ms.reviewed(ctx, seq)
}

// ReopenReports makes the reports of a visible post count again that were made after a
// time, and adds the post to the queue. It returns how many they are.
func (ms Moderation) ReopenReports(ctx context.Context, postID string, after time.Time) (int, error) {
	if err := ms.tx.dirty(); err != nil {
		return 0, err
	}
	_, seq, err := ms.tx.Posts().lock(ctx, postID)
	if err != nil {
		return 0, err
	}
	n, err := ms.tx.write(ctx, `UPDATE report SET spent = FALSE WHERE post_id = ? AND spent AND at > ?`, postID, millis(after))
	if err != nil || n == 0 {
		return 0, err
	}
	return int(n), ms.review(ctx, seq, postID)
}

var noteTable = tableOf[protocol.ModerationNote]("moderation_note")

// InsertNote stores a note of an operator.
func (ms Moderation) InsertNote(ctx context.Context, n protocol.ModerationNote) error {
	return noteTable.insert(ctx, ms.tx, &n)
}

// DeleteNote deletes a note and returns its subject; ErrNotFound when there is
// none.
func (ms Moderation) DeleteNote(ctx context.Context, id string) (subject string, err error) {
	if err := ms.tx.dirty(); err != nil {
		return "", err
	}
	if subject, err = find[string](ctx, ms.tx, `SELECT subject FROM moderation_note WHERE id = ?`, id); err != nil {
		return "", err
	}
	_, err = ms.tx.write(ctx, `DELETE FROM moderation_note WHERE id = ?`, id)
	return subject, err
}

// ListNotes returns notes, newest first.
func (ms Moderation) ListNotes(ctx context.Context, q protocol.NoteQuery) (protocol.Page[protocol.ModerationNote], error) {
	text, args := noteQuery(q.Subject)
	return newest[protocol.ModerationNote](ctx, ms.tx, listNotes, "id", q.Limit, q.After, text, args...)
}

func noteQuery(subject string) (string, []any) {
	if subject == "" {
		return noteTable.from + `WHERE id < ? ORDER BY id DESC LIMIT ?`, nil
	}
	return noteTable.from + `WHERE subject = ? AND id < ? ORDER BY id DESC LIMIT ?`, []any{subject}
}

// Log adds a line to the public moderation log. An empty subject means that the
// subject is not named.
func (ms Moderation) Log(ctx context.Context, action protocol.Action, kind, subject, reason string) error {
	return ms.tx.exec(ctx, `INSERT INTO moderation_log (at, action, kind, subject, reason) VALUES (?, ?, ?, ?, ?)`,
		millis(ms.tx.Now), string(action), kind, subject, reason)
}

const lastDecision = `SELECT id, action, reason FROM moderation_log WHERE subject = ? AND subject <> '' AND kind = ? ORDER BY id DESC LIMIT 1`

// A LastDecision is the last line of the public moderation log about something.
type LastDecision struct {
	ID     int64
	Action protocol.Action
	Reason string
}

// Decided returns the last decision about something; ErrNotFound when there is none.
func (ms Moderation) Decided(ctx context.Context, kind, subject string) (LastDecision, error) {
	return find[LastDecision](ctx, ms.tx, lastDecision, subject, kind)
}

const (
	moderationLog      = `SELECT id, at, action, kind, NULLIF(subject, '') AS subject, reason FROM moderation_log `
	moderationLogQuery = moderationLog + `WHERE id < ? ORDER BY id DESC LIMIT ?`
)

// A logLine is a line of the public moderation log.
type logLine struct {
	ID int64
	At time.Time
	protocol.ModerationEntry
}

func (l logLine) entry() protocol.ModerationEntry {
	l.ModerationEntry.ID, l.ModerationEntry.At = number(l.ID), l.At
	return l.ModerationEntry
}

// LogEntry returns a line of the public moderation log; ErrNotFound when there is none with that number.
func (ms Moderation) LogEntry(ctx context.Context, id string) (protocol.ModerationEntry, error) {
	n, err := strconv.ParseInt(id, 10, 64)
	if err != nil {
		return protocol.ModerationEntry{}, ErrNotFound
	}
	l, err := find[logLine](ctx, ms.tx, moderationLog+`WHERE id = ?`, n)
	return l.entry(), err
}

// ListLog returns the public moderation log, newest first.
func (ms Moderation) ListLog(ctx context.Context, limit int, after string) (protocol.Page[protocol.ModerationEntry], error) {
	found, err := newest[logLine](ctx, ms.tx, listModerationLog, "id", limit, after, moderationLogQuery)
	p := protocol.Page[protocol.ModerationEntry]{Items: make([]protocol.ModerationEntry, 0, len(found.Items)), Next: found.Next}
	for _, l := range found.Items {
		p.Items = append(p.Items, l.entry())
	}
	return p, err
}
