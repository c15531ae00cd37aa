package node_test

import (
	"crypto"
	"crypto/rand"
	"crypto/sha256"
	"encoding/asn1"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/identity/httpsig"
	"stoa/identity/key"
	"stoa/node/nodetest"
	"stoa/protocol"
	"stoa/protocol/must"
)

// An inlineSigner signs with a key that each request itself gives, as the clients of draft-hardt-httpbis-signature-key do.
type inlineSigner struct {
	h       *nodetest.House
	pair    key.Pair
	scheme  string    // instead of hwk
	created time.Time // zero: now
	covered string    // instead of all
	more    string    // fields, "Name: value", covered by their lower-case names
}

func (c inlineSigner) request(method, path, body string) *http.Request {
	t := c.h.T
	t.Helper()
	var jwk map[string]string
	require.NoError(t, json.Unmarshal(must.Get(key.MarshalPublic(key.Public{Key: c.pair.Published().Key}))(t), &jwk))
	named := c.scheme
	if named == "" {
		named = "hwk"
		for _, name := range []string{"kty", "crv", "x", "y"} {
			if jwk[name] != "" {
				named += fmt.Sprintf(";%s=%q", name, jwk[name])
			}
		}
	}
	sum := sha256.Sum256([]byte(body))
	r := c.h.Request(method, path, body, "Content-Type", "application/json", "Content-Digest",
		"sha-256=:"+base64.StdEncoding.EncodeToString(sum[:])+":", "Signature-Key", "sig="+named)
	target := must.Get(httpsig.ParseTarget(c.h.Base))(t)
	covered := c.covered
	if covered == "" {
		covered = "@method @authority @path content-digest content-type signature-key"
	}
	if name, value, ok := strings.Cut(c.more, ": "); ok {
		r.Header.Set(name, value)
		covered += " " + strings.ToLower(name)
	}
	created := time.Now()
	if !c.created.IsZero() {
		created = c.created
	}
	var base strings.Builder
	var list []string
	for name := range strings.FieldsSeq(covered) {
		value := map[string]string{"@method": method, "@authority": target.Authority, "@path": path}[name]
		if value == "" {
			value = r.Header.Get(name)
		}
		fmt.Fprintf(&base, "%q: %s\n", name, value)
		list = append(list, fmt.Sprintf("%q", name))
	}
	params := fmt.Sprintf("(%s);created=%d", strings.Join(list, " "), created.Unix())
	fmt.Fprintf(&base, `"@signature-params": %s`, params)
	message, hash := []byte(base.String()), crypto.Hash(0)
	if jwk["y"] != "" { // ECDSA signs a hash
		digest := sha256.Sum256(message)
		message, hash = digest[:], crypto.SHA256
	}
	sig := must.Get(c.pair.Signer().Sign(rand.Reader, message, hash))(t)
	if jwk["y"] != "" { // RFC 9421 §3.3.4: both numbers, 32 bytes each
		var n struct{ R, S *big.Int }
		must.Get(asn1.Unmarshal(sig, &n))(t)
		sig = append(n.R.FillBytes(make([]byte, 32)), n.S.FillBytes(make([]byte, 32))...)
	}
	r.Header.Set("Signature-Input", "sig="+params)
	r.Header.Set("Signature", "sig=:"+base64.StdEncoding.EncodeToString(sig)+":")
	return r
}

// sends sends a request, with a proof of work for a purpose where one is given.
func (c inlineSigner) sends(r *http.Request, purpose string) nodetest.Answer {
	if purpose != "" {
		r.Header.Set("Proof-Of-Work", c.h.Proof(purpose))
	}
	return c.h.Serve(r)
}

