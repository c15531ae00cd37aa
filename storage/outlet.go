package storage

import (
	"context"
	"time"

	"stoa/protocol"
)

// An Outlet is a reader of the log of a board, or of an agent, that we deliver to: one cursor for each
// log and (shared) inbox.
type Outlet struct {
	Board, Inbox, Host string
	Stoa               bool
	Cursor             int64 // number of the last entry delivered
	Failures           int   // in a row
	NextAt             time.Time
	State              OutletState
	LastError          string
	LastOK             time.Time
}

// An OutletState is the result of an outlet's recent deliveries.
type OutletState string

const (
	OutletActive OutletState = "active"
	OutletSlow   OutletState = "slow" // failing; retried with growing pauses
	OutletDead   OutletState = "dead" // failing for a long time; retried rarely
)

var (
	outletTable   = tableOf[Outlet]("outlet")
	outletColumns = outletTable.columnsOf("o.")
)

// Outlets reads and writes outlets: how far each follower's inbox has read the log
// of a board.
type Outlets struct{ tx *Tx }

func (tx *Tx) Outlets() Outlets { return Outlets{tx} }

// Put creates an outlet whose first entry is the one after Cursor. An
// existing one keeps its cursor and state; only Host and Stoa are updated.
func (out Outlets) Put(ctx context.Context, o Outlet) error {
	if o.State == "" {
		o.State = OutletActive
	}
	if err := out.tx.exec(ctx, wakeLog, o.Board); err != nil { // an entry may be added since its cursor was chosen
		return err
	}
	return outletTable.put(ctx, out.tx, &o, "board, inbox", "host", "stoa")
}

// ByInbox returns an outlet; ErrNotFound when there is none.
func (out Outlets) ByInbox(ctx context.Context, board, inbox string) (*Outlet, error) {
	return orNil(find[Outlet](ctx, out.tx, `SELECT `+outletColumns+` FROM outlet o WHERE o.board = ? AND o.inbox = ?`, board, inbox))
}

// FollowingHost reports whether a host that follows a board is a stoa node;
// ErrNotFound when it does not follow.
func (out Outlets) FollowingHost(ctx context.Context, board, host string) (bool, error) {
	return find[bool](ctx, out.tx, `SELECT stoa FROM outlet WHERE host = ? AND board = ? ORDER BY stoa DESC LIMIT 1`, host, board)
}

// Inboxes returns the inboxes that read a log and are not given up, after one, in order.
func (out Outlets) Inboxes(ctx context.Context, board, after string, limit int) ([]string, error) {
	return list[string](ctx, out.tx, `SELECT inbox FROM outlet WHERE board = ? AND inbox > ? AND state <> 'dead' ORDER BY inbox LIMIT ?`, board, after, limit)
}

// Delete deletes an outlet; it is no error if there is none.
func (out Outlets) Delete(ctx context.Context, board, inbox string) error {
	return out.tx.exec(ctx, `DELETE FROM outlet WHERE board = ? AND inbox = ?`, board, inbox)
}

// Failing outlets have a time for the next attempt and are always behind the log;
// the others are due whenever they are behind. Each kind has its index, so that
// neither those that wait nor those that are complete are read.
var (
	failingOutlets = `SELECT ` + outletColumns + ` FROM outlet o CROSS JOIN stream s
	WHERE s.board = o.board AND o.cursor < s.head AND o.state <> 'active' AND o.next_at <= ? AND o.lease_until <= ? ORDER BY o.next_at LIMIT ?`
	behindOutlets = `SELECT ` + outletColumns + ` FROM outlet o WHERE o.board = ? AND o.state = 'active'
	AND o.cursor < (SELECT s.head FROM stream s WHERE s.board = ?) AND o.next_at <= ? AND o.lease_until <= ? ORDER BY o.cursor LIMIT ?`
)

// ClaimOutlets leases up to n due outlets to the owner, of them at most that many
// failing ones: behind the head of their board and not before NextAt. A lease ends with
// Outlets.Advance, FailOutlet, ReleaseOutlets, or by expiry.
func (db *DB) ClaimOutlets(ctx context.Context, owner string, n, failing int, lease time.Duration) (outlets []Outlet, err error) {
	err = db.Write(ctx, func(ctx context.Context, tx *Tx) error {
		if outlets, err = tx.Outlets().due(ctx, n, failing); err != nil {
			return err
		}
		for _, o := range outlets {
			if _, err := tx.write(ctx, `UPDATE outlet SET lease_until = ?, owner = ? WHERE board = ? AND inbox = ?`,
				millis(tx.Now.Add(lease)), owner, o.Board, o.Inbox); err != nil {
				return err
			}
		}
		return nil
	})
	return outlets, err
}

// due returns up to n outlets to deliver to, of them at most that many failing; of the
// others those that are furthest behind.
func (out Outlets) due(ctx context.Context, n, failing int) ([]Outlet, error) {
	now, lock := millis(out.tx.Now), out.tx.db.engine.SkipLocked("o")
	outlets, err := list[Outlet](ctx, out.tx, failingOutlets+lock, now, now, min(n, failing))
	if err != nil {
		return nil, err
	}
	logs, err := list[dueLog](ctx, out.tx, dueLogs)
	if err != nil {
		return nil, err
	}
	for _, log := range logs {
		if len(outlets) >= n {
			break
		}
		behind, err := list[Outlet](ctx, out.tx, behindOutlets+lock, log.Board, log.Board, now, now, n-len(outlets))
		if err == nil && len(behind) == 0 {
			err = out.rest(ctx, log)
		}
		if err != nil {
			return nil, err
		}
		outlets = append(outlets, behind...)
	}
	return outlets, nil
}

