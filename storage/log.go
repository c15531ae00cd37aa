package storage

import (
	"context"
	"fmt"
	"strings"
	"time"

	"stoa/protocol"
	"stoa/protocol/trace"
	"stoa/storage/commit"
)

// A LogEntry is one event of a board, for the nodes that follow it.
type LogEntry struct {
	Board    string
	Seq      int64 // 1, 2, 3, … without gaps, in the order of commits
	Kind     LogKind
	ObjectID string // post or bid id
	Activity []byte // as received, for relayed foreign activities; nil for local ones, which are built from the row
	At       time.Time
	Redacted bool // its object was deleted; Activity is nil

	Request string // id of the request that caused it; "" for none. No peer is told
	Trace   []byte // the span of that request, as [trace.Context.Bytes]; nil for none
}

var (
	logInsert = insert{Into: `INSERT INTO log (stream, seq, kind, object_id, at, redacted, activity, request, trace) VALUES `,
		Row: `(?, ?, ?, ?, ?, ?, ?, NULLIF(?, ''), ?)`}
	waitingInsert = insert{Into: `INSERT INTO log_waiting (board, kind, object_id, at, redacted, activity, request, trace) VALUES `,
		Row: `(?, ?, ?, ?, ?, ?, NULLIF(?, ''), ?)`}
)

// Logs reads and writes the numbered logs of boards.
type Logs struct{ tx *Tx }

func (tx *Tx) Logs() Logs { return Logs{tx} }

// Append adds the event to the board's log, which is created with its first entry.
// On SQLite the entry has its number when it is written; on PostgreSQL it gets its
// number, and can be read, some milliseconds after the commit (number.go).
func (ls Logs) Append(ctx context.Context, board string, kind LogKind, objectID string, activity []byte) error {
	if !ls.tx.writes() {
		return ErrReadOnly
	}
	ls.tx.appended(TopicLog)
	request, cause := protocol.RequestID(ctx), blob(trace.Cause(ctx).Bytes())
	if ls.tx.db.engine == enginePostgres {
		return ls.tx.hold(heldLog, board, string(kind), objectID, millis(ls.tx.Now), false, blob(activity), request, cause)
	}
	return ls.tx.hold(heldLog, board, nil, string(kind), objectID, millis(ls.tx.Now), false, blob(activity), request, cause)
}

const (
	raiseHead = `UPDATE stream SET head = head + ?, due = TRUE WHERE board = ? RETURNING id, head`
	newStream = `INSERT INTO stream (board, epoch, head) VALUES (?, ?, 0) ON CONFLICT DO NOTHING`
)

// numberLog gives the first n entries that are held back the next numbers of their
// boards. SQLite has one writer, so the numbers are final when it commits.
func numberLog(ctx context.Context, tx *commit.Tx, r *commit.Rows, n int) error {
	var boards []string // in the order of their first entries
	entries := map[string]int64{}
	for i := range n {
		board := r.Row(i)[0].(string)
		if entries[board]++; entries[board] == 1 {
			boards = append(boards, board)
		}
	}
	for _, board := range boards {
		count := entries[board]
		var id, head int64
		err := commit.First(tx.QueryRaw(ctx, raiseHead, count, board)).Scan(&id, &head)
		if err == ErrNotFound {
			if _, err = tx.ExecRaw(ctx, newStream, board, newEpoch(tx.Now)); err == nil {
				err = commit.First(tx.QueryRaw(ctx, raiseHead, count, board)).Scan(&id, &head)
			}
		}
		if err != nil {
			return fmt.Errorf("log of %s: %w", board, err)
		}
		seq := head - count
		for i := range n {
			if row := r.Row(i); row[0] == any(board) {
				seq++
				row[0], row[1] = id, seq
			}
		}
	}
	return nil
}

// newEpoch returns a name for the time of a log between two restores from a backup.
func newEpoch(now time.Time) string {
	_, id, _ := strings.Cut(protocol.NewID("epoch", now), "_")
	return id
}

