// Package leave is the room in which an owner deletes a profile or closes the account. What is deleted settles its money and its agreed meetings
// first, then is hidden for seven days in which its owner undoes it, and then is erased, part by part, in jobs.
package leave

import (
	"context"
	"errors"
	"time"

	"stoa/node/hall"
	"stoa/protocol"
	"stoa/storage"
)

// again is how long a step waits for what is to be settled before it looks again.
const again = time.Hour

// A Leave is the room. Its functions are those of other rooms.
type Leave struct {
	Base    string // public address of the node
	LinkKey []byte // of the tickets of links
	// SetState shows or hides a profile; Drop deletes it, once its posts are gone.
	SetState func(ctx context.Context, tx *storage.Tx, handle string, state protocol.ProfileState, reason string) error
	Drop     func(ctx context.Context, tx *storage.Tx, handle string) error
	// Distribute announces that a post was hidden or is shown again; Erase deletes one and announces that.
	Distribute func(ctx context.Context, tx *storage.Tx, p *protocol.StoredPost, kind storage.LogKind) error
	Erase      func(ctx context.Context, tx *storage.Tx, p *protocol.StoredPost) error
	// Recent refuses a caller that did not sign in lately.
	Recent func(ctx context.Context, tx *storage.Tx, c protocol.Caller) error
	// Tell writes to the owner that a profile, or the account with handle "", is hidden, and until when that can be undone.
	Tell func(ctx context.Context, tx *storage.Tx, account, handle string, until time.Time) error
}

// Bind binds the operations of the room.
func (l *Leave) Bind(t *hall.Table) {
	hall.Bind(t, protocol.DeleteProfile, l.DeleteProfile)
	hall.Bind(t, protocol.RestoreProfile, l.RestoreProfile)
	hall.Bind(t, protocol.CloseAccount, l.CloseAccount)
	hall.Bind(t, protocol.UndoDeletion, l.Undo)
}

// Jobs are the handlers of the room's jobs.
func (l *Leave) Jobs() map[storage.JobKind]storage.JobHandler {
	return map[storage.JobKind]storage.JobHandler{
		storage.LeaveJob:        l.next,
		storage.ConcealJob:      storage.HandlerOf(l.conceal),
		storage.EraseProfileJob: storage.HandlerOf(l.erase),
	}
}

// DeleteProfile begins the deletion of a profile of the caller, or says how far it is.
func (l *Leave) DeleteProfile(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.OwnInput) (protocol.Departure, error) {
	p, err := hall.Own(ctx, tx, c, in.Owned)
	if err != nil {
		return protocol.Departure{}, err
	}
	leaving, err := tx.Leavings().BySubject(ctx, p.Draft.Handle)
	if errors.Is(err, storage.ErrNotFound) {
		if leaving, err = l.ask(ctx, tx, p, ""); err == nil {
			err = tx.Audit(ctx, c.Actor(), "profile leave", p.Draft.Handle, "")
		}
	}
	if err != nil {
		return protocol.Departure{}, err
	}
	if err := l.step(ctx, tx, leaving); err != nil {
		return protocol.Departure{}, err
	}
	return tx.Leavings().Departure(ctx, leaving)
}

// ask begins a deletion: from now on nothing new is taken that would have to be settled.
func (l *Leave) ask(ctx context.Context, tx *storage.Tx, p *storage.StoredProfile, account string) (*storage.Leaving, error) {
	of := &storage.Leaving{Subject: p.Draft.Handle, Account: account, AskedAt: tx.Now, State: p.State, Reason: p.StateReason}
	b, err := tx.AttentionBoards().ByHandle(ctx, of.Subject)
	if err == nil && b.Terms.Accepting {
		of.Accepting, b.Terms.Accepting = true, false
		err = tx.AttentionBoards().Put(ctx, b)
	}
	if storage.Missing(err, nil) != nil {
		return nil, err
	}
	till, err := tx.Tills().ByHandle(ctx, of.Subject)
	if err == nil && till.Open {
		of.Orders, till.Open, till.Terms.Open = true, false, false
		err = tx.Tills().Put(ctx, till)
	}
	if storage.Missing(err, nil) != nil {
		return nil, err
	}
	s, err := tx.Meetings().Settings(ctx, p)
	if err != nil {
		return nil, err
	}
	if s.Open {
		of.Meetings, s.Open = true, false
		if err := tx.Meetings().PutSettings(ctx, &s); err != nil {
			return nil, err
		}
	}
	return of, tx.Leavings().Put(ctx, of, tx.Now.Add(again))
}

