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

var sessionTable = tableOf[Session]("session")

// Sessions reads and writes the sessions of signed-in browsers.
type Sessions struct{ tx *Tx }

func (tx *Tx) Sessions() Sessions { return Sessions{tx} }

// Insert stores a session. A zero CreatedAt means now.
func (ss Sessions) Insert(ctx context.Context, s Session) error {
	if s.CreatedAt.IsZero() {
		s.CreatedAt = ss.tx.Now
	}
	s.LastUsedAt = ss.tx.Now
	text, args, err := sessionTable.statement(&s, "")
	if err == nil {
		_, err = ss.tx.writeAside(ctx, text, args...)
	}
	return err
}

// ByHash returns a session, also an expired one. ErrNotFound when unknown.
func (ss Sessions) ByHash(ctx context.Context, hash [32]byte) (Session, error) {
	return find[Session](ctx, ss.tx, sessionTable.from+`WHERE hash = ?`, hash[:])
}

// ByID returns a session, also an expired one. ErrNotFound when unknown.
func (ss Sessions) ByID(ctx context.Context, id string) (Session, error) {
	return find[Session](ctx, ss.tx, sessionTable.from+`WHERE id = ?`, id)
}

// List returns the sessions of an account that have not expired, newest first.
func (ss Sessions) List(ctx context.Context, account string, limit int, after string) (protocol.Page[Session], error) {
	return newest[Session](ctx, ss.tx, "sessions", "id", limit, after,
		sessionTable.from+`WHERE account = ? AND expires_at > ? AND id < ? ORDER BY id DESC LIMIT ?`, account, millis(ss.tx.Now))
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
	return ss.tx.exec(ctx, `DELETE FROM session WHERE account = ? AND id NOT IN (SELECT id FROM session WHERE account = ? ORDER BY id DESC LIMIT ?)`,
		account, account, n)
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
	TicketOperator    TicketPurpose = "operator"     // makes the first operator, an account that is not there yet
)

// A Ticket is a one-time secret that was handed out.
type Ticket struct {
	Hash                  [32]byte
	Purpose               TicketPurpose
	Account, Handle, Mail string
	ExpiresAt             time.Time
}

var ticketTable = tableOf[Ticket]("ticket")

// Tickets reads and writes one-time secrets.
type Tickets struct{ tx *Tx }

func (tx *Tx) Tickets() Tickets { return Tickets{tx} }

// Insert stores a ticket.
func (ts Tickets) Insert(ctx context.Context, t Ticket) error {
	return ticketTable.insert(ctx, ts.tx, &t)
}

// ByHash returns a ticket that is still valid, without spending it;
// ErrNotFound when there is none.
func (ts Tickets) ByHash(ctx context.Context, hash [32]byte) (Ticket, error) {
	return find[Ticket](ctx, ts.tx, ticketTable.from+`WHERE hash = ? AND expires_at > ?`, hash[:], millis(ts.tx.Now))
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
func (ts Tickets) CountTo(ctx context.Context, purpose TicketPurpose, mail string, after time.Time) (int, error) {
	return find[int](ctx, ts.tx, `SELECT count(*) FROM (SELECT 1 FROM ticket WHERE expires_at > ? AND purpose = ? AND mail = ? LIMIT 100) r`, millis(after),
		string(purpose), mail)
}

// CountOf counts the valid tickets for a purpose of an account or a profile, up to
// 100.
func (ts Tickets) CountOf(ctx context.Context, purpose TicketPurpose, owner string) (int, error) {
	return find[int](ctx, ts.tx, `SELECT count(*) FROM (SELECT 1 FROM ticket WHERE expires_at > ? AND purpose = ? AND (account = ? OR handle = ?) LIMIT 100) r`,
		millis(ts.tx.Now), string(purpose), owner, owner)
}

// Drop deletes the tickets of an account for a purpose.
func (ts Tickets) Drop(ctx context.Context, account string, purpose TicketPurpose) error {
	return ts.tx.exec(ctx, `DELETE FROM ticket WHERE account = ? AND purpose = ?`, account, string(purpose))
}

// DropTo deletes the tickets that were sent to an address of an account.
func (ts Tickets) DropTo(ctx context.Context, account string, purpose TicketPurpose, mail string) error {
	return ts.tx.exec(ctx, `DELETE FROM ticket WHERE account = ? AND purpose = ? AND mail = ?`, account, string(purpose), mail)
}
