package storage

import (
	"context"
	"time"

	"stoa/protocol"
)

// A Session is a signed-in browser. Only the hash of its secret is stored.
type Session struct {
	ID                               string
	Hash                             [32]byte
	Account                          string
	Program                          string // the browser's name for itself
	CreatedAt, ExpiresAt, LastUsedAt time.Time
}

const sessionColumns = `id, hash, account, program, created_at, expires_at, last_used_at`

func scanSession(s scanner) (x Session, err error) {
	var hash []byte
	var created, expires, used int64
	err = s.Scan(&x.ID, &hash, &x.Account, &x.Program, &created, &expires, &used)
	copy(x.Hash[:], hash)
	x.CreatedAt, x.ExpiresAt, x.LastUsedAt = moment(created), moment(expires), moment(used)
	return x, err
}

// Sessions reads and writes the sessions of signed-in browsers.
type Sessions struct{ tx *Tx }

func (tx *Tx) Sessions() Sessions { return Sessions{tx} }

// Insert stores a session. A zero CreatedAt means now.
func (ss Sessions) Insert(ctx context.Context, s Session) error {
	if s.CreatedAt.IsZero() {
		s.CreatedAt = ss.tx.Now
	}
	_, err := ss.tx.writeAside(ctx, `INSERT INTO session (`+sessionColumns+`) VALUES (?, ?, ?, ?, ?, ?, ?)`,
		s.ID, s.Hash[:], s.Account, s.Program, millis(s.CreatedAt), millis(s.ExpiresAt), millis(ss.tx.Now))
	return err
}

// ByHash returns a session, also an expired one. ErrNotFound when unknown.
func (ss Sessions) ByHash(ctx context.Context, hash [32]byte) (Session, error) {
	return scanSession(ss.tx.row(ctx, `SELECT `+sessionColumns+` FROM session WHERE hash = ?`, hash[:]))
}

// ByID returns a session, also an expired one. ErrNotFound when unknown.
func (ss Sessions) ByID(ctx context.Context, id string) (Session, error) {
	return scanSession(ss.tx.row(ctx, `SELECT `+sessionColumns+` FROM session WHERE id = ?`, id))
}

// List returns the sessions of an account that have not expired, newest first.
func (ss Sessions) List(ctx context.Context, account string, limit int, after string) (protocol.Page[Session], error) {
	limit = bounded(limit)
	const listing = "sessions"
	before, err := idPosition(listing, after)
	if err != nil {
		return protocol.Page[Session]{}, err
	}
	rows, err := ss.tx.query(ctx, `SELECT `+sessionColumns+` FROM session WHERE account = ? AND id < ? AND expires_at > ? ORDER BY id DESC LIMIT ?`,
		account, before, millis(ss.tx.Now), limit+1)
	sessions, err := collect(rows, err, scanSession)
	return page(sessions, limit, listing, func(s Session) string { return s.ID }), err
}

// End ends a session of an account; ErrNotFound when it has none of that id.
func (ss Sessions) End(ctx context.Context, account, id string) error {
	return one(ss.tx.write(ctx, `DELETE FROM session WHERE id = ? AND account = ?`, id, account))
}

// EndAll ends every session of an account but one, "" for none, and returns how many there were.
func (ss Sessions) EndAll(ctx context.Context, account, but string) (int, error) {
	n, err := ss.tx.write(ctx, `DELETE FROM session WHERE account = ? AND id <> ?`, account, but)
	return int(n), err
}

// KeepNewest ends the oldest sessions of an account beyond the newest n.
func (ss Sessions) KeepNewest(ctx context.Context, account string, n int) error {
	_, err := ss.tx.write(ctx, `DELETE FROM session WHERE account = ? AND id NOT IN (SELECT id FROM session WHERE account = ? ORDER BY id DESC LIMIT ?)`,
		account, account, n)
	return err
}

// Touch records that a session was used now; ErrNotFound when unknown.
func (ss Sessions) Touch(ctx context.Context, id string) error {
	return one(ss.tx.writeAside(ctx, `UPDATE session SET last_used_at = ? WHERE id = ?`, millis(ss.tx.Now), id))
}

