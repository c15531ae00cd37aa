package account

import (
	"context"
	"errors"
	"strings"
	"time"

	"stoa/identity/session"
	"stoa/protocol"
	"stoa/storage"
)

// List lists accounts for the operators.
func (a *Accounts) List(ctx context.Context, tx *storage.Tx, _ protocol.Caller, in protocol.AccountQuery) (protocol.Page[protocol.KnownAccount], error) {
	found, err := find(ctx, tx, in)
	page := protocol.Page[protocol.KnownAccount]{Items: make([]protocol.KnownAccount, 0, len(found.Items)), Next: found.Next}
	for _, acc := range found.Items {
		known, err := knownAccount(ctx, tx, acc)
		if err != nil {
			return page, err
		}
		page.Items = append(page.Items, known)
	}
	return page, err
}

// find returns accounts: the one with an id, a profile or an address, otherwise those with a part of a name.
func find(ctx context.Context, tx *storage.Tx, in protocol.AccountQuery) (protocol.Page[storage.Account], error) {
	q := strings.TrimSpace(in.Q)
	for _, one := range []func() (storage.Account, error){
		func() (storage.Account, error) { return tx.Accounts().ByID(ctx, q) },
		func() (storage.Account, error) { return tx.Accounts().OfProfile(ctx, protocol.CleanHandle(q)) },
		func() (storage.Account, error) { return tx.Accounts().ByMail(ctx, strings.ToLower(q)) },
	} {
		if q == "" || in.After != "" {
			break
		}
		acc, err := one()
		if err == nil {
			return protocol.Page[storage.Account]{Items: []storage.Account{acc}}, nil
		}
		if !errors.Is(err, storage.ErrNotFound) {
			return protocol.Page[storage.Account]{}, err
		}
	}
	return tx.Accounts().List(ctx, q, in.Size(), in.After)
}

// Holder says who holds a profile.
func (a *Accounts) Holder(ctx context.Context, tx *storage.Tx, _ protocol.Caller, in protocol.HandleInput) (protocol.ProfileHolder, error) {
	p, err := tx.Profiles().ForUpdate(ctx, in.Handle) // also one that is not shown
	if err != nil {
		return protocol.ProfileHolder{}, missing(err, "there is no profile @%s", in.Handle)
	}
	out := protocol.ProfileHolder{Handle: p.Draft.Handle, Name: p.Draft.Name, Kind: p.Draft.Kind, State: p.State, Reason: p.StateReason, Keys: []string{},
		Untrusted: true}
	if p.State != "" {
		out.Since = &p.StateAt
	}
	if p.ERC8004 != "" {
		out.ERC8004 = &p.ERC8004
	}
	keys, err := tx.Keys().OfProfile(ctx, p.Draft.Handle)
	for _, k := range keys {
		if k.RetiredAt == nil {
			out.Keys = append(out.Keys, k.Thumbprint)
		}
	}
	if err != nil {
		return out, err
	}
	acc, err := tx.Accounts().OfProfile(ctx, p.Draft.Handle)
	if err != nil {
		return out, storage.Missing(err, nil)
	}
	known, err := knownAccount(ctx, tx, acc)
	out.Account = &known
	return out, err
}

func knownAccount(ctx context.Context, tx *storage.Tx, acc storage.Account) (protocol.KnownAccount, error) {
	handles, err := tx.Accounts().Handles(ctx, acc.ID)
	out := protocol.KnownAccount{
		ID: acc.ID, Name: acc.Name, Role: acc.Role, CreatedAt: acc.CreatedAt, Untrusted: true,
		Handles: append([]string{}, handles...),
	}
	if acc.Mail != "" {
		out.Mail = &acc.Mail
	}
	return out, err
}

// OpenFor opens an account for an operator, with a link to sign in.
func (a *Accounts) OpenFor(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.NewAccount) (out protocol.OpenedAccount, err error) {
	if in.Role == "" {
		in.Role = protocol.RoleOwner
	}
	acc, err := a.Open(ctx, tx, in.Name, in.Role, in.Mail)
	if err != nil {
		return out, err
	}
	for _, handle := range in.Handles {
		if err := a.Link(ctx, tx, acc.ID, handle); err != nil {
			return out, err
		}
	}
	if out.Account, err = knownAccount(ctx, tx, acc); err != nil {
		return out, err
	}
	if out.SignIn, err = a.signInLink(ctx, tx, acc.ID); err != nil {
		return out, err
	}
	return out, tx.Audit(ctx, c.Actor(), "account create", acc.ID, string(in.Role))
}

// LinkFor makes another link to sign in.
func (a *Accounts) LinkFor(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.AccountRef) (protocol.SignInLink, error) {
	acc, err := a.Named(ctx, tx, in.Account)
	if err != nil {
		return protocol.SignInLink{}, err
	}
	link, err := a.signInLink(ctx, tx, acc.ID)
	if err != nil {
		return protocol.SignInLink{}, err
	}
	return link, tx.Audit(ctx, c.Actor(), "account sign-in", acc.ID, "")
}

// signInLink makes the address of a page that signs in to the account, once and
// within [session.TicketLifetime].
func (a *Accounts) signInLink(ctx context.Context, tx *storage.Tx, account string) (protocol.SignInLink, error) {
	secret, hash := session.New(session.Ticket)
	link := protocol.SignInLink{URL: a.Base + "/sign-in?ticket=" + secret, ExpiresAt: tx.Now.Add(session.TicketLifetime)}
	return link, tx.Tickets().Insert(ctx, storage.Ticket{Hash: hash, Purpose: storage.TicketSignIn, Account: account, ExpiresAt: link.ExpiresAt})
}

