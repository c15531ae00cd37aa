package storage

import (
	"context"
	"time"

	"stoa/protocol"
)

// A Report is one reporter's complaint about a post.
type Report struct {
	PostID, Reporter, Reason string
	At                       time.Time
	Spent                    bool // made before the post was restored: does not count again
}

// InsertReport stores a report. Reporter is a keyed hash or an identity, never
// an address. A reporter that reports again is not fresh and counts once, also
// after the post was restored (contract §4). Distinct is how many reports count
// now, this one with them. ErrNotFound when there is no such post.
func (tx *Tx) InsertReport(ctx context.Context, postID, reporter, reason string) (fresh bool, distinct int, err error) {
	if err := tx.dirty(); err != nil {
		return false, 0, err
	}
	p, seq, err := tx.postByID(ctx, postID)
	if err != nil {
		return false, 0, err
	}
	if p.State == protocol.Deleted {
		return false, 0, protocol.Errorf(protocol.Gone, "the post was deleted")
	}
	n, err := tx.write(ctx, `INSERT INTO report (post_id, reporter, reason, at) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING`,
		postID, reporter, reason, millis(tx.Now))
	if err != nil {
		return false, 0, err
	}
	if n == 1 {
		if _, err := tx.write(ctx, `UPDATE post SET reports = reports + 1 WHERE seq = ?`, seq); err != nil {
			return false, 0, err
		}
	}
	err = tx.row(ctx, `SELECT count(*) FROM report WHERE post_id = ? AND NOT spent`, postID).Scan(&distinct)
	return n == 1, distinct, err
}

// ListReports returns every report of a post, oldest first.
func (tx *Tx) ListReports(ctx context.Context, postID string) ([]Report, error) {
	rows, err := tx.query(ctx, `SELECT post_id, reporter, reason, at, spent FROM report WHERE post_id = ? ORDER BY at, reporter LIMIT 1000`, postID)
	return collect(rows, err, func(s scanner) (r Report, err error) {
		var at int64
		err = s.Scan(&r.PostID, &r.Reporter, &r.Reason, &at, &r.Spent)
		r.At = moment(at)
		return r, err
	})
}
