package credential

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/identity"
	"stoa/identity/key"
	"stoa/identity/session"
	"stoa/node/room/directory"
	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/storage"
	"stoa/storage/storagetest"
)

const (
	token7 = "eip155:1:0x8004a169fb4a3325136eb29fa0ceb6d2e539a432:7"
	token8 = "eip155:1:0x8004a169fb4a3325136eb29fa0ceb6d2e539a432:8"
	ownerA = "0x00000000000000000000000000000000000000aa"
	ownerB = "0x00000000000000000000000000000000000000bb"
	keyA   = "enrolled" // thumbprint of the key that asha was enrolled by
)

// A world has the profiles asha, enrolled to token7, and bina, and nothing that reads the chain.
type world struct {
	*Agents
	t  *testing.T
	db *storage.DB
}

func newWorld(t *testing.T) *world {
	db := storagetest.Open(t)
	h := &world{NewAgents(db, directory.New("https://n1.example", nil), nil, nil), t, db}
	for _, handle := range []string{"asha", "bina"} {
		h.write(func(ctx context.Context, tx *storage.Tx) error {
			_, err := tx.Profiles().Put(ctx, &storage.StoredProfile{Draft: protocol.ProfileDraft{Handle: handle, Name: handle, Kind: protocol.Person}})
			return err
		})
	}
	h.enrol("asha", token7, keyA, ownerA, ownerA)
	return h
}

func (h *world) write(fn func(context.Context, *storage.Tx) error) {
	h.t.Helper()
	require.NoError(h.t, h.db.Write(h.t.Context(), fn))
}

func (h *world) enrol(handle, identity, thumbprint, owner, wallet string) {
	h.t.Helper()
	h.write(func(ctx context.Context, tx *storage.Tx) error {
		return tx.Enrolments().Begin(ctx, "operator", storage.Enrolment{Handle: handle, ERC8004: identity, KeyID: thumbprint, Owner: owner, Wallet: wallet,
			Block: 9, BlockHash: "0x9"}, []byte(`{}`))
	})
}

func (h *world) key(k storage.AgentKey) {
	h.t.Helper()
	if k.PublicJWK == nil {
		k.PublicJWK = []byte(`{}`)
	}
	h.write(func(ctx context.Context, tx *storage.Tx) error { return tx.Keys().Put(ctx, k) })
}

// retire ends a key as its owner does.
func (h *world) retire(thumbprint string) {
	h.t.Helper()
	h.write(func(ctx context.Context, tx *storage.Tx) error { return tx.Keys().Retire(ctx, thumbprint) })
}

// hosted is the profile that the node takes a signer with a key of the chain for, "" for none.
func (h *world) hosted(id, thumbprint, owner, wallet string) string {
	h.t.Helper()
	got, ok, err := h.HostedAgent(h.t.Context(), identity.ChainKey{Identity: id, Owner: owner, Wallet: wallet}, thumbprint)
	require.NoError(h.t, err)
	require.Equal(h.t, ok, got.Handle != "", "a refusal names nobody")
	if ok {
		require.Equal(h.t, id, got.ERC8004)
	}
	return got.Handle
}

