package node_test

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/stretchr/testify/require"

	"stoa/identity/eip4361"
	"stoa/identity/httpsig"
	"stoa/identity/key"
	"stoa/identity/session"
	"stoa/node"
	"stoa/node/nodetest"
	"stoa/protocol"
	"stoa/protocol/must"
)

// text is a text of the node that the account signs.
func (a bySelf) text(change func(*eip4361.Message)) protocol.SignedText {
	t := nodetest.As[protocol.SignInText](a.s.Ask("GET", "/api/public/sign-in", "").Is(200))
	sum, _ := eip4361.Address(a.as.Address)
	m := eip4361.Message{Domain: t.Domain, URI: t.URI, Statement: t.Statement, Account: sum, ChainID: a.as.Chain, Nonce: t.Nonce,
		IssuedAt: t.IssuedAt.Format(time.RFC3339), ExpirationTime: t.ExpirationTime.Format(time.RFC3339)}
	if a.id != "" {
		m.Resources = []string{a.id}
	}
	if change != nil {
		change(&m)
	}
	digest := eip4361.Digest(m.String())
	return protocol.SignedText{Message: m.String(), Signature: hexutil.Encode(must.Get(crypto.Sign(digest[:], a.key))(a.s.T))}
}

func (a bySelf) signIn(t protocol.SignedText) nodetest.Answer {
	return a.s.Ask("POST", "/api/public/sign-in", string(nodetest.Encoded(t)))
}

// TestSignIn_Agent: who controls an identity signs in with a text, in each of its forms; a text is good once, here and in time; the token
// ends with its time and with the control.
func TestSignIn_Agent(t *testing.T) {
	t.Parallel()
	nodetest.Any(t, func(t *testing.T, change func(*node.Config)) {
		s := nodetest.NewStage(t, "", change)
		id := s.Register(0)
		owner, other := accountOf(s, 0, id.String()), accountOf(s, 1, id.String())
		siwa := func(m *eip4361.Message) {
			m.Resources = nil
			m.AgentRegistry, m.AgentID = id.String()[:strings.LastIndexByte(id.String(), ':')], fmt.Sprint(id.AgentID)
		}
		var token protocol.AgentToken
		for name, change := range map[string]func(*eip4361.Message){"EIP-4361": nil, "SIWA": siwa} {
			text := owner.text(change)
			owner.signIn(text).Is(200).Into(&token)
			require.Equal(t, id.String(), token.Identity, name)
			require.Equal(t, protocol.ByOwner, token.Level, name)
			require.WithinDuration(t, time.Now().Add(session.GrantLifetime), token.ExpiresAt, time.Minute)
			require.Equal(t, protocol.Gone, owner.signIn(text).Problem().Code, "a text is good once")
		}
		bearer := []string{"Authorization", "Bearer " + token.Token}
		post := nodetest.As[protocol.Post](s.Ask("POST", "/api/public/board", nodetest.GoodPost, bearer...).Is(201))
		require.True(t, post.Author.Verified)
		require.Equal(t, protocol.ByOwner, post.Author.Proof.Level)
		require.Equal(t, id.String(), *post.Author.ERC8004)
		s.Ask("GET", "/api/public/since", "", bearer...).Is(200)
		s.Ask("GET", "/api/owner/account", "", bearer...).Is(401)
		s.Ask("DELETE", "/api/public/board/"+post.ID, "", bearer...).Is(204)
		spoilt := token.Token[:len(token.Token)-2] + "AA"
		require.Equal(t, protocol.Unauthorized, s.Ask("POST", "/api/public/board", nodetest.GoodPost, "Authorization", "Bearer "+spoilt).Problem().Code)
		keys := s.Table.Gate.SignIn.Challenges
		old := keys.Seal(session.Grant{Identity: id.String(), Chain: owner.as.Chain, Account: owner.as.Address, Until: time.Now().Unix()})
		require.Equal(t, protocol.Unauthorized, s.Ask("POST", "/api/public/board", nodetest.GoodPost, "Authorization", "Bearer "+old).Problem().Code)
		stranger := keys.Seal(session.Grant{Identity: id.String(), Chain: owner.as.Chain, Account: other.as.Address, Until: time.Now().Unix() + 60})
		require.Equal(t, protocol.KeyUnknown, s.Ask("POST", "/api/public/board", nodetest.GoodPost, "Authorization", "Bearer "+stranger).Problem().Code)

		for name, c := range map[string]struct {
			change func(*eip4361.Message)
			code   protocol.Code
		}{
			"another domain":   {func(m *eip4361.Message) { m.Domain = "evil.example" }, protocol.InvalidRequest},
			"another address":  {func(m *eip4361.Message) { m.URI = "https://evil.example/" }, protocol.InvalidRequest},
			"another chain":    {func(m *eip4361.Message) { m.ChainID = 1 }, protocol.InvalidRequest},
			"no identity":      {func(m *eip4361.Message) { m.Resources = nil }, protocol.InvalidRequest},
			"own nonce":        {func(m *eip4361.Message) { m.Nonce = strings.Repeat("a", 80) }, protocol.Gone},
			"a page's nonce":   {func(m *eip4361.Message) { m.Nonce = keys.New(session.ByEthereum, "agent", time.Now()) }, protocol.Gone},
			"long ago":         {func(m *eip4361.Message) { m.IssuedAt = "2026-01-01T00:00:00Z" }, protocol.Gone},
			"not yet":          {func(m *eip4361.Message) { m.NotBefore = "2099-01-01T00:00:00Z" }, protocol.InvalidRequest},
			"another identity": {func(m *eip4361.Message) { m.Resources = []string{id.String() + "9"} }, protocol.IdentityUnverified},
		} {
			require.Equal(t, c.code, owner.signIn(owner.text(c.change)).Problem().Code, name)
		}
		require.Equal(t, protocol.KeyUnknown, other.signIn(other.text(nil)).Problem().Code)
		forged := owner.text(nil)
		forged.Signature = other.text(nil).Signature
		require.Equal(t, protocol.SignatureInvalid, owner.signIn(forged).Problem().Code)

		s.Watch()
		s.Chain.Must(s.Chain.Registrar(0).Transfer(t.Context(), id.AgentID, s.Chain.Registrar(1).Address()))
		require.Eventually(t, func() bool {
			return s.Ask("GET", "/api/public/since", "", bearer...).Code == 401
		}, time.Minute, 20*time.Millisecond, "the token ends with the control")
	})
}

