package account_test

import (
	"context"
	"crypto/ecdsa"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/stretchr/testify/require"

	"stoa/identity/eip4361"
	"stoa/identity/erc8004"
	"stoa/identity/key"
	"stoa/node/nodetest"
	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/storage"
)

// wallet is the key of an account of the chain.
func wallet(c *nodetest.EVM, account int) *ecdsa.PrivateKey {
	c.T.Helper()
	return must.Get(erc8004.ParseWalletKey(c.Accounts[account].PrivateKey))(c.T)
}

// personal signs a text as wallets do (personal_sign).
func personal(t testing.TB, key *ecdsa.PrivateKey, text string) string {
	t.Helper()
	digest := eip4361.Digest(text)
	sig := must.Get(crypto.Sign(digest[:], key))(t)
	sig[64] += 27
	return "0x" + hex.EncodeToString(sig)
}

// contractWallet deploys the ERC-1271 wallet whose signer is an account.
func contractWallet(c *nodetest.EVM, signer int) common.Address {
	c.T.Helper()
	raw := must.Get(os.ReadFile(nodetest.Source("cmd/devchain/contracts/TestWallet.json")))(c.T)
	var artifact struct{ Bytecode string }
	require.NoError(c.T, json.Unmarshal(raw, &artifact))
	code := must.Get(hex.DecodeString(strings.TrimPrefix(artifact.Bytecode, "0x")))(c.T)
	made, err := c.Registrar(9).Send(c.T.Context(), nil, append(code, common.LeftPadBytes(common.HexToAddress(c.Accounts[signer].Address).Bytes(), 32)...))
	require.NoError(c.T, err)
	return *made.Contract
}