// TestInlineKey: a key that a request itself gives is the same pseudonym each time and nothing more: it pays the proof of work, and is not
// verified. Each request is taken once, also without a nonce.
func TestInlineKey(t *testing.T) {
	t.Parallel()
	h := nodetest.New(t)
	const board = "/api/public/board"
	for name, pair := range map[string]key.Pair{"Ed25519": must.Get(key.GenerateEd25519())(t), "P-256": must.Get(key.GenerateP256())(t)} {
		c := inlineSigner{h: h, pair: pair}
		refused := c.sends(c.request("POST", board, nodetest.GoodPost), "").Is(401)
		require.Equal(t, protocol.PowRequired, refused.Problem().Code, name)
		require.NotNil(t, refused.Problem().Challenge, name)

		var posts [2]protocol.Post
		for i := range posts {
			body := fmt.Sprintf(`{"kind":"offer","title":"Number %d","body":"Three looms."}`, i)
			c.sends(c.request("POST", board, body), protocol.PostToBoard.Purpose).Is(201).Into(&posts[i])
			require.False(t, posts[i].Author.Verified)
			require.Equal(t, protocol.BySameKey, posts[i].Author.Proof.Level)
			require.Equal(t, pair.Thumbprint(), *posts[i].Author.KeyID)
			require.Equal(t, pair.Thumbprint(), *posts[i].Author.Proof.Subject)
		}
		require.NotContains(t, h.Ask("GET", board+"?verifiedOnly=true", "").Is(200).Body.String(), posts[0].ID)
		require.Contains(t, h.Ask("GET", "/board/"+posts[0].ID, "", "Accept", "text/html").Is(200).Body.String(), pair.Thumbprint())

		r := c.request("POST", board, nodetest.GoodPost)
		again := r.Clone(t.Context())
		again.Body = io.NopCloser(strings.NewReader(nodetest.GoodPost))
		c.sends(r, protocol.PostToBoard.Purpose).Is(201)
		require.Equal(t, protocol.SignatureReplayed, c.sends(again, protocol.PostToBoard.Purpose).Problem().Code, "with another proof of work")
	}

	c := inlineSigner{h: h, pair: must.Get(key.GenerateEd25519())(t)}
	other := inlineSigner{h: h, pair: must.Get(key.GenerateEd25519())(t)}
	stolen := c.request("POST", board, nodetest.GoodPost)
	stolen.Header.Set("Signature-Key", other.request("POST", board, "{}").Header.Get("Signature-Key"))
	require.Equal(t, protocol.SignatureInvalid, c.sends(stolen, protocol.PostToBoard.Purpose).Problem().Code)
	for detail, bad := range map[string]inlineSigner{
		"coverage-insufficient: signature-key":  {covered: "@method @authority @path content-digest content-type"},
		"coverage-insufficient: content-digest": {covered: "@method @authority @path content-type signature-key"},
		"created":                               {created: time.Now().Add(-10 * time.Minute)},
		"scheme x509 is not read":               {scheme: `x509;x5u="https://agent.example"`},
		"needs id, dwk and kid":                 {scheme: `jwks_uri;id="https://agent.example";kid="k"`},
		"dwk the name of a document":            {scheme: `jwks_uri;id="https://agent.example";kid="k";dwk="../x"`},
		"key-malformed":                         {scheme: `hwk;kty="OKP";crv="Ed25519";x="AAAA"`},
		"private":                               {scheme: `hwk;kty="OKP";crv="Ed25519";x="11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo";d="AAAA"`},
		"has no scheme for this signature":      {scheme: `"hwk"`},
		"this node is not connected to a chain": {more: "Agent-Identity: eip155:1:0x8004a169fb4a3325136eb29fa0ceb6d2e539a432:7"},
	} {
		bad.h, bad.pair = h, c.pair
		a := bad.sends(bad.request("POST", board, nodetest.GoodPost), protocol.PostToBoard.Purpose)
		require.GreaterOrEqual(t, a.Code, 400, detail)
		require.Less(t, a.Code, 500, detail)
		require.Contains(t, a.Body.String(), detail)
	}
	require.Equal(t, protocol.KeyUnknown, c.sends(c.request("PUT", "/api/owner/profile", "{}"), "").Problem().Code, "what only owners may do")
	require.Equal(t, 200, c.sends(c.request("GET", board, ""), "").Code, "an open read")

	// The key of a profile is the profile's, whoever carries it.
	hosted := inlineSigner{h: h, pair: h.Hosted("asha")}
	post := nodetest.As[protocol.Post](hosted.sends(hosted.request("POST", board, nodetest.GoodPost), "").Is(201))
	require.Equal(t, protocol.ByProfileKey, post.Author.Proof.Level)
	require.Equal(t, "asha", *post.Author.Handle)
}

