package account_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/cmd/stoa/client"
	"stoa/identity"
	"stoa/identity/session"
	"stoa/node"
	"stoa/node/nodetest"
	"stoa/protocol"
	"stoa/protocol/must"
)

// ended makes a call and says how it ended, "" for well.
func ended(t testing.TB, c *client.Client, op *protocol.Operation, args map[string]any) protocol.Code {
	t.Helper()
	_, err := c.Call(context.Background(), op.Name, args)
	if err == nil {
		return ""
	}
	e, ok := errors.AsType[*protocol.Error](err)
	require.True(t, ok, "%s: %v", op.Name, err)
	return e.Code
}

func named(op *protocol.Operation) bool {
	_, ok := op.In.FieldByName("Handle")
	return ok && op != protocol.CreateToken.Operation
}

// TestOwner_Scopes makes every owners' operation with a token of each scope, with
// a signature, and for a profile of someone else.
func TestOwner_Scopes(t *testing.T) {
	t.Parallel()
	n := nodetest.Start(t, func(c *node.Config) { c.OwnerInvitations = 100 })
	pair := n.Hosted("asha")
	n.Hosted("ravi")
	full := n.OwnerToken("asha")
	_ = n.TokenOf("ravi", "his")
	dial := func(o client.Options) *client.Client {
		return must.Get(client.New(n.URL, o))(t)
	}
	nobody, owner, signer := dial(client.Options{}), dial(client.Options{Token: full}), dial(client.Options{Key: pair})
	scoped := map[protocol.Scope]*client.Client{}
	for _, s := range append([]protocol.Scope{protocol.ScopeAccount}, protocol.OwnerScopes...) {
		secret, _, err := n.Admin().CreateAccountToken(t.Context(), "asha", string(s), 0, s)
		require.NoError(t, err)
		scoped[s] = dial(client.Options{Token: secret})
	}
	for _, op := range protocol.OperationsFor(protocol.Everybody, protocol.HTTP) {
		if op.ReadOnly || !op.TakesToken() {
			continue
		}
		for s, c := range scoped {
			if op == protocol.RegisterProfile.Operation && s == op.Scope { // the account would have two profiles from then on: TestJoin_Scope
				continue
			}
			// A token for something else does not speak, report or take back in the profile's name.
			if got := ended(t, c, op, nodetest.Members(t, op.Example)); s == protocol.ScopePost {
				require.NotContains(t, []protocol.Code{protocol.Unauthorized, protocol.Internal}, got, op.Name)
			} else {
				require.Equal(t, protocol.Forbidden, got, "%s, scope %s", op.Name, s)
			}
		}
	}
	operations := protocol.OperationsFor(protocol.Owners, protocol.HTTP)
	require.Greater(t, len(operations), 20)
	for _, op := range operations {
		if op.Secret != "" { // whoever reads the mail may: TestBidLink
			continue
		}
		t.Run(op.Name, func(t *testing.T) {
			example := nodetest.Members(t, op.Example)
			require.Contains(t, op.HTTP.Path, "/api/owner/")
			require.True(t, op.NoStore || !op.ReadOnly, "what an owner reads is the owner's alone")
			require.Equal(t, protocol.Unauthorized, ended(t, nobody, op, example))
			for s, c := range scoped {
				got := ended(t, c, op, example)
				if op.Scope != "" && op.Scope != s {
					require.Equal(t, protocol.Forbidden, got, "scope %s", s)
					// what takes a browser that signed in lately: see TestOwner_Tokens, TestAccountMail_Bounds, TestSignIn_*
				} else if !op.Browser && !slices.Contains(op.Codes, protocol.SignInAgain) {
					require.NotContains(t, []protocol.Code{protocol.Forbidden, protocol.Unauthorized, protocol.Internal}, got, "scope %s", s)
				}
			}
			if op == protocol.DeleteProfile.Operation { // else it is hidden, and may do nothing that reaches others
				defer func() {
					require.Empty(t, ended(t, owner, protocol.RestoreProfile.Operation, nodetest.Members(t, protocol.RestoreProfile.Example)))
				}()
			}
			if op.Access&protocol.Signed == 0 {
				require.Equal(t, protocol.Unauthorized, ended(t, signer, op, example), "the account itself is not the key's")
			} else {
				require.NotContains(t, []protocol.Code{protocol.Forbidden, protocol.Unauthorized, protocol.Internal}, ended(t, signer, op, example))
			}
			if named(op) {
				foreign := nodetest.Members(t, op.Example)
				foreign["handle"] = "ravi"
				require.Equal(t, protocol.Forbidden, ended(t, owner, op, foreign), "another's profile")
				if op.Access&protocol.Signed != 0 {
					require.Equal(t, protocol.Forbidden, ended(t, signer, op, foreign), "another's profile")
				}
			}
			require.False(t, op.Access&protocol.Proof != 0)
		})
	}
}