// TestSignIn_Ethereum signs in with the account that owns an identity: an ordinary one, and a
// contract (ERC-1271). Nothing else does, and who sold the identity signs in no more.
func TestSignIn_Ethereum(t *testing.T) {
	t.Parallel()
	s := nodetest.NewStage(t, "", nodetest.AtLocalhost)
	enrol := func(handle string, account int) erc8004.ID {
		pair := s.Hosted(handle)
		id, _, err := s.Chain.Registrar(account).Register(t.Context(), "https://agent.example/"+handle)
		require.NoError(t, err)
		s.Chain.Publish(account, account, id, pair)
		s.Chain.Do("final")
		require.NoError(t, s.Admin().EnrolIdentity(t.Context(), handle, id.String(), pair.Thumbprint()))
		s.OpenAccount(handle, protocol.RoleOwner, "", handle)
		return id
	}
	asha := enrol("asha", 0)
	owner := s.Chain.Accounts[0].Address

	begin := func(address string) (m eip4361.Message, cookie string) {
		said, cookie := challenge(s.House, url.Values{"account": {strings.ToLower(address)}, "chain": {fmt.Sprint(s.Chain.ChainID)}})
		m, err := eip4361.Parse(said.Message)
		require.NoError(t, err, "%s", said.Message)
		return m, cookie
	}
	send := func(text, sig, cookie string, more ...string) nodetest.Answer {
		form := url.Values{"message": {text}, "signature": {sig}}
		if len(more) > 0 {
			form.Set("handle", more[0])
		}
		return s.SendForm("/sign-in", form, "Cookie", cookie)
	}
	m, cookie := begin(owner)
	require.Equal(t, "http", m.Scheme)
	require.Equal(t, "localhost:8080", m.Domain)
	require.Equal(t, "http://localhost:8080/sign-in", m.URI)
	require.Equal(t, s.Chain.ChainID, m.ChainID)
	text := m.String()
	require.Equal(t, 403, send(text, personal(t, wallet(s.Chain, 1), text), cookie).Code, "another account's signature")
	a := send(text, personal(t, wallet(s.Chain, 0), text), cookie)
	require.Equal(t, 303, a.Code, "%s", a.Body)
	who := nodetest.As[protocol.Account](s.Ask("GET", "/api/owner/account", "", "Cookie", sessionIn(a)))
	require.Equal(t, []string{"asha"}, who.Handles)
	replayed := send(text, personal(t, wallet(s.Chain, 0), text), cookie)
	require.Equal(t, 410, replayed.Code, "a nonce is used once")
	require.Empty(t, sessionIn(replayed))
	ways := nodetest.As[protocol.SignInMethods](s.Ask("GET", "/api/owner/sign-in", "", "Cookie", sessionIn(a)))
	require.Equal(t, []protocol.EthereumOwner{{Handle: "asha", ERC8004: asha.String(), Owner: strings.ToLower(owner)}}, ways.Ethereum)

	past, future := time.Now().Add(-time.Hour).UTC().Format(time.RFC3339), time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	for name, c := range map[string]struct {
		change func(*eip4361.Message)
		status int
	}{
		"another domain":         {func(m *eip4361.Message) { m.Domain = "evil.example" }, 400},
		"another port":           {func(m *eip4361.Message) { m.Domain = "localhost:8081" }, 400},
		"https":                  {func(m *eip4361.Message) { m.Scheme = "https" }, 400},
		"another page":           {func(m *eip4361.Message) { m.URI = "http://localhost:8080/board" }, 400},
		"another chain":          {func(m *eip4361.Message) { m.ChainID = 1 }, 400},
		"expired":                {func(m *eip4361.Message) { m.ExpirationTime = past }, 410},
		"signed an hour ago":     {func(m *eip4361.Message) { m.IssuedAt, m.ExpirationTime = past, "" }, 410},
		"signed in an hour":      {func(m *eip4361.Message) { m.IssuedAt = future }, 400},
		"not valid yet":          {func(m *eip4361.Message) { m.NotBefore = future }, 400},
		"its own nonce":          {func(m *eip4361.Message) { m.Nonce = strings.Repeat("a", 80) }, 410},
		"an account without any": {func(m *eip4361.Message) { m.Account = s.Chain.Accounts[5].Address }, 403},
	} {
		m, cookie := begin(owner)
		c.change(&m)
		text, signer := m.String(), 0
		if m.Account != owner {
			m.Account, _ = eip4361.Address(m.Account)
			text, signer = m.String(), 5
		}
		a := send(text, personal(t, wallet(s.Chain, signer), text), cookie)
		require.Equal(t, c.status, a.Code, "%s: %s", name, a.Body)
		require.Empty(t, sessionIn(a), name)
	}
	m, cookie = begin(owner)
	text = m.String()
	good := personal(t, wallet(s.Chain, 0), text)
	_, elsewhere := begin(owner)
	require.Equal(t, 410, send(text, good, elsewhere).Code, "another browser")
	require.Equal(t, 400, send(text+"\n", good, cookie).Code, "not the form of EIP-4361")
	require.Equal(t, 400, send(text, "0xzz", cookie).Code)
	require.Equal(t, 403, send(text, "", cookie).Code)
	require.Equal(t, 403, send(text, good[:len(good)-2], cookie).Code)
	require.Equal(t, 403, send(text, good, cookie, "ravi").Code, "not that profile's owner")
	require.Equal(t, 400, s.SendForm("/sign-in/challenge", url.Values{"account": {owner}, "chain": {"1"}}).Code)

	// A contract owns an identity: its own word counts, as it is now.
	ravi := s.Hosted("ravi")
	id, _, err := s.Chain.Registrar(1).Register(t.Context(), "https://agent.example/ravi")
	require.NoError(t, err)
	contract := contractWallet(s.Chain, 2)
	s.Chain.Must(s.Chain.Registrar(1).Transfer(t.Context(), id.AgentID, contract))
	s.Chain.Do("final")
	s.OpenAccount("Ravi", protocol.RoleOwner, "", "ravi")
	require.NoError(t, s.DB.Write(t.Context(), func(ctx context.Context, tx *storage.Tx) error {
		return tx.Enrolments().Begin(ctx, "test", storage.Enrolment{Handle: "ravi", ERC8004: id.String(), KeyID: ravi.Thumbprint(),
			Owner: strings.ToLower(contract.Hex())}, nil)
	}))
	asked := func(signer int) nodetest.Answer {
		m, cookie := begin(contract.Hex())
		return send(m.String(), personal(t, wallet(s.Chain, signer), m.String()), cookie)
	}
	require.Equal(t, 403, asked(1).Code, "who sold it to the contract")
	a = asked(2)
	require.Equal(t, 303, a.Code, "%s", a.Body)
	s.Ask("GET", "/api/owner/account", "", "Cookie", sessionIn(a)).Into(&who)
	require.Equal(t, []string{"ravi"}, who.Handles)
	set := append(crypto.Keccak256([]byte("setSigner(address)"))[:4], common.LeftPadBytes(common.HexToAddress(s.Chain.Accounts[3].Address).Bytes(), 32)...)
	s.Chain.Must(s.Chain.Registrar(9).Send(t.Context(), &contract, set))
	require.Equal(t, 403, asked(2).Code, "the contract has another signer now")
	require.Equal(t, 303, asked(3).Code)

	// Who sells the identity signs in no more, and the buyer does not sign in to the seller's account.
	s.Watch()
	s.Chain.Must(s.Chain.Registrar(0).Transfer(t.Context(), asha.AgentID, common.HexToAddress(s.Chain.Accounts[4].Address)))
	require.Eventually(t, func() bool {
		m, cookie := begin(owner)
		return send(m.String(), personal(t, wallet(s.Chain, 0), m.String()), cookie).Code == 403
	}, time.Minute, 100*time.Millisecond)
	m, cookie = begin(s.Chain.Accounts[4].Address)
	require.Equal(t, 403, send(m.String(), personal(t, wallet(s.Chain, 4), m.String()), cookie).Code)
	connects(s)
}

