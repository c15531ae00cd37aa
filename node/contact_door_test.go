package node_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/identity/httpsig"
	"stoa/node"
	"stoa/node/door/httpapi"
	"stoa/node/nodetest"
	"stoa/protocol"
	"stoa/protocol/must"
)

// cookieOf is the visitor cookie that an answer sets, nil when it sets none.
func cookieOf(a nodetest.Answer) *http.Cookie {
	for _, c := range a.Result().Cookies() {
		if strings.HasSuffix(c.Name, "stoa_visitor") {
			return c
		}
	}
	return nil
}

// TestVisitor is the browser that began a thread: it reads and writes without a
// token, from pages of this node and from nowhere else (spec §2.11).
func TestVisitor(t *testing.T) {
	t.Parallel()
	h := nodetest.New(t, func(c *node.Config) { c.BaseURL = "https://localhost" })
	h.Agent("asha", nodetest.OpenPolicy)
	fresh := func() string { // texts alike cost more
		return `{"message":"` + rand.Text() + " " + rand.Text() + " " + rand.Text() + `"}`
	}
	for name, headers := range map[string][]string{
		"no page":                          {},
		"a page elsewhere":                 {"Origin", "https://evil.example", "Sec-Fetch-Site", "cross-site"},
		"a page of a sibling":              {"Origin", "https://a.localhost", "Sec-Fetch-Site", "same-site"},
		"an old browser, a page elsewhere": {"Origin", "https://evil.example"},
		"a page elsewhere that lies":       {"Origin", "https://evil.example", "Sec-Fetch-Site", "same-origin"},
		"a sandboxed page":                 {"Origin", "null", "Sec-Fetch-Site", "same-origin"},
		"typed":                            {"Sec-Fetch-Site", "none"},
	} {
		a := write(h, "asha", fresh(), headers...)
		require.Equal(t, 201, a.Code, "%s: %s", name, a.Body)
		require.Nil(t, cookieOf(a), name)
		require.Empty(t, a.Header().Get("Access-Control-Allow-Credentials"), name)
	}
	refused := h.Ask("POST", "/api/public/agents/asha/contact", fresh(), "Origin", h.Base, "Sec-Fetch-Site", "same-origin").Is(401)
	require.Nil(t, cookieOf(refused), "nothing was begun")

	page := []string{"Origin", h.Base, "Sec-Fetch-Site", "same-origin"}
	a := write(h, "asha", fresh(), page...)
	c := cookieOf(a)
	require.NotNil(t, c)
	require.True(t, c.HttpOnly)
	require.True(t, c.Secure)
	require.Equal(t, http.SameSiteLaxMode, c.SameSite)
	require.Equal(t, "/", c.Path)
	require.Empty(t, c.Domain)
	require.Len(t, c.Value, 43)
	begun := nodetest.As[protocol.ContactReceipt](a)
	at, cookie := "/api/public/threads/"+begun.ThreadID, httpapi.VisitorCookie(h.Base)+"="+c.Value
	require.Equal(t, c.Value, cookieOf(write(h, "asha", fresh(), append(page, "Cookie", cookie)...)).Value, "one browser, one cookie")
	require.NotEqual(t, c.Value, cookieOf(write(h, "asha", fresh(), append(page, "Cookie", httpapi.VisitorCookie(h.Base)+"=short")...)).Value, "not one of ours")

	for _, tt := range []struct {
		name    string
		headers []string
		code    int
	}{
		{"a page of ours", []string{"Cookie", cookie, "Sec-Fetch-Site", "same-origin"}, 200},
		{"typed", []string{"Cookie", cookie, "Sec-Fetch-Site", "none"}, 200},
		{"an old browser", []string{"Cookie", cookie}, 200},
		{"without cookie", []string{"Sec-Fetch-Site", "same-origin"}, 404},
		{"another cookie", []string{"Cookie", httpapi.VisitorCookie(h.Base) + "=" + strings.Repeat("x", 43), "Sec-Fetch-Site", "same-origin"}, 404},
		{"a page elsewhere", []string{"Cookie", cookie, "Sec-Fetch-Site", "cross-site", "Origin", "https://evil.example"}, 404},
		{"a link elsewhere", []string{"Cookie", cookie, "Sec-Fetch-Site", "cross-site"}, 404},
		{"a sibling", []string{"Cookie", cookie, "Sec-Fetch-Site", "same-site"}, 404},
		{"an old browser elsewhere", []string{"Cookie", cookie, "Origin", "https://evil.example"}, 404},
	} {
		a := h.Ask("GET", at, "", tt.headers...)
		require.Equal(t, tt.code, a.Code, tt.name)
		require.Equal(t, "no-store", a.Header().Get("Cache-Control"), tt.name)
		require.Nil(t, cookieOf(a), "reading gives no cookie")
	}
	goOn := func(headers ...string) int {
		return h.Ask("POST", at+"/messages", fresh(), append(headers, "Proof-Of-Work", h.Proof("contact"))...).Code
	}
	require.Equal(t, 201, goOn(append(page, "Cookie", cookie)...))
	require.Equal(t, 404, goOn("Cookie", cookie, "Origin", "https://evil.example", "Sec-Fetch-Site", "cross-site"))
	require.Equal(t, 404, goOn("Cookie", cookie), "a write of no page has no browser")
	require.Equal(t, 404, goOn(page...))
}

