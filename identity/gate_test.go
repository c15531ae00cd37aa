package identity_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/identity"
	"stoa/identity/httpsig"
	"stoa/identity/key"
	"stoa/identity/proof"
	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/protocol/pow"
)

const (
	base     = "https://n1.example"
	enrolled = "eip155:1:0x8004a169fb4a3325136eb29fa0ceb6d2e539a432:7" // Asha's
	outside  = "eip155:1:0x8004a169fb4a3325136eb29fa0ceb6d2e539a432:8" // of an agent without a profile
)

// place is what a gate asks: the profiles, tokens and sessions of a node, and a
// chain.
type place struct {
	keys     map[string]identity.Hosted // by thumbprint
	agents   map[string]identity.Hosted // by chain identity
	tokens   map[string]identity.Credential
	sessions map[string]identity.Credential
	onChain  map[string]identity.ChainKey // by identity and thumbprint
	looked   int                          // times that a session was looked up
	used     []string                     // keys whose use was noted
	err      error
}

func (p *place) KeyByThumbprint(_ context.Context, thumbprint string) (identity.Hosted, bool, error) {
	h, ok := p.keys[thumbprint]
	return h, ok, p.err
}

func (p *place) DirectoryAgent(context.Context, string) (identity.Hosted, bool, error) {
	return identity.Hosted{}, false, nil
}

func (p *place) HostedAgent(_ context.Context, k identity.ChainKey, _ string) (identity.Hosted, bool, error) {
	h, ok := p.agents[k.Identity]
	return h, ok, p.err
}

func (p *place) KeyUsed(_ context.Context, erc8004, thumbprint string) {
	p.used = append(p.used, strings.TrimSpace(erc8004+" "+thumbprint))
}

func (p *place) TokenBySecret(_ context.Context, secret string) (identity.Credential, bool, error) {
	c, ok := p.tokens[secret]
	return c, ok, p.err
}

func (p *place) SessionBySecret(_ context.Context, secret string) (identity.Credential, bool, error) {
	p.looked++
	c, ok := p.sessions[secret]
	return c, ok, p.err
}

func (p *place) AccountKey(context.Context, string, string, httpsig.Account) (k identity.ChainKey, level protocol.ProofLevel, err error) {
	return k, "", protocol.Errorf(protocol.KeyUnknown, "the chain names no such account")
}

func (p *place) Account(context.Context, string, httpsig.Account) (httpsig.Key, error) {
	return nil, protocol.Errorf(protocol.KeyUnknown, "the chain is not read")
}

func (p *place) DelegatedKey(context.Context, string, string) (k httpsig.Key, by httpsig.Account, ok bool, err error) {
	return k, by, false, nil
}

func (p *place) MessageKey(_ context.Context, _, erc8004, thumbprint string) (identity.ChainKey, error) {
	k, ok := p.onChain[erc8004+" "+thumbprint]
	if !ok {
		return k, protocol.Errorf(protocol.KeyUnknown, "the chain names no such key")
	}
	return k, nil
}

// A gateWorld is a gate with its place, and the keys of those who come to it.
type gateWorld struct {
	*identity.Gate
	t                    *testing.T
	place                *place
	asha, agent, strange key.Pair
}

