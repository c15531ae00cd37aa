package account

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"stoa/node/hall"
	"stoa/protocol"
	"stoa/storage"
)

// Credentials lists what acts for the account or as one of its profiles.
func (a *Accounts) Credentials(ctx context.Context, tx *storage.Tx, c protocol.Caller, _ protocol.None) (protocol.Credentials, error) {
	items, err := a.held(ctx, tx, c)
	return protocol.Credentials{Items: items}, err
}

// held returns the caller's credentials, with the names that the owner gave them.
func (a *Accounts) held(ctx context.Context, tx *storage.Tx, c protocol.Caller) ([]protocol.HeldCredential, error) {
	all := []protocol.HeldCredential{}
	for _, read := range []func(context.Context, *storage.Tx, protocol.Caller) ([]protocol.HeldCredential, error){
		heldOnChain, heldKeys, heldPasskeys, heldSessions, heldDevices, heldTokens,
	} {
		some, err := read(ctx, tx, c)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	names, err := tx.CredentialNames().Of(ctx, c.Account)
	for i, h := range all {
		if name := names[[2]string{string(h.Kind), h.ID}]; name != "" {
			all[i].Name = name
		}
	}
	return all, err
}

// heldOnChain are the identities, then the wallets, then the delegated keys.
func heldOnChain(ctx context.Context, tx *storage.Tx, c protocol.Caller) (identities []protocol.HeldCredential, err error) {
	acc, err := tx.Accounts().ByID(ctx, c.Account)
	if err != nil {
		return nil, err
	}
	var wallets, delegated []protocol.HeldCredential
	wallet := func(address string, handle *string) {
		if address != "" && !slices.ContainsFunc(wallets, func(h protocol.HeldCredential) bool { return h.ID == address }) {
			wallets = append(wallets, protocol.HeldCredential{Kind: protocol.HeldWallet, ID: address, Detail: address, Handle: handle, Removable: handle == nil})
		}
	}
	wallet(acc.Wallet, nil)
	for _, handle := range c.Handles {
		p, err := tx.Profiles().Own(ctx, handle)
		if err != nil {
			return nil, err
		}
		if p.ERC8004 == "" {
			continue
		}
		e, err := tx.Enrolments().ByIdentity(ctx, p.ERC8004)
		if err != nil {
			return nil, err
		}
		identities = append(identities, protocol.HeldCredential{Kind: protocol.HeldIdentity, ID: e.ERC8004, Detail: e.ERC8004, Handle: &handle,
			CreatedAt: moment(e.MadeAt), Removable: true})
		wallet(e.Owner, &handle)
		wallet(e.Wallet, &handle)
		keys, err := tx.DelegatedKeys().Of(ctx, e.ERC8004, protocol.MaxHeld)
		if err != nil {
			return nil, err
		}
		for _, k := range keys {
			delegated = append(delegated, protocol.HeldCredential{Kind: protocol.HeldDelegated, ID: k.Thumbprint, Detail: k.Thumbprint, Handle: &handle,
				CreatedAt: &k.CreatedAt, LastUsedAt: k.LastUsedAt, EndsAt: &k.EndsAt, Removable: true})
		}
	}
	return slices.Concat(identities, wallets, delegated), nil
}

// moment returns a time, nil for the zero one.
func moment(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

func heldKeys(ctx context.Context, tx *storage.Tx, c protocol.Caller) (all []protocol.HeldCredential, err error) {
	for _, handle := range c.Handles {
		keys, err := tx.Keys().OfProfile(ctx, handle)
		if err != nil {
			return nil, err
		}
		for _, k := range keys {
			if k.RetiredAt == nil && len(all) < protocol.MaxHeld {
				all = append(all, protocol.HeldCredential{Kind: protocol.HeldKey, ID: k.Thumbprint, Detail: k.Thumbprint, Handle: &handle,
					CreatedAt: &k.CreatedAt, LastUsedAt: k.LastUsedAt, Removable: !k.OnChain})
			}
		}
	}
	return all, nil
}

func heldPasskeys(ctx context.Context, tx *storage.Tx, c protocol.Caller) (all []protocol.HeldCredential, err error) {
	keys, err := tx.Passkeys().OfAccount(ctx, c.Account, protocol.MaxPasskeys)
	for _, k := range keys {
		all = append(all, protocol.HeldCredential{Kind: protocol.HeldPasskey, ID: k.ID, Name: k.Name, Detail: k.Domain,
			CreatedAt: &k.CreatedAt, LastUsedAt: k.LastUsedAt, Removable: true})
	}
	return all, err
}

func heldSessions(ctx context.Context, tx *storage.Tx, c protocol.Caller) (all []protocol.HeldCredential, err error) {
	page, err := tx.Sessions().List(ctx, c.Account, protocol.MaxHeld, "")
	for _, s := range page.Items {
		all = append(all, protocol.HeldCredential{Kind: protocol.HeldSession, ID: s.ID, Detail: s.Program,
			CreatedAt: &s.CreatedAt, LastUsedAt: &s.LastUsedAt, EndsAt: &s.ExpiresAt, Current: s.ID == c.Secret, Removable: true})
	}
	return all, err
}

func heldDevices(ctx context.Context, tx *storage.Tx, c protocol.Caller) (all []protocol.HeldCredential, err error) {
	devices, err := tx.Devices().Of(ctx, c.Account)
	for _, d := range devices {
		all = append(all, protocol.HeldCredential{Kind: protocol.HeldDevice, ID: d.ID, Detail: d.Program,
			CreatedAt: &d.CreatedAt, Removable: true})
	}
	return all, err
}

func heldTokens(ctx context.Context, tx *storage.Tx, c protocol.Caller) (all []protocol.HeldCredential, err error) {
	page, err := tx.Tokens().OfAccount(ctx, c.Account, protocol.MaxHeld, "")
	for _, t := range page.Items {
		if t.RevokedAt != nil || t.ExpiresAt != nil && !t.ExpiresAt.After(tx.Now) {
			continue
		}
		all = append(all, protocol.HeldCredential{Kind: protocol.HeldToken, ID: t.ID, Name: t.Name, Handle: token(t, c).Handle,
			Detail: strings.Join(t.Scopes, " "), CreatedAt: &t.CreatedAt, LastUsedAt: t.LastUsedAt, EndsAt: t.ExpiresAt, Current: t.ID == c.Secret,
			Removable: true})
	}
	return all, err
}

// find returns a credential of the caller, and all of them.
func (a *Accounts) find(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.CredentialRef) (h protocol.HeldCredential,
	all []protocol.HeldCredential, err error,
) {
	all, err = a.held(ctx, tx, c)
	if err != nil {
		return h, nil, err
	}
	i := slices.IndexFunc(all, func(h protocol.HeldCredential) bool { return h.Kind == in.Kind && h.ID == in.ID })
	if i < 0 {
		return h, nil, protocol.Errorf(protocol.NotFound, "the account has no %s with that id", in.Kind)
	}
	return all[i], all, nil
}

// RenameCredential gives a credential another name.
func (a *Accounts) RenameCredential(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.CredentialName) (protocol.HeldCredential, error) {
	h, all, err := a.find(ctx, tx, c, in.CredentialRef)
	if err != nil {
		return h, err
	}
	h.Name = in.Name
	switch in.Kind {
	case protocol.HeldPasskey:
		err = tx.Passkeys().Rename(ctx, c.Account, in.ID, in.Name)
	case protocol.HeldToken:
		err = tx.Tokens().Rename(ctx, c.Account, in.ID, in.Name)
	default:
		err = errors.Join(keepNames(ctx, tx, c.Account, all),
			tx.CredentialNames().Put(ctx, storage.CredentialName{Account: c.Account, Kind: string(in.Kind), ID: in.ID, Name: in.Name}))
	}
	if err != nil {
		return h, err
	}
	return h, tx.Audit(ctx, c.Actor(), "credential rename", in.ID, in.Name)
}

// keepNames deletes the names of what is no longer there, so that an account has no more names than credentials.
func keepNames(ctx context.Context, tx *storage.Tx, account string, all []protocol.HeldCredential) error {
	names, err := tx.CredentialNames().Of(ctx, account)
	for named := range names {
		there := slices.ContainsFunc(all, func(h protocol.HeldCredential) bool { return string(h.Kind) == named[0] && h.ID == named[1] })
		if !there && err == nil {
			err = tx.CredentialNames().Delete(ctx, account, named[0], named[1])
		}
	}
	return err
}

// RemoveCredential ends a credential, as the operation of its kind does.
func (a *Accounts) RemoveCredential(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.CredentialRef) (none protocol.None, err error) {
	if !protocol.IsID(protocol.SessionID, c.Secret) { // the scopes of a token may not be enough for every kind
		return none, errNoBrowser
	}
	h, _, err := a.find(ctx, tx, c, in)
	if err != nil {
		return none, err
	}
	if !h.Removable {
		return none, protocol.Errorf(protocol.Conflict, "the chain says so, and only its owner changes that there (stoa identity keys, drop, transfer); "+
			"remove the identity to end what it does here")
	}
	var owned protocol.Owned
	if h.Handle != nil {
		owned.Handle = *h.Handle
	}
	switch in.Kind {
	case protocol.HeldIdentity:
		err = a.dropIdentity(ctx, tx, c, owned)
	case protocol.HeldWallet:
		_, err = a.RemoveWallet(ctx, tx, c, none)
	case protocol.HeldKey:
		_, err = a.RetireKey(ctx, tx, c, protocol.KeyRef{Owned: owned, KeyID: in.ID})
	case protocol.HeldDelegated:
		err = a.undelegate(ctx, tx, c, owned, in.ID)
	case protocol.HeldPasskey:
		_, err = a.DeletePasskey(ctx, tx, c, protocol.PasskeyRef{ID: in.ID})
	case protocol.HeldSession:
		_, err = a.EndSession(ctx, tx, c, protocol.SessionRef{ID: in.ID})
	case protocol.HeldDevice:
		_, err = a.DeleteDevice(ctx, tx, c, protocol.DeviceRef{ID: in.ID})
	case protocol.HeldToken:
		_, err = a.RevokeToken(ctx, tx, c, protocol.TokenRef{ID: in.ID})
	}
	if err != nil {
		return none, err
	}
	return none, tx.CredentialNames().Delete(ctx, c.Account, string(in.Kind), in.ID)
}

func (a *Accounts) dropIdentity(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.Owned) error {
	p, err := hall.Own(ctx, tx, c, in)
	if err != nil {
		return err
	}
	return tx.Enrolments().Drop(ctx, c.Actor(), p)
}

// undelegate deletes a delegated key of the identity of a profile.
func (a *Accounts) undelegate(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.Owned, thumbprint string) error {
	p, err := hall.Own(ctx, tx, c, in)
	if err == nil {
		err = missing(tx.DelegatedKeys().DeleteOne(ctx, p.ERC8004, thumbprint), "the identity has no such key")
	}
	if err != nil {
		return err
	}
	return tx.Audit(ctx, c.Actor(), "key undelegate", p.Draft.Handle, thumbprint)
}