// TestReadToken is where a read token goes, and where it does not.
func TestReadToken(t *testing.T) {
	t.Parallel()
	h := nodetest.New(t)
	owner := h.Agent("asha", nodetest.OpenPolicy)
	begun := begun(h, "asha", `{"message":"Hello"}`)
	require.True(t, strings.HasPrefix(begun.ReadToken, protocol.ReadTokenPrefix))
	require.Len(t, begun.ReadToken, len(protocol.ReadTokenPrefix)+43)
	at, bearer := "/api/public/threads/"+begun.ThreadID, "Bearer "+begun.ReadToken

	require.Equal(t, 200, h.Ask("GET", at, "", "Authorization", bearer).Code)
	require.Equal(t, 200, h.Ask("GET", at, "", "Authorization", owner).Code)
	require.Equal(t, protocol.NotFound, h.Ask("GET", at, "").Problem().Code)
	require.Equal(t, protocol.NotFound, h.Ask("GET", at, "", "Authorization", "Bearer "+protocol.NewReadToken()).Problem().Code)
	require.Equal(t, protocol.Unauthorized, h.Ask("GET", at, "", "Authorization", "Bearer stoa_nonsense").Problem().Code)

	inURL := h.Ask("GET", at+"?readToken="+begun.ReadToken+"&limit=many", "").Problem()
	require.Equal(t, protocol.Validation, inURL.Code)
	require.Len(t, inURL.Errors, 2, "every fault")
	require.Contains(t, inURL.Errors, protocol.Fault{Pointer: "/readToken", Code: "secret-in-url",
		Detail: "addresses are written to logs; send it as Authorization: Bearer, and consider this one exposed"})
	require.Equal(t, protocol.Validation, h.Ask("GET", at+"?readToken="+begun.ReadToken, "", "Authorization", bearer).Problem().Code)
	posted := h.Ask("POST", at+"/messages?readToken="+begun.ReadToken, `{"message":"And?"}`, "Proof-Of-Work", h.Proof("contact"))
	require.Equal(t, protocol.Validation, posted.Problem().Code)

	const goOn = `{"message":"And?"}`
	require.Equal(t, 201, h.Ask("POST", at+"/messages", goOn, "Authorization", bearer, "Proof-Of-Work", h.Proof("contact")).Code)
	require.Equal(t, 201, h.Ask("POST", at+"/messages", `{"message":"And?","readToken":"`+begun.ReadToken+`"}`, "Proof-Of-Work", h.Proof("contact")).Code)
	require.Equal(t, protocol.PowRequired, h.Ask("POST", at+"/messages", goOn, "Authorization", bearer).Problem().Code, "it reads; writing has its price")

	elsewhere := h.Ask("POST", "/api/public/board", nodetest.GoodPost, "Authorization", bearer, "Proof-Of-Work", h.Proof("board"))
	require.Equal(t, protocol.Unauthorized, elsewhere.Problem().Code, "it is no owner's token")
	require.Equal(t, 401, h.Ask("GET", "/api/owner/threads", "", "Authorization", bearer).Code)

	over := h.Tool("check_conversation", `{"threadId":"`+begun.ThreadID+`","readToken":"`+begun.ReadToken+`"}`)
	require.False(t, over.IsError)
	over = h.Tool("check_conversation", `{"threadId":"`+begun.ThreadID+`"}`, "Authorization", bearer)
	require.False(t, over.IsError)
	over = h.Tool("check_conversation", `{"threadId":"`+begun.ThreadID+`"}`)
	require.True(t, over.IsError)
}