func newGate(t *testing.T) *gateWorld {
	t.Helper()
	w := &gateWorld{t: t}
	pair := func() (key.Pair, httpsig.Key) {
		p := must.Get(key.GenerateEd25519())(t)
		k := must.Get(httpsig.NewKey(p.Public()))(t)
		return p, k
	}
	var ashaKey, agentKey httpsig.Key
	w.asha, ashaKey = pair()
	w.agent, agentKey = pair()
	w.strange, _ = pair()
	asha := identity.Hosted{Handle: "asha", Name: "Asha", ERC8004: enrolled}
	ravi, shop := identity.Hosted{Handle: "ravi", Name: "Ravi"}, identity.Hosted{Handle: "shop", Name: "Shop"}
	signing := ravi
	signing.Key = ashaKey
	all := []protocol.Scope{protocol.ScopePost, protocol.ScopeProfile, protocol.ScopeInbox}
	w.place = &place{
		keys:   map[string]identity.Hosted{w.asha.Thumbprint(): signing},
		agents: map[string]identity.Hosted{enrolled: asha},
		tokens: map[string]identity.Credential{
			"stoa_asha":   {ID: "tok_1", Account: "acc_asha", Scopes: all, Profiles: []identity.Hosted{asha}},
			"stoa_notify": {ID: "tok_2", Account: "acc_asha", Scopes: []protocol.Scope{protocol.ScopeNotify}, Profiles: []identity.Hosted{asha}},
			"stoa_two":    {ID: "tok_3", Account: "acc_two", Scopes: all, Profiles: []identity.Hosted{ravi, shop}},
			"stoa_none":   {ID: "tok_4", Account: "acc_none", Scopes: all},
			"stoa_op": {ID: "tok_5", Account: "acc_op", Operator: true, Scopes: []protocol.Scope{protocol.ScopeOperator, protocol.ScopePost},
				Profiles: []identity.Hosted{ravi}},
			"stoa_op_not": {ID: "tok_6", Account: "acc_op", Operator: true, Scopes: all, Profiles: []identity.Hosted{ravi}},
			"stoa_op_account": {ID: "tok_8", Account: "acc_op", Operator: true, Scopes: []protocol.Scope{protocol.ScopeAccount, protocol.ScopePost},
				Profiles: []identity.Hosted{ravi}},
			"stoa_liar": {ID: "tok_7", Account: "acc_asha", Scopes: []protocol.Scope{protocol.ScopeOperator}, Profiles: []identity.Hosted{asha}},
		},
		sessions: map[string]identity.Credential{
			"asha": {ID: "ses_1", Account: "acc_asha", Profiles: []identity.Hosted{asha}},
			"op":   {ID: "ses_2", Account: "acc_op", Operator: true, Profiles: []identity.Hosted{ravi}},
		},
		onChain: map[string]identity.ChainKey{
			enrolled + " " + w.asha.Thumbprint(): {Identity: enrolled, Key: ashaKey, Block: 5},
			outside + " " + w.agent.Thumbprint(): {Identity: outside, Key: agentKey, Block: 6},
		},
	}
	flat := 0
	target := must.Get(httpsig.ParseTarget(base))(t)
	w.Gate = &identity.Gate{
		Target: target, Directory: w.place, Chain: w.place,
		Proofs: proof.New(proof.Config{Master: []byte("0123456789abcdef"), Audience: "n1.example", Flat: &flat, Cost: 1}),
	}
	return w
}

const body = `{"kind":"offer","title":"Paper","body":"200 sheets"}`

