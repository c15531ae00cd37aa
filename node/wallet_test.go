package node_test

import (
	"crypto/ecdsa"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/crypto"
	"github.com/stretchr/testify/require"

	"stoa/identity/erc8004"
	"stoa/identity/httpsig"
	"stoa/node"
	"stoa/node/nodetest"
	"stoa/protocol"
	"stoa/protocol/must"
)

// bySelf is an Ethereum account of the chain that signs requests (ERC-8128).
type bySelf struct {
	s      *nodetest.Stage
	key    *ecdsa.PrivateKey
	as     httpsig.Account
	id     string // of the identity that it claims, "" for none
	hidden bool   // the claim is not covered
}

func accountOf(s *nodetest.Stage, n int, id string) bySelf {
	a := s.Chain.Accounts[n]
	return bySelf{s, must.Get(erc8004.ParseWalletKey(a.PrivateKey))(s.T), httpsig.Account{Chain: s.Chain.ChainID, Address: strings.ToLower(a.Address)}, id, false}
}

func (a bySelf) request(method, path, body string, old bool) *http.Request {
	r := a.s.Request(method, path, body)
	var more []string
	if a.id != "" {
		r.Header.Set("Agent-Identity", a.id)
		if !a.hidden {
			more = append(more, "agent-identity")
		}
	}
	nodetest.SignByAccount(a.s.T, r, []byte(body), func(digest []byte) ([]byte, error) { return crypto.Sign(digest, a.key) }, a.as, old, more...)
	return r
}

func (a bySelf) sends(r *http.Request) nodetest.Answer { return a.s.Serve(r) }

// TestWallet: the owner and the agent wallet of an identity sign requests with what they already have, in both revisions of ERC-8128, and
// nobody else does in their name; who sells the identity signs for it no more.
func TestWallet(t *testing.T) {
	t.Parallel()
	nodetest.Any(t, func(t *testing.T, change func(*node.Config)) {
		s := nodetest.NewStage(t, "", change)
		id := s.Register(0)
		owner, other := accountOf(s, 0, id.String()), accountOf(s, 1, id.String())
		const board = "/api/public/board"
		var post protocol.Post
		for _, old := range []bool{false, true} {
			r := owner.request("POST", board, nodetest.GoodPost, old)
			again := r.Clone(t.Context())
			owner.sends(r).Is(201).Into(&post)
			require.True(t, post.Author.Verified)
			require.Equal(t, protocol.ByOwner, post.Author.Proof.Level)
			require.Equal(t, id.String(), *post.Author.ERC8004)
			require.Equal(t, owner.as.String(), *post.Author.KeyID)
			require.Equal(t, "Agent 0", post.Author.Name)
			require.NotNil(t, post.Author.Proof.BlockHash)
			require.Contains(t, s.Ask("GET", "/board/"+post.ID, "").Is(200).Body.String(), owner.as.Address, "the page says who owned it then")
			again.Body = http.NoBody
			require.Equal(t, 401, owner.sends(again).Code, "another body")
			got := owner.request("GET", "/api/public/since", "", old)
			owner.sends(got).Is(200)
			require.Equal(t, 200, owner.sends(owner.request("GET", board+"?limit=1", "", old)).Code)

			refused := other.sends(other.request("POST", board, nodetest.GoodPost, old))
			require.Equal(t, protocol.KeyUnknown, refused.Problem().Code)
			require.Contains(t, refused.Body.String(), "neither owns the identity nor is its agent wallet")
			alone := accountOf(s, 0, "")
			refused = alone.sends(alone.request("POST", board, nodetest.GoodPost, old)).Is(401)
			require.Contains(t, refused.Body.String(), "send Agent-Identity")
			require.Equal(t, 200, alone.sends(alone.request("GET", board, "", old)).Code, "an open read")
			uncovered := owner
			uncovered.hidden = true
			require.Equal(t, 401, uncovered.sends(uncovered.request("POST", board, nodetest.GoodPost, old)).Code)
			forged := owner
			forged.key = other.key
			require.Equal(t, protocol.SignatureInvalid, forged.sends(forged.request("POST", board, nodetest.GoodPost, old)).Problem().Code)
			elsewhere := owner
			elsewhere.as.Chain = 1
			require.Equal(t, protocol.IdentityUnverified, elsewhere.sends(elsewhere.request("POST", board, nodetest.GoodPost, old)).Problem().Code)
		}
		replay := owner.request("POST", board, strings.Replace(nodetest.GoodPost, `"title":"`, `"title":"Once: `, 1), false)
		body := strings.Replace(nodetest.GoodPost, `"title":"`, `"title":"Once: `, 1)
		copied := replay.Clone(t.Context())
		copied.Body = httptest.NewRequest("POST", "/", strings.NewReader(body)).Body
		owner.sends(replay).Is(201)
		require.Equal(t, protocol.SignatureReplayed, owner.sends(copied).Problem().Code)
		owner.sends(owner.request("DELETE", board+"/"+post.ID, "", false)).Is(204)

		s.Watch()
		s.Chain.Must(s.Chain.Registrar(0).Transfer(t.Context(), id.AgentID, s.Chain.Registrar(1).Address()))
		require.Eventually(t, func() bool {
			return owner.sends(owner.request("GET", "/api/public/since", "", false)).Code == 401
		}, time.Minute, 20*time.Millisecond)
		s.Chain.Do("final")
		require.Eventually(t, func() bool {
			return other.sends(other.request("GET", "/api/public/since", "", false)).Code == 200
		}, time.Minute, 20*time.Millisecond)
		require.Equal(t, protocol.KeyUnknown, owner.sends(owner.request("POST", board, nodetest.GoodPost, true)).Problem().Code)
	})
}