// TestHostedAgent: who signs as a profile, decided by each request alone. Nothing polls the
// chain here, so no enrolment has ended because of what it says.
func TestHostedAgent(t *testing.T) {
	t.Parallel()
	past := time.Now().Add(-time.Hour)
	for _, tt := range []struct {
		name          string
		arrange       func(h *world)
		id, thumb     string
		owner, wallet string
		want          string
	}{
		{name: "the enrolled key", want: "asha"},
		{name: "the buyer, with the key that the chain still names", owner: ownerB},
		{name: "the buyer, who is the wallet too", owner: ownerB, wallet: ownerB},
		{name: "another wallet", wallet: ownerB},
		{name: "no wallet any more", wallet: "none"},
		{name: "an owner whom the chain does not name", owner: "none"},
		{name: "another identity, with the enrolled key", id: token8},
		{name: "an unknown key", thumb: "unknown"},
		{name: "a key of the profile that goes with the identity", thumb: "added", want: "asha",
			arrange: func(h *world) { h.key(storage.AgentKey{Handle: "asha", Thumbprint: "added", Identity: token7}) }},
		{name: "the same, of the buyer", thumb: "added", owner: ownerB, wallet: ownerB,
			arrange: func(h *world) { h.key(storage.AgentKey{Handle: "asha", Thumbprint: "added", Identity: token7}) }},
		{name: "a key of the profile that goes with no identity", thumb: "own",
			arrange: func(h *world) { h.key(storage.AgentKey{Handle: "asha", Thumbprint: "own"}) }},
		{name: "a key of the profile that goes with another identity", thumb: "other",
			arrange: func(h *world) { h.key(storage.AgentKey{Handle: "asha", Thumbprint: "other", Identity: token8}) }},
		{name: "a retired key of the identity", thumb: "retired", arrange: func(h *world) {
			h.key(storage.AgentKey{Handle: "asha", Thumbprint: "retired", Identity: token7, OnChain: true, RetiredAt: &past})
		}},
		{name: "a key of the identity that its owner retired", thumb: "added", arrange: func(h *world) {
			h.key(storage.AgentKey{Handle: "asha", Thumbprint: "added", Identity: token7})
			h.retire("added")
		}},
		{name: "a key that another profile has for the identity", thumb: "binas",
			arrange: func(h *world) { h.key(storage.AgentKey{Handle: "bina", Thumbprint: "binas", Identity: token7}) }},
		{name: "the enrolled key, retired by its owner: the enrolment ends", arrange: func(h *world) { h.retire(keyA) }},
		{name: "after a second enrolment of the profile", arrange: func(h *world) { h.enrol("asha", token8, "second", ownerA, ownerA) }},
		{name: "the second one", id: token8, thumb: "second", want: "asha", arrange: func(h *world) { h.enrol("asha", token8, "second", ownerA, ownerA) }},
		{name: "the identity with another profile, by another owner", thumb: "bought", owner: ownerB, wallet: ownerB, want: "bina",
			arrange: func(h *world) { h.enrol("bina", token7, "bought", ownerB, ownerB) }},
		{name: "the seller after that", arrange: func(h *world) { h.enrol("bina", token7, "bought", ownerB, ownerB) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := newWorld(t)
			or := func(s, usual string) string {
				switch s {
				case "":
					return usual
				case "none":
					return ""
				}
				return s
			}
			id, thumb, owner, wallet := or(tt.id, token7), or(tt.thumb, keyA), or(tt.owner, ownerA), or(tt.wallet, ownerA)
			if tt.arrange != nil {
				h.hosted(id, thumb, owner, wallet) // what is found now is kept until the next commit, and no longer
				tt.arrange(h)
			}
			require.Equal(t, tt.want, h.hosted(id, thumb, owner, wallet))
			require.Equal(t, tt.want, h.hosted(id, thumb, owner, wallet), "also when it was asked before")
		})
	}
}

// TestKeyByThumbprint: a key without an identity signs for its profile by itself, and one of a chain
// identity does not.
func TestKeyByThumbprint(t *testing.T) {
	t.Parallel()
	h := newWorld(t)
	pair := must.Get(key.GenerateEd25519())(t)
	jwk := must.Get(key.MarshalPublic(pair.Published()))(t)
	past := time.Now().Add(-time.Hour)
	h.key(storage.AgentKey{Handle: "asha", Thumbprint: "own", PublicJWK: jwk})
	h.key(storage.AgentKey{Handle: "asha", Thumbprint: "chain", PublicJWK: jwk, Identity: token7, OnChain: true})
	h.key(storage.AgentKey{Handle: "asha", Thumbprint: "retired", PublicJWK: jwk, RetiredAt: &past})
	for thumbprint, want := range map[string]string{"own": "asha", "chain": "", "retired": "", "unknown": ""} {
		got, ok, err := h.KeyByThumbprint(t.Context(), thumbprint)
		require.NoError(t, err)
		require.Equal(t, want != "", ok, thumbprint)
		require.Equal(t, want, got.Handle, thumbprint)
	}
	h.retire("own")
	_, ok, err := h.KeyByThumbprint(t.Context(), "own")
	require.NoError(t, err)
	require.False(t, ok, "at once")
}

