package storage

import (
	"context"
	"database/sql/driver"
	"fmt"
	"strings"
	"time"
)

// A Passkey is a credential of WebAuthn that signs in to an account.
type Passkey struct {
	ID, Account, Name        string
	Credential               []byte // the id that its authenticator gave it
	Domain                   string // the one that it is for
	PublicKey                []byte // COSE key
	Count                    uint32 `db:"sign_count"` // of its signatures, 0 when it does not count
	BackupEligible, BackedUp bool
	Transports               words // ways to reach its authenticator, as the browser named them
	Suspect                  bool  // its counter went back: it signs nobody in any more
	CreatedAt                time.Time
	LastUsedAt               *time.Time
}

// words are stored with spaces between them.
type words []string

func (w *words) Scan(from any) error {
	*w = strings.Fields(fmt.Sprintf("%s", from))
	return nil
}

func (w words) Value() (driver.Value, error) { return strings.Join(w, " "), nil }

var passkeyTable = tableOf[Passkey]("passkey")

var (
	passkeyByCredential = passkeyTable.from + `WHERE credential = ?`
	passkeysOfAccount   = passkeyTable.from + `WHERE account = ? ORDER BY id DESC LIMIT ?`
	codesOfAccount      = `SELECT count(*), max(made_at) FROM recovery_code WHERE account = ?`
)

// Passkeys reads and writes passkeys.
type Passkeys struct{ tx *Tx }

func (tx *Tx) Passkeys() Passkeys { return Passkeys{tx} }

// Insert stores a passkey. ErrExists when its credential is stored already.
func (ps Passkeys) Insert(ctx context.Context, k Passkey) error {
	k.CreatedAt = ps.tx.Now
	return passkeyTable.create(ctx, ps.tx, &k)
}

// ByCredential returns the passkey with that credential; ErrNotFound when there is none.
func (ps Passkeys) ByCredential(ctx context.Context, credential []byte) (Passkey, error) {
	return find[Passkey](ctx, ps.tx, passkeyByCredential, credential)
}

// OfAccount returns the passkeys of an account, newest first, at most n.
func (ps Passkeys) OfAccount(ctx context.Context, account string, n int) ([]Passkey, error) {
	return list[Passkey](ctx, ps.tx, passkeysOfAccount, account, n)
}

// Use stores counter and backup state after a use, and whether the passkey became
// suspect. ErrNotFound when it was used or deleted since it was read.
func (ps Passkeys) Use(ctx context.Context, read, now Passkey) error {
	return one(ps.tx.write(ctx, `UPDATE passkey SET sign_count = ?, backed_up = ?, suspect = ?, last_used_at = ? WHERE id = ? AND sign_count = ?
		AND suspect = ?`, int64(now.Count), now.BackedUp, now.Suspect, millis(ps.tx.Now), read.ID, int64(read.Count), read.Suspect))
}

// Rename gives a passkey of an account another name; ErrNotFound when it has none of that id.
func (ps Passkeys) Rename(ctx context.Context, account, id, name string) error {
	return one(ps.tx.write(ctx, `UPDATE passkey SET name = ? WHERE account = ? AND id = ?`, name, account, id))
}

// Delete deletes a passkey of an account; ErrNotFound when it has none of that id.
func (ps Passkeys) Delete(ctx context.Context, account, id string) error {
	return one(ps.tx.write(ctx, `DELETE FROM passkey WHERE account = ? AND id = ?`, account, id))
}

// DeleteAll deletes the passkeys of an account.
func (ps Passkeys) DeleteAll(ctx context.Context, account string) error {
	return ps.tx.exec(ctx, `DELETE FROM passkey WHERE account = ?`, account)
}

// RecoveryCodes reads and writes recovery codes.
type RecoveryCodes struct{ tx *Tx }

func (tx *Tx) RecoveryCodes() RecoveryCodes { return RecoveryCodes{tx} }

// Replace stores the codes of an account instead of those that it had; none deletes them.
func (rs RecoveryCodes) Replace(ctx context.Context, account string, hashes [][32]byte) error {
	if _, err := rs.tx.write(ctx, `DELETE FROM recovery_code WHERE account = ?`, account); err != nil {
		return err
	}
	for _, h := range hashes {
		if _, err := rs.tx.write(ctx, `INSERT INTO recovery_code (hash, account, made_at) VALUES (?, ?, ?)`, h[:], account, millis(rs.tx.Now)); err != nil {
			return err
		}
	}
	return nil
}

// Spend spends a code and returns its account. If two try at once, one gets ErrNotFound.
func (rs RecoveryCodes) Spend(ctx context.Context, hash [32]byte) (account string, err error) {
	if err := rs.tx.row(ctx, `SELECT account FROM recovery_code WHERE hash = ?`, hash[:]).Scan(&account); err != nil {
		return "", err
	}
	return account, one(rs.tx.write(ctx, `DELETE FROM recovery_code WHERE hash = ?`, hash[:]))
}

// Left returns how many codes an account has, and when they were made; nil without any.
func (rs RecoveryCodes) Left(ctx context.Context, account string) (n int, made *time.Time, err error) {
	var at *int64
	err = rs.tx.row(ctx, codesOfAccount, account).Scan(&n, &at)
	return n, momentPtr(at), err
}
