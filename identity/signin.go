package identity

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"stoa/identity/eip4361"
	"stoa/identity/httpsig"
	"stoa/identity/key"
	"stoa/identity/session"
	"stoa/protocol"
)

// A SignIn lets the accounts that control an ERC-8004 identity, its owner and its agent wallet, sign in with a text that they sign: of
// EIP-4361 with the identity as a resource, of SIWA, or as x402 sends it (CAIP-122). A text is good once, for ten minutes, at this node,
// and gives a [session.Grant].
type SignIn struct {
	Base       string // address of the node
	Challenges session.Challenger
	Chain      Chain    // nil for a node that reads no chain
	Chains     []uint64 // that it reads
}

// agents is what the challenges of agents are bound to instead of a browser.
const agents = "agent"

// Text returns the members of a text to sign that are the node's: everything but the account and the identity.
func (s *SignIn) Text(now time.Time) eip4361.Message {
	now = now.UTC().Truncate(time.Second)
	_, host, _ := strings.Cut(s.Base, "://")
	return eip4361.Message{
		Domain: host, URI: s.Base, Statement: "Sign in to this node. It costs nothing and sends no transaction.",
		Nonce: s.Challenges.New(session.ByAgent, agents, now), IssuedAt: now.Format(time.RFC3339),
		ExpirationTime: now.Add(session.ChallengeLifetime).Format(time.RFC3339),
	}
}

// errNoChain refuses everything about accounts at a node without a chain.
var errNoChain = protocol.Errorf(protocol.IdentityUnverified, "this node is not connected to a chain, so nobody signs in to it with an Ethereum account")

// A SignedIn is what a signed text gives. The caller has to remember Spend, since a text is good once.
type SignedIn struct {
	session.Grant
	Key   ChainKey
	Level protocol.ProofLevel
	Spend protocol.Spend

	text eip4361.Message
}

// Take checks a text and its signature, in hexadecimal digits with 0x, by the reader's view of the chain. Errors are *protocol.Error:
// invalid-request, gone, and those of [Chain].
func (s *SignIn) Take(ctx context.Context, network, text, signature string, now time.Time) (in SignedIn, err error) {
	if s == nil || s.Chain == nil {
		return in, errNoChain
	}
	m, err := eip4361.Parse(text)
	if err != nil {
		return in, protocol.Errorf(protocol.InvalidRequest, "the text that was signed is %w", err)
	}
	if err := CheckText(m, s.Base, s.Chains, now); err != nil {
		return in, err
	}
	spent, until, ok := s.Challenges.Check(m.Nonce, session.ByAgent, agents, now)
	if !ok {
		return in, protocol.Errorf(protocol.Gone, "the nonce is not of this node, or has expired; get another at %s/api/public/sign-in", s.Base)
	}
	id := m.Identity()
	if id == "" {
		return in, protocol.Errorf(protocol.InvalidRequest,
			"the text names no ERC-8004 identity: add it as the one resource eip155:<chainId>:<registry>:<agentId>, or by the lines of SIWA")
	}
	account := httpsig.Account{Chain: m.ChainID, Address: strings.ToLower(m.Account)}
	raw, err := hex.DecodeString(strings.TrimPrefix(signature, "0x"))
	if err != nil || len(raw) == 0 {
		return in, protocol.Errorf(protocol.InvalidRequest, "the signature is not in hexadecimal digits")
	}
	k, level, err := s.Chain.AccountKey(ctx, network, id, account)
	if err != nil {
		return in, err
	}
	if err := k.Key.Verify([]byte(text), raw); err != nil {
		if _, decided := errors.AsType[httpsig.Code](err); decided {
			err = protocol.Errorf(protocol.SignatureInvalid, "the signature is not one of %s over the text", m.Account)
		}
		return in, err
	}
	return SignedIn{
		Grant: session.Grant{Identity: k.Identity, Chain: m.ChainID, Account: account.Address, Until: now.Add(session.GrantLifetime).Unix()},
		Key:   k, Level: level, Spend: protocol.Spend{Key: spent, Until: until, Code: protocol.Gone}, text: m,
	}, nil
}