// TestOwner_Tokens: a token makes none that is wider or lives longer, and ends
// when it is revoked, when it runs out, and when its profile changes hands.
func TestOwner_Tokens(t *testing.T) {
	t.Parallel()
	nodetest.Any(t, func(t *testing.T, change func(*node.Config)) {
		h := nodetest.New(t, change)
		h.Hosted("asha")
		h.Hosted("ravi")
		narrow := func(scopes ...protocol.Scope) string {
			secret, _, err := h.Admin().CreateAccountToken(t.Context(), "asha", "narrow", time.Hour, scopes...)
			require.NoError(t, err)
			return "Bearer " + secret
		}
		full := "Bearer " + h.OwnerToken("asha")
		ask := func(auth, body string) nodetest.Answer {
			return h.Ask("POST", "/api/owner/tokens", body, "Authorization", auth)
		}
		require.Equal(t, 403, ask(narrow(protocol.ScopeAccount), `{"name":"x","scopes":["post"]}`).Code, "not more than it has")
		require.Equal(t, 403, ask(full, `{"name":"x","scopes":["operator"]}`).Code, "an owner's account")
		require.Equal(t, 403, ask(full, `{"name":"x","scopes":["post"],"handle":"ravi"}`).Code)
		require.Equal(t, 422, ask(full, `{"name":"x","scopes":["account"],"handle":"asha"}`).Code)
		require.Equal(t, 422, h.Ask("POST", "/api/owner/tokens", `{"name":"x","scopes":["post"]}`, "Authorization", full, "Idempotency-Key", "k").Code,
			"a kept answer would be a stored secret")

		var made protocol.MadeToken
		a := ask(narrow(protocol.ScopeAccount, protocol.ScopePost), `{"name":"child","scopes":["post","account"]}`)
		require.Equal(t, 201, a.Code, "%s", a.Body)
		require.Equal(t, "no-store", a.Header().Get("Cache-Control"))
		a.Into(&made)
		require.NotNil(t, made.Token.ExpiresAt, "it does not outlive what made it")
		child := "Bearer " + made.Secret
		require.Equal(t, 201, h.Ask("POST", "/api/public/board", nodetest.GoodPost, "Authorization", child).Code)
		require.Equal(t, 403, h.Ask("GET", "/api/owner/profile", "", "Authorization", child).Code)

		require.Equal(t, 204, h.Ask("DELETE", "/api/owner/tokens/"+made.Token.ID, "", "Authorization", full).Code)
		require.Equal(t, 401, h.Ask("POST", "/api/public/board", nodetest.GoodPost, "Authorization", child).Code, "at once")
		require.Equal(t, 404, h.Ask("DELETE", "/api/owner/tokens/"+protocol.NewID(protocol.TokenID, time.Now()), "", "Authorization", full).Code)
		page := nodetest.As[protocol.Page[protocol.Token]](h.Ask("GET", "/api/owner/tokens?limit=100", "", "Authorization", full))
		seen := map[string]protocol.Token{}
		for _, tok := range page.Items {
			seen[tok.ID] = tok
		}
		require.NotNil(t, seen[made.Token.ID].RevokedAt)
		require.NotNil(t, seen[made.Token.ID].LastUsedAt)

		short, _, err := h.Admin().CreateToken(t.Context(), "asha", "short", time.Nanosecond)
		require.NoError(t, err)
		require.Equal(t, 401, h.Ask("GET", "/api/owner/account", "", "Authorization", "Bearer "+short).Code, "it has expired")

		one := h.TokenOf("asha", "one profile")
		require.Equal(t, 200, h.Ask("GET", "/api/owner/profile", "", "Authorization", "Bearer "+one).Code)
		other, _ := h.OpenAccount("Ravi", protocol.RoleOwner, "", "ravi", "asha")
		require.Equal(t, 401, h.Ask("GET", "/api/owner/profile", "", "Authorization", "Bearer "+one).Code, "the profile has another owner")
		require.Equal(t, 403, h.Ask("GET", "/api/owner/profile", "", "Authorization", full).Code)

		// Of several profiles one has to be named.
		both := h.AccountToken(other.ID, "both", protocol.OwnerScopes...)
		auth := "Bearer " + both
		require.Equal(t, 403, h.Ask("POST", "/api/public/board", nodetest.GoodPost, "Authorization", auth).Code)
		require.Equal(t, 403, h.Ask("POST", "/api/public/board", nodetest.GoodPost, "Authorization", auth, "Act-As", "stranger").Code)
		post := nodetest.As[protocol.Post](h.Ask("POST", "/api/public/board", nodetest.GoodPost, "Authorization", auth, "Act-As", "ravi"))
		require.Equal(t, "ravi", *post.Author.Handle)
		require.Equal(t, 422, h.Ask("GET", "/api/owner/profile", "", "Authorization", auth).Code)
		require.Equal(t, 200, h.Ask("GET", "/api/owner/profile?handle=asha", "", "Authorization", auth).Code)
	})
}

