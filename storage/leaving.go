package storage

import (
	"context"
	"time"

	"stoa/protocol"
)

// A Leaving is a profile or an account that its owner deletes, until it is gone.
type Leaving struct {
	Subject   string // handle of a profile, id of an account
	Account   string // of a profile: the account that is closed with it, "" for none
	AskedAt   time.Time
	HiddenAt  time.Time             `db:",null"` // zero while money and meetings are settled
	Erasing   bool                  // it cannot be undone any more
	Accepting bool                  // the profile's board took bids
	Meetings  bool                  // the profile took meeting requests
	Orders    bool                  // the profile's shop took orders
	State     protocol.ProfileState // of the profile before
	Reason    string                // and its reason
}

var leavingTable = tableOf[Leaving]("leaving")

// Leavings reads and writes what leaves.
type Leavings struct{ tx *Tx }

func (tx *Tx) Leavings() Leavings { return Leavings{tx} }

// BySubject returns what leaves under a handle or id; ErrNotFound when it does not. In a writing transaction the row is locked.
func (ls Leavings) BySubject(ctx context.Context, subject string) (*Leaving, error) {
	return pointer(findLocked[Leaving](ctx, ls.tx, leavingTable.from+`WHERE subject = ?`, subject))
}

// OfAccount returns the profiles that leave with an account.
func (ls Leavings) OfAccount(ctx context.Context, account string) ([]Leaving, error) {
	return list[Leaving](ctx, ls.tx, leavingTable.from+leavingWith, account, protocol.MaxProfiles)
}

// Departures returns the deletions under way of an account and of profiles of it.
func (ls Leavings) Departures(ctx context.Context, account string, handles []string) (all []protocol.Departure, err error) {
	for _, subject := range append([]string{account}, handles...) {
		of, err := find[Leaving](ctx, ls.tx, leavingTable.from+`WHERE subject = ?`, subject)
		if err == ErrNotFound {
			continue
		}
		if err != nil {
			return nil, err
		}
		d, err := ls.Departure(ctx, &of)
		if err != nil {
			return nil, err
		}
		all = append(all, d)
	}
	return all, nil
}

// Put stores what leaves, and has the job LeaveJob run at a time.
func (ls Leavings) Put(ctx context.Context, l *Leaving, run time.Time) error {
	if err := leavingTable.put(ctx, ls.tx, l, "subject"); err != nil {
		return err
	}
	return ls.Enqueue(ctx, l.Subject, run)
}

// Enqueue has the job LeaveJob run at a time, in place of one that waits.
func (ls Leavings) Enqueue(ctx context.Context, subject string, run time.Time) error {
	name := string(LeaveJob) + " " + subject
	if _, err := ls.tx.Jobs().DropNamed(ctx, LeaveJob, name); err != nil {
		return err
	}
	return ls.tx.Enqueue(ctx, Job{Kind: LeaveJob, Lane: name, Dedupe: name, Args: []byte(subject), RunAt: run})
}

// Drop deletes the row of what does not leave any more, or is gone.
func (ls Leavings) Drop(ctx context.Context, subject string) error {
	return ls.tx.exec(ctx, `DELETE FROM leaving WHERE subject = ?`, subject)
}

const (
	leavingWith  = `WHERE account = ? AND account <> '' ORDER BY subject LIMIT ?`
	claimedBids  = `WHERE board = ? AND state = 'claimed'`
	unmade       = `SELECT count(*) FROM (SELECT 1 FROM refund WHERE board = ? AND state <> 'done' LIMIT 1000) r`
	dueBidsOf    = `SELECT count(*) FROM (SELECT 1 FROM bid WHERE board = ? AND state = 'refund_due' LIMIT 1000) r`
	approvedHere = `SELECT count(*), COALESCE(max(ends_at), 0) FROM meeting WHERE handle = ? AND starts_at > ? AND state IN ('submitted', 'approved')
		AND state = 'approved'`
	openOrders        = `SELECT count(*), COALESCE(max(hold_until), 0) FROM shop_order WHERE till = ? AND state IN ('awaiting_payment', 'paid')`
	approvedElsewhere = `SELECT count(*), COALESCE(max(ends_at), 0) FROM meeting WHERE writer_handle = ? AND state = 'approved' AND starts_at > ?`
)

