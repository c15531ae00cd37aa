package node

import (
	"context"
	"time"

	"stoa/protocol"
	"stoa/storage"
)

// OpenAccount makes an account, gives it profiles, and returns it with the
// address of a page that signs in to it once. mail may be "".
func (a *Admin) OpenAccount(ctx context.Context, name string, role protocol.Role, mail string, handles []string) (acc protocol.KnownAccount, link string, err error) {
	var out protocol.OpenedAccount
	err = a.Operate(ctx, protocol.OpenAccount.Operation, protocol.NewAccount{Name: name, Role: role, Mail: mail, Handles: handles}, &out)
	return out.Account, out.SignIn.URL, err
}

// SignInLink makes another one-time link for an account, named by its id or by one
// of its profiles.
func (a *Admin) SignInLink(ctx context.Context, account string) (string, error) {
	var link protocol.SignInLink
	err := a.Operate(ctx, protocol.MakeSignInLink.Operation, protocol.AccountRef{Account: account}, &link)
	return link.URL, err
}

// SetMail gives an account the address that sign-in links go to, "" for none.
func (a *Admin) SetMail(ctx context.Context, account, mail string) error {
	return a.write(ctx, func(ctx context.Context, tx *storage.Tx) error {
		acc, err := a.accounts.Named(ctx, tx, account)
		if err != nil {
			return err
		}
		_, err = a.accounts.SetMail(ctx, tx, "operator", acc.ID, mail)
		return err
	})
}

// LinkProfile gives a profile to an account, whosever it was before.
func (a *Admin) LinkProfile(ctx context.Context, account, handle string) error {
	return a.write(ctx, func(ctx context.Context, tx *storage.Tx) error {
		if err := a.accounts.Link(ctx, tx, account, handle); err != nil {
			return err
		}
		return tx.Audit(ctx, "operator", "account link", account, handle)
	})
}

// UnlinkProfile takes a profile from its account, with its tokens.
func (a *Admin) UnlinkProfile(ctx context.Context, handle string) error {
	return a.write(ctx, func(ctx context.Context, tx *storage.Tx) error {
		if err := tx.UnlinkProfile(ctx, handle); err != nil {
			return notFound(err, "no account has a profile @%s", handle)
		}
		return tx.Audit(ctx, "operator", "account unlink", handle, "")
	})
}

// SetRole makes an account an owner's or an operator's.
func (a *Admin) SetRole(ctx context.Context, account string, role protocol.Role) error {
	return a.write(ctx, func(ctx context.Context, tx *storage.Tx) error {
		acc, err := a.accounts.Named(ctx, tx, account)
		if err != nil {
			return err
		}
		if err := tx.SetAccountRole(ctx, acc.ID, role); err != nil {
			return err
		}
		return tx.Audit(ctx, "operator", "account role", acc.ID, string(role))
	})
}

// SignOut ends every session of an account and takes back its sign-in links.
func (a *Admin) SignOut(ctx context.Context, account string) (ended int, err error) {
	err = a.write(ctx, func(ctx context.Context, tx *storage.Tx) error {
		acc, err := a.accounts.Named(ctx, tx, account)
		if err != nil {
			return err
		}
		if err := tx.DropTickets(ctx, acc.ID, storage.TicketSignIn); err != nil {
			return err
		}
		if ended, err = tx.EndSessions(ctx, acc.ID); err != nil {
			return err
		}
		return tx.Audit(ctx, "operator", "account sign-out", acc.ID, "")
	})
	return ended, err
}

// CreateToken makes an API token for one profile, of the account the profile
// belongs to; one that belongs to none gets an account. Without scopes the token
// may do all that an owner may with a profile. The secret is returned once and
// stored as a hash; a zero ttl is no end.
func (a *Admin) CreateToken(ctx context.Context, handle, name string, ttl time.Duration, scopes ...protocol.Scope) (secret string, t storage.Token, err error) {
	err = a.write(ctx, func(ctx context.Context, tx *storage.Tx) error {
		acc, err := a.accounts.OwnerOf(ctx, tx, handle)
		if err != nil {
			return err
		}
		if len(scopes) == 0 {
			scopes = protocol.OwnerScopes
		}
		t, secret, err = a.newToken(ctx, tx, acc, handle, name, ttl, scopes)
		return err
	})
	return secret, t, err
}

// CreateAccountToken makes an API token for every profile of an account; the
// scope operator takes an operator's account.
func (a *Admin) CreateAccountToken(ctx context.Context, account, name string, ttl time.Duration, scopes ...protocol.Scope) (secret string, t storage.Token, err error) {
	err = a.write(ctx, func(ctx context.Context, tx *storage.Tx) error {
		acc, err := a.accounts.Named(ctx, tx, account)
		if err != nil {
			return err
		}
		t, secret, err = a.newToken(ctx, tx, acc, "", name, ttl, scopes)
		return err
	})
	return secret, t, err
}

func (a *Admin) newToken(ctx context.Context, tx *storage.Tx, acc storage.Account, handle, name string, ttl time.Duration, scopes []protocol.Scope) (storage.Token, string, error) {
	in := protocol.NewToken{Name: name, Scopes: scopes, Handle: handle}
	faults, err := a.schemas.CheckStruct(in)
	if err != nil {
		return storage.Token{}, "", err
	}
	if len(faults) == 0 {
		faults = in.Check()
	}
	if len(faults) > 0 {
		return storage.Token{}, "", protocol.Invalid(faults...)
	}
	for _, s := range scopes {
		if s == protocol.ScopeOperator && acc.Role != protocol.RoleOperator {
			return storage.Token{}, "", protocol.Errorf(protocol.Forbidden, "the scope operator takes an operator's account; %s is an owner's", acc.ID)
		}
	}
	t := storage.Token{Account: acc.ID, Handle: handle, Name: name}
	if ttl > 0 {
		t.ExpiresAt = new(tx.Now.Add(ttl))
	}
	t, secret, err := a.accounts.NewToken(ctx, tx, t, scopes)
	if err != nil {
		return t, "", err
	}
	return t, secret, tx.Audit(ctx, "operator", "token create", acc.ID, t.ID)
}

// Tokens lists the API tokens that are for one profile, or those of an account
// where its id is given, without their secrets.
func (a *Admin) Tokens(ctx context.Context, handle string) (tokens []storage.Token, err error) {
	err = a.DB.Read(ctx, func(ctx context.Context, tx *storage.Tx) error {
		if protocol.IsID(protocol.AccountID, handle) {
			page, err := tx.AccountTokens(ctx, handle, protocol.MaxLimit, "")
			tokens = page.Items
			return err
		}
		tokens, err = tx.ListTokens(ctx, protocol.CleanHandle(handle))
		return err
	})
	return tokens, err
}

// RevokeToken ends an API token; other processes notice within two seconds.
func (a *Admin) RevokeToken(ctx context.Context, id string) error {
	return a.write(ctx, func(ctx context.Context, tx *storage.Tx) error {
		if err := tx.RevokeToken(ctx, id); err != nil {
			return notFound(err, "there is no token %s", id)
		}
		return tx.Audit(ctx, "operator", "token revoke", id, "")
	})
}
