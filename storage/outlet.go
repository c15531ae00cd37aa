package storage

import (
	"context"
	"strings"
	"time"

	"stoa/protocol"
)

// An Outlet is a reader of a board's log that we deliver to: one cursor for
// each board and (shared) inbox.
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

// An OutletState says how an outlet has been doing.
type OutletState string

const (
	OutletActive OutletState = "active"
	OutletSlow   OutletState = "slow" // failing; tried now and then
	OutletDead   OutletState = "dead" // failing for long; probed rarely
)

const outletColumns = `o.board, o.inbox, o.host, o.stoa, o.cursor, o.failures, o.next_at, o.state, o.last_error, o.last_ok`

func scanOutlet(s scanner) (o Outlet, err error) {
	var next, ok int64
	err = s.Scan(&o.Board, &o.Inbox, &o.Host, &o.Stoa, &o.Cursor, &o.Failures, &next, &o.State, &o.LastError, &ok)
	o.NextAt, o.LastOK = moment(next), moment(ok)
	return o, err
}

// PutOutlet makes an outlet that begins behind Cursor. One that is there keeps
// its place and state; only Host and Stoa are renewed.
func (tx *Tx) PutOutlet(ctx context.Context, o Outlet) error {
	if o.State == "" {
		o.State = OutletActive
	}
	_, err := tx.write(ctx, `INSERT INTO outlet (board, inbox, host, stoa, cursor, failures, next_at, state, last_error, last_ok)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (board, inbox) DO UPDATE SET host = EXCLUDED.host, stoa = EXCLUDED.stoa`,
		o.Board, o.Inbox, o.Host, o.Stoa, o.Cursor, o.Failures, millis(o.NextAt), string(o.State), o.LastError, millis(o.LastOK))
	return err
}

// OutletByInbox returns an outlet; ErrNotFound when there is none.
func (tx *Tx) OutletByInbox(ctx context.Context, board, inbox string) (*Outlet, error) {
	rows, err := tx.query(ctx, `SELECT `+outletColumns+` FROM outlet o WHERE o.board = ? AND o.inbox = ?`, board, inbox)
	outlets, err := collect(rows, err, scanOutlet)
	if err != nil {
		return nil, err
	}
	if len(outlets) == 0 {
		return nil, ErrNotFound
	}
	return &outlets[0], nil
}

// FollowingHost reports whether a host that follows a board is a node of our own
// kind; ErrNotFound when it does not follow.
func (tx *Tx) FollowingHost(ctx context.Context, board, host string) (stoa bool, err error) {
	err = tx.row(ctx, `SELECT stoa FROM outlet WHERE host = ? AND board = ? ORDER BY stoa DESC LIMIT 1`, host, board).Scan(&stoa)
	return stoa, err
}

// DeleteOutlet ends an outlet; none to end is no error.
func (tx *Tx) DeleteOutlet(ctx context.Context, board, inbox string) error {
	_, err := tx.write(ctx, `DELETE FROM outlet WHERE board = ? AND inbox = ?`, board, inbox)
	return err
}

// Outlets that fail have a time for the next try and are always behind; the others
// are due whenever they are behind. Each kind has its index, so that neither those
// that wait nor those that have everything are looked at.
const (
	failingOutlets = `SELECT ` + outletColumns + ` FROM outlet o CROSS JOIN stream s
	WHERE s.board = o.board AND o.cursor < s.head AND o.state <> 'active' AND o.next_at <= ? AND o.lease_until <= ? ORDER BY o.next_at`
	behindOutlets = `SELECT ` + outletColumns + ` FROM outlet o WHERE o.board = ? AND o.state = 'active'
	AND o.cursor < (SELECT s.head FROM stream s WHERE s.board = ?) AND o.next_at <= ? AND o.lease_until <= ? ORDER BY o.cursor`
)

// failingShare is the part of a claim that outlets that fail may take up while
// others are behind.
const failingShare = 4

