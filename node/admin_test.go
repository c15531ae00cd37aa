package node

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/identity"
	"stoa/identity/key"
	"stoa/node/hall"
	"stoa/protocol"
	"stoa/storage"
)

// TestAdmin_Local: what has no door is done by the operator on the machine alone, and
// the operator's account is not that.
func TestAdmin_Local(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	a := h.Admin()
	account := &protocol.Caller{Standing: protocol.Operator, Account: "acc_1"}
	for _, op := range protocol.LocalOperations() {
		for _, table := range []*hall.Table{h.table, a.table} {
			_, err := table.Invoke(t.Context(), hall.Request{Op: op.Name, Caller: account})
			require.ErrorContains(t, err, "no operation of that name", op.Name)
		}
		require.Nil(t, protocol.Lookup(op.Name), "no document lists it")
	}
	require.Equal(t, protocol.NotFound, protocol.CodeOf(a.DeleteProfile(t.Context(), "nobody")))
}

// TestAdmin_Commands: every operation that a command of stoa admin does is bound there too.
func TestAdmin_Commands(t *testing.T) {
	t.Parallel()
	a := newHouse(t).Admin()
	names := map[string]string{} // of operations, by their Go names
	declared := regexp.MustCompile(`var (\w+) = (?:declare|local)\[.*\]\(Operation\{\s*Name: "(\w+)"`)
	sources, err := filepath.Glob("../protocol/*.go")
	require.NoError(t, err)
	for _, file := range sources {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, m := range declared.FindAllStringSubmatch(string(text), -1) {
			names[m[1]] = m[2]
		}
	}
	files, err := filepath.Glob("../cmd/stoa/admin*.go")
	require.NoError(t, err)
	done := regexp.MustCompile(`(?:node\.Do\(ctx, a|operate\(w), protocol\.(\w+)|op:"(\w+)"`)
	tried := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, m := range done.FindAllStringSubmatch(string(text), -1) {
			name := cmp.Or(m[2], names[m[1]])
			require.NotEmpty(t, name, m[1])
			_, err := a.table.Invoke(t.Context(), hall.Request{Op: name, Args: []byte(`{}`), Evidence: identity.Evidence{Operator: true}})
			require.NotContains(t, fmt.Sprint(err), "no operation of that name", "%s does %s", file, name)
			tried++
		}
	}
	require.Greater(t, tried, 45)
}

// TestAdmin_Rules: the operator's commands keep the rules of the operations, and the
// audit log says the same of both.
func TestAdmin_Rules(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	a, pair := h.Admin(), hostedAgent(t, h.Node, "asha")
	for range 2 {
		require.NoError(t, a.RetireKey(t.Context(), pair.Thumbprint()))
	}
	var log protocol.Page[protocol.AuditEntry]
	require.NoError(t, a.Operate(t.Context(), protocol.ReadAudit.Operation, protocol.AuditQuery{}, &log))
	retired := slices.DeleteFunc(log.Items, func(e protocol.AuditEntry) bool { return e.Action != "key retire" })
	require.Len(t, retired, 1, "once, however often")
	require.Equal(t, []string{"operator", "asha", pair.Thumbprint()}, []string{retired[0].Actor, retired[0].Subject, retired[0].Detail})
	require.Equal(t, protocol.NotFound, protocol.CodeOf(a.RetireKey(t.Context(), strings.Repeat("k", 43))))
	for n := range protocol.MaxKeys + 1 {
		err := a.AddKey(t.Context(), "asha", newPair(t), n%2 == 0)
		require.Equal(t, n == protocol.MaxKeys, protocol.CodeOf(err) == protocol.Conflict, n)
	}
}

// Short hands for the operator's operations in tests.

func made[T any](_ T, err error) error { return err }

func handled(handle string) protocol.HandleInput { return protocol.HandleInput{Handle: handle} }

func owned(handle string) protocol.Owned { return protocol.Owned{Handle: handle} }