// TestOperator_Standing: the operator's standing over the network takes an
// operator's account and, with a token, its scope; and it is given for the
// operators' operations alone.
func TestOperator_Standing(t *testing.T) {
	t.Parallel()
	h := nodetest.New(t)
	h.Hosted("asha")
	ops, link := h.OpenAccount("Ops", protocol.RoleOperator, "", "asha")
	token := func(scopes ...protocol.Scope) string {
		secret := h.AccountToken(ops.ID, "t", scopes...)
		return secret
	}
	without, with := token(protocol.OwnerScopes...), token(protocol.ScopeOperator, protocol.ScopePost)
	operator := &protocol.Operation{Name: "x", For: protocol.Operators, Access: protocol.Operator, Scope: protocol.ScopeOperator}
	admit := func(op *protocol.Operation, bearer, cookie string) (protocol.Caller, error) {
		r := httptest.NewRequest("POST", h.Base+"/x", nil)
		if bearer != "" {
			r.Header.Set("Authorization", "Bearer "+bearer)
		}
		return h.Table.Gate.Admit(t.Context(), identity.Evidence{Request: r, Network: "n", Session: cookie}, op)
	}
	c := must.Get(admit(operator, with, ""))(t)
	require.Equal(t, protocol.Operator, c.Standing)
	require.Equal(t, ops.ID, c.Actor(), "the audit log names the account")
	require.Empty(t, c.Handle)
	require.Equal(t, protocol.Forbidden, protocol.CodeOf(must.Err(admit(operator, without, ""))))
	require.Equal(t, protocol.Unauthorized, protocol.CodeOf(must.Err(admit(operator, "", ""))))

	c = must.Get(admit(protocol.PostToBoard.Operation, with, ""))(t)
	require.Equal(t, protocol.Session, c.Standing, "elsewhere an operator is an owner like others")
	require.Equal(t, "asha", c.Handle)
	c = must.Get(admit(protocol.DeletePost.Operation, with, ""))(t)
	require.Equal(t, protocol.Session, c.Standing)

	bearer := []string{"Authorization", "Bearer " + token(protocol.ScopeOperator, protocol.ScopeAccount)}
	h.Ask("PUT", "/api/operator/accounts/"+ops.ID+"/role", `{"role":"owner"}`, bearer...).Is(409)
	h.Ask("DELETE", "/api/operator/accounts/"+ops.ID, "", bearer...).Is(409)

	cookie := h.SignIn(link)
	c = must.Get(admit(operator, "", cookie))(t)
	require.Equal(t, protocol.Operator, c.Standing)
	require.NoError(t, h.Admin().SetRole(t.Context(), ops.ID, protocol.RoleOwner))
	for _, secret := range []string{with, ""} {
		require.Equal(t, protocol.Forbidden, protocol.CodeOf(must.Err(admit(operator, secret, cookie))), "the role is gone, at once")
	}
}

