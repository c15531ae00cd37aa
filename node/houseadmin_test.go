package node

import (
	"context"
	"encoding/json"
	"time"

	"stoa/identity/key"
	"stoa/protocol"
	"stoa/storage"
)

// An admin has short hands for the operator's operations.
type admin struct{ *Admin }

func (h *house) Admin() admin { return admin{h.Node.Admin()} }

func made[T any](_ T, err error) error { return err }

func handled(handle string) protocol.HandleInput { return protocol.HandleInput{Handle: handle} }

func owned(handle string) protocol.Owned { return protocol.Owned{Handle: handle} }

func (a admin) PutProfile(ctx context.Context, raw []byte) (p protocol.Profile, created bool, err error) {
	var out protocol.WrittenProfile
	if err := a.Operate(ctx, protocol.PutProfile.Operation, json.RawMessage(raw), &out); err != nil {
		return p, false, err
	}
	var in protocol.HandleInput
	if err := json.Unmarshal(raw, &in); err != nil {
		return p, false, err
	}
	p, err = a.Profile(ctx, in.Handle)
	return p, out.Created, err
}

func (a admin) Profile(ctx context.Context, handle string) (protocol.Profile, error) {
	return Do(ctx, a.Admin, protocol.GetAgentProfile, handled(handle))
}

func (a admin) DeleteProfile(ctx context.Context, handle string) error {
	return made(Do(ctx, a.Admin, protocol.DeleteProfile, handled(handle)))
}

func (a admin) PutMerchant(ctx context.Context, handle string, raw []byte) (r protocol.MerchantRecord, err error) {
	var in map[string]any
	if err := json.Unmarshal(raw, &in); err != nil {
		return r, err
	}
	in["handle"] = handle
	return r, a.Operate(ctx, protocol.PutMerchant.Operation, in, &r)
}

func (a admin) OpenAccount(ctx context.Context, name string, role protocol.Role, mail string, handles []string) (protocol.KnownAccount, string, error) {
	out, err := Do(ctx, a.Admin, protocol.OpenAccount, protocol.NewAccount{Name: name, Role: role, Mail: mail, Handles: handles})
	return out.Account, out.SignIn.URL, err
}

func (a admin) SignInLink(ctx context.Context, account string) (string, error) {
	link, err := Do(ctx, a.Admin, protocol.MakeSignInLink, protocol.AccountRef{Account: account})
	return link.URL, err
}

func (a admin) SetMail(ctx context.Context, account, mail string) error {
	return made(Do(ctx, a.Admin, protocol.SetAccountMail, protocol.MailChange{
		AccountRef: protocol.AccountRef{Account: account}, AccountMailDraft: protocol.AccountMailDraft{Mail: mail},
	}))
}

func (a admin) LinkProfile(ctx context.Context, account, handle string) error {
	return made(Do(ctx, a.Admin, protocol.LinkProfile, protocol.ProfileLink{HandleInput: handled(handle), Account: account}))
}

func (a admin) UnlinkProfile(ctx context.Context, handle string) error {
	return made(Do(ctx, a.Admin, protocol.UnlinkProfile, handled(handle)))
}

func (a admin) SetRole(ctx context.Context, account string, role protocol.Role) error {
	return made(Do(ctx, a.Admin, protocol.SetRole, protocol.RoleChange{AccountRef: protocol.AccountRef{Account: account}, Role: role}))
}

func (a admin) SignOut(ctx context.Context, account string) (int, error) {
	out, err := Do(ctx, a.Admin, protocol.SignOut, protocol.SignOutDraft{AccountRef: protocol.AccountRef{Account: account}})
	return out.Ended, err
}

func (a admin) CreateToken(ctx context.Context, handle, name string, ttl time.Duration, scopes ...protocol.Scope) (string, protocol.Token, error) {
	if len(scopes) == 0 {
		scopes = protocol.OwnerScopes
	}
	out, err := Do(ctx, a.Admin, protocol.GrantToken, protocol.TokenGrant{NewToken: protocol.NewToken{Handle: handle, Name: name, Scopes: scopes}, Lifetime: ttl})
	return out.Secret, out.Token, err
}

