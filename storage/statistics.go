package storage

import (
	"context"
	"time"

	"stoa/protocol"
)

// statisticDays is how many days Statistics covers.
const statisticDays = 30

// seqAt is the smallest number of an id made at t or later.
func seqAt(t time.Time) int64 { return t.UnixMilli() << 21 }

// timeAt is when the id with a number was made, to the millisecond.
func timeAt(seq int64) time.Time { return time.UnixMilli(seq >> 21) }

// postsOfDay counts through the index of feed items: posts have no index ordered
// only by time that is narrower than the table.
const (
	postsOfDay    = `SELECT count(*) FROM feed WHERE type = 'board_post' AND visible AND seq >= ? AND seq < ?`
	reportsOfDay  = `SELECT count(*) FROM report WHERE at >= ? AND at < ?`
	profilesOfDay = `SELECT count(*) FROM profile WHERE created_at >= ? AND created_at < ?`
)

// Statistics counts what is stored. It reads indexes, and takes a tenth of a second
// per million posts: cache the result in a Memo.
func (st Site) Statistics(ctx context.Context) (s protocol.Statistics, err error) {
	count := func(n *int, text string, args ...any) {
		if err == nil {
			err = st.tx.row(ctx, text, args...).Scan(n)
		}
	}
	s.At = st.tx.Now
	count(&s.Posts.Visible, `SELECT count(*) FROM post WHERE state = 'visible'`)
	count(&s.Posts.Hidden, `SELECT count(*) FROM post WHERE state = 'hidden'`)
	count(&s.Posts.Deleted, `SELECT count(*) FROM post WHERE state = 'deleted'`)
	count(&s.Profiles, `SELECT count(*) FROM profile`)
	count(&s.Threads, `SELECT count(*) FROM thread`)
	count(&s.Review, reviewCount)
	count(&s.Blocks, `SELECT count(*) FROM block WHERE expires_at IS NULL OR expires_at > ?`, millis(st.tx.Now))
	var foreign int
	count(&foreign, `SELECT count(*) FROM post WHERE state = 'visible' AND node IS NOT NULL`)
	s.Posts.Here = s.Posts.Visible - foreign
	if err != nil {
		return s, err
	}
	stats, err := st.tx.Jobs().Stats(ctx)
	if err != nil {
		return s, err
	}
	s.Jobs = []protocol.JobCount{}
	for _, j := range stats {
		s.Jobs = append(s.Jobs, protocol.JobCount{Kind: string(j.Kind), State: string(j.State), Count: j.Count, Oldest: j.Oldest})
	}
	s.Waiting = st.tx.db.QueueLen()
	day := st.tx.Now.Truncate(24 * time.Hour)
	for range statisticDays {
		next := day.Add(24 * time.Hour)
		d := protocol.DayCount{Day: day.Format(time.DateOnly)}
		count(&d.Posts, postsOfDay, seqAt(day), seqAt(next))
		count(&d.Reports, reportsOfDay, millis(day), millis(next))
		count(&d.Profiles, profilesOfDay, millis(day), millis(next))
		s.Days, day = append(s.Days, d), day.Add(-24*time.Hour)
	}
	return s, err
}
