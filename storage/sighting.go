package storage

import (
	"context"
	"time"
)

// sightingEvery is how often at most a sighting of one agent is stored.
const sightingEvery = time.Hour

// RecordSightings records that agents of this node are alive. Those sighted within the hour
// are skipped, and so are handles without a profile.
func (ps Probes) RecordSightings(ctx context.Context, handles []string) error {
	for _, handle := range handles {
		n, err := ps.tx.write(ctx, `INSERT INTO sighting (handle, at) SELECT handle, CAST(? AS BIGINT) FROM profile WHERE handle = ?
			ON CONFLICT (handle) DO UPDATE SET at = EXCLUDED.at WHERE sighting.at <= ?`,
			millis(ps.tx.Now), handle, millis(ps.tx.Now.Add(-sightingEvery)))
		if err != nil {
			return err
		}
		if n == 0 {
			continue
		}
		if err := ps.judgeAgent(ctx, handle, ps.tx.Now); err != nil {
			return err
		}
	}
	return nil
}

// ForgetSightings deletes expired sightings, at most a thousand, and judges their
// agents again.
func (ps Probes) ForgetSightings(ctx context.Context) (int, error) {
	handles, err := list[string](ctx, ps.tx, `SELECT handle FROM sighting WHERE at < ? ORDER BY at LIMIT 1000`, millis(ps.tx.Now.Add(-spokeFor)))
	if err != nil {
		return 0, err
	}
	for _, handle := range handles {
		if _, err := ps.tx.write(ctx, `DELETE FROM sighting WHERE handle = ?`, handle); err != nil {
			return 0, err
		}
	}
	return len(handles), ps.JudgeAgents(ctx, handles)
}

// A Census counts the profiles of a node: how many are listed, how many of those
// are alive, and how many have an identity that this node verified on chain; how many
// of all, listed or not, were seen within 30 and 180 days; and the visible replies made here.
type Census struct{ Listed, Answering, Verified, ActiveMonth, ActiveHalfyear, Replies int }

const (
	seenSince   = `SELECT count(*) FROM profile WHERE last_seen_at >= ?`
	repliesHere = `SELECT (SELECT count(*) FROM post WHERE root IS NOT NULL AND state = 'visible')
		- (SELECT count(*) FROM post WHERE root IS NOT NULL AND state = 'visible' AND node IS NOT NULL)`
)

// Census counts. It is slow on a large node; cache the result for some minutes.
func (st Site) Census(ctx context.Context) (c Census, err error) {
	days := func(n int) int64 { return millis(st.tx.Now.AddDate(0, 0, -n)) }
	for _, row := range []struct {
		n    *int
		text string
		args []any
	}{
		{&c.Listed, `SELECT count(*) FROM profile WHERE listed`, nil},
		{&c.Answering, `SELECT count(*) FROM profile WHERE listed AND alive = 'alive'`, nil},
		{&c.Verified, `SELECT count(*) FROM probe p WHERE p.kind = 'chain' AND p.alive = 'alive' AND EXISTS (
			SELECT 1 FROM probe_of o JOIN profile a ON a.handle = o.handle WHERE o.target = p.target AND a.listed)`, nil},
		{&c.ActiveMonth, seenSince, []any{days(30)}},
		{&c.ActiveHalfyear, seenSince, []any{days(180)}},
		{&c.Replies, repliesHere, nil},
	} {
		if err := st.tx.row(ctx, row.text, row.args...).Scan(row.n); err != nil {
			return c, err
		}
	}
	return c, nil
}

// drop deletes the probe targets of a deleted profile.
func (ps Probes) drop(ctx context.Context, handle string) error {
	for _, text := range []string{`DELETE FROM probe_of WHERE handle = ?`, `DELETE FROM sighting WHERE handle = ?`} {
		if _, err := ps.tx.write(ctx, text, handle); err != nil {
			return err
		}
	}
	return nil
}
