package storage

import (
	"context"
	"time"
)

// A Crowd is something that many callers together cause at a place, counted over time.
type Crowd string

const (
	CrowdBidGaveWay     Crowd = "bid gave way"     // unpaid bids on the board of a profile that ended for newer ones
	CrowdMeetingGaveWay Crowd = "meeting gave way" // unproved requests to a profile that ended for newer ones
	CrowdMeetingRefused Crowd = "meeting refused"  // confirmed requests to a profile that found no room
	CrowdMailKnown      Crowd = "mail known"       // letters of the node that ask for a confirmation, for known callers; without a handle
	CrowdMailStrangers  Crowd = "mail strangers"   // likewise, for strangers
	CrowdNamedKnown     Crowd = "named known"      // notices to a profile of posts of verified authors that name it
	CrowdNamedStrangers Crowd = "named strangers"  // likewise, of other authors
	CrowdReceipts       Crowd = "receipts"         // notices to a profile of receipts for orders
)

// It is kept in parts of ten minutes, for a day.
const (
	crowdPart = 10 * time.Minute
	CrowdFor  = 24 * time.Hour
)

// Crowds counts what happens at a place: a profile, or the node with handle "".
type Crowds struct{ tx *Tx }

func (tx *Tx) Crowds() Crowds { return Crowds{tx} }

// Add counts n more now; nothing for 0.
func (ts Crowds) Add(ctx context.Context, handle string, what Crowd, n int) error {
	if n == 0 {
		return nil
	}
	at := ts.tx.Now.Truncate(crowdPart)
	return ts.tx.exec(ctx, `INSERT INTO crowd (handle, what, at, n, until) VALUES (?, ?, ?, ?, ?)
		ON CONFLICT (handle, what, at) DO UPDATE SET n = crowd.n + excluded.n`,
		handle, string(what), millis(at), n, millis(at.Add(CrowdFor+crowdPart)))
}

const crowdSince = `SELECT COALESCE(sum(n), 0) FROM crowd WHERE handle = ? AND what = ? AND at > ?`

// Since returns what was counted within a time, ten minutes more at most; for the last day at most.
func (ts Crowds) Since(ctx context.Context, handle string, what Crowd, within time.Duration) (int, error) {
	return find[int](ctx, ts.tx, crowdSince, handle, string(what), millis(ts.tx.Now.Add(-within).Truncate(crowdPart))-1)
}