// step does what is next for a profile that leaves, and has the job look again when something more is.
func (l *Leave) step(ctx context.Context, tx *storage.Tx, of *storage.Leaving) error {
	over := of.HiddenAt.Add(protocol.UndoFor)
	switch {
	case of.Erasing:
		return nil
	case !of.HiddenAt.IsZero() && tx.Now.Before(over):
		return tx.Leavings().Put(ctx, of, over)
	}
	if waits, err := tx.Leavings().Waits(ctx, of.Subject); err != nil {
		return err
	} else if len(waits) > 0 {
		return tx.Leavings().Put(ctx, of, tx.Now.Add(again))
	}
	if !of.HiddenAt.IsZero() {
		of.Erasing = true
		if err := tx.Leavings().Put(ctx, of, tx.Now.Add(again)); err != nil {
			return err
		}
		return l.enqueueErase(ctx, tx, eraseArgs{Handle: of.Subject})
	}
	of.HiddenAt = tx.Now
	if err := l.SetState(ctx, tx, of.Subject, protocol.ProfileLeaving, ""); err != nil {
		return err
	}
	if err := tx.Bids().RetractOf(ctx, protocol.BoardID(l.Base), protocol.BlockHandle, of.Subject); err != nil {
		return err
	}
	if err := tx.Leavings().Put(ctx, of, tx.Now.Add(protocol.UndoFor)); err != nil {
		return err
	}
	if of.Account != "" {
		return tx.Leavings().Enqueue(ctx, of.Account, tx.Now)
	}
	account, err := tx.Accounts().OfProfile(ctx, of.Subject)
	if storage.Missing(err, nil) != nil {
		return err
	}
	return l.Tell(ctx, tx, account.ID, of.Subject, of.HiddenAt.Add(protocol.UndoFor))
}

// next is the handler of LeaveJob.
func (l *Leave) next(_ context.Context, j storage.Job) (func(context.Context, *storage.Tx) error, error) {
	subject := string(j.Args)
	return func(ctx context.Context, tx *storage.Tx) error {
		of, err := tx.Leavings().BySubject(ctx, subject)
		if err != nil {
			return storage.Missing(err, nil)
		}
		if protocol.IsID(protocol.AccountID, subject) {
			return l.stepAccount(ctx, tx, of)
		}
		return l.step(ctx, tx, of)
	}, nil
}

// RestoreProfile undoes the deletion of a profile, if there is one.
func (l *Leave) RestoreProfile(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.OwnInput) (protocol.None, error) {
	p, err := hall.Own(ctx, tx, c, in.Owned)
	if err != nil {
		return protocol.None{}, err
	}
	of, err := tx.Leavings().BySubject(ctx, p.Draft.Handle)
	switch {
	case err != nil: // what is not being deleted stays
		return protocol.None{}, storage.IfMissing(err, nil)
	case of.Erasing:
		return protocol.None{}, protocol.Errorf(protocol.Conflict, "the seven days are over: @%s is being erased", p.Draft.Handle)
	}
	if of.Account != "" {
		err = l.Return(ctx, tx, of.Account)
	} else {
		err = l.undo(ctx, tx, of)
	}
	if err != nil {
		return protocol.None{}, err
	}
	return protocol.None{}, tx.Audit(ctx, c.Actor(), "profile restore", p.Draft.Handle, "")
}

// undo makes a profile what it was before its deletion.
func (l *Leave) undo(ctx context.Context, tx *storage.Tx, of *storage.Leaving) error {
	p, err := tx.Profiles().ForUpdate(ctx, of.Subject)
	if err != nil {
		return err
	}
	if p.State == protocol.ProfileLeaving { // not what an operator made of it since
		if err := l.SetState(ctx, tx, of.Subject, of.State, of.Reason); err != nil {
			return err
		}
	}
	if of.Accepting {
		b, err := tx.AttentionBoards().ByHandle(ctx, of.Subject)
		if err != nil {
			return err
		}
		b.Terms.Accepting = true
		if err := tx.AttentionBoards().Put(ctx, b); err != nil {
			return err
		}
	}
	if of.Orders {
		till, err := tx.Tills().ByHandle(ctx, of.Subject)
		if err != nil {
			return err
		}
		till.Open, till.Terms.Open = true, true
		if err := tx.Tills().Put(ctx, till); err != nil {
			return err
		}
	}
	if of.Meetings {
		if p, err = tx.Profiles().ForUpdate(ctx, of.Subject); err != nil {
			return err
		}
		s, err := tx.Meetings().Settings(ctx, p)
		if err != nil {
			return err
		}
		s.Open = true
		if err := tx.Meetings().PutSettings(ctx, &s); err != nil {
			return err
		}
	}
	return tx.Leavings().Drop(ctx, of.Subject)
}