// TestSession is a browser's session: the link is good once, the cookie counts
// for pages of this node alone, and ends when it is ended.
func TestSession(t *testing.T) {
	t.Parallel()
	nodetest.Any(t, func(t *testing.T, change func(*node.Config)) {
		h := nodetest.New(t, change)
		h.Hosted("asha")
		acc, link := h.OpenAccount("Asha R", protocol.RoleOwner, "", "asha")
		var won atomic.Int32
		var cookie string
		var group sync.WaitGroup
		for range 16 {
			group.Go(func() {
				switch secret, err := h.Begin(link); {
				case err == nil:
					won.Add(1)
					cookie = secret
				default:
					require.Equal(t, protocol.Gone, protocol.CodeOf(err))
				}
			})
		}
		group.Wait()
		require.EqualValues(t, 1, won.Load())

		state := func(headers ...string) (s protocol.SessionState) {
			a := h.Ask("GET", "/api/public/session", "", append([]string{"Cookie", "stoa_session=" + cookie}, headers...)...).Is(200)
			require.Equal(t, "no-store", a.Header().Get("Cache-Control"))
			a.Into(&s)
			return s
		}
		s := state("Sec-Fetch-Site", "same-origin")
		require.True(t, s.SignedIn)
		require.Equal(t, "Asha R", *s.Name)
		require.Equal(t, []string{"asha"}, s.Handles)
		require.False(t, state("Sec-Fetch-Site", "cross-site").SignedIn)
		require.False(t, state("Sec-Fetch-Site", "same-site").SignedIn, "a neighbour under the same domain")
		require.False(t, state("Origin", "https://elsewhere.example").SignedIn)
		require.False(t, state("Cookie", "stoa_session="+cookie+"; stoa_session=other").SignedIn, "two of them: someone set one")

		write := func(headers ...string) nodetest.Answer {
			return h.Ask("POST", "/api/public/board", nodetest.GoodPost, append([]string{"Cookie", "stoa_session=" + cookie}, headers...)...)
		}
		require.Equal(t, 201, write("Sec-Fetch-Site", "same-origin", "Origin", h.Base).Code)
		require.Equal(t, 401, write("Sec-Fetch-Site", "cross-site", "Origin", "https://elsewhere.example").Code)
		require.Equal(t, 401, h.Ask("PUT", "/api/owner/account", `{"name":"x"}`, "Cookie", "stoa_session="+cookie, "Origin", "https://elsewhere.example").Code)
		board := h.Ask("GET", "/api/public/board", "", "Cookie", "stoa_session="+cookie, "Sec-Fetch-Site", "same-origin")
		require.Equal(t, h.Ask("GET", "/api/public/board", "").Body.String(), board.Body.String(), "an open read depends on nobody")

		sessions := nodetest.As[protocol.Page[protocol.SignedIn]](h.Ask("GET", "/api/owner/sessions", "", "Cookie", "stoa_session="+cookie))
		require.Len(t, sessions.Items, 1)
		require.True(t, sessions.Items[0].Current)
		require.Equal(t, "Browser 1.0", sessions.Items[0].Program)
		ravis := "Bearer " + nodetest.OwnerOf(t, h, "ravi")
		require.Equal(t, 404, h.Ask("DELETE", "/api/owner/sessions/"+sessions.Items[0].ID, "", "Authorization", ravis).Code, "another's")
		require.Equal(t, 204, h.Ask("DELETE", "/api/owner/sessions/"+sessions.Items[0].ID, "", "Cookie", "stoa_session="+cookie).Code)
		require.False(t, state().SignedIn, "at once")
		require.Equal(t, 401, h.Ask("GET", "/api/owner/account", "", "Cookie", "stoa_session="+cookie).Code)
		require.Equal(t, 401, write().Code)

		again := must.Get(h.Admin().SignInLink(t.Context(), acc.ID))(t)
		cookie = h.SignIn(again)
		require.True(t, state().SignedIn)
		require.Equal(t, 1, must.Get(h.Admin().SignOut(t.Context(), "asha"))(t))
		require.False(t, state().SignedIn)
	})
}

