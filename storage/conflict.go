package storage

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// A Taken is an entry of a followed log that was applied here.
type Taken struct {
	Seq   int64
	Hash  string // see activity.EntryHash; "" is not known
	Entry []byte // as received
}

// A takenRow is a row of log_taken.
type takenRow struct {
	Board string
	Taken
}

var takenTable = tableOf[takenRow]("log_taken")

// A ConflictKind says how a log contradicts what was taken of it.
type ConflictKind string

const (
	ConflictFork     ConflictKind = "fork"     // a number that was taken has another entry now
	ConflictFallback ConflictKind = "fallback" // the log ends before the last entry that was taken
	ConflictTree     ConflictKind = "tree"     // two signed trees contradict each other, or an entry is not the one in the tree
)

// A Conflict is that a followed log contradicts, within one epoch, what was taken of
// it. Ours and Theirs are hashes of entries: of the number Seq at a fork; at a
// fallback of the last entry taken, whose number is Seq, and of the log's last one. Of trees they are the roots, and Seq is the size of ours; or what the
// tree has of the entry Seq, and what the entry has.
type Conflict struct {
	Board              string // the followed board; in a report the host that reports
	Kind               ConflictKind
	Epoch              string
	Seq                int64
	Ours, Theirs       string // "" is not known
	OursDoc, TheirsDoc []byte // entries, signed heads or checkpoints, as received; nil in a report
	At                 time.Time
}

var conflictTable = tableOf[Conflict]("log_conflict")

// Again is the epoch of a subscription whose log is read from its beginning because
// an operator decided so.
const Again = "again"

// ListTaken returns the entries that the next reading of a board's log is compared
// with, in order, without their text: the last one, and those that were pushed since the log
// was read.
func (ss Subscriptions) ListTaken(ctx context.Context, board string) ([]Taken, error) {
	rows, err := ss.tx.query(ctx, logTaken, board)
	return collect(rows, err, func(s scanner) (t Taken, err error) { return t, s.Scan(&t.Seq, &t.Hash) })
}

const logTaken = `SELECT seq, hash FROM log_taken WHERE board = ? ORDER BY seq`

// TakenEntry returns an entry of ListTaken as it was received.
func (ss Subscriptions) TakenEntry(ctx context.Context, board string, seq int64) ([]byte, error) {
	return find[[]byte](ctx, ss.tx, `SELECT entry FROM log_taken WHERE board = ? AND seq = ?`, board, seq)
}

// Take stores an entry that was applied, for the next reading of the log.
func (ss Subscriptions) Take(ctx context.Context, board string, t Taken) error {
	return takenTable.put(ctx, ss.tx, &takenRow{board, t}, "board, seq")
}

// Compared deletes the entries of a board before a number, which were read again and
// are the same.
func (ss Subscriptions) Compared(ctx context.Context, board string, before int64) error {
	return ss.tx.exec(ctx, `DELETE FROM log_taken WHERE board = ? AND seq < ?`, board, before)
}

// NoteConflict stores a conflict, unless there is one of the board already.
func (ss Subscriptions) NoteConflict(ctx context.Context, c Conflict) (fresh bool, err error) {
	c.At = ss.tx.Now
	return conflictTable.add(ctx, ss.tx, &c)
}

// Conflict returns the conflict of a followed board; ErrNotFound when there is none.
func (ss Subscriptions) Conflict(ctx context.Context, board string) (*Conflict, error) {
	return orNil(find[Conflict](ctx, ss.tx, conflictTable.from+`WHERE board = ?`, board))
}

// HasConflict reports whether a followed board has a conflict.
func (ss Subscriptions) HasConflict(ctx context.Context, board string) (bool, error) {
	var n int
	err := ss.tx.row(ctx, `SELECT count(*) FROM log_conflict WHERE board = ?`, board).Scan(&n)
	return n > 0, err
}

// ListConflicts returns the conflicts of followed boards, by board.
func (ss Subscriptions) ListConflicts(ctx context.Context) ([]Conflict, error) {
	return list[Conflict](ctx, ss.tx, `SELECT board, kind, epoch, seq, ours, theirs, at FROM log_conflict ORDER BY board LIMIT ?`, maxSubscriptions)
}