// Head returns the epoch of a board's log and its last number. A log that does not
// exist is created when the transaction may write; a read returns ErrNotFound.
func (ls Logs) Head(ctx context.Context, board string) (epoch string, head int64, err error) {
	const text = `SELECT epoch, head FROM stream WHERE board = ?`
	err = ls.tx.row(ctx, text, board).Scan(&epoch, &head)
	if err != ErrNotFound || !ls.tx.writes() {
		return epoch, head, err
	}
	if _, err := ls.tx.write(ctx, newStream, board, newEpoch(ls.tx.Now)); err != nil {
		return "", 0, err
	}
	err = ls.tx.row(ctx, text, board).Scan(&epoch, &head)
	return epoch, head, err
}

// maxLogPage bounds a page of the log.
const maxLogPage = 1000

// After returns up to limit entries after a number, in order, at most 1000.
func (ls Logs) After(ctx context.Context, board string, after int64, limit int) ([]LogEntry, error) {
	rows, err := ls.tx.query(ctx, `SELECT seq, kind, object_id, at, redacted, activity, COALESCE(request, ''), trace FROM log
		WHERE stream = (SELECT id FROM stream WHERE board = ?) AND seq > ? ORDER BY seq LIMIT ?`, board, after, min(max(limit, 0), maxLogPage))
	return collect(rows, err, func(s scanner) (LogEntry, error) {
		e := LogEntry{Board: board}
		var at int64
		err := s.Scan(&e.Seq, &e.Kind, &e.ObjectID, &at, &e.Redacted, &e.Activity, &e.Request, &e.Trace)
		e.At = moment(at)
		return e, err
	})
}

const boosts = `SELECT seq, at FROM log WHERE object_id = ? AND kind IN ('create', 'restore') AND seq < ? AND stream = (SELECT id FROM stream WHERE board = ?)`

// LastBoost returns the number and time of the last entry before a number that shows
// an object, or zero when there is no such entry.
func (ls Logs) LastBoost(ctx context.Context, board, objectID string, before int64) (last LogEntry, err error) {
	rows, err := ls.tx.query(ctx, boosts, objectID, before, board)
	_, err = collect(rows, err, func(s scanner) (none struct{}, err error) {
		var seq, at int64
		if err = s.Scan(&seq, &at); seq > last.Seq {
			last = LogEntry{Board: board, Seq: seq, ObjectID: objectID, At: moment(at)}
		}
		return none, err
	})
	return last, err
}

const writtenEntries = `SELECT seq, kind, at, redacted, activity FROM log
	WHERE object_id = ? AND kind IN ('create', 'update') AND stream = (SELECT id FROM stream WHERE board = ?)`

// Written returns the last entry with what the author of an object wrote; ErrNotFound when there is none.
func (ls Logs) Written(ctx context.Context, board, objectID string) (last LogEntry, err error) {
	rows, err := ls.tx.query(ctx, writtenEntries, objectID, board)
	_, err = collect(rows, err, func(s scanner) (none struct{}, err error) {
		e := LogEntry{Board: board, ObjectID: objectID}
		var at int64
		if err = s.Scan(&e.Seq, &e.Kind, &at, &e.Redacted, &e.Activity); e.Seq > last.Seq {
			e.At = moment(at)
			last = e
		}
		return none, err
	})
	if err == nil && last.Seq == 0 {
		err = ErrNotFound
	}
	return last, err
}

// logChanged begins with the entries after a number, because they are few.
const logChanged = `SELECT l.seq FROM log c JOIN log l ON l.object_id = c.object_id AND l.stream = c.stream
	WHERE c.stream = (SELECT id FROM stream WHERE board = ?) AND c.seq > ? AND c.seq <= ? AND c.kind <> 'create'`

// Changed returns the numbers of entries whose posts were deleted, hidden or
// restored by the entries after one number, up to another.
func (ls Logs) Changed(ctx context.Context, board string, after, upTo int64) ([]int64, error) {
	rows, err := ls.tx.query(ctx, logChanged, board, after, upTo)
	return collect(rows, err, scanInt)
}