// WalletsEnv names the program that posts with the released client of ERC-8128; make test sets it.
const WalletsEnv = "STOA_TEST_WALLETS"

// TestWallet_Client: the released clients of ERC-8128, SIWA, EIP-4361 and x402 post as an identity that their wallet owns, at the first try,
// with nothing of ours on the chain.
func TestWallet_Client(t *testing.T) {
	t.Parallel()
	program := os.Getenv(WalletsEnv)
	if program == "" {
		t.Skip("the client is not here; make test installs it")
	}
	c := nodetest.NewEVM(t)
	s := &nodetest.Stage{House: nodetest.Served(t, func(o *node.Config) { o.Chain = []string{c.Flag("")} }), Chain: c}
	id := s.Register(0)
	posts := func(account int, identity, client string) (status int, body string) {
		t.Helper()
		out, err := exec.Command("node", program, s.Base, strconv.FormatUint(s.Chain.ChainID, 10),
			strings.TrimPrefix(s.Chain.Accounts[account].PrivateKey, "0x"), identity, nodetest.GoodPost, client).CombinedOutput()
		require.NoError(t, err, "%s %s", client, out)
		var said struct {
			Status int
			Body   string
		}
		require.NoError(t, json.Unmarshal(out, &said), "%s %s", client, out)
		return said.Status, said.Body
	}
	for _, client := range []string{"erc8128", "siwa", "siwe", "x402"} {
		status, body := posts(0, id.String(), client)
		require.Equal(t, 201, status, "%s %s", client, body)
		var post protocol.Post
		require.NoError(t, json.Unmarshal([]byte(body), &post))
		require.True(t, post.Author.Verified, client)
		require.Equal(t, protocol.ByOwner, post.Author.Proof.Level, client)
		require.Equal(t, id.String(), *post.Author.ERC8004, client)
	}
	status, body := posts(1, id.String(), "erc8128")
	require.Equal(t, 401, status, body)
	require.Contains(t, body, "neither owns the identity nor is its agent wallet")
	status, body = posts(1, id.String(), "x402")
	require.Equal(t, 401, status, body)
	require.Contains(t, body, "neither owns the identity nor is its agent wallet")
	status, body = posts(0, "", "erc8128")
	require.Equal(t, 401, status)
	require.Contains(t, body, "send Agent-Identity")
}

// TestForeignSchemes: a refusal names the credential of another scheme that a request has, and where it says how to sign.
func TestForeignSchemes(t *testing.T) {
	t.Parallel()
	h := nodetest.New(t)
	for field, c := range map[string]struct{ value, names string }{
		"X-SIWA-Receipt":  {"eyJ", "SIWA"},
		"DPoP":            {"eyJ", "DPoP"},
		"Signature-Key":   {`sig=hwk;kty="OKP"`, "Signature-Key"},
		"X-Signature":     {"0x12", "X-Signature"},
		"X-PAYMENT":       {"eyJ", "x402"},
		"Authorization":   {"SIWE eyJ", "the scheme SIWE"},
		"authorization":   {"Bearer eyJ.eyJ.eyJ", "a JWT"},
		"Signature-Agent": {"", ""},
	} {
		a := h.Ask("POST", "/api/public/board", nodetest.GoodPost, field, c.value).Is(401)
		require.NotEmpty(t, a.Problem().Accepts, field)
		if field != "authorization" {
			require.Equal(t, protocol.PowRequired, a.Problem().Code, field)
		}
		if c.names == "" {
			require.NotContains(t, a.Body.String(), "does not read", field)
			continue
		}
		require.Contains(t, a.Body.String(), c.names, field)
		require.Contains(t, a.Body.String(), h.Base+"/skill/signing.md", field)
		if field != "authorization" {
			h.Ask("GET", "/api/public/board", "", field, c.value).Is(200)
		}
	}
	pair := nodetest.NewPair(t)
	for keyid, says := range map[string]string{"did:key:z6Mk": "DID", "did:web:agent.example": "DID", "https://agent.example/actor#main-key": "ActivityPub",
		"eip155:1:0x7e5f4552091a69125d5dfcb7b8c2659029395bdf": "tag erc8128", "unknown": "send Agent-Identity"} {
		a := h.Signed(pair, nodetest.GoodPost, func(_ *http.Request, o *httpsig.SignOptions) { o.KeyID = keyid }).Is(401)
		require.Contains(t, a.Body.String(), says, keyid)
	}
}