// TestSignIn_Delegates: a text lets a key sign for the identity until its end, ended by its owner or by a sale.
func TestSignIn_Delegates(t *testing.T) {
	t.Parallel()
	nodetest.Any(t, func(t *testing.T, change func(*node.Config)) {
		s := nodetest.NewStage(t, "", change)
		id := s.Register(0)
		owner, pair := accountOf(s, 0, id.String()), nodetest.NewPair(t)
		posts := func() nodetest.Answer {
			return s.Signed(pair, nodetest.GoodPost, func(r *http.Request, _ *httpsig.SignOptions) { r.Header.Set("Agent-Identity", id.String()) })
		}
		require.Equal(t, protocol.KeyUnknown, posts().Problem().Code)
		delegates := func(until time.Time) protocol.SignedText {
			text := owner.text(func(m *eip4361.Message) {
				m.Resources = append(m.Resources, protocol.KeyResource+pair.Thumbprint())
				m.ExpirationTime = until.UTC().Format(time.RFC3339)
			})
			text.JWK = must.Get(key.MarshalPublic(pair.Published()))(t)
			return text
		}
		month := time.Now().Add(protocol.MaxDelegation)
		require.Equal(t, protocol.InvalidRequest, owner.signIn(delegates(month.Add(time.Hour))).Problem().Code)
		unnamed := owner.text(nil)
		unnamed.JWK = must.Get(key.MarshalPublic(pair.Published()))(t)
		require.Equal(t, protocol.InvalidRequest, owner.signIn(unnamed).Problem().Code)
		token := nodetest.As[protocol.AgentToken](owner.signIn(delegates(month)).Is(200))
		require.Equal(t, pair.Thumbprint(), token.KeyID)
		post := nodetest.As[protocol.Post](posts().Is(201))
		require.Equal(t, protocol.ByOwner, post.Author.Proof.Level)
		require.Equal(t, pair.Thumbprint(), *post.Author.KeyID)
		require.Equal(t, id.String(), *post.Author.ERC8004)

		s.Ask("DELETE", "/api/public/sign-in", "").Is(401)
		require.JSONEq(t, `{"ended":1}`, s.Ask("DELETE", "/api/public/sign-in", "", "Authorization", "Bearer "+token.Token).Is(200).Body.String())
		require.Equal(t, protocol.KeyUnknown, posts().Problem().Code)
		owner.signIn(delegates(month)).Is(200)
		posts().Is(201)
		s.Watch()
		s.Chain.Must(s.Chain.Registrar(0).Transfer(t.Context(), id.AgentID, s.Chain.Registrar(1).Address()))
		require.Eventually(t, func() bool { return posts().Code == 401 }, time.Minute, 20*time.Millisecond)
	})
}