// Reread begins at the start of a board's log, whatever was taken of it, and makes the
// subscription due now. News and shops of its node are shown again when they are read. It is false when the board is not followed.
func (ss Subscriptions) Reread(ctx context.Context, board string) (bool, error) {
	s, err := ss.ByBoard(ctx, board)
	if err != nil || s.State != SubscriptionAccepted {
		return false, orNothing(err)
	}
	if ok, err := ss.Reset(ctx, board, s.Epoch, Again); err != nil || !ok {
		return false, err
	}
	if err := ss.tx.FeedOrigins().set(ctx, `host = ?`, s.Host, "shown", "hidden"); err != nil {
		return false, err
	}
	if err := ss.tx.RemoteAgents().DropHost(ctx, s.Host); err != nil {
		return false, err
	}
	return ss.Hasten(ctx, board)
}

// ForgetArgs are the arguments of a forget job.
type ForgetArgs struct {
	Board string    `json:"board"`
	Since time.Time `json:"since"`
	After int64     `json:"after,omitempty"` // place of the last post that was looked at
	Tries int       `json:"tries,omitempty"`
}

// forgetTries is how often a forget job is tried.
const forgetTries = 20

// EnqueueForget has the posts of a board's node deleted that were written since a time and are not there any more. A
// try that failed is repeated after a pause; it is given up after 20.
func (ss Subscriptions) EnqueueForget(ctx context.Context, a ForgetArgs) error {
	if a.Tries >= forgetTries {
		return nil
	}
	args, err := json.Marshal(a)
	if err != nil {
		return err
	}
	return ss.tx.Enqueue(ctx, Job{Kind: ForgetJob, Lane: "forget:" + a.Board, Dedupe: fmt.Sprint(ForgetJob, " ", a.Board, " ", a.After, " ", a.Tries), Args: args,
		RunAt: ss.tx.Now.Add(time.Duration(a.Tries) * time.Minute)})
}

const postsOfNode = `SELECT seq, uri FROM post WHERE state = 'visible' AND node IS NOT NULL AND seq > ? AND node = ? AND board = ? ORDER BY seq LIMIT ?`

// A PostToForget is a visible post that a forget job has to look at: its ActivityPub id, and its place for ForgetArgs.After.
type PostToForget struct {
	Seq int64
	URI string
}

// PostsToForget returns up to 50 posts that a forget job has to look at next; none at the end.
func (ss Subscriptions) PostsToForget(ctx context.Context, a ForgetArgs, host string) ([]PostToForget, error) {
	return list[PostToForget](ctx, ss.tx, postsOfNode, max(a.After, seqAt(a.Since)), host, a.Board, 50)
}

// forget deletes what the next reading of a board's log would be compared with.
func (ss Subscriptions) forget(ctx context.Context, board string) error {
	if _, err := ss.tx.write(ctx, `DELETE FROM log_taken WHERE board = ?`, board); err != nil {
		return err
	}
	if _, err := ss.tx.write(ctx, `DELETE FROM followed_tree WHERE board = ?`, board); err != nil {
		return err
	}
	return ss.tx.exec(ctx, `DELETE FROM log_conflict WHERE board = ?`, board)
}

// Limits of the reports of other nodes about this node's log.
const (
	maxLogReports = 100
	logReportAge  = 30 * 24 * time.Hour
)

// Report stores what a host that follows this node reports of its log, in place of an
// earlier report of the host. With 100 reports stored, others are dropped.
func (ls Logs) Report(ctx context.Context, c Conflict) error {
	if err := ls.tx.dirty(); err != nil {
		return err
	}
	var others int
	if err := ls.tx.row(ctx, `SELECT count(*) FROM log_report WHERE host <> ?`, c.Board).Scan(&others); err != nil || others >= maxLogReports {
		return err
	}
	return ls.tx.exec(ctx, `INSERT INTO log_report (host, kind, epoch, seq, ours, theirs, at, until) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (host) DO UPDATE SET kind = EXCLUDED.kind, epoch = EXCLUDED.epoch, seq = EXCLUDED.seq, ours = EXCLUDED.ours,
			theirs = EXCLUDED.theirs, at = EXCLUDED.at, until = EXCLUDED.until`,
		c.Board, string(c.Kind), c.Epoch, c.Seq, c.Ours, c.Theirs, millis(ls.tx.Now), millis(ls.tx.Now.Add(logReportAge)))
}

// Reports returns what hosts that follow this node report of its log, by host.
func (ls Logs) Reports(ctx context.Context) ([]Conflict, error) {
	return list[Conflict](ctx, ls.tx, `SELECT host AS board, kind, epoch, seq, ours, theirs, at FROM log_report ORDER BY host`)
}
