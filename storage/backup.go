package storage

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Backup writes a copy of a SQLite database, as of one moment, to a new file,
// while the node runs. On PostgreSQL it is an error: pg_dump does this.
func (db *DB) Backup(ctx context.Context, path string) error { return db.sql.Backup(ctx, path) }

// An invariant is a query that returns nothing in a consistent database, otherwise
// the first violation.
type invariant struct{ name, query string }

var invariants = []invariant{
	{"a profile whose place is not that of its one open version", `SELECT p.handle FROM profile p LEFT JOIN profile_rank r ON r.pos = p.pos
		WHERE p.listed <> (p.pos IS NOT NULL) OR p.listed AND (r.pos IS NULL OR r.seq <> p.seq OR r.closed_at IS NOT NULL) LIMIT 1`},
	{"a profile in lists that is hidden or not wanted there, or the other way round", `SELECT handle FROM profile
		WHERE listed <> (wish AND state = '') LIMIT 1`},
	{"a profile whose handle is free", `SELECT p.handle FROM profile p LEFT JOIN handle h ON h.handle = p.handle
		WHERE h.handle IS NULL OR h.gone_at IS NOT NULL LIMIT 1`},
	{"an open version that is no profile's place", `SELECT r.pos FROM profile_rank r LEFT JOIN profile p ON p.seq = r.seq AND p.pos = r.pos
		WHERE r.closed_at IS NULL AND p.seq IS NULL LIMIT 1`},
	{"a merchant record without its profile", `SELECT m.seq FROM merchant m LEFT JOIN profile p ON p.seq = m.seq WHERE p.seq IS NULL LIMIT 1`},
	{"an item without its merchant", `SELECT i.id FROM item i LEFT JOIN merchant m ON m.seq = i.seq WHERE m.seq IS NULL
		AND NOT EXISTS (SELECT 1 FROM job WHERE kind = 'drop-items' AND state = 'waiting') LIMIT 1`},
	{"a count of items that is wrong", `SELECT m.seq FROM merchant m JOIN profile p ON p.seq = m.seq
		WHERE m.items <> (SELECT count(*) FROM item i WHERE i.seq = m.seq AND i.since <= m.catalog AND i.until > m.catalog) OR p.catalog <> (m.items > 0) LIMIT 1`},
	{"a visible post without exactly one visible feed item, which only an archived one may lack", `SELECT p.id FROM post p WHERE p.state = 'visible'
		AND (SELECT count(*) FROM feed f WHERE f.subject_id = p.id AND f.visible) NOT BETWEEN
			CASE WHEN EXISTS (SELECT 1 FROM archive_post a WHERE a.seq = p.seq) THEN 0 ELSE 1 END AND 1 LIMIT 1`},
	{"a visible feed item whose post is not visible", `SELECT subject_id FROM feed WHERE visible AND type = 'board_post'
		EXCEPT SELECT id FROM post WHERE state = 'visible' LIMIT 1`},
	{"a live log entry whose post is missing or deleted", `SELECT l.object_id FROM log l LEFT JOIN post p ON p.id = l.object_id
		WHERE NOT l.redacted AND l.kind <> 'delete' AND l.object_id LIKE 'post~_%' ESCAPE '~' AND (p.id IS NULL OR p.state = 'deleted') LIMIT 1`},
	{"a log with a gap", `SELECT s.board FROM stream s WHERE s.head <> (SELECT count(*) FROM log l WHERE l.stream = s.id)
		OR s.head <> (SELECT COALESCE(max(l.seq), 0) FROM log l WHERE l.stream = s.id) LIMIT 1`},
	{"a reply count that is wrong", `SELECT p.id FROM post p WHERE p.reply_count <>
		(SELECT count(*) FROM post r WHERE r.in_reply_to = p.id AND r.state = 'visible') LIMIT 1`},
	{"a count of reactions that is wrong", `SELECT p.id FROM post p WHERE p.likes <>
		(SELECT count(*) FROM reaction r WHERE r.post_id = p.id AND r.kind = 'like') OR p.shares <>
		(SELECT count(*) FROM reaction r WHERE r.post_id = p.id AND r.kind = 'share') OR p.quotes <>
		(SELECT count(*) FROM reaction r WHERE r.post_id = p.id AND r.kind = 'quote') LIMIT 1`},
	{"a thread count that is wrong", `SELECT p.id FROM post p WHERE p.thread_count <>
		(SELECT count(*) FROM post r WHERE r.root = p.id AND r.state = 'visible') LIMIT 1`},
	{"a count of followers that is wrong", `SELECT c.local_actor FROM follower_count c WHERE c.n <>
		(SELECT count(*) FROM follower f WHERE f.local_actor = c.local_actor) AND c.local_actor <> ''
		UNION ALL SELECT 'all' FROM follower_count c WHERE c.local_actor = '' AND c.n <> (SELECT count(*) FROM follower)
		UNION ALL SELECT f.local_actor FROM follower f LEFT JOIN follower_count c ON c.local_actor = f.local_actor WHERE c.n IS NULL LIMIT 1`},
	{"a reply in another thread than its parent", `SELECT r.id FROM post r JOIN post p ON p.id = r.in_reply_to
		WHERE r.root <> COALESCE(p.root, p.id) LIMIT 1`},
	{"a post resolved by what is no visible resolution", `SELECT p.id FROM post p LEFT JOIN post r ON r.id = p.resolved_by
		WHERE p.resolved_by IS NOT NULL AND (r.id IS NULL OR r.state <> 'visible' OR r.kind <> 'resolution' OR NOT r.verified OR r.in_reply_to <> p.id) LIMIT 1`},
	{"a profile that says otherwise than its attention board", `SELECT p.handle FROM profile p LEFT JOIN attention_board b ON b.handle = p.handle
		WHERE p.attention <> COALESCE(b.open, FALSE) OR b.listed AND NOT (b.open AND p.listed) LIMIT 1`},
	{"a sum of reviews that is wrong", `SELECT s.agent FROM feedback_sum s LEFT JOIN
		(SELECT agent, count(*) AS n, sum(rating) AS stars, ` + sumOf("paid-provider", "p") + `, ` + sumOf("paid-confirmed", "c") + `
			FROM feedback WHERE state = 'counted' GROUP BY agent) f ON f.agent = s.agent
		WHERE s.reviews <> COALESCE(f.n, 0) OR s.stars <> COALESCE(f.stars, 0) OR s.provider_reviews <> COALESCE(f.pn, 0)
			OR s.provider_stars <> COALESCE(f.ps, 0) OR s.confirmed_reviews <> COALESCE(f.cn, 0) OR s.confirmed_stars <> COALESCE(f.cs, 0)
		UNION ALL SELECT f.agent FROM feedback f LEFT JOIN feedback_sum s ON s.agent = f.agent WHERE f.state = 'counted' AND s.agent IS NULL LIMIT 1`},
	{"a reputation that is not the sum of the reviews", `SELECT profile.handle FROM profile
		WHERE ` + otherThanShown() + ` LIMIT 1`},
	{"a counted review whose buyer is not known, or the buyer of one that does not count", `SELECT b.feedback FROM review_buyer b
		LEFT JOIN feedback f ON f.id = b.feedback AND f.agent = b.agent AND f.at = b.at AND f.state = 'counted' WHERE f.id IS NULL LIMIT 1`},
	{"a counted review of a former owner", `SELECT f.id FROM feedback f JOIN feedback_agent a ON a.agent = f.agent AND f.place < a.since
		WHERE f.state = 'counted' LIMIT 1`},
	{"reviews of a profile whose owner is another than theirs", `SELECT e.handle FROM enrolment e JOIN feedback_agent a ON a.agent = e.erc8004 AND a.block IS NULL
		WHERE e.ended_at IS NULL AND e.owner <> '' AND a.owner <> e.owner LIMIT 1`},
	{"an order or payment that no counted review uses", `SELECT c.name FROM feedback_proof c LEFT JOIN feedback f ON f.id = c.feedback AND f.state = 'counted'
		WHERE f.id IS NULL LIMIT 1`},
	{"a counted review without its order or payment", `SELECT f.id FROM feedback f LEFT JOIN feedback_proof c ON c.name = f.proof AND c.feedback = f.id
		WHERE f.state = 'counted' AND f.proof <> '' AND c.name IS NULL LIMIT 1`},
	{"order receipts with a gap, or of no profile", `SELECT r.handle FROM order_receipt r LEFT JOIN profile p ON p.handle = r.handle
		GROUP BY r.handle HAVING max(r.n) - min(r.n) + 1 <> count(*) OR count(p.handle) <> count(*) LIMIT 1`},
	{"meeting rules without a profile", `SELECT r.handle FROM meeting_rules r LEFT JOIN profile p ON p.handle = r.handle WHERE p.handle IS NULL LIMIT 1`},
}

