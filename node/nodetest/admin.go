package nodetest

import (
	"context"
	"encoding/json"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/identity/key"
	"stoa/node"
	"stoa/protocol"
	"stoa/storage"
)

// An Admin has short hands for the operator's operations.
type Admin struct{ *node.Admin }

// Admin runs operations as the operator on the machine.
func (h *House) Admin() Admin { return Admin{h.Node.Admin()} }

func made[T any](_ T, err error) error { return err }

func handled(handle string) protocol.HandleInput { return protocol.HandleInput{Handle: handle} }

// Owned names the profile of an owner's operation.
func Owned(handle string) protocol.Owned { return protocol.Owned{Handle: handle} }

// PutProfile makes or replaces a profile from its JSON.
func (h *House) PutProfile(raw []byte) {
	h.T.Helper()
	_, _, err := h.Admin().PutProfile(context.Background(), raw)
	require.NoError(h.T, err)
}

// TokenOf makes a token of a profile, which does not end, by default with all scopes of owners.
func (h *House) TokenOf(handle, name string, scopes ...protocol.Scope) string {
	h.T.Helper()
	secret, _, err := h.Admin().CreateToken(context.Background(), handle, name, 0, scopes...)
	require.NoError(h.T, err)
	return secret
}

// AccountToken makes a token of an account, which is named by its id or by a profile of it.
func (h *House) AccountToken(account, name string, scopes ...protocol.Scope) string {
	h.T.Helper()
	secret, _, err := h.Admin().CreateAccountToken(context.Background(), account, name, 0, scopes...)
	require.NoError(h.T, err)
	return secret
}

// OpenAccount opens an account that has the profiles, and returns the link to sign in to it.
func (h *House) OpenAccount(name string, role protocol.Role, mail string, handles ...string) (protocol.KnownAccount, string) {
	h.T.Helper()
	acc, link, err := h.Admin().OpenAccount(context.Background(), name, role, mail, handles)
	require.NoError(h.T, err)
	return acc, link
}