// TestSignIn_X402: the text in SIGN-IN-WITH-X admits one write.
func TestSignIn_X402(t *testing.T) {
	t.Parallel()
	s := nodetest.NewStage(t, "")
	id := s.Register(0)
	owner := accountOf(s, 0, id.String())
	signed := owner.text(nil)
	m := must.Get(eip4361.Parse(signed.Message))(t)
	header := base64.StdEncoding.EncodeToString(nodetest.Encoded(map[string]any{
		"domain": m.Domain, "address": m.Account, "statement": m.Statement, "uri": m.URI, "version": "1", "chainId": fmt.Sprintf("eip155:%d", m.ChainID),
		"type": "eip191", "nonce": m.Nonce, "issuedAt": m.IssuedAt, "expirationTime": m.ExpirationTime, "resources": m.Resources, "signature": signed.Signature}))
	s.Ask("GET", "/api/public/since", "", "SIGN-IN-WITH-X", header).Is(200)
	s.Ask("POST", "/api/public/board", nodetest.GoodPost, "SIGN-IN-WITH-X", header).Is(201)
	again := s.Ask("POST", "/api/public/board", strings.Replace(nodetest.GoodPost, `"title":"`, `"title":"Twice: `, 1), "SIGN-IN-WITH-X", header)
	require.Equal(t, protocol.SignatureReplayed, again.Problem().Code)
	s.Ask("GET", "/api/public/board", "", "SIGN-IN-WITH-X", "nonsense").Is(200)
	solana := base64.StdEncoding.EncodeToString([]byte(`{"chainId":"solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp","type":"ed25519"}`))
	for _, bad := range []string{"nonsense", "e30=", solana} {
		require.Equal(t, protocol.SignatureInvalid, s.Ask("POST", "/api/public/board", nodetest.GoodPost, "SIGN-IN-WITH-X", bad).Problem().Code, bad)
	}
}

// TestWallet_Alone: an account that claims no identity pays the proof of work, is not verified, is one of its network, and is named.
func TestWallet_Alone(t *testing.T) {
	t.Parallel()
	s := nodetest.NewStage(t, "")
	alone := accountOf(s, 0, "")
	refused := alone.sends(alone.request("POST", "/api/public/board", nodetest.GoodPost, false))
	require.Equal(t, protocol.PowRequired, refused.Problem().Code)
	require.NotNil(t, refused.Problem().Challenge)
	var post protocol.Post
	with := func(r *http.Request) *http.Request {
		r.Header.Set("Proof-Of-Work", s.Proof(protocol.PostToBoard.Purpose))
		return r
	}
	alone.sends(with(alone.request("POST", "/api/public/board", nodetest.GoodPost, false))).Is(201).Into(&post)
	require.False(t, post.Author.Verified)
	require.Equal(t, protocol.BySameKey, post.Author.Proof.Level)
	require.Equal(t, alone.as.String(), *post.Author.KeyID)
	require.Equal(t, alone.as.String(), *post.Author.Proof.Subject)
	require.Nil(t, post.Author.ERC8004)
	require.NotContains(t, s.Ask("GET", "/api/public/board?verifiedOnly=true", "").Is(200).Body.String(), post.ID)
	require.Contains(t, s.Ask("GET", "/board/"+post.ID, "").Is(200).Body.String(), alone.as.Address[:10])
	forged := alone
	forged.key = accountOf(s, 1, "").key
	require.Equal(t, protocol.SignatureInvalid, forged.sends(with(forged.request("POST", "/api/public/board", nodetest.GoodPost, false))).Problem().Code)
}