// TestCookie: under https the cookie has the prefix that subdomains cannot set.
func TestCookie(t *testing.T) {
	t.Parallel()
	c := session.SetCookie("https://n1.example", "secret")
	require.Equal(t, "__Host-stoa_session=secret; Path=/; Max-Age=2592000; HttpOnly; Secure; SameSite=Lax", c.String())
	require.Equal(t, "stoa_session=; Path=/; Max-Age=0; HttpOnly; SameSite=Lax", session.SetCookie("http://127.0.0.1:1", "").String())
	secret, hash := session.New(session.Ticket)
	other, ok := session.Hash(session.Cookie, secret)
	require.True(t, ok)
	require.NotEqual(t, hash, other, "a ticket is no cookie")
	_, ok = session.Hash(session.Token, secret)
	require.False(t, ok)
}

// TestOwnerDoor: the owners' MCP door takes no other origin and its tools are not
// those of everyone's.
func TestOwnerDoor(t *testing.T) {
	t.Parallel()
	h := nodetest.New(t)
	h.Hosted("asha")
	secret := h.OwnerToken("asha")
	list := func(headers ...string) nodetest.RPCAnswer {
		return h.ModernAt(protocol.OwnerMCPPath, "tools/list", "", append(headers, "Authorization", "Bearer "+secret)...)
	}
	require.Equal(t, 200, list().Code)
	require.Empty(t, list().Header().Get("Access-Control-Allow-Origin"))
	require.Equal(t, 403, list("Origin", "https://elsewhere.example").Code)
	require.Equal(t, 403, list("Sec-Fetch-Site", "cross-site").Code)
	require.Empty(t, h.Ask("OPTIONS", protocol.OwnerMCPPath, "").Header().Get("Access-Control-Allow-Methods"))
	refused := h.ModernAt(protocol.OwnerMCPPath, "tools/call", `"name":"post_to_board","arguments":{}`, "Mcp-Name", "post_to_board")
	require.NotNil(t, refused.Error, "it is at the other door")
	got := h.Tool("get_account", `{}`, "Authorization", "Bearer "+secret)
	require.False(t, got.IsError, "%s", got.Body)
	require.Equal(t, protocol.Unauthorized, h.Tool("get_account", `{}`).Refused.Code)
}