// A TicketPurpose is what a one-time secret may be used for.
type TicketPurpose string

const (
	TicketSignIn      TicketPurpose = "sign-in"      // begins a session of the account
	TicketNoticeMail  TicketPurpose = "notice-mail"  // confirms Mail for notices about Handle
	TicketAccountMail TicketPurpose = "account-mail" // confirms Mail as the address of the account
	TicketFormerMail  TicketPurpose = "former-mail"  // opens nothing: Mail, which was the account's, is to be told so
)

// A Ticket is a one-time secret that was handed out.
type Ticket struct {
	Hash                  [32]byte
	Purpose               TicketPurpose
	Account, Handle, Mail string
	ExpiresAt             time.Time
}

// Tickets reads and writes one-time secrets.
type Tickets struct{ tx *Tx }

func (tx *Tx) Tickets() Tickets { return Tickets{tx} }

// Insert stores a ticket.
func (ts Tickets) Insert(ctx context.Context, t Ticket) error {
	_, err := ts.tx.write(ctx, `INSERT INTO ticket (hash, purpose, account, handle, mail, expires_at) VALUES (?, ?, ?, ?, ?, ?)`,
		t.Hash[:], string(t.Purpose), t.Account, t.Handle, t.Mail, millis(t.ExpiresAt))
	return err
}

// ByHash returns a ticket that is still valid, without spending it;
// ErrNotFound when there is none.
func (ts Tickets) ByHash(ctx context.Context, hash [32]byte) (t Ticket, err error) {
	var expires int64
	err = ts.tx.row(ctx, `SELECT purpose, account, handle, mail, expires_at FROM ticket WHERE hash = ? AND expires_at > ?`, hash[:], millis(ts.tx.Now)).
		Scan(&t.Purpose, &t.Account, &t.Handle, &t.Mail, &expires)
	t.Hash, t.ExpiresAt = hash, moment(expires)
	return t, err
}

// Spend spends a ticket. If two try at once, one gets ErrNotFound, as for an
// expired ticket.
func (ts Tickets) Spend(ctx context.Context, hash [32]byte) (Ticket, error) {
	t, err := ts.ByHash(ctx, hash)
	if err != nil {
		return t, err
	}
	return t, one(ts.tx.write(ctx, `DELETE FROM ticket WHERE hash = ?`, hash[:]))
}

// CountTo counts the tickets for a purpose that were sent to an address and expire
// after a time, up to 100.
func (ts Tickets) CountTo(ctx context.Context, purpose TicketPurpose, mail string, after time.Time) (n int, err error) {
	err = ts.tx.row(ctx, `SELECT count(*) FROM (SELECT 1 FROM ticket WHERE expires_at > ? AND purpose = ? AND mail = ? LIMIT 100) r`, millis(after),
		string(purpose), mail).Scan(&n)
	return n, err
}

// CountOf counts the valid tickets for a purpose of an account or a profile, up to
// 100.
func (ts Tickets) CountOf(ctx context.Context, purpose TicketPurpose, owner string) (n int, err error) {
	err = ts.tx.row(ctx, `SELECT count(*) FROM (SELECT 1 FROM ticket WHERE expires_at > ? AND purpose = ? AND (account = ? OR handle = ?) LIMIT 100) r`,
		millis(ts.tx.Now), string(purpose), owner, owner).Scan(&n)
	return n, err
}

// Drop deletes the tickets of an account for a purpose.
func (ts Tickets) Drop(ctx context.Context, account string, purpose TicketPurpose) error {
	_, err := ts.tx.write(ctx, `DELETE FROM ticket WHERE account = ? AND purpose = ?`, account, string(purpose))
	return err
}

// DropTo deletes the tickets that were sent to an address of an account.
func (ts Tickets) DropTo(ctx context.Context, account string, purpose TicketPurpose, mail string) error {
	_, err := ts.tx.write(ctx, `DELETE FROM ticket WHERE account = ? AND purpose = ? AND mail = ?`, account, string(purpose), mail)
	return err
}