// Close deletes an account.
func (a *Accounts) Close(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.AccountRef) (protocol.None, error) {
	acc, err := a.Named(ctx, tx, in.Account)
	if err != nil {
		return protocol.None{}, err
	}
	if err := another(acc, c); err != nil {
		return protocol.None{}, err
	}
	if err := tx.Accounts().Delete(ctx, acc.ID); err != nil {
		return protocol.None{}, err
	}
	return protocol.None{}, tx.Audit(ctx, c.Actor(), "account close", acc.ID, acc.Name)
}

// another refuses the account that the operator uses: with it the last operator would be gone by one slip.
func another(acc storage.Account, c protocol.Caller) error {
	if acc.ID == c.Account {
		return protocol.Errorf(protocol.Conflict, "this is the account that you use; another operator, or stoa admin, does this to it")
	}
	return nil
}

// LinkProfile gives a profile to an account, and removes it from its previous one.
func (a *Accounts) LinkProfile(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.ProfileLink) (protocol.None, error) {
	if err := a.Link(ctx, tx, in.Account, in.Handle); err != nil {
		return protocol.None{}, err
	}
	return protocol.None{}, tx.Audit(ctx, c.Actor(), "account link", in.Account, in.Handle)
}

// UnlinkProfile removes a profile from its account, with its tokens.
func (a *Accounts) UnlinkProfile(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.HandleInput) (protocol.None, error) {
	if err := tx.Accounts().UnlinkProfile(ctx, in.Handle); err != nil {
		return protocol.None{}, missing(err, "no account has a profile @%s", in.Handle)
	}
	return protocol.None{}, tx.Audit(ctx, c.Actor(), "account unlink", in.Handle, "")
}

// SetRole makes an account an owner's or an operator's.
func (a *Accounts) SetRole(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.RoleChange) (protocol.None, error) {
	acc, err := a.Named(ctx, tx, in.Account)
	if err != nil {
		return protocol.None{}, err
	}
	if err := another(acc, c); err != nil {
		return protocol.None{}, err
	}
	if err := tx.Accounts().SetRole(ctx, acc.ID, in.Role); err != nil {
		return protocol.None{}, err
	}
	return protocol.None{}, tx.Audit(ctx, c.Actor(), "account role", acc.ID, string(in.Role))
}

// SetMail gives an account an address that the operator vouches for, "" for none.
func (a *Accounts) SetMail(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.MailChange) (out protocol.AccountMail, err error) {
	acc, err := a.Named(ctx, tx, in.Account)
	if err != nil {
		return out, err
	}
	if acc, err = tx.Accounts().ForUpdate(ctx, acc.ID); err != nil {
		return out, err
	}
	if in.Mail != "" {
		if in.Mail, err = protocol.ParseMail(in.Mail); err != nil {
			return out, err
		}
	}
	return a.moved(ctx, tx, c.Actor(), acc, in.Mail)
}

// SignOut ends every session of an account, and its sign-in links.
func (a *Accounts) SignOut(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.SignOutDraft) (out protocol.SignedOut, err error) {
	acc, err := a.Named(ctx, tx, in.Account)
	if err != nil {
		return out, err
	}
	if err := tx.Tickets().Drop(ctx, acc.ID, storage.TicketSignIn); err != nil {
		return out, err
	}
	if out.Ended, err = tx.Sessions().EndAll(ctx, acc.ID, ""); err != nil {
		return out, err
	}
	detail := ""
	if in.Forget {
		if err := errors.Join(tx.Passkeys().DeleteAll(ctx, acc.ID), tx.RecoveryCodes().Replace(ctx, acc.ID, nil),
			tx.Accounts().SetWallet(ctx, acc.ID, "")); err != nil {
			return out, err
		}
		detail = "passkeys, recovery codes and Ethereum account deleted"
	}
	return out, tx.Audit(ctx, c.Actor(), "account sign-out", acc.ID, detail)
}

// GrantToken makes a token for an operator. If the profile belongs to no account,
// one is opened.
func (a *Accounts) GrantToken(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.TokenGrant) (out protocol.MadeToken, err error) {
	var acc storage.Account
	if in.Handle != "" {
		acc, err = a.OwnerOf(ctx, tx, in.Handle)
	} else {
		acc, err = a.Named(ctx, tx, in.Account)
	}
	if err != nil {
		return out, err
	}
	var expires *time.Time
	if in.Lifetime > 0 {
		expires = new(tx.Now.Add(in.Lifetime))
	}
	return a.makeToken(ctx, tx, c, acc, in.NewToken, expires)
}

// TokensOf lists the tokens that are for one profile, or the newest of an account.
func (a *Accounts) TokensOf(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.AccountRef) (out protocol.Page[protocol.Token], err error) {
	var found []storage.Token
	if protocol.IsID(protocol.AccountID, in.Account) {
		page, wrong := tx.Tokens().OfAccount(ctx, in.Account, protocol.MaxLimit, "")
		found, err = page.Items, wrong
	} else {
		found, err = tx.Tokens().OfProfile(ctx, in.Account)
	}
	out.Items = make([]protocol.Token, 0, len(found))
	for _, t := range found {
		out.Items = append(out.Items, token(t, c))
	}
	return out, err
}

// Named is the account of that id, or the one that a profile belongs to.
func (a *Accounts) Named(ctx context.Context, tx *storage.Tx, name string) (acc storage.Account, err error) {
	if protocol.IsID(protocol.AccountID, name) {
		acc, err = tx.Accounts().ByID(ctx, name)
		return acc, missing(err, "there is no account %s", name)
	}
	acc, err = tx.Accounts().OfProfile(ctx, protocol.CleanHandle(name))
	return acc, missing(err, "no account has a profile @%s", protocol.CleanHandle(name))
}