// connects connects a profile to an identity as its owner does in the browser, and tries what must not.
func connects(s *nodetest.Stage) {
	t := s.T
	member := func(handle string) (pair key.Pair, cookie, stale string) {
		s.Hosted(handle)
		pair = nodetest.NewPair(t)
		require.NoError(t, s.Admin().AddKey(t.Context(), handle, pair, true)) // the node keeps it
		acc, _ := s.OpenAccount(handle, protocol.RoleOwner, "", handle)
		return pair, s.SessionOf(acc.ID, 0), s.SessionOf(acc.ID, 16*time.Minute)
	}
	register := func(account int, pair key.Pair) erc8004.ID {
		id, _, err := s.Chain.Registrar(account).Register(t.Context(), "https://agent.example/")
		require.NoError(t, err)
		s.Chain.Publish(account, account, id, pair)
		return id
	}
	connect := func(id erc8004.ID, headers ...string) nodetest.Answer {
		return s.Ask("PUT", "/api/owner/identity", `{"erc8004":"`+id.String()+`"}`, headers...)
	}
	soon := func(want protocol.Code, id erc8004.ID, cookie string) {
		t.Helper()
		require.Eventually(t, func() bool {
			a := connect(id, "Cookie", cookie)
			return want == "" && a.Code == 200 || a.Code != 200 && a.Problem().Code == want
		}, time.Minute, 50*time.Millisecond)
	}
	kavi, cookie, stale := member("kavi")
	id := register(6, kavi)
	require.Equal(t, protocol.IdentityUnverified, connect(id, "Cookie", cookie).Problem().Code, "not final yet")
	s.Chain.Do("final")
	require.Equal(t, protocol.SignInAgain, connect(id, "Cookie", stale).Problem().Code)
	require.Equal(t, protocol.Forbidden, connect(id, "Authorization", "Bearer "+s.OwnerToken("kavi")).Problem().Code)
	soon("", id, cookie)
	status := nodetest.As[protocol.IdentityStatus](connect(id, "Cookie", cookie))
	require.Equal(t, kavi.Thumbprint(), *status.KeyID)
	require.Equal(t, strings.ToLower(s.Chain.Accounts[6].Address), *status.Owner)

	// An identity is not taken by naming it, nor by registering the key that it names, which everyone knows.
	_, mallory, _ := member("mallory")
	stranger := nodetest.NewPair(t)
	other := register(7, stranger)
	s.Chain.Do("final")
	jwk := must.Get(key.MarshalPublic(stranger.Published()))(t)
	require.Equal(t, 201, s.Ask("POST", "/api/owner/keys", `{"jwk":`+string(jwk)+`}`, "Cookie", mallory).Code)
	for _, x := range []erc8004.ID{id, other} {
		require.Equal(t, protocol.IdentityUnverified, connect(x, "Cookie", mallory).Problem().Code)
	}
	s.Chain.Publish(7, 7, other, stranger, kavi) // Kavi would have two
	s.Chain.Do("final")
	soon(protocol.Conflict, other, cookie)

	// What the owner removed is connected again, by the page.
	require.Equal(t, 204, s.Ask("DELETE", "/api/owner/identity", "", "Cookie", cookie).Code)
	page := nodetest.ParsePage(t, "/account/keys", s.Ask("GET", "/account/keys", "", "Cookie", cookie, "Accept", "text/html").Body.String())
	page.WellFormed()
	form := url.Values{"do": {"connect_identity"}, "handle": {"kavi"}}
	for _, name := range []string{"registry", "number"} {
		form.Set(name, nodetest.Attr(page.Find("input", "name", name), "value"))
	}
	require.Equal(t, id.String(), form.Get("registry")+":"+form.Get("number"))
	wrong := s.SendForm("/account", url.Values{"do": {"connect_identity"}, "handle": {"kavi"}, "registry": form["registry"], "number": {"many"}}, "Cookie", cookie)
	require.Equal(t, 422, wrong.Code)
	require.Contains(t, wrong.Body.String(), "This is not the number of a token, such as 42.")
	done := s.SendForm("/account", form, "Cookie", cookie).Is(303)
	require.Equal(t, "/account/keys?done=connect_identity&handle=kavi", done.Header().Get("Location"))

	// The seller of the token does not get it back.
	s.Chain.Must(s.Chain.Registrar(6).Transfer(t.Context(), id.AgentID, common.HexToAddress(s.Chain.Accounts[8].Address)))
	require.Eventually(t, func() bool {
		s.Ask("GET", "/api/owner/identity", "", "Cookie", cookie).Into(&status)
		return status.ERC8004 == nil
	}, time.Minute, 50*time.Millisecond)
	s.Chain.Do("final")
	require.Equal(t, protocol.IdentityUnverified, connect(id, "Cookie", cookie).Problem().Code)
}

