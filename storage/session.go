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

// InsertSession stores a session that begins now.
func (tx *Tx) InsertSession(ctx context.Context, s Session) error {
	_, err := tx.write(ctx, `INSERT INTO session (`+sessionColumns+`) VALUES (?, ?, ?, ?, ?, ?, ?)`,
		s.ID, s.Hash[:], s.Account, s.Program, millis(tx.Now), millis(s.ExpiresAt), millis(tx.Now))
	return err
}

// SessionByHash returns a session, also an expired one. ErrNotFound when unknown.
func (tx *Tx) SessionByHash(ctx context.Context, hash [32]byte) (Session, error) {
	return scanSession(tx.row(ctx, `SELECT `+sessionColumns+` FROM session WHERE hash = ?`, hash[:]))
}

// ListSessions returns the sessions of an account that have not expired, newest
// first.
func (tx *Tx) ListSessions(ctx context.Context, account string, limit int, after string) (protocol.Page[Session], error) {
	limit = bounded(limit)
	const listing = "sessions"
	before, err := idPosition(listing, after)
	if err != nil {
		return protocol.Page[Session]{}, err
	}
	rows, err := tx.query(ctx, `SELECT `+sessionColumns+` FROM session WHERE account = ? AND id < ? AND expires_at > ? ORDER BY id DESC LIMIT ?`,
		account, before, millis(tx.Now), limit+1)
	sessions, err := collect(rows, err, scanSession)
	return page(sessions, limit, listing, func(s Session) string { return s.ID }), err
}

// EndSession ends a session of an account; ErrNotFound when it has none of that id.
func (tx *Tx) EndSession(ctx context.Context, account, id string) error {
	return one(tx.write(ctx, `DELETE FROM session WHERE id = ? AND account = ?`, id, account))
}

// EndSessions ends every session of an account and returns how many there were.
func (tx *Tx) EndSessions(ctx context.Context, account string) (int, error) {
	n, err := tx.write(ctx, `DELETE FROM session WHERE account = ?`, account)
	return int(n), err
}

// KeepSessions ends the oldest sessions of an account beyond the newest n.
func (tx *Tx) KeepSessions(ctx context.Context, account string, n int) error {
	_, err := tx.write(ctx, `DELETE FROM session WHERE account = ? AND id NOT IN (SELECT id FROM session WHERE account = ? ORDER BY id DESC LIMIT ?)`,
		account, account, n)
	return err
}

// TouchSession records that a session was used now; ErrNotFound when unknown.
func (tx *Tx) TouchSession(ctx context.Context, id string) error {
	return one(tx.write(ctx, `UPDATE session SET last_used_at = ? WHERE id = ?`, millis(tx.Now), id))
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

// InsertTicket stores a ticket.
func (tx *Tx) InsertTicket(ctx context.Context, t Ticket) error {
	_, err := tx.write(ctx, `INSERT INTO ticket (hash, purpose, account, handle, mail, expires_at) VALUES (?, ?, ?, ?, ?, ?)`,
		t.Hash[:], string(t.Purpose), t.Account, t.Handle, t.Mail, millis(t.ExpiresAt))
	return err
}

// TicketByHash returns a ticket that is still valid, without spending it;
// ErrNotFound when there is none.
func (tx *Tx) TicketByHash(ctx context.Context, hash [32]byte) (t Ticket, err error) {
	var expires int64
	err = tx.row(ctx, `SELECT purpose, account, handle, mail, expires_at FROM ticket WHERE hash = ? AND expires_at > ?`, hash[:], millis(tx.Now)).
		Scan(&t.Purpose, &t.Account, &t.Handle, &t.Mail, &expires)
	t.Hash, t.ExpiresAt = hash, moment(expires)
	return t, err
}

// SpendTicket spends a ticket. If two try at once, one gets ErrNotFound, as for an
// expired ticket.
func (tx *Tx) SpendTicket(ctx context.Context, hash [32]byte) (Ticket, error) {
	t, err := tx.TicketByHash(ctx, hash)
	if err != nil {
		return t, err
	}
	return t, one(tx.write(ctx, `DELETE FROM ticket WHERE hash = ?`, hash[:]))
}

// CountTicketsTo counts the tickets for a purpose that were sent to an address and
// expire after a time, up to 100.
func (tx *Tx) CountTicketsTo(ctx context.Context, purpose TicketPurpose, mail string, after time.Time) (n int, err error) {
	err = tx.row(ctx, `SELECT count(*) FROM (SELECT 1 FROM ticket WHERE expires_at > ? AND purpose = ? AND mail = ? LIMIT 100) r`, millis(after),
		string(purpose), mail).Scan(&n)
	return n, err
}

// CountTicketsOf counts the valid tickets for a purpose of an account or a profile,
// up to 100.
func (tx *Tx) CountTicketsOf(ctx context.Context, purpose TicketPurpose, owner string) (n int, err error) {
	err = tx.row(ctx, `SELECT count(*) FROM (SELECT 1 FROM ticket WHERE expires_at > ? AND purpose = ? AND (account = ? OR handle = ?) LIMIT 100) r`,
		millis(tx.Now), string(purpose), owner, owner).Scan(&n)
	return n, err
}

// DropTickets deletes the tickets of an account for a purpose.
func (tx *Tx) DropTickets(ctx context.Context, account string, purpose TicketPurpose) error {
	_, err := tx.write(ctx, `DELETE FROM ticket WHERE account = ? AND purpose = ?`, account, string(purpose))
	return err
}

// DropTicketsTo deletes the tickets that were sent to an address of an account.
func (tx *Tx) DropTicketsTo(ctx context.Context, account string, purpose TicketPurpose, mail string) error {
	_, err := tx.write(ctx, `DELETE FROM ticket WHERE account = ? AND purpose = ? AND mail = ?`, account, string(purpose), mail)
	return err
}

// PruneSessions deletes some expired sessions and tickets, and returns how many.
func (tx *Tx) PruneSessions(ctx context.Context) (int, error) {
	now := millis(tx.Now)
	sessions, err := tx.deleteSome(ctx, "session", "id", `expires_at < ? ORDER BY expires_at LIMIT 1000`, now)
	if err != nil {
		return 0, err
	}
	tickets, err := tx.deleteSome(ctx, "ticket", "hash", `expires_at < ? ORDER BY expires_at LIMIT 1000`, now)
	return sessions + tickets, err
}
