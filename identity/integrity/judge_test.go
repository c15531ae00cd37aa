package integrity_test

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/identity/httpsig"
	"stoa/identity/integrity"
	"stoa/identity/key"
	"stoa/protocol"
	"stoa/protocol/must"
)

const (
	agent = "eip155:31337:0xebd1edc26fbdaa767ac49916009bea69c8645045:17"
	home  = "https://a.example"
	post  = home + "/ap/posts/post_01kaa9zv6k8e5w9q2x4z7c1m0a"
)

var published = time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)

// chain is a registry of one agent.
type chain struct {
	pair key.Pair
	err  error
}

func (c chain) Authority(_ context.Context, id, keyid string) (integrity.Grant, error) {
	switch {
	case c.err != nil:
		return integrity.Grant{}, c.err
	case id != agent || keyid != c.pair.Thumbprint():
		return integrity.Grant{}, protocol.Errorf(protocol.KeyUnknown, "no such key")
	}
	return integrity.Grant{Key: c.pair.Public(), Owner: "0xa", Block: 42, BlockHash: "0x42"}, nil
}

func newPair(t *testing.T) key.Pair {
	t.Helper()
	return must.Get(key.GenerateEd25519())(t)
}

// evidence signs body for url as an agent would, and captures it as a node would.
func evidence(t *testing.T, pair key.Pair, url, identity string, body []byte, created time.Time) json.RawMessage {
	t.Helper()
	ctx := t.Context()
	r := must.Get(http.NewRequestWithContext(ctx, "POST", url, strings.NewReader(string(body))))(t)
	r.Header.Set("Content-Type", "application/json")
	if identity != "" {
		r.Header.Set("Agent-Identity", identity)
	}
	target := httpsig.NewTarget(r.URL.Scheme, r.URL.Host)
	require.NoError(t, httpsig.SignRequest(r, target, body, httpsig.SignOptions{Key: pair.Signer(), Created: created, TTL: 5 * time.Minute}))
	msg := must.Get(httpsig.FromRequest(r, target))(t)
	k := must.Get(httpsig.NewKey(pair.Public()))(t)
	v := httpsig.Verifier{Keys: oneKey{k}}
	policy := httpsig.WritePolicy()
	policy.At = created
	res := must.Get(v.Verify(ctx, &msg, body, policy))(t)
	e := must.Get(httpsig.Capture(&msg, body, res))(t)
	return must.Get(json.Marshal(e))(t)
}

type oneKey struct{ k httpsig.Key }

func (o oneKey) Resolve(context.Context, httpsig.KeyRequest) (httpsig.Resolved, error) {
	return httpsig.Resolved{Key: o.k}, nil
}

func claim() integrity.Claim {
	return integrity.Claim{
		ID: post, Kind: "requirement", Title: "Paper", Body: "200 sheets", Tags: []string{"paper"},
		Name: "Ada", ERC8004: agent, Actor: home + "/ap/anon", Board: home + "/ap/board", Published: published,
	}
}

func body(t *testing.T, change func(*protocol.NewPost)) []byte {
	t.Helper()
	in := protocol.NewPost{Kind: protocol.Requirement, Title: "Paper", Body: "200 sheets", Tags: []string{"paper"}, Name: "Ada"}
	if change != nil {
		change(&in)
	}
	return must.Get(json.Marshal(in))(t)
}

// toolCall is the body of a call at the MCP door.
func toolCall(name string, args []byte) []byte {
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":"1","method":"tools/call","params":{"name":%q,"arguments":%s,"_meta":{}}}`, name, args)
}

