package storage_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/protocol/must"
	"stoa/storage"
)

// skewMeetings fills a database with the meeting requests of a person who is asked a lot: nearly all are
// over or never were confirmed, and as many are approved or wait at any scale. at is when a row is due to
// end.
func skewMeetings(t *testing.T, db *storage.DB, fill func(full int, insert string, args ...any), at string) {
	t.Helper()
	blob := map[bool]string{true: "BYTEA", false: "BLOB"}[storage.OnPostgres(db)]
	rows := func(prefix, state, shown, starts, moved, mail string) string {
		id := `'` + prefix + `' || CAST(n AS TEXT)`
		hash := `CAST(` + id + ` AS ` + blob + `)`
		return `SELECT ` + id + `, 'met', '` + state + `', ` + shown + `, ` + starts + `, ` + starts + ` + 1, 'net:' || CAST(n AS TEXT), ` + hash + `, ` + hash +
			`, n, NULL, ` + mail + `, ` + moved + `, 1, 0, '{}' FROM series`
	}
	const insert = `INSERT INTO meeting (id, handle, state, shown, starts_at, ends_at, requester, mailbox, token_hash, asked_at, due_at, mail_until, moved_at,
		moves, sequence, doc) `
	many := `WITH RECURSIVE series (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM series WHERE n < CAST(? AS BIGINT)) `
	now := start.UnixMilli()
	fill(200_000, insert+many+rows("mtg_a", "done", "TRUE", "n", at, at))
	fill(50_000, insert+many+rows("mtg_b", "unconfirmed", "FALSE", fmt.Sprintf("%d + n", now), "1", "NULL"))
	for prefix, state := range map[string]string{"mtg_c": "approved", "mtg_d": "submitted", "mtg_e": "proposed"} {
		require.NoError(t, storage.Exec(t.Context(), db, insert+`WITH RECURSIVE series (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM series WHERE n < 5) `+
			rows(prefix, state, "TRUE", fmt.Sprintf("%d + n", now), "1", "NULL")))
	}
	for _, text := range []string{`INSERT INTO calendar_busy (account, handle, read_at, spans) VALUES ('cal', 'met', 1, CAST('x' AS ` + blob + `))`,
		`INSERT INTO meeting_event (meeting, handle, account, state, until, doc) VALUES ('mtg_1', 'met', 'cal', 'written', 1000, '{}')`} {
		require.NoError(t, storage.Exec(t.Context(), db, text))
	}
	fill(10_000, `INSERT INTO calendar_busy (account, handle, read_at, spans) `+many+`SELECT 'a' || CAST(n AS TEXT), 'h' || CAST(n AS TEXT), 1,
		CAST('x' AS `+blob+`) FROM series`)
	fill(100_000, `INSERT INTO meeting_event (meeting, handle, account, state, until, doc) `+many+`SELECT 'm' || CAST(n AS TEXT), 'met', 'cal', 'written',
		`+at+`, '{}' FROM series`)
	fill(100_000, `INSERT INTO meeting_mailbox (hash, sent_at, sent, stopped) `+many+`SELECT CAST(CAST(n AS TEXT) AS `+blob+`), `+at+`, 1, FALSE FROM series`)
}

// grownMeetings are the statements of every request, every question for open times and every hour.
func grownMeetings(ctx context.Context, tx *storage.Tx) []call {
	return []call{
		{"times that are taken", looks, func() error {
			return some(tx.Meetings().Taken(ctx, "met", start.Add(-time.Hour), start.Add(time.Hour)))
		}},
		{"busy times", looks, func() error { return some(tx.Calendars().Busy(ctx, "met")) }},
		{"meetings for a feed", looks, func() error { return some(tx.Meetings().Agreed(ctx, "met", start.Add(-time.Hour))) }},
		{"event of a meeting", looks, func() error { return must.Err(tx.Meetings().Event(ctx, "mtg_1")) }},
		{"limits of a requester", undone, func() error { return must.Err(tx.Meetings().Count(ctx, "met", "net:1")) }},
		{"mailbox, what waits for it, and what strangers caused", undone, func() error {
			_, err := tx.Meetings().LockMailbox(ctx, [32]byte{1})
			_, other := tx.Meetings().OfMailbox(ctx, [32]byte{1})
			_, third := tx.Crowds().Since(ctx, "met", storage.CrowdMeetingGaveWay, storage.CrowdFor)
			_, fourth := tx.Meetings().OldestUnconfirmed(ctx, "met", false, 1)
			return errors.Join(err, other, third, fourth)
		}},
		{"meeting requests of a person", looks, func() error {
			all, err := tx.Meetings().List(ctx, "met", "", 20, "")
			some, e := tx.Meetings().List(ctx, "met", "submitted", 20, "")
			return found(len(all.Items)*len(some.Items), errors.Join(err, e))
		}},
		{"meetings of some days", looks, func() error { return some(tx.Meetings().Agenda(ctx, "met", start, start.Add(time.Hour), 20, "")) }},
		{"meeting request by its id", looks, func() error { return must.Err(tx.Meetings().ByID(ctx, "mtg_c1")) }},
		{"prune meetings", undone, func() error { return some(tx.Meetings().Prune(ctx, longAgo)) }},
		{"prune mailboxes", undone, func() error { return some(tx.Meetings().PruneMailboxes(ctx, longAgo)) }},
	}
}