// CreateAccountToken takes the id of an account, or a profile of it.
func (a admin) CreateAccountToken(ctx context.Context, account, name string, ttl time.Duration, scopes ...protocol.Scope) (string, protocol.Token, error) {
	out, err := Do(ctx, a.Admin, protocol.GrantToken, protocol.TokenGrant{NewToken: protocol.NewToken{Name: name, Scopes: scopes}, Account: account, Lifetime: ttl})
	return out.Secret, out.Token, err
}

func (a admin) RevokeToken(ctx context.Context, id string) error {
	return made(Do(ctx, a.Admin, protocol.RevokeToken, protocol.TokenRef{ID: id}))
}

func (a admin) RequeueJob(ctx context.Context, id int64) error {
	return made(Do(ctx, a.Admin, protocol.RequeueJob, protocol.JobRef{ID: id}))
}

func (a admin) Follow(ctx context.Context, address string) error {
	return made(Do(ctx, a.Admin, protocol.FollowPeer, protocol.PeerAddress{URL: address}))
}

func (a admin) Unfollow(ctx context.Context, board string) error {
	return made(Do(ctx, a.Admin, protocol.UnfollowPeer, protocol.PeerAddress{URL: board}))
}

func (a admin) SetHostPolicy(ctx context.Context, host, policy, note string) error {
	return made(Do(ctx, a.Admin, protocol.SetPeerPolicy, protocol.PolicyChange{Host: host, Policy: policy, Note: note}))
}

// AddKey registers a key with a profile; with keep, the node keeps the private half.
func (a admin) AddKey(ctx context.Context, handle string, pair key.Pair, keep bool) error {
	if keep {
		raw, err := pair.MarshalPrivate()
		if err != nil {
			return err
		}
		return made(Do(ctx, a.Admin, protocol.KeepKey, protocol.PrivateKey{Owned: owned(handle), JWK: string(raw)}))
	}
	raw, err := key.MarshalPublic(pair.Published())
	if err != nil {
		return err
	}
	in := protocol.NewKey{Owned: owned(handle)}
	if err := json.Unmarshal(raw, &in.JWK); err != nil {
		return err
	}
	return made(Do(ctx, a.Admin, protocol.AddKey, in))
}

func (a admin) RetireKey(ctx context.Context, thumbprint string) error {
	return made(Do(ctx, a.Admin, protocol.RetireKey, protocol.KeyRef{KeyID: thumbprint}))
}

func (a admin) PutDirectory(ctx context.Context, thumbprint string, raw []byte) error {
	return made(Do(ctx, a.Admin, protocol.PutKeyDirectory, protocol.SignedDirectory{KeyID: thumbprint, Directory: string(raw)}))
}

func (a admin) EnrolIdentity(ctx context.Context, handle, erc8004, keyid string) error {
	return made(Do(ctx, a.Admin, protocol.EnrolIdentity, protocol.NewEnrolment{HandleInput: handled(handle), ERC8004: erc8004, KeyID: keyid}))
}

// PutIdentity enrols a chain identity without asking the chain. keyHash is the
// thumbprint of the key that speaks for it.
func (a admin) PutIdentity(ctx context.Context, handle, erc8004, keyHash string) error {
	return a.DB.Write(ctx, func(ctx context.Context, tx *storage.Tx) error {
		return tx.Enrolments().Begin(ctx, "operator", storage.Enrolment{Handle: handle, ERC8004: erc8004, KeyID: keyHash}, nil)
	})
}

func (a admin) DropIdentity(ctx context.Context, handle string) (string, error) {
	in := protocol.OwnInput{Owned: owned(handle)}
	status, err := Do(ctx, a.Admin, protocol.GetIdentity, in)
	if err == nil && status.ERC8004 == nil {
		err = protocol.Errorf(protocol.NotFound, "@%s is not enrolled with a chain identity", handle)
	}
	if err != nil {
		return "", err
	}
	return *status.ERC8004, made(Do(ctx, a.Admin, protocol.DropIdentity, in))
}