// TestJoin_Ethereum: who joins with an Ethereum account signs in with it, an ordinary one and a contract, and nobody else does.
func TestJoin_Ethereum(t *testing.T) {
	t.Parallel()
	s := nodetest.NewStage(t, "", nodetest.AtLocalhost)
	contract := contractWallet(s.Chain, 3).Hex()
	signed := func(address string, signer int) (text, sig, cookie string) {
		said, cookie := challenge(s.House, url.Values{"account": {strings.ToLower(address)}, "chain": {fmt.Sprint(s.Chain.ChainID)}})
		return said.Message, personal(t, wallet(s.Chain, signer), said.Message), cookie
	}
	join := func(handle, text, sig, cookie string) nodetest.Answer {
		return s.SendForm("/join", url.Values{"do": {"register_profile"}, "kind": {"person"}, "name": {handle}, "handle": {handle}, "way": {"ethereum"},
			"message": {text}, "signature": {sig}}, "Cookie", cookie)
	}
	profiles := func(handle string) int { return s.Ask("GET", "/api/public/agents/"+handle, "").Code }
	for i, at := range []struct {
		address string
		signer  int
	}{{s.Chain.Accounts[2].Address, 2}, {contract, 3}} {
		handle := fmt.Sprintf("wallet-%c", 'a'+i)
		text, sig, cookie := signed(at.address, 4)
		require.Equal(t, 403, join(handle, text, sig, cookie).Code, "another account's signature")
		require.Equal(t, 404, profiles(handle))
		text, sig, cookie = signed(at.address, at.signer)
		require.Equal(t, 303, join(handle, text, sig, cookie).Code)
		require.Equal(t, 200, profiles(handle))
		require.Equal(t, 410, join(handle+"-again", text, sig, cookie).Code, "a nonce is used once")
		text, sig, cookie = signed(at.address, at.signer)
		require.Equal(t, 409, join(handle+"-two", text, sig, cookie).Code, "it has an account")
		require.Equal(t, 404, profiles(handle+"-two"), "nothing is half done")

		text, sig, cookie = signed(at.address, at.signer)
		back := s.SendForm("/sign-in", url.Values{"message": {text}, "signature": {sig}}, "Cookie", cookie)
		require.Equal(t, 303, back.Code, "%s", back.Body)
		require.Equal(t, []string{handle}, nodetest.As[protocol.Account](s.Ask("GET", "/api/owner/account", "", "Cookie", sessionIn(back))).Handles)
		ways := nodetest.As[protocol.SignInMethods](s.Ask("GET", "/api/owner/sign-in", "", "Cookie", sessionIn(back)))
		require.Equal(t, strings.ToLower(at.address), *ways.Wallet)
		text, sig, cookie = signed(at.address, 4)
		require.Equal(t, 403, s.SendForm("/sign-in", url.Values{"message": {text}, "signature": {sig}}, "Cookie", cookie).Code)
	}
}