// ClaimOutlets leases up to n outlets that are due to the owner: behind the head
// of their board and not before NextAt. A lease ends with AdvanceOutlet,
// MoveOutlet, FailOutlet, ReleaseOutlets, or by itself.
func (db *DB) ClaimOutlets(ctx context.Context, owner string, n int, lease time.Duration) (outlets []Outlet, err error) {
	err = db.Write(ctx, func(ctx context.Context, tx *Tx) error {
		if outlets, err = tx.dueOutlets(ctx, n); err != nil {
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

// dueOutlets returns up to n outlets to deliver to: of those that fail a quarter
// and what the others leave, of the others those that are behind the furthest.
func (tx *Tx) dueOutlets(ctx context.Context, n int) ([]Outlet, error) {
	now, first := millis(tx.Now), limit(n)+tx.db.engine.skipLocked("o")
	rows, err := tx.query(ctx, failingOutlets+first, now, now)
	failing, err := collect(rows, err, scanOutlet)
	if err != nil {
		return nil, err
	}
	boards, err := tx.Boards(ctx)
	if err != nil {
		return nil, err
	}
	few := min(len(failing), max(1, n/failingShare))
	outlets := failing[:few:few]
	for _, board := range boards {
		if len(outlets) >= n {
			break
		}
		rows, err := tx.query(ctx, behindOutlets+first, board, board, now, now)
		behind, err := collect(rows, err, scanOutlet)
		if err != nil {
			return nil, err
		}
		outlets = append(outlets, behind[:min(len(behind), n-len(outlets))]...)
	}
	return append(outlets, failing[few:few+min(len(failing)-few, max(0, n-len(outlets)))]...), nil
}

// ReleaseOutlets ends every lease of the owner, for a process that stops.
func (db *DB) ReleaseOutlets(ctx context.Context, owner string) error {
	return db.Write(ctx, func(ctx context.Context, tx *Tx) error {
		_, err := tx.write(ctx, `UPDATE outlet SET lease_until = 0, owner = NULL WHERE owner = ?`, owner)
		return err
	})
}

const freeOutlet = `, lease_until = 0, owner = NULL WHERE board = ? AND inbox = ?`

// AdvanceOutlet notes that everything up to cursor was delivered: the cursor
// moves forward only, failures are forgotten and the lease ends. ErrNotFound
// when there is no such outlet.
func (tx *Tx) AdvanceOutlet(ctx context.Context, board, inbox string, cursor int64) error {
	return one(tx.write(ctx, `UPDATE outlet SET cursor = CASE WHEN cursor < ? THEN ? ELSE cursor END,
		failures = 0, next_at = 0, state = 'active', last_error = '', last_ok = ?`+freeOutlet, cursor, cursor, millis(tx.Now), board, inbox))
}

// MoveOutlet sets the cursor to exactly this number, forward or back, and ends
// the lease; it says nothing about success. ErrNotFound when there is no such
// outlet.
func (tx *Tx) MoveOutlet(ctx context.Context, board, inbox string, cursor int64) error {
	return one(tx.write(ctx, `UPDATE outlet SET cursor = ?`+freeOutlet, cursor, board, inbox))
}

// FailOutlet notes a failed delivery, ends the lease and puts the next try off
// by a pause.
func (db *DB) FailOutlet(ctx context.Context, board, inbox string, pause time.Duration, errText string, state OutletState) error {
	return db.Write(ctx, func(ctx context.Context, tx *Tx) error {
		return one(tx.write(ctx, `UPDATE outlet SET failures = failures + 1, next_at = ?, last_error = ?, state = ?`+freeOutlet,
			millis(tx.Now.Add(pause)), errText, string(state), board, inbox))
	})
}

// ListOutlets returns every outlet, by board and inbox.
func (tx *Tx) ListOutlets(ctx context.Context, limit int, after string) (protocol.Page[Outlet], error) {
	limit = bounded(limit)
	const listing = "outlets"
	from, err := longPosition(listing, after)
	if err != nil {
		return protocol.Page[Outlet]{}, err
	}
	board, inbox, _ := strings.Cut(from, " ")
	rows, err := tx.query(ctx, `SELECT `+outletColumns+` FROM outlet o WHERE (o.board, o.inbox) > (?, ?) ORDER BY o.board, o.inbox LIMIT ?`, board, inbox, limit+1)
	outlets, err := collect(rows, err, scanOutlet)
	return page(outlets, limit, listing, func(o Outlet) string { return o.Board + " " + o.Inbox }), err
}

// An OutletStat counts the outlets of a board that are in one state.
type OutletStat struct {
	State OutletState
	Count int   // up to 10,000
	Lag   int64 // log entries that the furthest behind of them has not been told of
}

// Through outlet_state, by board and state; the one furthest behind comes first.
const (
	countOutlets = `SELECT count(*) FROM (SELECT 1 FROM outlet WHERE board = ? AND state = ? LIMIT ?) r`
	outletLag    = `SELECT s.head - o.cursor FROM outlet o CROSS JOIN stream s WHERE o.board = ? AND o.state = ? AND s.board = ? ORDER BY o.cursor LIMIT 1`
)

// OutletStats counts the outlets of each board by state, where there are any.
func (tx *Tx) OutletStats(ctx context.Context) ([]OutletStat, error) {
	boards, err := tx.Boards(ctx)
	if err != nil {
		return nil, err
	}
	var stats []OutletStat
	for _, board := range boards {
		for _, state := range []OutletState{OutletActive, OutletSlow, OutletDead} {
			st := OutletStat{State: state}
			if err := tx.row(ctx, countOutlets, board, string(state), mostCounted).Scan(&st.Count); err != nil {
				return nil, err
			}
			if st.Count == 0 {
				continue
			}
			if err := tx.row(ctx, outletLag, board, string(state), board).Scan(&st.Lag); err != nil {
				return nil, err
			}
			stats = append(stats, st)
		}
	}
	return stats, nil
}

// WakeHost makes the outlets of a host due now: it was heard of again.
func (tx *Tx) WakeHost(ctx context.Context, host string) error {
	n, err := tx.write(ctx, `UPDATE outlet SET next_at = 0 WHERE host = ? AND next_at > ?`, host, millis(tx.Now))
	if n > 0 {
		tx.batch.opTopics[TopicLog] = true
	}
	return err
}