// ShopChanged reports whether one of the entries after a number, up to another, hid or restored all news of a shop.
func (ls Logs) ShopChanged(ctx context.Context, board string, after, upTo int64) (bool, error) {
	var n int
	err := ls.tx.row(ctx, logShopChanged, board, after, upTo).Scan(&n)
	return n > 0, err
}

const logShopChanged = `SELECT count(*) FROM (SELECT 1 FROM log WHERE stream = (SELECT id FROM stream WHERE board = ?) AND seq > ? AND seq <= ?
	AND kind IN ('hide', 'restore') AND object_id LIKE '@%' LIMIT 1) r`

const (
	redact        = ` SET redacted = TRUE, activity = NULL, request = NULL, trace = NULL WHERE object_id = ? AND kind <> 'delete' AND `
	redactLog     = `UPDATE log` + redact + `stream = (SELECT id FROM stream WHERE board = ?)`
	redactWaiting = `UPDATE log_waiting` + redact + `board = ?`
)

// Redact removes the activities of a deleted object from a board's log. The
// entries remain as tombstones, so that the numbers have no gap, and their leaves in the
// tree remain without salt. Entries of kind delete are not changed.
func (ls Logs) Redact(ctx context.Context, board, objectID string) error {
	if err := ls.tx.dirty(); err != nil {
		return err
	}
	// The waiting entries come first: when one is being numbered, this statement waits, and the next one finds it in log.
	if ls.tx.db.engine == enginePostgres {
		if _, err := ls.tx.write(ctx, redactWaiting, objectID, board); err != nil {
			return err
		}
	}
	if _, err := ls.tx.write(ctx, redactLog, objectID, board); err != nil {
		return err
	}
	return ls.tx.exec(ctx, unsaltBoard, board, objectID, board)
}

// NewEpoch starts a new epoch of a board's log, after a restore from a backup. It
// informs the followers that the log may have lost entries, so they read it again.
func (ls Logs) NewEpoch(ctx context.Context, board string) (epoch string, err error) {
	if err := ls.tx.dirty(); err != nil {
		return "", err
	}
	if _, _, err := ls.Head(ctx, board); err != nil {
		return "", err
	}
	epoch = newEpoch(ls.tx.Now)
	if _, err = ls.tx.write(ctx, `UPDATE stream SET epoch = ? WHERE board = ?`, epoch, board); err != nil {
		return "", err
	}
	if _, err = ls.tx.write(ctx, `DELETE FROM log_report`); err != nil { // they are about the epoch before
		return "", err
	}
	return epoch, ls.tx.skipNumbers(ctx)
}

// OpenAgent returns the last number of the log of an agent's posts, which it begins if there is none. The log's Board is the agent's
// actor.
func (ls Logs) OpenAgent(ctx context.Context, actor string) (head int64, err error) {
	err = ls.tx.exec(ctx, `INSERT INTO stream (board, epoch, head, of_agent) VALUES (?, ?, 0, TRUE) ON CONFLICT DO NOTHING`, actor, newEpoch(ls.tx.Now))
	if err == nil {
		_, head, err = ls.Head(ctx, actor)
	}
	return head, err
}

const hasFollowers = `SELECT n FROM follower_count WHERE local_actor = ? AND n > 0`

// AppendAgent adds the event of a post to the log of its author, an agent of this node, if it has followers. The entries of a deleted
// post are redacted in any case.
func (ls Logs) AppendAgent(ctx context.Context, actor string, kind LogKind, postID string) error {
	if kind == LogDelete {
		if err := ls.Redact(ctx, actor, postID); err != nil {
			return err
		}
	}
	var n int
	if err := ls.tx.lookup(ctx, hasFollowers, actor).Scan(&n); err != nil {
		return orNothing(err)
	}
	return ls.Append(ctx, actor, kind, postID, nil)
}

// boards returns every board that has a log here; the logs of agents are not boards.
func (ls Logs) boards(ctx context.Context) ([]string, error) {
	rows, err := ls.tx.query(ctx, `SELECT board FROM stream WHERE NOT of_agent AND id > 0 ORDER BY id`)
	return collect(rows, err, func(s scanner) (board string, err error) {
		err = s.Scan(&board)
		return board, err
	})
}
