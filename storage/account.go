package storage

import (
	"context"
	"errors"
	"strings"
	"time"

	"stoa/protocol"
	"stoa/storage/commit"
)

// An Account is an owner's or operator's sign-in to this node.
type Account struct {
	ID, Name  string
	Role      protocol.Role
	Mail      string `db:",null"` // confirmed address; "" none
	AskedMail string // address that is to be confirmed; "" none
	CreatedAt time.Time
	Language  string // code of the language of letters and notices; "" not known: English
	Wallet    string `db:",null"` // Ethereum account that signs in, in lower case; "" none
}

var accountTable = tableOf[Account]("account")

// Accounts reads and writes accounts, and the profiles that belong to them.
type Accounts struct{ tx *Tx }

func (tx *Tx) Accounts() Accounts { return Accounts{tx} }

// Insert stores an account. A zero CreatedAt means now. ErrExists when its id or
// address is taken.
func (as Accounts) Insert(ctx context.Context, a Account) error {
	if a.CreatedAt.IsZero() {
		a.CreatedAt = as.tx.Now
	}
	return accountTable.create(ctx, as.tx, &a)
}

// ByID returns an account; ErrNotFound when there is none.
func (as Accounts) ByID(ctx context.Context, id string) (Account, error) {
	return find[Account](ctx, as.tx, accountTable.from+`WHERE id = ?`, id)
}

// ForUpdate is ByID for a transaction that writes the account back: the row
// is locked.
func (as Accounts) ForUpdate(ctx context.Context, id string) (Account, error) {
	if err := as.tx.dirty(); err != nil {
		return Account{}, err
	}
	return find[Account](ctx, as.tx, accountTable.from+`WHERE id = ?`+as.tx.db.engine.ForUpdate(), id)
}

// ByMail returns the account with a confirmed address; ErrNotFound when there
// is none.
func (as Accounts) ByMail(ctx context.Context, mail string) (Account, error) {
	return find[Account](ctx, as.tx, accountTable.from+`WHERE mail = ?`, mail)
}

// ByWallet returns the account that an Ethereum account, in lower case, signs in to; ErrNotFound when there is none.
func (as Accounts) ByWallet(ctx context.Context, wallet string) (Account, error) {
	return find[Account](ctx, as.tx, accountByWallet, wallet)
}

var accountByWallet = accountTable.from + `WHERE wallet = ?`

// SetWallet has an Ethereum account, in lower case, sign in to an account, or none, "". ErrExists when it signs in to another.
func (as Accounts) SetWallet(ctx context.Context, id, wallet string) error {
	if wallet != "" {
		switch other, err := as.ByWallet(ctx, wallet); {
		case err == nil && other.ID != id:
			return ErrExists
		case err != nil && !errors.Is(err, ErrNotFound):
			return err
		}
	}
	return as.tx.exec(ctx, `UPDATE account SET wallet = NULLIF(?, '') WHERE id = ?`, wallet, id)
}

// OfProfile returns the account that a profile belongs to; ErrNotFound when it
// belongs to no account.
func (as Accounts) OfProfile(ctx context.Context, handle string) (Account, error) {
	return find[Account](ctx, as.tx, accountTable.from+`WHERE id = (SELECT account FROM account_profile WHERE handle = ?)`, handle)
}

// reachable are the conditions under which somebody can sign in to the account a.
const reachable = `(COALESCE(a.mail, '') <> '' OR a.wallet IS NOT NULL OR EXISTS (SELECT 1 FROM passkey k WHERE k.account = a.id)
	OR EXISTS (SELECT 1 FROM recovery_code c WHERE c.account = a.id))`

// Reachable reports whether somebody can act as a profile, or did: its account has a way to sign in, or a token for it was used.
func (as Accounts) Reachable(ctx context.Context, handle string) (bool, error) {
	return as.tx.exists(ctx, `SELECT 1 FROM account_profile p JOIN account a ON a.id = p.account WHERE p.handle = ?
		AND (`+reachable+` OR EXISTS (SELECT 1 FROM api_token t WHERE t.handle = p.handle AND t.last_used_at IS NOT NULL))`, handle)
}

