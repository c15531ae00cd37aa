package account

import (
	"context"

	"stoa/identity/session"
	"stoa/protocol"
	"stoa/storage"
)

// List lists accounts for the operators.
func (a *Accounts) List(ctx context.Context, tx *storage.Tx, _ protocol.Caller, in protocol.Paging) (protocol.Page[protocol.KnownAccount], error) {
	found, err := tx.ListAccounts(ctx, in.Size(), in.After)
	page := protocol.Page[protocol.KnownAccount]{Items: make([]protocol.KnownAccount, 0, len(found.Items)), Next: found.Next}
	for _, acc := range found.Items {
		known, err := known(ctx, tx, acc)
		if err != nil {
			return page, err
		}
		page.Items = append(page.Items, known)
	}
	return page, err
}

func known(ctx context.Context, tx *storage.Tx, acc storage.Account) (protocol.KnownAccount, error) {
	handles, err := tx.AccountHandles(ctx, acc.ID)
	out := protocol.KnownAccount{
		ID: acc.ID, Name: acc.Name, Role: acc.Role, CreatedAt: acc.CreatedAt, Untrusted: true,
		Handles: append([]string{}, handles...),
	}
	if acc.Mail != "" {
		out.Mail = &acc.Mail
	}
	return out, err
}

// OpenFor opens an account at an operator's word, with a link to sign in.
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
	if out.Account, err = known(ctx, tx, acc); err != nil {
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
	return link, tx.InsertTicket(ctx, storage.Ticket{Hash: hash, Purpose: storage.TicketSignIn, Account: account, ExpiresAt: link.ExpiresAt})
}

// Close takes an account away.
func (a *Accounts) Close(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.AccountRef) (protocol.None, error) {
	acc, err := a.Named(ctx, tx, in.Account)
	if err != nil {
		return protocol.None{}, err
	}
	if acc.ID == c.Account {
		return protocol.None{}, protocol.Errorf(protocol.Conflict, "this is the account that you use; another operator, or stoa admin, closes it")
	}
	if err := tx.DeleteAccount(ctx, acc.ID); err != nil {
		return protocol.None{}, err
	}
	return protocol.None{}, tx.Audit(ctx, c.Actor(), "account close", acc.ID, acc.Name)
}

// Named is the account of that id, or the one that a profile belongs to.
func (a *Accounts) Named(ctx context.Context, tx *storage.Tx, name string) (acc storage.Account, err error) {
	if protocol.IsID(protocol.AccountID, name) {
		acc, err = tx.Account(ctx, name)
		return acc, missing(err, "there is no account %s", name)
	}
	acc, err = tx.AccountOf(ctx, protocol.CleanHandle(name))
	return acc, missing(err, "no account has a profile @%s", protocol.CleanHandle(name))
}
