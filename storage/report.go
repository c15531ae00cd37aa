package storage

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"stoa/protocol"
)

// A Report is one reporter's complaint about a post.
type Report struct {
	PostID, Reporter, Reason string
	At                       time.Time
	Spent                    bool   // made before the post was restored: does not count again
	Domain                   string // of the server that sent it; such a report does not count towards hiding. "" for others
}

var reportTable = tableOf[Report]("report")

// Limits of undecided reports from other servers: of one post, of one domain, and
// in total.
const (
	MaxFlagsOfPost   = 20
	MaxFlagsOfDomain = 50
	MaxFlags         = 2000
)

const (
	flagsOfPost   = `SELECT count(*) FROM report WHERE post_id = ? AND domain <> '' AND NOT spent`
	flagsOfDomain = `SELECT count(*) FROM report WHERE domain = ? AND domain <> '' AND NOT spent`
	flagsInAll    = `SELECT count(*) FROM report WHERE domain <> '' AND NOT spent`
)

// InsertFlag stores a report of another server in the review queue, and reports
// whether it did: not of a post that is hidden or deleted, not twice by one
// reporter, and not over a limit.
func (ms Moderation) InsertFlag(ctx context.Context, r Report) (fresh bool, err error) {
	if err := ms.tx.dirty(); err != nil {
		return false, err
	}
	p, seq, err := ms.tx.Posts().lock(ctx, r.PostID)
	if err != nil || p.State != protocol.Visible {
		return false, err
	}
	for _, bound := range []struct {
		most  int
		query string
		args  []any
	}{{MaxFlagsOfPost, flagsOfPost, []any{r.PostID}}, {MaxFlagsOfDomain, flagsOfDomain, []any{r.Domain}}, {MaxFlags, flagsInAll, nil}} {
		var n int
		if err := ms.tx.row(ctx, bound.query, bound.args...).Scan(&n); err != nil || n >= bound.most {
			return false, err
		}
	}
	r.At = ms.tx.Now
	if added, err := reportTable.add(ctx, ms.tx, &r); err != nil || !added {
		return false, err
	}
	return true, ms.review(ctx, seq, r.PostID)
}

// MaxReportsOfPost limits the undecided reports of one post: more say nothing new, and a
// decision changes all of them in one transaction.
const MaxReportsOfPost = 1000

// InsertReport stores a report. Reporter is a keyed hash or an identity, never an
// address. A repeated report of a reporter is not fresh and counts once, also after
// the post was restored (contract §4); nor is one over MaxReportsOfPost fresh, which is
// not stored. Distinct is how many reports count now, including this one. ErrNotFound
// when there is no such post.
func (ms Moderation) InsertReport(ctx context.Context, postID, reporter, reason string) (fresh bool, distinct int, err error) {
	if err := ms.tx.dirty(); err != nil {
		return false, 0, err
	}
	p, seq, err := ms.tx.Posts().lock(ctx, postID)
	if err != nil {
		return false, 0, err
	}
	if p.State == protocol.Deleted {
		return false, 0, protocol.Errorf(protocol.Gone, "the post was deleted")
	}
	if distinct, err = ms.OpenReports(ctx, postID); err != nil || distinct >= MaxReportsOfPost {
		return false, distinct, err
	}
	added, err := reportTable.add(ctx, ms.tx, &Report{PostID: postID, Reporter: reporter, Reason: reason, At: ms.tx.Now})
	if err != nil || !added {
		return false, distinct, err
	}
	if _, err := ms.tx.write(ctx, `UPDATE post SET reports = reports + 1 WHERE seq = ?`, seq); err != nil {
		return false, 0, err
	}
	if p.State == protocol.Visible {
		err = ms.review(ctx, seq, postID)
	}
	return true, distinct + 1, err
}

// ListReports returns the newest reports of a post, newest first.
func (ms Moderation) ListReports(ctx context.Context, postID string, limit int) ([]Report, error) {
	return list[Report](ctx, ms.tx, reportTable.from+`WHERE post_id = ? ORDER BY at DESC, reporter LIMIT ?`, postID, limit)
}

// OpenReports is how many reports of a post count towards hiding it.
func (ms Moderation) OpenReports(ctx context.Context, postID string) (int, error) {
	return find[int](ctx, ms.tx, `SELECT count(*) FROM report WHERE post_id = ? AND domain = '' AND NOT spent`, postID)
}

// A ReportJobArgs is the argument of a report job.
type ReportJobArgs struct {
	ID      string `json:"id"`   // of the activity
	Post    string `json:"post"` // id of a post of another server
	Comment string `json:"comment,omitempty"`
	At      int64  `json:"at"` // Unix milliseconds
}

// EnqueueReport has a post reported to the server of its author.
func (ms Moderation) EnqueueReport(ctx context.Context, host string, a ReportJobArgs) error {
	args, err := json.Marshal(a)
	if err != nil {
		return fmt.Errorf("encode report: %w", err)
	}
	return ms.tx.Enqueue(ctx, Job{Kind: ReportJob, Lane: "to:" + host, Args: args})
}
