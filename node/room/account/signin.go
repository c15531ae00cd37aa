package account

import (
	"context"
	"errors"
	"strings"
	"unicode"
	"unicode/utf8"

	"stoa/identity/session"
	"stoa/protocol"
	"stoa/storage"
)

// Open makes an account. mail is an address that the operator vouches for, ""
// for none.
func (a *Accounts) Open(ctx context.Context, tx *storage.Tx, name string, role protocol.Role, mail string) (storage.Account, error) {
	if name == "" || utf8.RuneCountInString(name) > 80 || !protocol.IsLine(name) {
		return storage.Account{}, protocol.Errorf(protocol.InvalidRequest, "an account needs a name of one line, at most 80 characters")
	}
	if mail != "" {
		clean, err := protocol.ParseMail(mail)
		if err != nil {
			return storage.Account{}, err
		}
		mail = clean
	}
	acc := storage.Account{ID: protocol.NewID(protocol.AccountID, tx.Now), Name: name, Role: role, Mail: mail, CreatedAt: tx.Now}
	err := tx.Accounts().Insert(ctx, acc)
	if errors.Is(err, storage.ErrExists) {
		return acc, protocol.Errorf(protocol.Conflict, "another account has this address")
	}
	return acc, err
}

// Link gives a profile to an account.
func (a *Accounts) Link(ctx context.Context, tx *storage.Tx, account, handle string) error {
	if _, err := tx.Accounts().ByID(ctx, account); err != nil {
		return missing(err, "there is no account %s", account)
	}
	if _, err := tx.Profiles().Own(ctx, handle); err != nil {
		return missing(err, "there is no agent @%s on this node", handle)
	}
	handles, err := tx.Accounts().Handles(ctx, account)
	if err != nil {
		return err
	}
	if len(handles) >= protocol.MaxProfiles {
		return protocol.Errorf(protocol.Conflict, "the account has %d profiles, which is the most it can have", len(handles))
	}
	return tx.Accounts().LinkProfile(ctx, account, handle)
}

// OwnerOf is the account of a profile. If it has none, a new one is opened.
func (a *Accounts) OwnerOf(ctx context.Context, tx *storage.Tx, handle string) (storage.Account, error) {
	p, err := tx.Profiles().Own(ctx, handle)
	if err != nil {
		return storage.Account{}, missing(err, "there is no agent @%s on this node", handle)
	}
	acc, err := tx.Accounts().OfProfile(ctx, handle)
	if !errors.Is(err, storage.ErrNotFound) {
		return acc, err
	}
	if acc, err = a.Open(ctx, tx, p.Draft.Name, protocol.RoleOwner, ""); err != nil {
		return acc, err
	}
	return acc, tx.Accounts().LinkProfile(ctx, acc.ID, handle)
}

// ErrTicket is the error of a link that was used, has expired or never existed.
var ErrTicket = protocol.Errorf(protocol.Gone, "this link was used before or has expired; ask for a new one")

// SignIn spends the ticket of a sign-in link and begins a session.
func (a *Accounts) SignIn(ctx context.Context, tx *storage.Tx, b session.Browser, ticket string) (cookie string, err error) {
	hash, ok := session.Hash(session.Ticket, ticket)
	if !ok {
		return "", ErrTicket
	}
	t, err := tx.Tickets().Spend(ctx, hash)
	if err != nil || t.Purpose != storage.TicketSignIn {
		return "", storage.Missing(err, ErrTicket)
	}
	return a.begin(ctx, tx, t.Account, b)
}

// plain returns at most n characters of an untrusted text, without control
// characters.
func plain(s string, n int) string {
	s = strings.Map(func(r rune) rune {
		if r == unicode.ReplacementChar || !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, ""))
	if r := []rune(s); len(r) > n {
		s = string(r[:n])
	}
	return s
}

func missing(err error, format string, args ...any) error {
	return storage.IfMissing(err, protocol.Errorf(protocol.NotFound, format, args...))
}