// sumOf counts the reviews that count for a reason, and their ratings, as name and n or s.
func sumOf(reason, name string) string {
	of := `sum(CASE WHEN reason = '` + reason + `' THEN `
	return of + `1 ELSE 0 END) AS ` + name + `n, ` + of + `rating ELSE 0 END) AS ` + name + `s`
}

// otherThanShown selects profiles whose reputation is not that of their reviews.
func otherThanShown() string {
	var parts []string
	for _, part := range sumParts {
		parts = append(parts, `profile.`+part+` <> `+shownOf(part, "profile.erc8004", "profile.handle"))
	}
	return strings.Join(parts, " OR ")
}

// waitingInvariant is about a table that only PostgreSQL has.
var waitingInvariant = invariant{"a live log entry that waits for its number and whose post is missing or deleted",
	`SELECT w.object_id FROM log_waiting w LEFT JOIN post p ON p.id = w.object_id
		WHERE NOT w.redacted AND w.kind <> 'delete' AND w.object_id LIKE 'post~_%' ESCAPE '~' AND (p.id IS NULL OR p.state = 'deleted') LIMIT 1`}

// Check verifies that the database is consistent: the file itself on SQLite, and
// the invariants of its rows. It reads everything; the error names the violation.
func (db *DB) Check(ctx context.Context) error {
	return db.Read(ctx, func(ctx context.Context, tx *Tx) error {
		var wrong []error
		if db.engine == engineSQLite {
			if err := tx.refreshTextIndexes(ctx); err != nil {
				return fmt.Errorf("check: %w", err)
			}
			found, err := list[string](ctx, tx, `PRAGMA integrity_check(20)`)
			if err != nil {
				return fmt.Errorf("check: %w", err)
			}
			if text := strings.Join(found, "; "); text != "ok" {
				wrong = append(wrong, errors.New(text))
			}
		}
		all := slices.Concat(invariants, bidInvariants)
		if db.engine == enginePostgres {
			all = append(all, waitingInvariant)
		}
		for _, i := range all {
			var what string
			switch err := tx.row(ctx, i.query).Scan(&what); err {
			case ErrNotFound:
			case nil:
				wrong = append(wrong, fmt.Errorf("%s: %s", i.name, what))
			default:
				return fmt.Errorf("check: %s: %w", i.name, err)
			}
		}
		return errors.Join(wrong...)
	})
}

// refreshTextIndexes opens each text index once. FTS5 caches the layout of an index
// in the connection and validates it when a search begins, but not in an integrity
// check: writes of other connections would be reported as corruption.
func (tx *Tx) refreshTextIndexes(ctx context.Context) error {
	names, err := list[string](ctx, tx, `SELECT name FROM sqlite_schema WHERE type = 'table' AND sql LIKE 'CREATE VIRTUAL TABLE%USING fts5%'`)
	if err != nil {
		return err
	}
	for _, name := range names {
		var rowid int64
		if err := tx.row(ctx, `SELECT rowid FROM `+name+`('a') LIMIT 1`).Scan(&rowid); err != nil && err != ErrNotFound {
			return err
		}
	}
	return nil
}