// TestSecrets: what a token or a session opens, and when it no longer does.
func TestSecrets(t *testing.T) {
	t.Parallel()
	h := newWorld(t)
	past := time.Now().Add(-time.Hour)
	const account, other = "acc_1", "acc_2"
	h.write(func(ctx context.Context, tx *storage.Tx) error {
		for _, id := range []string{account, other} {
			if err := tx.Accounts().Insert(ctx, storage.Account{ID: id, Name: id, Role: protocol.RoleOwner}); err != nil {
				return err
			}
		}
		return tx.Accounts().LinkProfile(ctx, account, "asha")
	})
	token := func(x storage.Token) string {
		secret, hash := session.New(session.Token)
		x.ID, x.Hash, x.Account = protocol.NewID(protocol.TokenID, time.Now()), hash, account
		h.write(func(ctx context.Context, tx *storage.Tx) error { return tx.Tokens().Insert(ctx, x) })
		return secret
	}
	cookie := func(until time.Time) string {
		secret, hash := session.New(session.Cookie)
		h.write(func(ctx context.Context, tx *storage.Tx) error {
			return tx.Sessions().Insert(ctx, storage.Session{ID: protocol.NewID(protocol.SessionID, time.Now()), Hash: hash, Account: account,
				ExpiresAt: until})
		})
		return secret
	}
	good := token(storage.Token{Scopes: []string{"post", "inbox"}})
	c, ok, err := h.TokenBySecret(t.Context(), good)
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, []protocol.Scope{"post", "inbox"}, c.Scopes)
	require.Equal(t, account, c.Account)
	require.False(t, c.Operator)

	none, ok, err := h.TokenBySecret(t.Context(), token(storage.Token{}))
	require.NoError(t, err)
	require.True(t, ok)
	caller := protocol.Caller{Standing: protocol.Session, Scopes: none.Scopes}
	for _, s := range append([]protocol.Scope{protocol.ScopeAccount, protocol.ScopeOperator}, protocol.OwnerScopes...) {
		require.False(t, caller.May(s), "a token without scopes may nothing that takes one: %s", s)
	}
	live, dead := cookie(time.Now().Add(time.Hour)), cookie(past)
	bound := token(storage.Token{Handle: "asha"})
	for _, tt := range []struct {
		name, secret string
		session, ok  bool
	}{
		{"a session", live, true, true},
		{"a session's secret as a token", live, false, false},
		{"a token as a session", good, true, false},
		{"a session that is over", dead, true, false},
		{"a token that is over", token(storage.Token{ExpiresAt: &past}), false, false},
		{"a token that was revoked", token(storage.Token{RevokedAt: &past}), false, false},
		{"a token for one profile of the account", bound, false, true},
		{"a token for a profile of another account", token(storage.Token{Handle: "bina"}), false, false},
		{"nothing", "", false, false},
	} {
		find := h.TokenBySecret
		if tt.session {
			find = h.SessionBySecret
		}
		_, ok, err := find(t.Context(), tt.secret)
		require.NoError(t, err, tt.name)
		require.Equal(t, tt.ok, ok, tt.name)
	}
	h.write(func(ctx context.Context, tx *storage.Tx) error {
		if err := tx.Accounts().UnlinkProfile(ctx, "asha"); err != nil {
			return err
		}
		return tx.Accounts().LinkProfile(ctx, other, "asha")
	})
	_, ok, err = h.TokenBySecret(t.Context(), bound)
	require.NoError(t, err)
	require.False(t, ok, "the profile has another account now")
	c, ok, err = h.TokenBySecret(t.Context(), good)
	require.NoError(t, err)
	require.True(t, ok)
	require.Empty(t, c.Profiles)
}

// TestEnroller_May: the keys by which an owner may connect a profile are those that the node keeps,
// in use, or ended with the same identity.
func TestEnroller_May(t *testing.T) {
	t.Parallel()
	h := newWorld(t)
	past, sealed := time.Now().Add(-time.Hour), []byte{1}
	for _, k := range []storage.AgentKey{
		{Thumbprint: "kept", Sealed: sealed},
		{Thumbprint: "not-kept"},
		{Thumbprint: "retired", Sealed: sealed, RetiredAt: &past},
		{Thumbprint: "ended with it", Sealed: sealed, RetiredAt: &past, Identity: token8, OnChain: true},
		{Thumbprint: "ended with another", Sealed: sealed, RetiredAt: &past, Identity: token7, OnChain: true},
		{Thumbprint: "of it, retired by the owner", Sealed: sealed, RetiredAt: &past, Identity: token8},
	} {
		k.Handle = "bina"
		h.key(k)
	}
	refused := protocol.Errorf(protocol.SignInAgain, "again")
	var recent error
	r := Enroller{Recent: func(context.Context, *storage.Tx, protocol.Caller) error { return recent }}
	may := func(handle, identity string) (keys []string, err error) {
		_ = h.db.Read(t.Context(), func(ctx context.Context, tx *storage.Tx) error {
			keys, err = r.may(ctx, tx, protocol.Caller{}, handle, identity)
			return nil
		})
		return keys, err
	}
	require.ElementsMatch(t, []string{"kept", "ended with it"}, must.Get(may("bina", token8))(t))
	require.Equal(t, protocol.Conflict, protocol.CodeOf(must.Err(may("asha", token8))), "it has another identity")
	require.Equal(t, protocol.NotFound, protocol.CodeOf(must.Err(may("nobody", token8))))
	recent = refused
	require.Equal(t, protocol.SignInAgain, protocol.CodeOf(must.Err(may("bina", token8))))
}
