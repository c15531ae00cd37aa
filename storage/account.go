package storage

import (
	"context"
	"time"

	"stoa/protocol"
	"stoa/storage/commit"
)

// An Account is an owner's or operator's sign-in to this node.
type Account struct {
	ID, Name  string
	Role      protocol.Role
	Mail      string // confirmed address; "" none
	AskedMail string // address that is to be confirmed; "" none
	CreatedAt time.Time
}

const accountColumns = `id, name, role, COALESCE(mail, ''), asked_mail, created_at`

func scanAccount(s scanner) (a Account, err error) {
	var created int64
	err = s.Scan(&a.ID, &a.Name, &a.Role, &a.Mail, &a.AskedMail, &created)
	a.CreatedAt = moment(created)
	return a, err
}

// Accounts reads and writes accounts, and the profiles that belong to them.
type Accounts struct{ tx *Tx }

func (tx *Tx) Accounts() Accounts { return Accounts{tx} }

// Insert stores an account. A zero CreatedAt means now. ErrExists when its id or
// address is taken.
func (as Accounts) Insert(ctx context.Context, a Account) error {
	if a.CreatedAt.IsZero() {
		a.CreatedAt = as.tx.Now
	}
	n, err := as.tx.write(ctx, `INSERT INTO account (id, name, role, mail, created_at) VALUES (?, ?, ?, NULLIF(?, ''), ?) ON CONFLICT DO NOTHING`,
		a.ID, a.Name, string(a.Role), a.Mail, millis(a.CreatedAt))
	if err == nil && n == 0 {
		return ErrExists
	}
	return err
}

// ByID returns an account; ErrNotFound when there is none.
func (as Accounts) ByID(ctx context.Context, id string) (Account, error) {
	return scanAccount(as.tx.row(ctx, `SELECT `+accountColumns+` FROM account WHERE id = ?`, id))
}

// ForUpdate is ByID for a transaction that writes the account back: the row
// is locked.
func (as Accounts) ForUpdate(ctx context.Context, id string) (Account, error) {
	if err := as.tx.dirty(); err != nil {
		return Account{}, err
	}
	return scanAccount(as.tx.row(ctx, `SELECT `+accountColumns+` FROM account WHERE id = ?`+as.tx.db.engine.ForUpdate(), id))
}

// ByMail returns the account with a confirmed address; ErrNotFound when there
// is none.
func (as Accounts) ByMail(ctx context.Context, mail string) (Account, error) {
	return scanAccount(as.tx.row(ctx, `SELECT `+accountColumns+` FROM account WHERE mail = ?`, mail))
}

// OfProfile returns the account that a profile belongs to; ErrNotFound when it
// belongs to no account.
func (as Accounts) OfProfile(ctx context.Context, handle string) (Account, error) {
	return scanAccount(as.tx.row(ctx, `SELECT `+accountColumns+` FROM account WHERE id = (SELECT account FROM account_profile WHERE handle = ?)`, handle))
}

// List returns accounts, newest first.
func (as Accounts) List(ctx context.Context, limit int, after string) (protocol.Page[Account], error) {
	limit = bounded(limit)
	const listing = "accounts"
	before, err := idPosition(listing, after)
	if err != nil {
		return protocol.Page[Account]{}, err
	}
	rows, err := as.tx.query(ctx, `SELECT `+accountColumns+` FROM account WHERE id < ? ORDER BY id DESC LIMIT ?`, before, limit+1)
	accounts, err := collect(rows, err, scanAccount)
	return page(accounts, limit, listing, func(a Account) string { return a.ID }), err
}

// idPosition reads the id in a cursor of a listing that is ordered by id, newest
// first; without a cursor it returns a string above every id.
func idPosition(listing, after string) (string, error) {
	p, err := protocol.ParseCursor(listing, after)
	if p == "" {
		p = "~"
	}
	return p, err
}

// Rename gives an account another name; ErrNotFound when there is none.
func (as Accounts) Rename(ctx context.Context, id, name string) error {
	return one(as.tx.write(ctx, `UPDATE account SET name = ? WHERE id = ?`, name, id))
}

