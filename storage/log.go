package storage

import (
	"context"
	"fmt"
	"strings"
	"time"

	"stoa/protocol"
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
}

var (
	logInsert     = insert{into: `INSERT INTO log (stream, seq, kind, object_id, at, redacted, activity) VALUES `, row: `(?, ?, ?, ?, ?, ?, ?)`}
	waitingInsert = insert{into: `INSERT INTO log_waiting (board, kind, object_id, at, redacted, activity) VALUES `, row: `(?, ?, ?, ?, ?, ?)`}
)

// AppendLog adds the event to the board's log, which is created with its first
// entry. On SQLite the entry has its number when it is written; on PostgreSQL it
// gets its number, and can be read, some milliseconds after the commit (number.go).
func (tx *Tx) AppendLog(_ context.Context, board string, kind LogKind, objectID string, activity []byte) error {
	b := tx.batch
	if b == nil {
		return ErrReadOnly
	}
	b.appended(TopicLog)
	if tx.db.engine == enginePostgres {
		b.log.add(board, string(kind), objectID, millis(tx.Now), false, blob(activity))
	} else {
		b.log.add(board, nil, string(kind), objectID, millis(tx.Now), false, blob(activity))
	}
	return nil
}

const (
	raiseHead = `UPDATE stream SET head = head + ? WHERE board = ? RETURNING id, head`
	newStream = `INSERT INTO stream (board, epoch, head) VALUES (?, ?, 0) ON CONFLICT DO NOTHING`
)

// numberLog gives the first n entries that are held back the next numbers of their
// boards. SQLite has one writer, so the numbers are final when it commits.
func (b *batch) numberLog(ctx context.Context, n int) error {
	var boards []string // in the order of their first entries
	entries := map[string]int64{}
	for i := range n {
		board := b.log.args[i*b.log.wide].(string)
		if entries[board]++; entries[board] == 1 {
			boards = append(boards, board)
		}
	}
	for _, board := range boards {
		count := entries[board]
		var id, head int64
		err := first(b.tx.queryUnsettled(ctx, raiseHead, count, board)).Scan(&id, &head)
		if err == ErrNotFound {
			if _, err = b.conn.exec(ctx, newStream, board, newEpoch(b.tx.Now)); err == nil {
				err = first(b.tx.queryUnsettled(ctx, raiseHead, count, board)).Scan(&id, &head)
			}
		}
		if err != nil {
			return fmt.Errorf("log of %s: %w", board, err)
		}
		seq := head - count
		for i := range n {
			if at := i * b.log.wide; b.log.args[at] == any(board) {
				seq++
				b.log.args[at], b.log.args[at+1] = id, seq
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

// LogHead returns the epoch of a board's log and its last number. A log that does
// not exist is created when the transaction may write; a read returns ErrNotFound.
func (tx *Tx) LogHead(ctx context.Context, board string) (epoch string, head int64, err error) {
	const text = `SELECT epoch, head FROM stream WHERE board = ?`
	err = tx.row(ctx, text, board).Scan(&epoch, &head)
	if err != ErrNotFound || tx.batch == nil {
		return epoch, head, err
	}
	if _, err := tx.write(ctx, newStream, board, newEpoch(tx.Now)); err != nil {
		return "", 0, err
	}
	err = tx.row(ctx, text, board).Scan(&epoch, &head)
	return epoch, head, err
}

// maxLogPage bounds a page of the log.
const maxLogPage = 1000

// LogAfter returns up to limit entries after a number, in order, at most 1000.
func (tx *Tx) LogAfter(ctx context.Context, board string, after int64, limit int) ([]LogEntry, error) {
	rows, err := tx.query(ctx, `SELECT seq, kind, object_id, at, redacted, activity FROM log
		WHERE stream = (SELECT id FROM stream WHERE board = ?) AND seq > ? ORDER BY seq LIMIT ?`, board, after, min(max(limit, 0), maxLogPage))
	return collect(rows, err, func(s scanner) (LogEntry, error) {
		e := LogEntry{Board: board}
		var at int64
		err := s.Scan(&e.Seq, &e.Kind, &e.ObjectID, &at, &e.Redacted, &e.Activity)
		e.At = moment(at)
		return e, err
	})
}

const boosts = `SELECT seq, at FROM log WHERE object_id = ? AND kind IN ('create', 'restore') AND seq < ? AND stream = (SELECT id FROM stream WHERE board = ?)`

// LastBoost returns the number and time of the last entry before a number that shows
// an object, or zero when there is no such entry.
func (tx *Tx) LastBoost(ctx context.Context, board, objectID string, before int64) (last LogEntry, err error) {
	rows, err := tx.query(ctx, boosts, objectID, before, board)
	_, err = collect(rows, err, func(s scanner) (none struct{}, err error) {
		var seq, at int64
		if err = s.Scan(&seq, &at); seq > last.Seq {
			last = LogEntry{Board: board, Seq: seq, ObjectID: objectID, At: moment(at)}
		}
		return none, err
	})
	return last, err
}

// logChanged begins with the entries after a number, because they are few.
const logChanged = `SELECT l.seq FROM log c JOIN log l ON l.object_id = c.object_id AND l.stream = c.stream
	WHERE c.stream = (SELECT id FROM stream WHERE board = ?) AND c.seq > ? AND c.seq <= ? AND c.kind <> 'create'`

// LogChanged returns the numbers of entries whose posts were deleted, hidden or
// restored by the entries after one number, up to another.
func (tx *Tx) LogChanged(ctx context.Context, board string, after, upTo int64) ([]int64, error) {
	rows, err := tx.query(ctx, logChanged, board, after, upTo)
	return collect(rows, err, scanInt)
}

const (
	redact        = ` SET redacted = TRUE, activity = NULL WHERE object_id = ? AND kind <> 'delete' AND `
	redactLog     = `UPDATE log` + redact + `stream = (SELECT id FROM stream WHERE board = ?)`
	redactWaiting = `UPDATE log_waiting` + redact + `board = ?`
)

// RedactLog removes the activities of a deleted object from a board's log. The
// entries remain as tombstones, so that the numbers have no gap. Entries of kind
// delete are not changed.
func (tx *Tx) RedactLog(ctx context.Context, board, objectID string) error {
	if err := tx.dirty(); err != nil {
		return err
	}
	// The waiting entries come first: when one is being numbered, this statement waits, and the next one finds it in log.
	if tx.db.engine == enginePostgres {
		if _, err := tx.write(ctx, redactWaiting, objectID, board); err != nil {
			return err
		}
	}
	_, err := tx.write(ctx, redactLog, objectID, board)
	return err
}

// NewEpoch starts a new epoch of a board's log, after a restore from a backup. It
// informs the followers that the log may have lost entries, so they read it again.
func (tx *Tx) NewEpoch(ctx context.Context, board string) (epoch string, err error) {
	if err := tx.dirty(); err != nil {
		return "", err
	}
	if _, _, err := tx.LogHead(ctx, board); err != nil {
		return "", err
	}
	epoch = newEpoch(tx.Now)
	if _, err = tx.write(ctx, `UPDATE stream SET epoch = ? WHERE board = ?`, epoch, board); err != nil {
		return "", err
	}
	return epoch, tx.skipNumbers(ctx)
}

// Boards returns every board that has a log here.
func (tx *Tx) Boards(ctx context.Context) ([]string, error) {
	rows, err := tx.query(ctx, `SELECT board FROM stream ORDER BY id`)
	return collect(rows, err, func(s scanner) (board string, err error) {
		err = s.Scan(&board)
		return board, err
	})
}