// Waits returns what is to be settled before a profile leaves: bids on its board and orders of its shop that are not over, refunds that are
// not made, meetings that are agreed.
func (ls Leavings) Waits(ctx context.Context, handle string) (all []protocol.LeaveWait, err error) {
	add := func(what protocol.LeaveReason, n int, until time.Time) {
		if w := (protocol.LeaveWait{What: what, Count: n}); n > 0 {
			if !until.IsZero() {
				w.Until = &until
			}
			all = append(all, w)
		}
	}
	b, err := find[AttentionBoard](ctx, ls.tx, boardByHandle, handle)
	if orNothing(err) != nil {
		return nil, err
	}
	if err == nil {
		n, until, refunds, err := ls.money(ctx, b.ID)
		if err != nil {
			return nil, err
		}
		add(protocol.LeaveBids, n, until)
		add(protocol.LeaveRefunds, refunds, time.Time{})
	}
	if err := ls.orders(ctx, handle, add); err != nil {
		return nil, err
	}
	count, last := 0, int64(0)
	for _, query := range []struct {
		text string
		args []any
	}{{approvedHere, []any{handle, millis(ls.tx.Now)}}, {approvedElsewhere, []any{handle, millis(ls.tx.Now)}}} {
		var n int
		var until int64
		if err := ls.tx.row(ctx, query.text, query.args...).Scan(&n, &until); err != nil {
			return nil, err
		}
		count, last = count+n, max(last, until)
	}
	add(protocol.LeaveMeetings, count, moment(last))
	return all, nil
}

// orders adds the orders of a shop that are not over, and their refunds that are not made.
func (ls Leavings) orders(ctx context.Context, handle string, add func(protocol.LeaveReason, int, time.Time)) error {
	till, err := find[Till](ctx, ls.tx, tillByHandle, handle)
	if err != nil {
		return orNothing(err)
	}
	var n, refunds int
	var until int64
	if err := ls.tx.row(ctx, openOrders, till.ID).Scan(&n, &until); err != nil {
		return err
	}
	add(protocol.LeaveOrders, n, moment(until))
	err = ls.tx.row(ctx, unmade, till.ID).Scan(&refunds)
	add(protocol.LeaveRefunds, refunds, time.Time{})
	return err
}

// money counts the bids on a board that are not over, with the time when the last of them is, and refunds that are not made.
func (ls Leavings) money(ctx context.Context, board string) (bids int, until time.Time, refunds int, err error) {
	open, err := ls.tx.Bids().ListOpen(ctx, board)
	if err != nil {
		return 0, until, 0, err
	}
	claimed, err := list[StoredBid](ctx, ls.tx, bidTable.from+claimedBids, board)
	if err != nil {
		return 0, until, 0, err
	}
	for _, b := range append(open, claimed...) {
		bids++
		for _, end := range []time.Time{b.HoldUntil, b.EndsAt} {
			if end.After(until) {
				until = end
			}
		}
	}
	for _, query := range []string{unmade, dueBidsOf} {
		var n int
		if err := ls.tx.row(ctx, query, board).Scan(&n); err != nil {
			return 0, until, 0, err
		}
		refunds = max(refunds, n)
	}
	return bids, until, refunds, nil
}

// Departure says how far a deletion is.
func (ls Leavings) Departure(ctx context.Context, of *Leaving) (protocol.Departure, error) {
	d := protocol.Departure{State: protocol.LeaveSettling, Waits: []protocol.LeaveWait{}, AskedAt: of.AskedAt}
	handles := []string{of.Subject}
	if account := protocol.IsID(protocol.AccountID, of.Subject); account {
		with, err := ls.OfAccount(ctx, of.Subject)
		if err != nil {
			return d, err
		}
		handles = nil
		for _, p := range with {
			handles = append(handles, p.Subject)
		}
	} else {
		d.Handle = &of.Subject
	}
	for _, handle := range handles {
		waits, err := ls.Waits(ctx, handle)
		if err != nil {
			return d, err
		}
		d.Waits = append(d.Waits, waits...)
	}
	switch {
	case of.Erasing:
		d.State = protocol.LeaveErasing
	case !of.HiddenAt.IsZero():
		d.State, d.GoneAt = protocol.LeaveHidden, new(of.HiddenAt.Add(protocol.UndoFor))
	}
	return d, nil
}