// PutProfile makes or replaces a profile from its JSON, and returns it.
func (a Admin) PutProfile(ctx context.Context, raw []byte) (p protocol.Profile, created bool, err error) {
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

// Profile reads a profile.
func (a Admin) Profile(ctx context.Context, handle string) (protocol.Profile, error) {
	return node.Do(ctx, a.Admin, protocol.GetAgentProfile, handled(handle))
}

// DeleteProfile deletes a profile.
func (a Admin) DeleteProfile(ctx context.Context, handle string) error {
	return made(node.Do(ctx, a.Admin, protocol.DropProfile, handled(handle)))
}

// PutMerchant replaces the merchant record of a profile by JSON.
func (a Admin) PutMerchant(ctx context.Context, handle string, raw []byte) (r protocol.MerchantRecord, err error) {
	var in map[string]any
	if err := json.Unmarshal(raw, &in); err != nil {
		return r, err
	}
	in["handle"] = handle
	return r, a.Operate(ctx, protocol.PutMerchant.Operation, in, &r)
}

// OpenAccount opens an account, and returns the link to sign in to it.
func (a Admin) OpenAccount(ctx context.Context, name string, role protocol.Role, mail string, handles []string) (protocol.KnownAccount, string, error) {
	out, err := node.Do(ctx, a.Admin, protocol.OpenAccount, protocol.NewAccount{Name: name, Role: role, Mail: mail, Handles: handles})
	return out.Account, out.SignIn.URL, err
}

// SignInLink makes a link to sign in to an account.
func (a Admin) SignInLink(ctx context.Context, account string) (string, error) {
	link, err := node.Do(ctx, a.Admin, protocol.MakeSignInLink, protocol.AccountRef{Account: account})
	return link.URL, err
}

// SetMail sets the address of an account.
func (a Admin) SetMail(ctx context.Context, account, mail string) error {
	return made(node.Do(ctx, a.Admin, protocol.SetAccountMail, protocol.MailChange{
		AccountRef: protocol.AccountRef{Account: account}, AccountMailDraft: protocol.AccountMailDraft{Mail: mail},
	}))
}

// LinkProfile gives a profile to an account.
func (a Admin) LinkProfile(ctx context.Context, account, handle string) error {
	return made(node.Do(ctx, a.Admin, protocol.LinkProfile, protocol.ProfileLink{HandleInput: handled(handle), Account: account}))
}

// UnlinkProfile takes a profile from its account.
func (a Admin) UnlinkProfile(ctx context.Context, handle string) error {
	return made(node.Do(ctx, a.Admin, protocol.UnlinkProfile, handled(handle)))
}

// SetRole changes the role of an account.
func (a Admin) SetRole(ctx context.Context, account string, role protocol.Role) error {
	return made(node.Do(ctx, a.Admin, protocol.SetRole, protocol.RoleChange{AccountRef: protocol.AccountRef{Account: account}, Role: role}))
}

// SignOut ends the sessions of an account, and returns how many.
func (a Admin) SignOut(ctx context.Context, account string) (int, error) {
	out, err := node.Do(ctx, a.Admin, protocol.SignOut, protocol.SignOutDraft{AccountRef: protocol.AccountRef{Account: account}})
	return out.Ended, err
}

// CreateToken makes a token of a profile, by default with all scopes of owners; ttl 0 means that it does not end.
func (a Admin) CreateToken(ctx context.Context, handle, name string, ttl time.Duration, scopes ...protocol.Scope) (string, protocol.Token, error) {
	if len(scopes) == 0 {
		scopes = protocol.OwnerScopes
	}
	out, err := node.Do(ctx, a.Admin, protocol.GrantToken,
		protocol.TokenGrant{NewToken: protocol.NewToken{Handle: handle, Name: name, Scopes: scopes}, Lifetime: ttl})
	return out.Secret, out.Token, err
}

// CreateAccountToken takes the id of an account, or a profile of it.
func (a Admin) CreateAccountToken(ctx context.Context, account, name string, ttl time.Duration, scopes ...protocol.Scope) (string, protocol.Token, error) {
	out, err := node.Do(ctx, a.Admin, protocol.GrantToken,
		protocol.TokenGrant{NewToken: protocol.NewToken{Name: name, Scopes: scopes}, Account: account, Lifetime: ttl})
	return out.Secret, out.Token, err
}

// RevokeToken revokes a token.
func (a Admin) RevokeToken(ctx context.Context, id string) error {
	return made(node.Do(ctx, a.Admin, protocol.RevokeToken, protocol.TokenRef{ID: id}))
}

// RequeueJob lets a dead job run again.
func (a Admin) RequeueJob(ctx context.Context, id int64) error {
	return made(node.Do(ctx, a.Admin, protocol.RequeueJob, protocol.JobRef{ID: id}))
}

// Follow follows the board of another node, in a job.
func (a Admin) Follow(ctx context.Context, address string) error {
	return made(node.Do(ctx, a.Admin, protocol.FollowPeer, protocol.PeerAddress{URL: address}))
}

// Unfollow ends that.
func (a Admin) Unfollow(ctx context.Context, board string) error {
	return made(node.Do(ctx, a.Admin, protocol.UnfollowPeer, protocol.PeerAddress{URL: board}))
}

// SetHostPolicy sets what is taken from a host.
func (a Admin) SetHostPolicy(ctx context.Context, host, policy, note string) error {
	return made(node.Do(ctx, a.Admin, protocol.SetPeerPolicy, protocol.PolicyChange{Host: host, Policy: policy, Note: note}))
}

// AddKey registers a key with a profile; with keep, the node keeps the private half.
func (a Admin) AddKey(ctx context.Context, handle string, pair key.Pair, keep bool) error {
	if keep {
		raw, err := pair.MarshalPrivate()
		if err != nil {
			return err
		}
		return made(node.Do(ctx, a.Admin, protocol.KeepKey, protocol.PrivateKey{Owned: Owned(handle), JWK: string(raw)}))
	}
	raw, err := key.MarshalPublic(pair.Published())
	if err != nil {
		return err
	}
	in := protocol.NewKey{Owned: Owned(handle)}
	if err := json.Unmarshal(raw, &in.JWK); err != nil {
		return err
	}
	return made(node.Do(ctx, a.Admin, protocol.AddKey, in))
}

// RetireKey retires a key.
func (a Admin) RetireKey(ctx context.Context, thumbprint string) error {
	return made(node.Do(ctx, a.Admin, protocol.RetireKey, protocol.KeyRef{KeyID: thumbprint}))
}

// PutDirectory stores a signed key directory.
func (a Admin) PutDirectory(ctx context.Context, thumbprint string, raw []byte) error {
	return made(node.Do(ctx, a.Admin, protocol.PutKeyDirectory, protocol.SignedDirectory{KeyID: thumbprint, Directory: string(raw)}))
}

// EnrolIdentity enrols a chain identity for a profile, which the chain is then asked about.
func (a Admin) EnrolIdentity(ctx context.Context, handle, erc8004, keyid string) error {
	return made(node.Do(ctx, a.Admin, protocol.EnrolIdentity, protocol.NewEnrolment{HandleInput: handled(handle), ERC8004: erc8004, KeyID: keyid}))
}

// PutIdentity enrols a chain identity without asking the chain. keyHash is the
// thumbprint of the key that speaks for it.
func (a Admin) PutIdentity(ctx context.Context, handle, erc8004, keyHash string) error {
	return a.DB.Write(ctx, func(ctx context.Context, tx *storage.Tx) error {
		return tx.Enrolments().Begin(ctx, "operator", storage.Enrolment{Handle: handle, ERC8004: erc8004, KeyID: keyHash}, nil)
	})
}

// DropIdentity ends the enrolment of a profile, and returns the identity.
func (a Admin) DropIdentity(ctx context.Context, handle string) (string, error) {
	in := protocol.OwnInput{Owned: Owned(handle)}
	status, err := node.Do(ctx, a.Admin, protocol.GetIdentity, in)
	if err == nil && status.ERC8004 == nil {
		err = protocol.Errorf(protocol.NotFound, "@%s is not enrolled with a chain identity", handle)
	}
	if err != nil {
		return "", err
	}
	return *status.ERC8004, made(node.Do(ctx, a.Admin, protocol.DropIdentity, in))
}