// TestInlineKey_Published: a key that a host publishes, whose place the request names (jwks_uri), is the same pseudonym each time and nothing
// more. It is fetched within the bounds of key directories, and not for who pays nothing.
func TestInlineKey_Published(t *testing.T) {
	t.Parallel()
	h := nodetest.Start(t)
	const board = "/api/public/board"
	pair := must.Get(key.GenerateEd25519())(t)
	var jwk map[string]any
	require.NoError(t, json.Unmarshal(must.Get(key.MarshalPublic(key.Public{Key: pair.Published().Key}))(t), &jwk))
	jwk["kid"] = "main"
	delete(jwk, "use")
	keys := string(must.Get(json.Marshal(map[string]any{"keys": []any{jwk}}))(t))
	var asked atomic.Int32
	host := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		w.Header().Set("Content-Type", "application/json")
		self := "http://" + r.Host
		switch r.URL.Path {
		case "/.well-known/agent.json":
			fmt.Fprintf(w, `{"issuer":%q,"jwks_uri":%q}`, self, self+"/keys.json")
		case "/.well-known/another.json":
			fmt.Fprintf(w, `{"issuer":"https://bank.example","jwks_uri":%q}`, self+"/keys.json")
		case "/.well-known/inward.json":
			fmt.Fprintf(w, `{"issuer":%q,"jwks_uri":"http://169.254.169.254/keys"}`, self)
		case "/.well-known/away.json":
			http.Redirect(w, r, "/.well-known/agent.json", http.StatusFound)
		case "/.well-known/large.json":
			w.Write(make([]byte, 10<<20))
		case "/keys.json":
			io.WriteString(w, keys)
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(host.Close)
	at := func(document, kid string) inlineSigner {
		return inlineSigner{h: h, pair: pair, scheme: fmt.Sprintf("jwks_uri;id=%q;dwk=%q;kid=%q", host.URL, document, kid)}
	}
	c := at("agent.json", "main")
	require.Equal(t, protocol.PowRequired, c.sends(c.request("POST", board, nodetest.GoodPost), "").Problem().Code)
	require.Zero(t, asked.Load(), "nothing is fetched for who pays nothing")
	for i := range 2 {
		body := fmt.Sprintf(`{"kind":"offer","title":"Number %d","body":"Three looms."}`, i)
		a := c.sends(c.request("POST", board, body), protocol.PostToBoard.Purpose)
		for i == 0 && a.Code == 401 && a.Problem().Code == protocol.KeyUnknown { // a node that was just started reads its store first
			a = c.sends(c.request("POST", board, body), protocol.PostToBoard.Purpose)
		}
		post := nodetest.As[protocol.Post](a.Is(201))
		require.False(t, post.Author.Verified)
		require.Equal(t, protocol.BySameKey, post.Author.Proof.Level)
		require.Equal(t, pair.Thumbprint(), *post.Author.KeyID)
		require.Equal(t, pair.Thumbprint(), *post.Author.Proof.Subject)
	}
	require.Equal(t, int32(2), asked.Load(), "one reading of both documents")
	forged := at("agent.json", "main")
	forged.pair = must.Get(key.GenerateEd25519())(t)
	require.Equal(t, protocol.SignatureInvalid, forged.sends(forged.request("POST", board, nodetest.GoodPost), protocol.PostToBoard.Purpose).Problem().Code)
	for detail, bad := range map[string]inlineSigner{
		"directory-malformed": at("another.json", "main"), "jwks_uri of the card": at("inward.json", "main"),
		"directory-redirect": at("away.json", "main"), "directory-too-large": at("large.json", "main"), "directory-status": at("missing.json", "main"),
	} {
		require.Eventually(t, func() bool {
			a := bad.sends(bad.request("POST", board, nodetest.GoodPost), protocol.PostToBoard.Purpose)
			return a.Code == 401 && strings.Contains(a.Body.String(), detail)
		}, time.Minute, 50*time.Millisecond, detail)
	}
	unknown := at("agent.json", "other")
	require.Equal(t, protocol.KeyUnknown, unknown.sends(unknown.request("POST", board, nodetest.GoodPost), protocol.PostToBoard.Purpose).Problem().Code)
}