// TestOwner_Profile walks an owner's work on a profile: whole and in parts.
func TestOwner_Profile(t *testing.T) {
	t.Parallel()
	nodetest.Any(t, func(t *testing.T, change func(*node.Config)) {
		h := nodetest.New(t, change)
		h.Hosted("asha")
		auth := []string{"Authorization", "Bearer " + h.OwnerToken("asha")}
		read := h.Ask("GET", "/api/owner/profile", "", auth...).Is(200)
		put := h.Ask("PUT", "/api/owner/profile", read.Body.String(), auth...)
		require.Equal(t, 200, put.Code, "what was read can be put back: %s", put.Body)
		require.JSONEq(t, read.Body.String(), put.Body.String())
		for i := range 20 {
			h.Ask("PUT", fmt.Sprintf("/api/owner/needs/need-%d", i), `{"description":"x"}`, auth...).Is(200)
		}
		require.Equal(t, 422, h.Ask("PUT", "/api/owner/needs/one-more", `{"description":"x"}`, auth...).Code)
		needs := nodetest.As[protocol.OwnNeeds](h.Ask("PUT", "/api/owner/needs/need-3", `{"description":"Other"}`, auth...))
		require.Len(t, needs.Items, 20)
		require.Equal(t, "Other", needs.Items[3].Description, "it keeps its place")
		require.Equal(t, 204, h.Ask("DELETE", "/api/owner/needs/need-3", "", auth...).Code)
		require.Equal(t, 404, h.Ask("DELETE", "/api/owner/needs/need-3", "", auth...).Code)
		require.Equal(t, 200, h.Ask("PUT", "/api/owner/capabilities/weave",
			`{"name":"W","description":"d","pricing":{"model":"fixed","amount":5,"currency":"INR"}}`, auth...).Code)
		bad := h.Ask("PUT", "/api/owner/capabilities/weave", `{"name":"W","description":"d","pricing":{"model":"fixed","amount":5}}`, auth...).Problem()
		require.Equal(t, "/pricing/currency", bad.Errors[0].Pointer)
		profile := nodetest.As[protocol.Profile](h.Ask("GET", "/api/public/agents/asha", ""))
		require.Len(t, profile.Needs, 19)
		require.True(t, slices.ContainsFunc(profile.Capabilities, func(c protocol.Capability) bool { return c.ID == "weave" }))

		// Keys: the node never shows a private half, and takes none.
		made := h.Ask("POST", "/api/owner/keys/kept", `{}`, auth...).Is(201)
		require.NotContains(t, made.Body.String(), `"d"`)
		k := nodetest.As[protocol.Key](made)
		require.True(t, k.Kept)
		require.Equal(t, 422, h.Ask("POST", "/api/owner/keys",
			`{"jwk":{"kty":"OKP","crv":"Ed25519","x":"cCOnUAOpk8zGtYDLPZ3Bm6fPxg1MSIAtEYLUyTc4iYk","d":"secret"}}`, auth...).Code)
		require.Equal(t, 422, h.Ask("POST", "/api/owner/keys", `{"jwk":{"kty":"OKP","crv":"Ed25519","x":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"}}`,
			auth...).Code, "low order")
		require.Equal(t, 204, h.Ask("DELETE", "/api/owner/keys/"+k.KeyID, "", auth...).Code)
		keys := nodetest.As[protocol.Keys](h.Ask("GET", "/api/owner/keys", "", auth...))
		for _, x := range keys.Items {
			require.Equal(t, x.KeyID == k.KeyID, x.RetiredAt != nil)
		}

		post := nodetest.As[protocol.Post](h.Ask("POST", "/api/public/board", nodetest.GoodPost, auth...))
		require.NoError(t, h.Admin().Operate(t.Context(), protocol.HidePost.Operation, protocol.Decision{ID: post.ID, Reason: "spam"}, nil))
		posts := nodetest.As[protocol.Page[protocol.OwnPost]](h.Ask("GET", "/api/owner/posts", "", auth...))
		require.Equal(t, protocol.Hidden, posts.Items[0].State)
		require.NotEmpty(t, posts.Items[0].Reason)
		require.Equal(t, http.StatusNoContent, h.Ask("DELETE", "/api/owner/posts/"+post.ID, "", auth...).Code, "a hidden one too")
	})
}