// request is one with header lines "Name: value".
func request(method, path string, lines ...string) *http.Request {
	var r *http.Request
	if method == "GET" {
		r = httptest.NewRequest(method, base+path, nil)
	} else {
		r = httptest.NewRequest(method, base+path, strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
	}
	r.RequestURI = path
	for _, line := range lines {
		name, value, _ := strings.Cut(line, ": ")
		r.Header.Add(name, value)
	}
	return r
}

// sent is the evidence of a request without signature.
func sent(lines ...string) identity.Evidence {
	return identity.Evidence{Request: request("POST", "/api/public/board", lines...), Body: []byte(body), Network: "net"}
}

// signed is the evidence of a signed request.
func (w *gateWorld) signed(pair key.Pair, method, path string, o httpsig.SignOptions, lines ...string) identity.Evidence {
	w.t.Helper()
	r, raw := request(method, path, lines...), []byte(nil)
	if method != "GET" {
		raw = []byte(body)
	}
	o.Key = pair.Signer()
	require.NoError(w.t, httpsig.SignRequest(r, w.Target, raw, o))
	return identity.Evidence{Request: r, Body: raw, Network: "net"}
}

func (w *gateWorld) solved(purpose string) []byte {
	w.t.Helper()
	s := must.Get(pow.Solve(w.t.Context(), w.Proofs.Issue(purpose, "net")))(w.t)
	return []byte(s.Encode())
}

// with changes a piece of evidence.
func with(ev identity.Evidence, change func(*identity.Evidence)) identity.Evidence {
	change(&ev)
	return ev
}

// TestAdmit_Tokens is what bearer tokens, sessions and proofs of work make of who
// sends them: the standing, and as whom it writes; or the refusal.
func TestAdmit_Tokens(t *testing.T) {
	t.Parallel()
	w := newGate(t)
	post, read, inbox, queue := protocol.PostToBoard.Operation, protocol.ReadBoard.Operation, protocol.ListThreads.Operation, protocol.ListReviewQueue.Operation
	thread := protocol.CheckConversation.Operation
	actAs := func(secret, handle string) identity.Evidence {
		return with(sent("Authorization: Bearer "+secret), func(ev *identity.Evidence) { ev.ActAs = handle })
	}
	session := func(secret string, lines ...string) identity.Evidence {
		return with(sent(lines...), func(ev *identity.Evidence) { ev.Session = secret })
	}
	paid := func(purpose string, lines ...string) identity.Evidence {
		return with(sent(lines...), func(ev *identity.Evidence) { ev.Proof = w.solved(purpose) })
	}
	for _, tt := range []struct {
		name     string
		op       *protocol.Operation
		ev       identity.Evidence
		code     protocol.Code
		standing protocol.Standing
		handle   string
	}{
		{"nobody reads", read, sent(), "", protocol.Anonymous, ""},
		{"nobody, behind a door without HTTP", read, identity.Evidence{}, "", protocol.Anonymous, ""},
		{"nobody posts", post, sent(), protocol.PowRequired, 0, ""},
		{"nobody lists threads", inbox, sent(), protocol.Unauthorized, 0, ""},
		{"nobody works as operator", queue, sent(), protocol.Unauthorized, 0, ""},
		{"the operator on the spot", queue, identity.Evidence{Operator: true}, "", protocol.Operator, ""},
		{"the operator on the spot posts", post, identity.Evidence{Operator: true}, "", protocol.Operator, ""},

		{"a proof", post, paid("board"), "", protocol.Proof, ""},
		{"a proof for contact is good for all", post, paid("contact"), "", protocol.Proof, ""},
		{"a proof of another purpose", post, paid("report"), protocol.PowInvalid, 0, ""},
		{"a proof that is none", post, with(sent(), func(ev *identity.Evidence) { ev.Proof = []byte("x") }), protocol.PowInvalid, 0, ""},
		{"a proof where none is asked", read, paid("board"), "", protocol.Anonymous, ""},
		{"a proof where none is enough", inbox, paid("contact"), protocol.Unauthorized, 0, ""},
		{"a proof does no operator's work", queue, paid("contact"), protocol.Unauthorized, 0, ""},

		{"a token", post, sent("Authorization: Bearer stoa_asha"), "", protocol.Session, "asha"},
		{"a token, as it is also written", post, sent("Authorization: bEaReR   stoa_asha "), "", protocol.Session, "asha"},
		{"another scheme", post, sent("Authorization: Basic stoa_asha"), protocol.PowRequired, 0, ""},
		{"a token and a proof", post, paid("board", "Authorization: Bearer stoa_asha"), "", protocol.Session, "asha"},
		{"an unknown token", post, sent("Authorization: Bearer stoa_x"), protocol.Unauthorized, 0, ""},
		{"an unknown token with a proof", post, paid("board", "Authorization: Bearer stoa_x"), protocol.Unauthorized, 0, ""},
		{"an unknown token where nothing is needed", read, sent("Authorization: Bearer stoa_x"), protocol.Unauthorized, 0, ""},
		{"a token of another scope posts", post, sent("Authorization: Bearer stoa_notify"), protocol.Forbidden, 0, ""},
		{"a token of another scope lists threads", inbox, sent("Authorization: Bearer stoa_notify"), protocol.Forbidden, 0, ""},
		{"a token of another scope reads", read, sent("Authorization: Bearer stoa_notify"), "", protocol.Session, "asha"},

		{"one of two, not named", post, sent("Authorization: Bearer stoa_two"), protocol.Forbidden, 0, ""},
		{"one of two, named", post, actAs("stoa_two", "shop"), "", protocol.Session, "shop"},
		{"one of two, as people write it", post, actAs("stoa_two", "@Shop"), "", protocol.Session, "shop"},
		{"somebody else", post, actAs("stoa_two", "asha"), protocol.Forbidden, 0, ""},
		{"somebody else, of one", post, actAs("stoa_asha", "ravi"), protocol.Forbidden, 0, ""},
		{"somebody else reads", read, actAs("stoa_asha", "ravi"), protocol.Forbidden, 0, ""},
		{"one of two reads", read, sent("Authorization: Bearer stoa_two"), "", protocol.Session, ""},
		{"one of two in an owner's operation", inbox, sent("Authorization: Bearer stoa_two"), "", protocol.Session, ""},
		{"an account without profiles posts", post, sent("Authorization: Bearer stoa_none"), protocol.Forbidden, 0, ""},
		{"an account without profiles, in an owner's operation", inbox, sent("Authorization: Bearer stoa_none"), "", protocol.Session, ""},

		{"an operator's token", queue, sent("Authorization: Bearer stoa_op"), "", protocol.Operator, ""},
		{"an operator's token elsewhere is an owner's", post, sent("Authorization: Bearer stoa_op"), "", protocol.Session, "ravi"},
		{"an operator's token without the scope", queue, sent("Authorization: Bearer stoa_op_not"), protocol.Forbidden, 0, ""},
		{"an operator's token with the scope of the operation and no more", protocol.ListAccounts.Operation, sent("Authorization: Bearer stoa_op_account"),
			protocol.Forbidden, 0, ""},
		{"an owner's token with the operator's scope", queue, sent("Authorization: Bearer stoa_liar"), protocol.Forbidden, 0, ""},
		{"an owner's token", queue, sent("Authorization: Bearer stoa_asha"), protocol.Forbidden, 0, ""},

		{"a read token where it opens nothing", read, sent("Authorization: Bearer " + protocol.ReadTokenPrefix + "x"), protocol.Unauthorized, 0, ""},
		{"a read token posts", post, sent("Authorization: Bearer " + protocol.ReadTokenPrefix + "x"), protocol.Unauthorized, 0, ""},
		{"a read token at its thread", thread, sent("Authorization: Bearer " + protocol.ReadTokenPrefix + "x"), "", protocol.Anonymous, ""},

		{"a session", post, session("asha"), "", protocol.Session, "asha"},
		{"a session that ended", post, session("gone"), protocol.PowRequired, 0, ""},
		{"a session at an open read", read, session("asha"), "", protocol.Anonymous, ""},
		{"a session at an owner's read", inbox, session("asha"), "", protocol.Session, "asha"},
		{"a session and a token: the token", post, session("op", "Authorization: Bearer stoa_asha"), "", protocol.Session, "asha"},
		{"a session and a broken token", post, session("asha", "Authorization: Bearer stoa_x"), protocol.Unauthorized, 0, ""},
		{"an operator's session", queue, session("op"), "", protocol.Operator, ""},
		{"an owner's session", queue, session("asha"), protocol.Forbidden, 0, ""},
		{"a session and half a signature", post, session("asha", "Signature: sig1=:AAAA:"), protocol.SignatureInvalid, 0, ""},
	} {
		c, err := w.Admit(t.Context(), tt.ev, tt.op)
		require.Equal(t, tt.code, protocol.CodeOf(err), "%s: %v", tt.name, err)
		if err != nil {
			require.Equal(t, protocol.Caller{}, c, "%s: a refusal names nobody", tt.name)
			continue
		}
		require.Equal(t, tt.standing, c.Standing, tt.name)
		require.Equal(t, tt.handle, c.Handle, tt.name)
		require.Equal(t, tt.ev.Network, c.Network, tt.name)
		require.Equal(t, tt.standing == protocol.Proof, len(c.Spend) == 1, "%s: a proof is spent", tt.name)
	}

	c := must.Get(w.Admit(t.Context(), sent("Authorization: Bearer stoa_asha"), post))(t)
	require.Equal(t, enrolled, c.Agent)
	require.Equal(t, "Asha", c.Name)
	require.Equal(t, "tok_1", c.Secret)
	require.ErrorContains(t, must.Err(w.Admit(t.Context(), actAs("stoa_two", "asha"), post)), "not one of your profiles")
	w.place.looked = 0
	for _, ev := range []identity.Evidence{session("asha", "Authorization: Bearer stoa_asha"), session("asha", "Signature: sig1=:AAAA:"),
		with(session("asha"), func(ev *identity.Evidence) { ev.Operator = true })} {
		_, _ = w.Admit(t.Context(), ev, post)
	}
	require.Zero(t, w.place.looked, "a cookie says nothing of who shows something else")
	c = must.Get(w.Admit(t.Context(), sent("Authorization: Bearer "+protocol.ReadTokenPrefix+"x"), thread))(t)
	require.Equal(t, protocol.ReadTokenPrefix+"x", c.ReadToken)
}

// A refusal that a new proof would mend brings a challenge, and no other does.
func TestAdmit_Challenges(t *testing.T) {
	t.Parallel()
	w := newGate(t)
	post, inbox := protocol.PostToBoard.Operation, protocol.ListThreads.Operation
	challenged := func(ev identity.Evidence, op *protocol.Operation) bool {
		_, err := w.Admit(t.Context(), ev, op)
		e, ok := errors.AsType[*protocol.Error](err)
		require.True(t, ok)
		c, has := e.Challenge.(pow.Challenge)
		if has {
			require.Equal(t, "board", c.Parameters.Data.Purpose)
		}
		return has
	}
	require.True(t, challenged(sent(), post))
	require.True(t, challenged(with(sent(), func(ev *identity.Evidence) { ev.Proof = []byte("x") }), post))
	require.False(t, challenged(sent("Authorization: Bearer stoa_x"), post))
	require.False(t, challenged(sent("Signature: sig1=:AAAA:"), post))
	require.False(t, challenged(sent(), inbox))

	spent := w.Refresh(protocol.Errorf(protocol.PowSpent, "spent"), sent(), post)
	e, _ := errors.AsType[*protocol.Error](spent)
	require.IsType(t, pow.Challenge{}, e.Challenge)
	replayed, _ := errors.AsType[*protocol.Error](w.Refresh(protocol.Errorf(protocol.SignatureReplayed, "again"), sent(), post))
	require.Equal(t, "error=invalid_signature", replayed.Signature)
	require.Nil(t, replayed.Challenge)
	other := errors.New("disk")
	require.Equal(t, other, w.Refresh(other, sent(), post))
}

// TestAdmit_Signatures is what a signature makes of a caller, and what is broken
// about one.
func TestAdmit_Signatures(t *testing.T) {
	t.Parallel()
	w := newGate(t)
	post, read, inbox, thread := protocol.PostToBoard.Operation, protocol.ReadBoard.Operation, protocol.ListThreads.Operation, protocol.CheckConversation.Operation
	const board, threads = "/api/public/board", "/api/owner/threads"
	few := httpsig.SignOptions{Components: []string{"@authority"}}
	id := func(s string) string { return "Agent-Identity: " + s }
	noChain := *w.Gate
	noChain.Chain = nil
	elsewhere := *w.Gate
	elsewhere.Target = httpsig.NewTarget("https", "n2.example")
	for _, tt := range []struct {
		name   string
		gate   *identity.Gate
		op     *protocol.Operation
		ev     identity.Evidence
		code   protocol.Code
		handle string
		agent  string
	}{
		{"the key of a profile", w.Gate, post, w.signed(w.asha, "POST", board, httpsig.SignOptions{}), "", "ravi", ""},
		{"a key that nobody registered", w.Gate, post, w.signed(w.strange, "POST", board, httpsig.SignOptions{}), protocol.KeyUnknown, "", ""},
		{"a key of the chain without identity", w.Gate, post, w.signed(w.agent, "POST", board, httpsig.SignOptions{}), protocol.KeyUnknown, "", ""},
		{"an identity that is enrolled here", w.Gate, post, w.signed(w.asha, "POST", board, httpsig.SignOptions{}, id(enrolled)), "", "asha", enrolled},
		{"an identity from outside", w.Gate, post, w.signed(w.agent, "POST", board, httpsig.SignOptions{}, id(outside)), "", "", outside},
		{"an identity with another's key", w.Gate, post, w.signed(w.asha, "POST", board, httpsig.SignOptions{}, id(outside)), protocol.KeyUnknown, "", ""},
		{"an identity with an unknown key", w.Gate, post, w.signed(w.strange, "POST", board, httpsig.SignOptions{}, id(enrolled)), protocol.KeyUnknown, "", ""},
		{"an identity where no chain is read", &noChain, post, w.signed(w.asha, "POST", board, httpsig.SignOptions{}, id(enrolled)),
			protocol.IdentityUnverified, "", ""},
		{"for another node", &elsewhere, post, w.signed(w.asha, "POST", board, httpsig.SignOptions{}), protocol.Misdirected, "", ""},
		{"a signature and a token: the signature", w.Gate, post, w.signed(w.asha, "POST", board, httpsig.SignOptions{}, "Authorization: Bearer stoa_two"),
			"", "ravi", ""},
		{"a broken signature and a token", w.Gate, post, w.signed(w.strange, "POST", board, httpsig.SignOptions{}, "Authorization: Bearer stoa_asha"),
			protocol.KeyUnknown, "", ""},
		{"another body", w.Gate, post, with(w.signed(w.asha, "POST", board, httpsig.SignOptions{}), func(ev *identity.Evidence) { ev.Body = []byte("{}") }),
			protocol.SignatureInvalid, "", ""},
		{"an identity put in afterwards", w.Gate, post, with(w.signed(w.asha, "POST", board, httpsig.SignOptions{}),
			func(ev *identity.Evidence) { ev.Request.Header.Set("Agent-Identity", enrolled) }), protocol.SignatureInvalid, "", ""},
		{"old", w.Gate, post, w.signed(w.asha, "POST", board, httpsig.SignOptions{Created: time.Now().Add(-time.Hour)}), protocol.SignatureExpired, "", ""},
		{"good for an hour", w.Gate, post, w.signed(w.asha, "POST", board, httpsig.SignOptions{TTL: time.Hour}), protocol.SignatureInvalid, "", ""},
		{"without a nonce", w.Gate, post, w.signed(w.asha, "POST", board, httpsig.SignOptions{Nonce: "-"}), protocol.SignatureInvalid, "", ""},
		{"the signature left away", w.Gate, read, with(w.signed(w.asha, "GET", board, httpsig.SignOptions{}),
			func(ev *identity.Evidence) { ev.Request.Header.Del("Signature") }), protocol.SignatureInvalid, "", ""},
		{"its input left away", w.Gate, read, with(w.signed(w.asha, "GET", board, httpsig.SignOptions{}),
			func(ev *identity.Evidence) { ev.Request.Header.Del("Signature-Input") }), protocol.SignatureInvalid, "", ""},

		{"a signed read", w.Gate, read, w.signed(w.asha, "GET", board, httpsig.SignOptions{}), "", "ravi", ""},
		{"a read signed in part", w.Gate, read, w.signed(w.asha, "GET", board, few), "", "ravi", ""},
		{"an owner's read", w.Gate, inbox, w.signed(w.asha, "GET", threads, httpsig.SignOptions{}), "", "ravi", ""},
		{"an owner's read signed in part", w.Gate, inbox, w.signed(w.asha, "GET", threads, few), protocol.SignatureInvalid, "", ""},
		{"a thread's read signed in part", w.Gate, thread, w.signed(w.asha, "GET", "/api/public/threads/thr_1", few), protocol.SignatureInvalid, "", ""},
		{"a write signed in part", w.Gate, post, w.signed(w.asha, "POST", board, few), protocol.SignatureInvalid, "", ""},
	} {
		c, err := tt.gate.Admit(t.Context(), tt.ev, tt.op)
		require.Equal(t, tt.code, protocol.CodeOf(err), "%s: %v", tt.name, err)
		require.Equal(t, tt.handle != "", len(w.place.used) == 1, "%s: the use of a profile's key is noted, once its signature was checked", tt.name)
		w.place.used = nil
		if err != nil {
			continue
		}
		require.Equal(t, protocol.Signed, c.Standing, tt.name)
		require.Equal(t, tt.handle, c.Handle, tt.name)
		require.Equal(t, tt.agent, c.Agent, tt.name)
		require.NotEmpty(t, c.KeyID, tt.name)
		require.Equal(t, tt.name == "a read signed in part", c.Partial, tt.name)
		if tt.op.ReadOnly {
			require.Empty(t, c.Spend, "%s: a read spends no nonce", tt.name)
			require.Nil(t, c.Evidence, tt.name)
		} else {
			require.Len(t, c.Spend, 1, tt.name)
			require.Equal(t, protocol.SignatureReplayed, c.Spend[0].Code)
			require.True(t, c.Spend[0].Until.After(time.Now()), tt.name)
			require.Contains(t, string(c.Evidence), "HttpMessageSignature", "others can check it again")
		}
	}
}

// What cannot be found out now is no refusal of the caller, and nobody is admitted.
func TestAdmit_DirectoryFails(t *testing.T) {
	t.Parallel()
	w := newGate(t)
	signed := w.signed(w.asha, "POST", "/api/public/board", httpsig.SignOptions{})
	w.place.err = errors.New("the database is unavailable")
	for name, ev := range map[string]identity.Evidence{
		"a token": sent("Authorization: Bearer stoa_asha"), "a signature": signed,
		"a session": with(sent(), func(ev *identity.Evidence) { ev.Session = "asha" }),
	} {
		c, err := w.Admit(t.Context(), ev, protocol.PostToBoard.Operation)
		require.ErrorIs(t, err, w.place.err, name)
		require.Equal(t, protocol.Internal, protocol.CodeOf(err), name)
		require.Equal(t, protocol.Caller{}, c, name)
	}
}

// The visitor's cookie counts where the operation has visitors, as a hash.
func TestAdmit_Visitor(t *testing.T) {
	t.Parallel()
	w := newGate(t)
	ev := with(sent(), func(ev *identity.Evidence) { ev.Visitor = "cookie" })
	c := must.Get(w.Admit(t.Context(), ev, protocol.CheckConversation.Operation))(t)
	hash := protocol.SecretHash("cookie")
	require.Equal(t, string(hash[:]), c.Visitor)
	c = must.Get(w.Admit(t.Context(), ev, protocol.ReadBoard.Operation))(t)
	require.Empty(t, c.Visitor)
	c = must.Get(w.Admit(t.Context(), sent(), protocol.CheckConversation.Operation))(t)
	require.Empty(t, c.Visitor, "no cookie is nobody's hash")
}

func TestNetworks(t *testing.T) {
	t.Parallel()
	n, other := identity.NewNetworks([]byte("0123456789abcdef")), identity.NewNetworks([]byte("another secret!!"))
	of := func(s string) string { return n.Of(netip.MustParseAddr(s)) }
	for _, tt := range []struct {
		a, b string
		same bool
	}{
		{"203.0.113.1", "203.0.113.1", true},
		{"203.0.113.1", "203.0.113.2", false},
		{"203.0.113.1", "::ffff:203.0.113.1", true},
		{"2001:db8:0:100::1", "2001:db8:0:1ff:ffff::9", true}, // one /56
		{"2001:db8:0:100::1", "2001:db8:0:200::1", false},
		{"fe80::1%eth0", "fe80::1%eth1", true},
	} {
		require.Equal(t, tt.same, of(tt.a) == of(tt.b), "%s and %s", tt.a, tt.b)
	}
	addr := netip.MustParseAddr("203.0.113.1")
	require.Equal(t, n.Of(addr), n.Of(addr), "remembered or not")
	require.NotEqual(t, n.Of(addr), other.Of(addr), "a deployment's hashes are its own")
	require.NotContains(t, n.Of(addr), "203")
	require.Len(t, n.Of(addr), 16)
}