// TestSecretsAtRest looks for what must not be stored: read token and cookie, in
// the tables and in the kept answer to an idempotency key.
func TestSecretsAtRest(t *testing.T) {
	t.Parallel()
	h := nodetest.New(t)
	h.Agent("asha", nodetest.OpenPolicy)
	page := []string{"Origin", h.Base, "Sec-Fetch-Site", "same-origin", "Idempotency-Key", "k-1"}
	a := write(h, "asha", `{"message":"Hello","name":"Findable"}`, page...)
	var begun, again protocol.ContactReceipt
	a.Into(&begun)
	repeated := write(h, "asha", `{"message":"Hello","name":"Findable"}`, page...)
	require.Equal(t, "true", repeated.Header().Get("Idempotency-Replayed"))
	repeated.Into(&again)
	require.Equal(t, begun, again, "the first answer again")
	require.Equal(t, protocol.Conflict, write(h, "asha", `{"message":"Other"}`, page...).Problem().Code)

	backup := filepath.Join(t.TempDir(), "copy.db")
	require.NoError(t, h.DB.Backup(context.Background(), backup))
	stored := must.Get(os.ReadFile(backup))(t)
	require.True(t, bytes.Contains(stored, []byte("Findable")), "the search finds what is there")
	require.False(t, bytes.Contains(stored, []byte(begun.ReadToken)), "the read token is stored")
	require.False(t, bytes.Contains(stored, []byte(cookieOf(a).Value)), "the cookie is stored")
}

// TestPrivateReadsAreSignedWhole: the bare minimum of Web Bot Auth may be sent
// again against any path; what is private takes more.
func TestPrivateReadsAreSignedWhole(t *testing.T) {
	t.Parallel()
	h := nodetest.New(t)
	pair := h.Hosted("asha")
	h.Agent("asha", nodetest.OpenPolicy)
	begun := begun(h, "asha", `{"message":"Hello"}`)
	hidden := nodetest.As[protocol.Post](h.Signed(pair, nodetest.GoodPost, nil))
	require.NoError(t, h.Admin().Operate(t.Context(), protocol.HidePost.Operation, protocol.Decision{ID: hidden.ID, Reason: "x"}, nil))
	ask := func(path string, o httpsig.SignOptions) nodetest.Answer {
		return h.Serve(h.Sign(h.Request("GET", path, ""), "", pair, o))
	}
	for path, refused := range map[string]int{
		"/api/public/threads/" + begun.ThreadID: 401, "/api/owner/threads": 401, "/api/owner/threads/" + begun.ThreadID: 401, "/api/owner/callbacks?limit=5": 401,
		"/api/public/board/" + hidden.ID: 410, // that its author sees why is private, that it is hidden is not
		"/api/public/board":              200, "/api/public/pow?purpose=contact": 200, "/api/public/session": 200, "/api/public/feed": 200,
	} {
		require.Equal(t, 200, ask(path, httpsig.SignOptions{}).Code, path)
		for name, o := range map[string]httpsig.SignOptions{
			"authority alone": {Components: []string{"@authority"}},
			"for long":        {Components: []string{"@authority"}, Nonce: "-", TTL: 24 * time.Hour},
			"no path":         {Components: []string{"@method", "@authority"}},
			"no method":       {Components: []string{"@target-uri"}},
			"no nonce":        {Nonce: "-"},
			"for a day":       {TTL: 23 * time.Hour},
		} {
			require.Equal(t, refused, ask(path, o).Code, "%s %s", name, path)
		}
	}
}