func TestJudge_Evidence(t *testing.T) {
	t.Parallel()
	pair, other := newPair(t), newPair(t)
	url := home + integrity.PostPath
	sent := evidence(t, pair, url, agent, body(t, nil), published.Add(-2*time.Second))
	remoteParent := "https://c.example/ap/posts/post_01kaa9zv6k8e5w9q2x4z7c1m0b"
	localID := protocol.RemoteID(protocol.PostID, published.Add(-time.Hour), remoteParent)

	for name, c := range map[string]struct {
		evidence  json.RawMessage
		change    func(*integrity.Claim)
		authority integrity.Authority
		verified  bool
		tampered  bool
		temporary bool
		reason    string
	}{
		"good":                   {evidence: sent, verified: true},
		"identity in other case": {evidence: evidence(t, pair, url, strings.Replace(agent, "0xebd1", "0xEBD1", 1), body(t, nil), published), verified: true},
		"tags in other case": {evidence: evidence(t, pair, url, agent, body(t, func(p *protocol.NewPost) { p.Tags = []string{"Paper", "PAPER"} }),
			published), verified: true},
		"title changed":        {evidence: sent, change: func(c *integrity.Claim) { c.Title = "Paper!" }, tampered: true},
		"body changed":         {evidence: sent, change: func(c *integrity.Claim) { c.Body += "." }, tampered: true},
		"kind changed":         {evidence: sent, change: func(c *integrity.Claim) { c.Kind = "offer" }, tampered: true},
		"tag added":            {evidence: sent, change: func(c *integrity.Claim) { c.Tags = append(c.Tags, "x") }, tampered: true},
		"tags dropped":         {evidence: sent, change: func(c *integrity.Claim) { c.Tags = nil }, tampered: true},
		"name changed":         {evidence: sent, change: func(c *integrity.Claim) { c.Name = "Eve" }, tampered: true},
		"made a reply":         {evidence: sent, change: func(c *integrity.Claim) { c.ReplyTo = remoteParent }, tampered: true},
		"identity changed":     {evidence: sent, change: func(c *integrity.Claim) { c.ERC8004 = agent + "8" }, tampered: true},
		"identity dropped":     {evidence: sent, change: func(c *integrity.Claim) { c.ERC8004 = "" }, tampered: true},
		"published later":      {evidence: sent, change: func(c *integrity.Claim) { c.Published = published.Add(11 * time.Minute) }, tampered: true},
		"signed just in time":  {evidence: evidence(t, pair, url, agent, body(t, nil), published.Add(-integrity.MaxDelay)), verified: true},
		"signed too early":     {evidence: evidence(t, pair, url, agent, body(t, nil), published.Add(-integrity.MaxDelay-time.Second)), tampered: true},
		"signed 14 min before": {evidence: evidence(t, pair, url, agent, body(t, nil), published.Add(-14*time.Minute)), tampered: true},
		"published earlier":    {evidence: sent, change: func(c *integrity.Claim) { c.Published = published.Add(-11 * time.Minute) }, tampered: true},
		"broken evidence":      {evidence: json.RawMessage(`{"type":"HttpMessageSignature"}`), tampered: true},
		"evidence twice":       {evidence: json.RawMessage(`{"type":"HttpMessageSignature","type":"HttpMessageSignature"}`), tampered: true},
		"not an object":        {evidence: json.RawMessage(`7`), tampered: true},
		"chain away":           {evidence: sent, authority: chain{err: protocol.Errorf(protocol.ChainUnavailable, "no answer")}, temporary: true},
		"chain broken":         {evidence: sent, authority: chain{err: errors.New("dial")}, temporary: true},
		"key revoked":          {evidence: sent, authority: chain{pair: other}, reason: "key-unknown"},
		"unknown agent": {evidence: sent, authority: chain{err: protocol.Errorf(protocol.IdentityUnverified, "not registered")},
			reason: "identity-unverified"},
		"no chain here": {evidence: sent, authority: none, reason: "no chain is configured here"},
		"for another node": {evidence: evidence(t, pair, "https://b.example"+integrity.PostPath, agent, body(t, nil), published),
			reason: "not a post to this board"},
		"as a tool call": {evidence: evidence(t, pair, home+protocol.MCPPath, agent, toolCall("post_to_board", body(t, nil)), published), verified: true},
		"tool call, changed": {evidence: evidence(t, pair, home+protocol.MCPPath, agent, toolCall("post_to_board", body(t, nil)), published),
			change: func(c *integrity.Claim) { c.Title = "Paper!" }, tampered: true},
		"call without arguments": {evidence: evidence(t, pair, home+protocol.MCPPath, agent,
			[]byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"post_to_board"}}`), published), tampered: true},
		"another tool": {evidence: evidence(t, pair, home+protocol.MCPPath, agent, toolCall("report_post", body(t, nil)), published),
			reason: "not a post to this board"},
		"another node's tool": {evidence: evidence(t, pair, "https://b.example"+protocol.MCPPath, agent, toolCall("post_to_board", body(t, nil)),
			published), reason: "not a post to this board"},
		"by A2A":             {evidence: evidence(t, pair, home+"/a2a", agent, dataPart("post_to_board", body(t, nil)), published), verified: true},
		"by A2A to an agent": {evidence: evidence(t, pair, home+"/a2a/vikram", agent, dataPart("post_to_board", body(t, nil)), published), verified: true},
		"by A2A, changed": {evidence: evidence(t, pair, home+"/a2a", agent, dataPart("post_to_board", body(t, nil)), published),
			change: func(c *integrity.Claim) { c.Title = "Paper!" }, tampered: true},
		"by A2A, another one": {evidence: evidence(t, pair, home+"/a2a", agent, dataPart("report_post", body(t, nil)), published),
			reason: "not a post to this board"},
		"by A2A, a message": {evidence: evidence(t, pair, home+"/a2a", agent,
			[]byte(`{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"x"}]}}}`),
			published), reason: "not a post to this board"},
		"near an A2A endpoint": {evidence: evidence(t, pair, home+"/a2ax", agent, dataPart("post_to_board", body(t, nil)), published),
			reason: "not a post to this board"},
		"no tool call":   {evidence: evidence(t, pair, home+protocol.MCPPath, agent, body(t, nil), published), reason: "not a post to this board"},
		"another door":   {evidence: evidence(t, pair, home+"/a2a/asha", agent, body(t, nil), published), reason: "not a post to this board"},
		"no identity":    {evidence: evidence(t, pair, url, "", body(t, nil), published), reason: "names no chain identity"},
		"nothing signed": {reason: "no signature of its author"},
		"reply at home": {
			evidence: evidence(t, pair, url, agent, body(t, func(p *protocol.NewPost) { p.InReplyTo = "post_01kaa9zv6k8e5w9q2x4z7c1m0b" }), published),
			change:   func(c *integrity.Claim) { c.ReplyTo = home + "/ap/posts/post_01kaa9zv6k8e5w9q2x4z7c1m0b" }, verified: true,
		},
		"reply elsewhere": {
			evidence: evidence(t, pair, url, agent, body(t, func(p *protocol.NewPost) { p.InReplyTo = localID }), published),
			change:   func(c *integrity.Claim) { c.ReplyTo = remoteParent }, verified: true,
		},
		"reply moved": {
			evidence: evidence(t, pair, url, agent, body(t, func(p *protocol.NewPost) { p.InReplyTo = localID }), published),
			change:   func(c *integrity.Claim) { c.ReplyTo = remoteParent + "c" }, reason: "does not say which post",
		},
		"reply moved at home": {
			evidence: evidence(t, pair, url, agent, body(t, func(p *protocol.NewPost) { p.InReplyTo = localID }), published),
			change:   func(c *integrity.Claim) { c.ReplyTo = home + "/ap/posts/post_01kaa9zv6k8e5w9q2x4z7c1m0b" }, tampered: true,
		},
		"reply made a post": {
			evidence: evidence(t, pair, url, agent, body(t, func(p *protocol.NewPost) { p.InReplyTo = localID }), published), tampered: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := claim()
			in.Evidence = c.evidence
			if c.change != nil {
				c.change(&in)
			}
			var a integrity.Authority = chain{pair: pair}
			switch c.authority {
			case nil:
			case none:
				a = nil
			default:
				a = c.authority
			}
			v, err := integrity.Judge(t.Context(), in, a)
			switch {
			case c.tampered:
				require.ErrorIs(t, err, integrity.ErrTampered)
			case c.temporary:
				require.Error(t, err)
				require.NotErrorIs(t, err, integrity.ErrTampered)
			case c.verified:
				require.NoError(t, err)
				require.Equal(t, integrity.Verdict{Verified: true, Method: protocol.BySignature, KeyID: pair.Thumbprint(), ERC8004: agent,
					Grant: integrity.Grant{Owner: "0xa", Block: 42, BlockHash: "0x42"}}, v)
			default:
				require.NoError(t, err)
				require.False(t, v.Verified)
				require.Equal(t, protocol.ByFederation, v.Method)
				require.Contains(t, v.Reason, c.reason)
			}
		})
	}
}

var none integrity.Authority = chain{err: errors.New("stands for nil")}

// Another key's signature under the thumbprint of a granted key is a forgery.
func TestJudge_ForgedSignature(t *testing.T) {
	t.Parallel()
	pair, forger := newPair(t), newPair(t)
	raw := evidence(t, forger, home+integrity.PostPath, agent, body(t, nil), published)
	e := must.JSON[map[string]any](raw)(t)
	e["signatureInput"] = strings.Replace(e["signatureInput"].(string), forger.Thumbprint(), pair.Thumbprint(), 1)
	forged := must.Get(json.Marshal(e))(t)
	in := claim()
	in.Evidence = forged
	require.ErrorIs(t, must.Err(integrity.Judge(t.Context(), in, chain{pair: pair})), integrity.ErrTampered)
}

func TestJudge_Statement(t *testing.T) {
	t.Parallel()
	pair := newPair(t)
	statement := func(change func(*integrity.Statement)) json.RawMessage {
		s := integrity.Statement{
			Author: agent, Actor: home + "/ap/anon", Board: home + "/ap/board",
			Kind: "requirement", Title: "Paper", Body: "200 sheets", Tags: []string{"paper"}, Nonce: "AAAAAAAAAAAAAAAAAAAAAA",
		}
		if change != nil {
			change(&s)
		}
		return must.Get(integrity.SignStatement(s, pair.Signer(), published))(t)
	}
	for name, c := range map[string]struct {
		statement json.RawMessage
		change    func(*integrity.Claim)
		verified  bool
		tampered  bool
	}{
		"good":         {statement: statement(nil), verified: true},
		"other board":  {statement: statement(func(s *integrity.Statement) { s.Board = "https://b.example/ap/board" }), tampered: true},
		"other actor":  {statement: statement(func(s *integrity.Statement) { s.Actor = home + "/ap/agents/eve" }), tampered: true},
		"edited":       {statement: statement(nil), change: func(c *integrity.Claim) { c.Body = "201 sheets" }, tampered: true},
		"other digest": {statement: statement(nil), change: func(c *integrity.Claim) { c.Digest = "sha256:00" }, tampered: true},
		"made a reply": {statement: statement(nil), change: func(c *integrity.Claim) { c.ReplyTo = post }, tampered: true},
		"other time":   {statement: statement(nil), change: func(c *integrity.Claim) { c.Published = published.Add(time.Hour) }, tampered: true},
		"not on chain": {statement: statement(func(s *integrity.Statement) { s.Author = key.DIDKey(pair.Public().(ed25519.PublicKey)) })},
		"unknown agent": {statement: statement(func(s *integrity.Statement) { s.Author = agent + "9" }),
			change: func(c *integrity.Claim) { c.ERC8004 = agent + "9" }},
		"broken":      {statement: json.RawMessage(strings.Replace(string(statement(nil)), "Paper", "Papyrus", 1)), tampered: true},
		"member more": {statement: json.RawMessage(`{"type":"PostStatement"}`), tampered: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := claim()
			in.Statement = c.statement
			if c.change != nil {
				c.change(&in)
			}
			v, err := integrity.Judge(t.Context(), in, chain{pair: pair})
			if c.tampered {
				require.ErrorIs(t, err, integrity.ErrTampered)
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.verified, v.Verified)
			require.Equal(t, pair.Thumbprint(), v.KeyID)
		})
	}
}

// dataPart is a message by A2A that calls an operation.
func dataPart(operation string, input []byte) []byte {
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":{"messageId":"m","role":"ROLE_USER",`+
		`"parts":[{"data":{"operation":%q,"input":%s}}]}}}`, operation, input)
}
