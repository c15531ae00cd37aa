package storage

import (
	"context"
	"strings"
	"time"
)

// A Passkey is a credential of WebAuthn that signs in to an account.
type Passkey struct {
	ID, Account, Name        string
	Credential               []byte // the id that its authenticator gave it
	Domain                   string // the one that it is for
	PublicKey                []byte // COSE key
	Count                    uint32 // of its signatures, 0 when it does not count
	BackupEligible, BackedUp bool
	Transports               []string // ways to reach its authenticator, as the browser named them
	Suspect                  bool     // its counter went back: it signs nobody in any more
	CreatedAt                time.Time
	LastUsedAt               *time.Time
}

const passkeyColumns = `id, account, name, credential, domain, public_key, sign_count, backup_eligible, backed_up, transports, suspect,
	created_at, last_used_at`

const (
	passkeyByCredential = `SELECT ` + passkeyColumns + ` FROM passkey WHERE credential = ?`
	passkeysOfAccount   = `SELECT ` + passkeyColumns + ` FROM passkey WHERE account = ? ORDER BY id DESC LIMIT ?`
	codesOfAccount      = `SELECT count(*), max(made_at) FROM recovery_code WHERE account = ?`
)

func scanPasskey(s scanner) (k Passkey, err error) {
	var count, created int64
	var used *int64
	var transports string
	err = s.Scan(&k.ID, &k.Account, &k.Name, &k.Credential, &k.Domain, &k.PublicKey, &count, &k.BackupEligible, &k.BackedUp, &transports, &k.Suspect,
		&created, &used)
	k.Count, k.Transports, k.CreatedAt, k.LastUsedAt = uint32(count), strings.Fields(transports), moment(created), momentPtr(used)
	return k, err
}

// Passkeys reads and writes passkeys.
type Passkeys struct{ tx *Tx }

func (tx *Tx) Passkeys() Passkeys { return Passkeys{tx} }

// Insert stores a passkey. ErrExists when its credential is stored already.
func (ps Passkeys) Insert(ctx context.Context, k Passkey) error {
	n, err := ps.tx.write(ctx, `INSERT INTO passkey (`+passkeyColumns+`) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`,
		k.ID, k.Account, k.Name, k.Credential, k.Domain, k.PublicKey, int64(k.Count), k.BackupEligible, k.BackedUp, strings.Join(k.Transports, " "),
		k.Suspect, millis(ps.tx.Now), millisPtr(k.LastUsedAt))
	if err == nil && n == 0 {
		return ErrExists
	}
	return err
}

// ByCredential returns the passkey with that credential; ErrNotFound when there is none.
func (ps Passkeys) ByCredential(ctx context.Context, credential []byte) (Passkey, error) {
	return scanPasskey(ps.tx.row(ctx, passkeyByCredential, credential))
}

// OfAccount returns the passkeys of an account, newest first, at most n.
func (ps Passkeys) OfAccount(ctx context.Context, account string, n int) ([]Passkey, error) {
	rows, err := ps.tx.query(ctx, passkeysOfAccount, account, n)
	return collect(rows, err, scanPasskey)
}

// Use stores counter and backup state after a use, and whether the passkey became
// suspect. ErrNotFound when it was used or deleted since it was read.
func (ps Passkeys) Use(ctx context.Context, read, now Passkey) error {
	return one(ps.tx.write(ctx, `UPDATE passkey SET sign_count = ?, backed_up = ?, suspect = ?, last_used_at = ? WHERE id = ? AND sign_count = ?
		AND suspect = ?`, int64(now.Count), now.BackedUp, now.Suspect, millis(ps.tx.Now), read.ID, int64(read.Count), read.Suspect))
}

// Delete deletes a passkey of an account; ErrNotFound when it has none of that id.
func (ps Passkeys) Delete(ctx context.Context, account, id string) error {
	return one(ps.tx.write(ctx, `DELETE FROM passkey WHERE account = ? AND id = ?`, account, id))
}

// DeleteAll deletes the passkeys of an account.
func (ps Passkeys) DeleteAll(ctx context.Context, account string) error {
	_, err := ps.tx.write(ctx, `DELETE FROM passkey WHERE account = ?`, account)
	return err
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