// SetRole makes an account an owner's or an operator's.
func (as Accounts) SetRole(ctx context.Context, id string, role protocol.Role) error {
	return one(as.tx.write(ctx, `UPDATE account SET role = ? WHERE id = ?`, string(role), id))
}

// SetPendingMail stores an address that becomes the account's once it is confirmed,
// "" for none. ErrNotFound when there is no such account.
func (as Accounts) SetPendingMail(ctx context.Context, id, mail string) error {
	return one(as.tx.write(ctx, `UPDATE account SET asked_mail = ? WHERE id = ?`, mail, id))
}

// SetMail sets the confirmed address of an account, "" for none, and deletes the
// address that waits for confirmation. ErrExists when another account has the
// address.
func (as Accounts) SetMail(ctx context.Context, id, mail string) error {
	if mail != "" {
		switch other, err := as.ByMail(ctx, mail); {
		case err == nil && other.ID != id:
			return ErrExists
		case err != nil && err != ErrNotFound:
			return err
		}
	}
	err := one(as.tx.write(ctx, `UPDATE account SET mail = NULLIF(?, ''), asked_mail = '' WHERE id = ?`, mail, id))
	if commit.Conflicts(err) {
		return ErrExists
	}
	return err
}

// Delete deletes an account with its sessions, tickets, tokens, passkeys and recovery codes. Its profiles
// belong to no account afterwards, and no notices about them are sent.
// ErrNotFound when there is none.
func (as Accounts) Delete(ctx context.Context, id string) error {
	for _, query := range []string{
		`DELETE FROM session WHERE account = ?`,
		`DELETE FROM ticket WHERE account = ?`,
		`DELETE FROM api_token WHERE account = ?`,
		`DELETE FROM passkey WHERE account = ?`,
		`DELETE FROM recovery_code WHERE account = ?`,
		`DELETE FROM notify WHERE handle IN (SELECT handle FROM account_profile WHERE account = ?)`,
		`DELETE FROM account_profile WHERE account = ?`,
	} {
		if _, err := as.tx.write(ctx, query, id); err != nil {
			return err
		}
	}
	return one(as.tx.write(ctx, `DELETE FROM account WHERE id = ?`, id))
}

// LinkProfile gives a profile to an account, whichever account it belonged to:
// tokens that another account made for it end, and notices stop until the new owner
// sets an address.
func (as Accounts) LinkProfile(ctx context.Context, account, handle string) error {
	if _, err := as.tx.write(ctx,
		`DELETE FROM notify WHERE handle = ? AND EXISTS (SELECT 1 FROM account_profile WHERE handle = ? AND account <> ?)`, handle, handle, account,
	); err != nil {
		return err
	}
	if _, err := as.tx.write(ctx,
		`UPDATE api_token SET revoked_at = COALESCE(revoked_at, ?) WHERE handle = ? AND account <> ?`, millis(as.tx.Now), handle, account,
	); err != nil {
		return err
	}
	_, err := as.tx.write(ctx, `INSERT INTO account_profile (handle, account, at) VALUES (?, ?, ?)
		ON CONFLICT (handle) DO UPDATE SET account = excluded.account, at = excluded.at`, handle, account, millis(as.tx.Now))
	return err
}

// UnlinkProfile removes a profile from its account, with the tokens that were made
// for it and the settings of its notices. ErrNotFound when it belongs to no
// account.
func (as Accounts) UnlinkProfile(ctx context.Context, handle string) error {
	if _, err := as.tx.write(ctx, `DELETE FROM notify WHERE handle = ?`, handle); err != nil {
		return err
	}
	if _, err := as.tx.write(ctx, `UPDATE api_token SET revoked_at = COALESCE(revoked_at, ?) WHERE handle = ?`, millis(as.tx.Now), handle); err != nil {
		return err
	}
	return one(as.tx.write(ctx, `DELETE FROM account_profile WHERE handle = ?`, handle))
}

// Handles returns the handles of an account's profiles, in order.
func (as Accounts) Handles(ctx context.Context, account string) ([]string, error) {
	rows, err := as.tx.query(ctx, `SELECT handle FROM account_profile WHERE account = ? ORDER BY handle LIMIT ?`, account, protocol.MaxProfiles)
	return collect(rows, err, func(s scanner) (h string, err error) {
		err = s.Scan(&h)
		return h, err
	})
}