// List returns accounts, newest first; with a name only those that have it in theirs, whatever the case.
func (as Accounts) List(ctx context.Context, name string, limit int, after string) (protocol.Page[Account], error) {
	if name == "" {
		return newest[Account](ctx, as.tx, "accounts", "id", limit, after, accountTable.from+`WHERE id < ? ORDER BY id DESC LIMIT ?`)
	}
	like := "%" + strings.NewReplacer(`\`, `\\`, "%", `\%`, "_", `\_`).Replace(strings.ToLower(name)) + "%"
	return newest[Account](ctx, as.tx, "accounts", "id", limit, after,
		accountTable.from+`WHERE lower(name) LIKE ? ESCAPE '\' AND id < ? ORDER BY id DESC LIMIT ?`, like)
}

// Rename gives an account another name; ErrNotFound when there is none.
func (as Accounts) Rename(ctx context.Context, id, name string) error {
	return one(as.tx.write(ctx, `UPDATE account SET name = ? WHERE id = ?`, name, id))
}

// SetLanguage sets the language of letters to an account; ErrNotFound when there is none.
func (as Accounts) SetLanguage(ctx context.Context, id, language string) error {
	return one(as.tx.write(ctx, `UPDATE account SET language = ? WHERE id = ?`, language, id))
}

// SetRole makes an account an owner's or an operator's.
func (as Accounts) SetRole(ctx context.Context, id string, role protocol.Role) error {
	return one(as.tx.write(ctx, `UPDATE account SET role = ? WHERE id = ?`, string(role), id))
}

// HasOperator reports whether an account is an operator's. In a writing transaction another that asks waits for its end, so that the first operator is one.
func (as Accounts) HasOperator(ctx context.Context) (bool, error) {
	if as.tx.writes() {
		if err := as.tx.lockName(ctx, "first operator"); err != nil {
			return false, err
		}
	}
	return as.tx.exists(ctx, `SELECT 1 FROM account WHERE role = 'operator' LIMIT 1`)
}

// Operators lists the accounts of operators, at most a hundred.
func (as Accounts) Operators(ctx context.Context) ([]Account, error) {
	return list[Account](ctx, as.tx, accountTable.from+`WHERE role = 'operator' ORDER BY id LIMIT 100`)
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

// Delete deletes an account with its sessions, tickets, tokens, passkeys, recovery codes, devices, and the names that it gave them. Its profiles
// belong to no account afterwards, and no notices about them are sent.
// ErrNotFound when there is none.
func (as Accounts) Delete(ctx context.Context, id string) error {
	for _, query := range []string{
		`DELETE FROM session WHERE account = ?`,
		`DELETE FROM ticket WHERE account = ?`,
		`DELETE FROM api_token WHERE account = ?`,
		`DELETE FROM passkey WHERE account = ?`,
		`DELETE FROM recovery_code WHERE account = ?`,
		`DELETE FROM credential_name WHERE account = ?`,
		`DELETE FROM device WHERE reader = ?`,
		`DELETE FROM notify WHERE handle IN (SELECT handle FROM account_profile WHERE account = ?)`,
		`DELETE FROM account_profile WHERE account = ?`,
		`DELETE FROM leaving WHERE subject = ?`,
		`UPDATE leaving SET account = '' WHERE account = ? AND account <> ''`,
	} {
		if _, err := as.tx.write(ctx, query, id); err != nil {
			return err
		}
	}
	return one(as.tx.write(ctx, `DELETE FROM account WHERE id = ?`, id))
}

// DeleteUnreachable deletes an account that nobody can sign in to.
func (as Accounts) DeleteUnreachable(ctx context.Context, id string) error {
	keep, err := as.tx.exists(ctx, `SELECT 1 FROM account a WHERE a.id = ? AND `+reachable, id)
	if err != nil || keep {
		return err
	}
	return as.Delete(ctx, id)
}

// SignOut ends what signs in to an account and acts for it: sessions, sign-in links, tokens.
func (as Accounts) SignOut(ctx context.Context, id string) error {
	if _, err := as.tx.Sessions().EndAll(ctx, id, ""); err != nil {
		return err
	}
	if err := as.tx.Tickets().Drop(ctx, id, TicketSignIn); err != nil {
		return err
	}
	return as.tx.exec(ctx, `UPDATE api_token SET revoked_at = ? WHERE account = ? AND revoked_at IS NULL`, millis(as.tx.Now), id)
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
	return as.tx.exec(ctx, `INSERT INTO account_profile (handle, account, at) VALUES (?, ?, ?)
		ON CONFLICT (handle) DO UPDATE SET account = excluded.account, at = excluded.at`, handle, account, millis(as.tx.Now))
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
	return list[string](ctx, as.tx, `SELECT handle FROM account_profile WHERE account = ? ORDER BY handle LIMIT ?`, account, protocol.MaxProfiles)
}