// Delegates returns the key to which the text delegates, and when that ends; ok is false for a text that names none. jwk is the key itself.
// Errors are *protocol.Error: invalid-request.
func (in SignedIn) Delegates(jwk []byte, now time.Time) (k key.Public, until time.Time, ok bool, err error) {
	named := ""
	for _, x := range in.text.Resources {
		if thumbprint, is := strings.CutPrefix(x, protocol.KeyResource); is {
			named = thumbprint
		}
	}
	if named == "" && len(jwk) == 0 {
		return k, until, false, nil
	}
	if k, err = key.ParsePublic(jwk); err != nil || k.Thumbprint != named {
		return k, until, false, protocol.Errorf(protocol.InvalidRequest, "the text and jwk name one key: the resource %s<thumbprint of jwk>", protocol.KeyResource)
	}
	if _, until, _ = in.text.Times(); until.IsZero() || until.After(now.Add(protocol.MaxDelegation+clockSkew)) {
		return k, until, false, protocol.Errorf(protocol.InvalidRequest, "a text that delegates to a key has an Expiration Time of at most 30 days")
	}
	return k, until, true, nil
}

// clockSkew is how far clocks of wallets may differ from the node's.
const clockSkew = time.Minute

// CheckText checks what a text says against a node: its domain, its address, its chain and its times. Errors are *protocol.Error:
// invalid-request, and gone for a text that has expired.
func CheckText(m eip4361.Message, base string, chains []uint64, now time.Time) error {
	issued, expires, notBefore := m.Times()
	scheme, host, _ := strings.Cut(base, "://")
	switch {
	case m.Domain != host || m.Scheme != "" && m.Scheme != scheme:
		return protocol.Errorf(protocol.InvalidRequest, "the text was signed for %s, and this is %s; sign a text of this node", m.Domain, host)
	case m.URI != base && !strings.HasPrefix(m.URI, base+"/"):
		return protocol.Errorf(protocol.InvalidRequest, "the text was signed for the address %s, and not for one of %s; sign a text of this node", m.URI, base)
	case !slices.Contains(chains, m.ChainID):
		return WrongChain(chains)
	case !expires.IsZero() && !now.Before(expires), issued.Before(now.Add(-session.ChallengeLifetime - clockSkew)):
		return protocol.Errorf(protocol.Gone, "the text that was signed has expired; begin again")
	case issued.After(now.Add(clockSkew)), notBefore.After(now.Add(clockSkew)):
		return protocol.Errorf(protocol.InvalidRequest, "the text that was signed is not valid yet; check the clock of your device")
	}
	return nil
}

// WrongChain refuses a chain that a node does not read.
func WrongChain(chains []uint64) error {
	names := make([]string, len(chains))
	for i, c := range chains {
		names[i] = strconv.FormatUint(c, 10)
	}
	return protocol.Errorf(protocol.InvalidRequest, "your wallet is on another chain; switch it to one that this node reads: %s", strings.Join(names, ", "))
}

// granted admits the bearer of a grant, if its account still controls the identity.
func (g *Gate) granted(ctx context.Context, ev Evidence, secret string) (protocol.Caller, error) {
	grant, ok := g.grant(secret)
	if !ok {
		return protocol.Caller{}, protocol.Errorf(protocol.Unauthorized,
			"the token of the agent is not of this node or has expired; sign in again at %s/api/public/sign-in", g.base())
	}
	account := httpsig.Account{Chain: grant.Chain, Address: grant.Account}
	k, level, err := g.Chain.AccountKey(ctx, ev.Network, grant.Identity, account)
	if err != nil {
		return protocol.Caller{}, err
	}
	return controlling(ev.Network, k, level), nil
}