// TestCallback_EndToEnd answers a thread on a running node and checks what comes
// to the callback address with the node's published key directory alone.
func TestCallback_EndToEnd(t *testing.T) {
	t.Parallel()
	type delivery struct {
		request *http.Request
		body    []byte
	}
	came := make(chan delivery, 4)
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		came <- delivery{r, body}
	}))
	t.Cleanup(receiver.Close)
	h := nodetest.Start(t)
	owner := h.Agent("asha", nodetest.OpenPolicy)
	begun := begun(h, "asha", `{"message":"Hello","callbackUrl":"`+receiver.URL+`/hook?for=me"}`)
	said := nodetest.As[protocol.Said](h.Ask("POST", "/api/owner/threads/"+begun.ThreadID+"/messages", `{"message":"Yes."}`, "Authorization", owner).Is(201))

	got := <-came
	require.Equal(t, said.Message.ID, got.request.Header.Get("Webhook-Id"))
	var cb protocol.Callback
	require.NoError(t, json.Unmarshal(got.body, &cb))
	require.Equal(t, protocol.Callback{Type: "thread.reply", ID: said.Message.ID, ThreadID: begun.ThreadID, Handle: "asha", Message: said.Message,
		CreatedAt: said.Message.CreatedAt}, cb)

	require.Equal(t, `sig1="`+h.Base+`"`, got.request.Header.Get("Signature-Agent"))
	res, err := http.Get(h.URL + "/.well-known/http-message-signatures-directory")
	require.NoError(t, err)
	defer res.Body.Close()
	raw := must.Get(io.ReadAll(res.Body))(t)
	require.Equal(t, httpsig.ContentDigest(got.body), got.request.Header.Get("Content-Digest"))
	guided(t, h, receiver.URL+"/hook?for=me", got.request.Header, raw)

	var page protocol.Page[protocol.CallbackDelivery]
	require.Eventually(t, func() bool {
		h.Ask("GET", "/api/owner/callbacks?state=done", "", "Authorization", owner).Into(&page)
		return len(page.Items) == 1
	}, time.Minute, 20*time.Millisecond)
	require.Equal(t, 202, h.Ask("POST", "/api/owner/callbacks/"+said.Message.ID+"/replay", `{}`, "Authorization", owner).Code)
	require.Equal(t, said.Message.ID, (<-came).request.Header.Get("Webhook-Id"), "again under the same id")
}

// guided verifies a delivery as a stranger does who has read the node's guide and
// nothing else: with the components that the guide names, in the order of the
// request, and a key of the directory.
func guided(t *testing.T, h *nodetest.House, url string, head http.Header, directory []byte) {
	t.Helper()
	guide := h.Ask("GET", "/skill/callbacks.md", "").Body.String()
	agent := head.Get("Signature-Agent")
	require.Equal(t, `"`+h.Base+`"`, strings.TrimPrefix(agent, "sig1="))
	values := map[string]string{`"@method"`: "POST", `"@target-uri"`: url, `"signature-agent"`: agent,
		`"signature-agent";key="sig1"`: strings.TrimPrefix(agent, "sig1=")}
	for name := range values {
		require.Contains(t, guide, "'"+name+"': ", "the guide names what is covered")
	}
	for _, name := range []string{"content-type", "content-digest", "webhook-id"} {
		values[`"`+name+`"`] = head.Get(name)
	}
	require.Contains(t, guide, `for n in ("content-type", "content-digest", "webhook-id"))`)
	params, ok := strings.CutPrefix(head.Get("Signature-Input"), "sig1=")
	require.True(t, ok)
	list, _, _ := strings.Cut(strings.TrimPrefix(params, "("), ")")
	var base strings.Builder
	for name := range strings.SplitSeq(list, " ") {
		require.Contains(t, values, name, "a receiver that follows the guide refuses what it cannot look up")
		base.WriteString(name + ": " + values[name] + "\n")
		delete(values, name)
	}
	require.Len(t, values, 1, "one form of signature-agent is covered")
	base.WriteString(`"@signature-params": ` + params)

	var set struct {
		Keys []struct{ Kid, Crv, X string }
	}
	require.NoError(t, json.Unmarshal(directory, &set))
	for _, k := range set.Keys {
		if k.Crv != "Ed25519" || !strings.Contains(params, `;keyid="`+k.Kid+`"`) {
			continue
		}
		x := must.Get(base64.RawURLEncoding.DecodeString(k.X))(t)
		signature := must.Get(base64.StdEncoding.DecodeString(strings.TrimSuffix(strings.TrimPrefix(head.Get("Signature"), "sig1=:"), ":")))(t)
		require.True(t, ed25519.Verify(x, []byte(base.String()), signature))
		return
	}
	t.Fatal("the directory has no Ed25519 key of that keyid")
}