// A dueLog is a log of which an active outlet may be behind: an entry was added since it was found that none is.
type dueLog struct {
	Board string
	Head  int64
}

// dueLogs reads no log whose outlets are complete: there may be as many as agents that are followed.
const (
	dueLogs     = `SELECT board, head FROM stream WHERE due AND id > 0 ORDER BY id LIMIT 1000`
	someBehind  = `SELECT 1 FROM outlet WHERE board = ? AND state = 'active' AND cursor < ? LIMIT 1`
	restLog     = `UPDATE stream SET due = FALSE WHERE board = ?`
	wakeLog     = `UPDATE stream SET due = TRUE WHERE board = ?`
	outletsWait = `UPDATE stream SET due = TRUE WHERE board = ? AND head > ? AND NOT due`
)

// rest marks a log as not due, unless one of its outlets is being delivered to or an entry was added.
func (out Outlets) rest(ctx context.Context, log dueLog) error {
	now, err := find[dueLog](ctx, out.tx, `SELECT board, head FROM stream WHERE board = ?`+out.tx.db.engine.ForUpdate(), log.Board)
	if err != nil || now.Head != log.Head {
		return err
	}
	some, err := out.tx.exists(ctx, someBehind, log.Board, log.Head)
	if err != nil || some {
		return err
	}
	return out.tx.exec(ctx, restLog, log.Board)
}

// ReleaseOutlets ends every lease of the owner, for a process that stops.
func (db *DB) ReleaseOutlets(ctx context.Context, owner string) error {
	return db.Write(ctx, func(ctx context.Context, tx *Tx) error {
		_, err := tx.write(ctx, `UPDATE outlet SET lease_until = 0, owner = NULL WHERE owner = ?`, owner)
		return err
	})
}

const freeOutlet = `, lease_until = 0, owner = NULL WHERE board = ? AND inbox = ?`

// Advance records that all entries up to cursor were delivered: the cursor only
// moves forward, failures are reset and the lease ends. ErrNotFound when there is
// no such outlet.
func (out Outlets) Advance(ctx context.Context, board, inbox string, cursor int64) error {
	if err := out.tx.exec(ctx, outletsWait, board, cursor); err != nil { // one that failed was not waited for
		return err
	}
	return one(out.tx.write(ctx, `UPDATE outlet SET cursor = CASE WHEN cursor < ? THEN ? ELSE cursor END,
		failures = 0, next_at = 0, state = 'active', last_error = '', last_ok = ?`+freeOutlet, cursor, cursor, millis(out.tx.Now), board, inbox))
}

// FailOutlet records a failed delivery, ends the lease and schedules the retry
// after a pause.
func (db *DB) FailOutlet(ctx context.Context, board, inbox string, pause time.Duration, errText string, state OutletState) error {
	return db.Write(ctx, func(ctx context.Context, tx *Tx) error {
		return one(tx.write(ctx, `UPDATE outlet SET failures = failures + 1, next_at = ?, last_error = ?, state = ?`+freeOutlet,
			millis(tx.Now.Add(pause)), errText, string(state), board, inbox))
	})
}

// List returns the outlets of a board, by inbox.
func (out Outlets) List(ctx context.Context, board string, limit int, after string) (protocol.Page[Outlet], error) {
	limit = bounded(limit)
	const listing = "outlets"
	from, err := longPosition(listing, after)
	if err != nil {
		return protocol.Page[Outlet]{}, err
	}
	outlets, err := list[Outlet](ctx, out.tx, `SELECT `+outletColumns+` FROM outlet o WHERE o.board = ? AND o.inbox > ? ORDER BY o.inbox LIMIT ?`,
		board, from, limit+1)
	return page(outlets, limit, listing, func(o Outlet) string { return o.Inbox }), err
}

// An OutletStat counts the outlets of a board in one state.
type OutletStat struct {
	State OutletState
	Count int   // up to 10,000
	Lag   int64 // entries not yet delivered to the one furthest behind
}

// Uses the index outlet_state, by board and state; the one furthest behind comes
// first.
const (
	countOutlets = `SELECT count(*) FROM (SELECT 1 FROM outlet WHERE board = ? AND state = ? LIMIT ?) r`
	outletLag    = `SELECT s.head - o.cursor FROM outlet o CROSS JOIN stream s WHERE o.board = ? AND o.state = ? AND s.board = ? ORDER BY o.cursor LIMIT 1`
)

// Stats counts the outlets of each board by state, without zero counts.
func (out Outlets) Stats(ctx context.Context) ([]OutletStat, error) {
	boards, err := out.tx.Logs().boards(ctx)
	if err != nil {
		return nil, err
	}
	var stats []OutletStat
	for _, board := range boards {
		for _, state := range []OutletState{OutletActive, OutletSlow, OutletDead} {
			st := OutletStat{State: state}
			if err := out.tx.row(ctx, countOutlets, board, string(state), mostCounted).Scan(&st.Count); err != nil {
				return nil, err
			}
			if st.Count == 0 {
				continue
			}
			if err := out.tx.row(ctx, outletLag, board, string(state), board).Scan(&st.Lag); err != nil {
				return nil, err
			}
			stats = append(stats, st)
		}
	}
	return stats, nil
}

// WakeHost makes the outlets of a host due now: the host has sent a request.
func (out Outlets) WakeHost(ctx context.Context, host string) error {
	n, err := out.tx.write(ctx, `UPDATE outlet SET next_at = 0 WHERE host = ? AND next_at > ?`, host, millis(out.tx.Now))
	if n > 0 {
		out.tx.wake(TopicLog)
	}
	return err
}