// grant opens a grant; false at a node without a chain.
func (g *Gate) grant(secret string) (session.Grant, bool) {
	if g.SignIn == nil || g.Chain == nil {
		return session.Grant{}, false
	}
	return g.SignIn.Challenges.Open(secret, g.now())
}

func (g *Gate) base() string { return g.Target.Scheme + "://" + g.Target.Authority }

func (g *Gate) now() time.Time {
	if g.Now != nil {
		return g.Now()
	}
	return time.Now()
}

// controlling is a caller whose account controls an identity. There is no signed request that others could check.
func controlling(network string, k ChainKey, level protocol.ProofLevel) protocol.Caller {
	return protocol.Caller{
		Standing: protocol.Signed, Network: network, KeyID: k.Key.Thumbprint(), Agent: k.Identity, Owner: k.Owner, Wallet: k.Wallet, Key: k.Key.Public(),
		Proof: protocol.AuthorProof{Level: level, Block: new(int64(k.Block)), BlockHash: &k.BlockHash},
	}
}

// signInWithX is the field in which x402 sends a signed text; its value is base64 of JSON, with the members of the text.
const signInWithX = "Sign-In-With-X"

// maxSignInWithX is the longest value that is read, in bytes.
const maxSignInWithX = 8192

func hasSignInWithX(r *http.Request) bool { return r != nil && r.Header[signInWithX] != nil }

// withX admits the sender of a text in SIGN-IN-WITH-X, which is spent by a write.
func (g *Gate) withX(ctx context.Context, ev Evidence, op *protocol.Operation) (protocol.Caller, error) {
	text, signature, err := textOfX(ev.Request.Header[signInWithX])
	if err != nil {
		return protocol.Caller{}, protocol.Errorf(protocol.SignatureInvalid, "SIGN-IN-WITH-X: %w", err)
	}
	in, err := g.SignIn.Take(ctx, ev.Network, text, signature, g.now())
	if err != nil {
		if e := protocol.AsError(err); e.Code == protocol.InvalidRequest || e.Code == protocol.Gone {
			err = protocol.Errorf(protocol.SignatureInvalid, "SIGN-IN-WITH-X: %s", e.Detail)
		}
		return protocol.Caller{}, err
	}
	c := controlling(ev.Network, in.Key, in.Level)
	if !op.ReadOnly {
		in.Spend.Code = protocol.SignatureReplayed
		c.Spend = []protocol.Spend{in.Spend}
	}
	return c, nil
}

// textOfX rebuilds the signed text from the members in SIGN-IN-WITH-X, and returns its signature too.
func textOfX(lines []string) (text, signature string, err error) {
	if len(lines) != 1 || len(lines[0]) > maxSignInWithX {
		return "", "", fmt.Errorf("there has to be one, of at most %d bytes", maxSignInWithX)
	}
	raw, err := base64.StdEncoding.DecodeString(lines[0])
	if err != nil {
		return "", "", errors.New("it is not base64")
	}
	var x struct {
		Domain, Address, Statement, URI, ChainID, Type, Nonce, IssuedAt, ExpirationTime, NotBefore, Signature string

		RequestID *string
		Resources []string
	}
	if err := json.Unmarshal(raw, &x); err != nil {
		return "", "", errors.New("it is not the JSON of a signed text")
	}
	chain, err := strconv.ParseUint(strings.TrimPrefix(x.ChainID, "eip155:"), 10, 64)
	if err != nil || !strings.HasPrefix(x.ChainID, "eip155:") || x.Type != "eip191" && x.Type != "eip1271" {
		return "", "", errors.New("only accounts of Ethereum sign in here: chainId eip155:<number>, type eip191 or eip1271")
	}
	return eip4361.Message{
		Domain: x.Domain, Account: x.Address, Statement: x.Statement, URI: x.URI, ChainID: chain, Nonce: x.Nonce, IssuedAt: x.IssuedAt,
		ExpirationTime: x.ExpirationTime, NotBefore: x.NotBefore, RequestID: x.RequestID, Resources: x.Resources,
	}.String(), x.Signature, nil
}
