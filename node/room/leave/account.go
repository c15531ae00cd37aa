package leave

import (
	"context"
	"errors"

	"stoa/protocol"
	"stoa/storage"
)

// CloseAccount begins the closing of the caller's account, with the deletion of its profiles, or says how far it is.
func (l *Leave) CloseAccount(ctx context.Context, tx *storage.Tx, c protocol.Caller, _ protocol.None) (protocol.Departure, error) {
	if err := l.Recent(ctx, tx, c); err != nil {
		return protocol.Departure{}, err
	}
	if _, err := tx.Accounts().ForUpdate(ctx, c.Account); err != nil {
		return protocol.Departure{}, err
	}
	of, err := tx.Leavings().BySubject(ctx, c.Account)
	if errors.Is(err, storage.ErrNotFound) {
		of, err = l.askAll(ctx, tx, c)
	}
	if err != nil {
		return protocol.Departure{}, err
	}
	if err := l.stepAccount(ctx, tx, of); err != nil {
		return protocol.Departure{}, err
	}
	return tx.Leavings().Departure(ctx, of)
}

// askAll begins the deletion of the account's profiles, but of those that are being deleted by themselves.
func (l *Leave) askAll(ctx context.Context, tx *storage.Tx, c protocol.Caller) (*storage.Leaving, error) {
	of := &storage.Leaving{Subject: c.Account, AskedAt: tx.Now}
	if err := tx.Leavings().Put(ctx, of, tx.Now.Add(again)); err != nil {
		return nil, err
	}
	handles, err := tx.Accounts().Handles(ctx, c.Account)
	if err != nil {
		return nil, err
	}
	for _, handle := range handles {
		p, err := tx.Profiles().ForUpdate(ctx, handle)
		if err != nil {
			return nil, err
		}
		if _, err := tx.Leavings().BySubject(ctx, handle); !errors.Is(err, storage.ErrNotFound) {
			if err != nil {
				return nil, err
			}
			continue
		}
		one, err := l.ask(ctx, tx, p, c.Account)
		if err == nil {
			err = l.step(ctx, tx, one)
		}
		if err != nil {
			return nil, err
		}
	}
	return of, tx.Audit(ctx, c.Actor(), "account leave", c.Account, "")
}

// stepAccount does what is next for an account that is closed.
func (l *Leave) stepAccount(ctx context.Context, tx *storage.Tx, of *storage.Leaving) error {
	with, err := tx.Leavings().OfAccount(ctx, of.Subject)
	if err != nil {
		return err
	}
	over := of.HiddenAt.Add(protocol.UndoFor)
	switch {
	case !of.HiddenAt.IsZero() && tx.Now.Before(over):
		return tx.Leavings().Put(ctx, of, over)
	case !of.HiddenAt.IsZero() && len(with) == 0:
		if err := tx.Accounts().Delete(ctx, of.Subject); err != nil {
			return err
		}
		return tx.AuditLog().Forget(ctx, of.Subject)
	case !of.HiddenAt.IsZero(): // the profiles are being erased; the last one has this run again
		return tx.Leavings().Put(ctx, of, tx.Now.Add(again))
	}
	for _, p := range with {
		if p.HiddenAt.IsZero() {
			return tx.Leavings().Put(ctx, of, tx.Now.Add(again))
		}
	}
	of.HiddenAt = tx.Now
	if err := tx.Leavings().Put(ctx, of, tx.Now.Add(protocol.UndoFor)); err != nil {
		return err
	}
	if err := l.Tell(ctx, tx, of.Subject, "", of.HiddenAt.Add(protocol.UndoFor)); err != nil {
		return err
	}
	return tx.Accounts().SignOut(ctx, of.Subject)
}

// Return undoes the closing of an account: its owner signs in again. It does nothing for an account that is not being closed. A profile whose
// erasure has begun is not restored.
func (l *Leave) Return(ctx context.Context, tx *storage.Tx, account string) error {
	if _, err := tx.Leavings().BySubject(ctx, account); err != nil {
		return storage.Missing(err, nil)
	}
	with, err := tx.Leavings().OfAccount(ctx, account)
	if err != nil {
		return err
	}
	for _, p := range with {
		of, err := tx.Leavings().BySubject(ctx, p.Subject)
		if err == nil && !of.Erasing {
			err = l.undo(ctx, tx, of)
		}
		if err != nil {
			return err
		}
	}
	if err := tx.Leavings().Drop(ctx, account); err != nil {
		return err
	}
	return tx.Audit(ctx, account, "account restore", account, "")
}