func (a *Admin) PutProfile(ctx context.Context, raw []byte) (p protocol.Profile, created bool, err error) {
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

func (a *Admin) Profile(ctx context.Context, handle string) (protocol.Profile, error) {
	return Do(ctx, a, protocol.GetAgentProfile, handled(handle))
}

func (a *Admin) DeleteProfile(ctx context.Context, handle string) error {
	return made(Do(ctx, a, protocol.DeleteProfile, handled(handle)))
}

func (a *Admin) PutMerchant(ctx context.Context, handle string, raw []byte) (r protocol.MerchantRecord, err error) {
	var in map[string]any
	if err := json.Unmarshal(raw, &in); err != nil {
		return r, err
	}
	in["handle"] = handle
	return r, a.Operate(ctx, protocol.PutMerchant.Operation, in, &r)
}

func (a *Admin) OpenAccount(ctx context.Context, name string, role protocol.Role, mail string, handles []string) (protocol.KnownAccount, string, error) {
	out, err := Do(ctx, a, protocol.OpenAccount, protocol.NewAccount{Name: name, Role: role, Mail: mail, Handles: handles})
	return out.Account, out.SignIn.URL, err
}

func (a *Admin) SignInLink(ctx context.Context, account string) (string, error) {
	link, err := Do(ctx, a, protocol.MakeSignInLink, protocol.AccountRef{Account: account})
	return link.URL, err
}

func (a *Admin) SetMail(ctx context.Context, account, mail string) error {
	return made(Do(ctx, a, protocol.SetAccountMail, protocol.MailChange{
		AccountRef: protocol.AccountRef{Account: account}, AccountMailDraft: protocol.AccountMailDraft{Mail: mail},
	}))
}

func (a *Admin) LinkProfile(ctx context.Context, account, handle string) error {
	return made(Do(ctx, a, protocol.LinkProfile, protocol.ProfileLink{HandleInput: handled(handle), Account: account}))
}

func (a *Admin) UnlinkProfile(ctx context.Context, handle string) error {
	return made(Do(ctx, a, protocol.UnlinkProfile, handled(handle)))
}

func (a *Admin) SetRole(ctx context.Context, account string, role protocol.Role) error {
	return made(Do(ctx, a, protocol.SetRole, protocol.RoleChange{AccountRef: protocol.AccountRef{Account: account}, Role: role}))
}

func (a *Admin) SignOut(ctx context.Context, account string) (int, error) {
	out, err := Do(ctx, a, protocol.SignOut, protocol.SignOutDraft{AccountRef: protocol.AccountRef{Account: account}})
	return out.Ended, err
}

func (a *Admin) CreateToken(ctx context.Context, handle, name string, ttl time.Duration, scopes ...protocol.Scope) (string, protocol.Token, error) {
	if len(scopes) == 0 {
		scopes = protocol.OwnerScopes
	}
	out, err := Do(ctx, a, protocol.GrantToken, protocol.TokenGrant{NewToken: protocol.NewToken{Handle: handle, Name: name, Scopes: scopes}, Lifetime: ttl})
	return out.Secret, out.Token, err
}

// CreateAccountToken takes the id of an account, or a profile of it.
func (a *Admin) CreateAccountToken(ctx context.Context, account, name string, ttl time.Duration, scopes ...protocol.Scope) (string, protocol.Token, error) {
	out, err := Do(ctx, a, protocol.GrantToken, protocol.TokenGrant{NewToken: protocol.NewToken{Name: name, Scopes: scopes}, Account: account, Lifetime: ttl})
	return out.Secret, out.Token, err
}

func (a *Admin) RevokeToken(ctx context.Context, id string) error {
	return made(Do(ctx, a, protocol.RevokeToken, protocol.TokenRef{ID: id}))
}

func (a *Admin) RequeueJob(ctx context.Context, id int64) error {
	return made(Do(ctx, a, protocol.RequeueJob, protocol.JobRef{ID: id}))
}

func (a *Admin) Follow(ctx context.Context, address string) error {
	return made(Do(ctx, a, protocol.FollowPeer, protocol.PeerAddress{URL: address}))
}

func (a *Admin) Unfollow(ctx context.Context, board string) error {
	return made(Do(ctx, a, protocol.UnfollowPeer, protocol.PeerAddress{URL: board}))
}

func (a *Admin) SetHostPolicy(ctx context.Context, host, policy, note string) error {
	return made(Do(ctx, a, protocol.SetPeerPolicy, protocol.PolicyChange{Host: host, Policy: policy, Note: note}))
}

// AddKey registers a key with a profile; with keep, the node keeps the private half.
func (a *Admin) AddKey(ctx context.Context, handle string, pair key.Pair, keep bool) error {
	if keep {
		raw, err := pair.MarshalPrivate()
		if err != nil {
			return err
		}
		return made(Do(ctx, a, protocol.KeepKey, protocol.PrivateKey{Owned: owned(handle), JWK: string(raw)}))
	}
	raw, err := key.MarshalPublic(pair.Published())
	if err != nil {
		return err
	}
	in := protocol.NewKey{Owned: owned(handle)}
	if err := json.Unmarshal(raw, &in.JWK); err != nil {
		return err
	}
	return made(Do(ctx, a, protocol.AddKey, in))
}

func (a *Admin) RetireKey(ctx context.Context, thumbprint string) error {
	return made(Do(ctx, a, protocol.RetireKey, protocol.KeyRef{KeyID: thumbprint}))
}

func (a *Admin) PutDirectory(ctx context.Context, thumbprint string, raw []byte) error {
	return made(Do(ctx, a, protocol.PutKeyDirectory, protocol.SignedDirectory{KeyID: thumbprint, Directory: string(raw)}))
}

func (a *Admin) EnrolIdentity(ctx context.Context, handle, erc8004, keyid string) error {
	return made(Do(ctx, a, protocol.EnrolIdentity, protocol.NewEnrolment{HandleInput: handled(handle), ERC8004: erc8004, KeyID: keyid}))
}

// PutIdentity enrols a chain identity without asking the chain. keyHash is the
// thumbprint of the key that speaks for it.
func (a *Admin) PutIdentity(ctx context.Context, handle, erc8004, keyHash string) error {
	return a.DB.Write(ctx, func(ctx context.Context, tx *storage.Tx) error {
		return tx.Enrolments().Begin(ctx, "operator", storage.Enrolment{Handle: handle, ERC8004: erc8004, KeyID: keyHash}, nil)
	})
}

func (a *Admin) DropIdentity(ctx context.Context, handle string) (string, error) {
	in := protocol.OwnInput{Owned: owned(handle)}
	status, err := Do(ctx, a, protocol.GetIdentity, in)
	if err == nil && status.ERC8004 == nil {
		err = protocol.Errorf(protocol.NotFound, "@%s is not enrolled with a chain identity", handle)
	}
	if err != nil {
		return "", err
	}
	return *status.ERC8004, made(Do(ctx, a, protocol.DropIdentity, in))
}
