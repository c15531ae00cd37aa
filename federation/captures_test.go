package federation

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/identity/httpsig"
	"stoa/identity/key"
	"stoa/protocol"
	"stoa/protocol/activity"
	"stoa/protocol/must"
	"stoa/storage"
	"stoa/storage/storagetest"
)

// A capture is one request that a running server sent to a test actor, with the
// clock of that moment (testdata/gotosocial, testdata/fedify).
type capture struct {
	Name    string
	Clock   time.Time
	Request struct {
		Method, URL, Target string
		Headers             [][2]string
		Body                string
	}
	Signature struct {
		Scheme, Expected string
		KeyID            string `json:"key_id"`
		KeyOwner         string `json:"key_owner"`
	}
	Proof *struct{ Expected string } `json:"integrity_proof"`
}

func load(t *testing.T, file string) capture {
	t.Helper()
	raw := must.Get(os.ReadFile(file))(t)
	c := must.JSON[capture](raw)(t)
	return c
}

func (c capture) request(t *testing.T) *http.Request {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), c.Request.Method, c.Request.Target, strings.NewReader(c.Request.Body))
	r.Header = http.Header{}
	for _, h := range c.Request.Headers {
		if h[0] == "Host" {
			r.Host = h[1]
			continue
		}
		r.Header.Add(h[0], h[1])
	}
	return r
}

// capturedNode is the node that the captured requests were sent to, with the
// servers that sent them around it as far as their documents were captured.
func capturedNode(t *testing.T) *node {
	t.Helper()
	net, tick := newNetwork(), newClock()
	docs := map[string]json.RawMessage{}
	for _, dir := range []string{"gotosocial", "fedify"} {
		require.NoError(t, json.Unmarshal(must.Get(os.ReadFile(filepath.Join("testdata", dir, "actors.json")))(t), &docs))
	}
	raw := must.Get(os.ReadFile("testdata/gotosocial/discovery.json"))(t)
	var found struct {
		Stub json.RawMessage `json:"key_stub_unsigned_get"`
	}
	require.NoError(t, json.Unmarshal(raw, &found))
	docs["http://localhost/users/carol/main-key"] = found.Stub
	docs["http://localhost/users/localhost/main-key"] = docs["http://localhost/users/localhost"]
	for _, host := range []string{"localhost", "localhost:18820"} {
		net.hosts[host] = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			doc, ok := docs["http://"+r.Host+r.URL.RequestURI()]
			if !ok {
				w.WriteHeader(404)
				return
			}
			w.Header().Set("Content-Type", activity.MediaType)
			_, _ = w.Write(doc)
		})
	}
	return nodeAt(t, net, tick, "localhost:18810")
}

// nodeAt is a node at an address without TLS, as those of the captures are.
func nodeAt(t *testing.T, net *network, tick *clock, host string) *node {
	t.Helper()
	n := &node{t: t, base: "http://" + host, name: host, net: net, tick: tick, db: storagetest.OpenConfig(t, storage.Config{Now: tick.now})}
	n.room = &room{base: n.base}
	u := must.Get(url.Parse(n.base))(t)
	n.f = must.Get(New(Config{Base: u, DB: n.db, Client: &http.Client{Transport: net}, Keys: nodeKeys(0), Receiver: n.room,
		Software: "stoa", Version: "0", Now: tick.now, AllowPrivate: true}))(t)
	return n
}

// Every captured signature verifies, with keys fetched from the captured
// documents; the two that Fedify makes over a URL with a fragment do not.
func TestCapturedSignatures(t *testing.T) {
	t.Parallel()
	n := capturedNode(t)
	files := must.Get(filepath.Glob("testdata/*/*.json"))(t)
	verified, refused := 0, 0
	for _, file := range files {
		c := load(t, file)
		if c.Signature.Scheme == "" || c.Signature.Scheme == "none" {
			continue
		}
		n.tick.at = c.Clock
		r := c.request(t)
		msg, err := httpsig.FromRequest(r, n.f.target)
		require.NoError(t, err, file)
		d := &delivery{body: []byte(c.Request.Body), rfc: httpsig.Signed(r.Header)}
		owner, err := n.f.getOwner(t.Context(), &msg, d)
		if c.Signature.Expected != "valid" {
			require.ErrorIs(t, err, httpsig.CodeSignatureInvalid, file)
			refused++
			continue
		}
		require.NoError(t, err, file)
		require.Equal(t, c.Signature.KeyOwner, owner, file)
		verified++
	}
	require.Equal(t, []int{32, 2}, []int{verified, refused})
}

// What GoToSocial 0.20 and Fedify 2.3.6 were sent by a test actor (testdata/us-to-peer.json has what they answered): this node takes every request that
// either of them took, and of those that they refused the ones with a signature, which were of a kind that they do not know.
func TestCapturedBySoftware(t *testing.T) {
	t.Parallel()
	type exchange struct {
		Name, Method, URL string
		Clock             time.Time
		Headers           http.Header `json:"request_headers"`
		Body              string      `json:"request_body"`
		Reply             struct{ Status int }
	}
	raw := must.Get(os.ReadFile("testdata/us-to-peer.json"))(t)
	var file struct {
		Keys struct {
			RSA     string `json:"rsa_pkcs8_pem"`
			Ed25519 string `json:"ed25519_pkcs8_pem"`
		} `json:"test_private_keys"`
		Exchanges []exchange
	}
	require.NoError(t, json.Unmarshal(raw, &file))
	slices.SortFunc(file.Exchanges, func(a, b exchange) int { return a.Clock.Compare(b.Clock) })
	private := func(text string) crypto.Signer {
		block, _ := pem.Decode([]byte(text))
		k := must.Get(x509.ParsePKCS8PrivateKey(block.Bytes))(t)
		return k.(crypto.Signer)
	}
	const probe = "http://localhost:18810/users/probe"
	text := must.Get(key.PublicPEM(private(file.Keys.RSA).Public()))(t)
	doc := asJSON(t, map[string]any{
		"id": probe, "type": "Person", "inbox": probe + "/inbox", "publicKey": map[string]any{"id": probe + "#main-key", "owner": probe, "publicKeyPem": text},
		"assertionMethod": []any{map[string]any{"id": probe + "#ed25519-key", "type": "Multikey", "controller": probe,
			"publicKeyMultibase": key.Multikey(private(file.Keys.Ed25519).Public().(ed25519.PublicKey))}},
	})
	taken := 0
	nodes := map[string]*node{}
	for _, e := range file.Exchanges {
		u := must.Get(url.Parse(e.URL))(t)
		n := nodes[u.Host]
		if n == nil {
			net := newNetwork()
			net.hosts["localhost:18810"] = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", activity.MediaType)
				_, _ = w.Write(doc)
			})
			n = nodeAt(t, net, newClock(), u.Host)
			nodes[u.Host] = n
		}
		n.tick.at = e.Clock
		r := httptest.NewRequestWithContext(t.Context(), e.Method, u.RequestURI(), strings.NewReader(e.Body))
		r.Host, r.Header = u.Host, e.Headers
		w := httptest.NewRecorder()
		n.f.inbox(w, r)
		if strings.HasSuffix(e.Name, "/unsigned") {
			require.Equal(t, []int{401, 401}, []int{e.Reply.Status, w.Code}, e.Name)
			continue
		}
		require.Equal(t, 202, w.Code, "%s: %s", e.Name, w.Body)
		if e.Reply.Status == 202 {
			taken++
		}
	}
	require.Equal(t, 10, taken)
}

// getOwner verifies a GET or POST; a GET has no digest to demand.
func (f *Federation) getOwner(ctx context.Context, msg *httpsig.Message, d *delivery) (string, error) {
	if msg.Method == http.MethodPost {
		return f.verifySignature(ctx, msg, d)
	}
	keys := &resolver{f: f}
	if !d.rfc {
		return f.verifySignature(ctx, msg, d)
	}
	v := httpsig.Verifier{Keys: keys, Now: f.now, AllowLoopback: true}
	_, err := v.Verify(ctx, msg, nil, httpsig.FederationPolicy())
	if err != nil {
		return "", err
	}
	return keys.found.Owner, nil
}

// The story of a GoToSocial account and our board, as it was captured: reply,
// two edits with one id, like, boost, report, deletion.
func TestCapturedStory(t *testing.T) {
	t.Parallel()
	n := capturedNode(t)
	post := n.post(func(p *protocol.StoredPost) { p.URI = n.base + "/ap/posts/01M7Y0"; p.Title = "Paper" })
	settle(t, n)
	const reply = "http://localhost/users/carol/statuses/01M7XPH356AC2MJCT2CPEP9DKR"
	files := must.Get(filepath.Glob("testdata/gotosocial/*.json"))(t)
	for _, file := range files {
		c := load(t, file)
		if c.Request.Method != http.MethodPost {
			continue
		}
		n.tick.at = c.Clock
		for range 2 { // every delivery comes twice
			w := httptest.NewRecorder()
			n.f.inbox(w, c.request(t))
			require.Equal(t, 202, w.Code, "%s: %s", file, w.Body)
			settle(t, n)
		}
		if strings.HasSuffix(file, "04-reply.json") {
			got := n.held(reply)
			require.NotNil(t, got)
			require.Equal(t, "I make that. 12 rupees a sheet.", got.Body, "the mention in front is dropped")
			require.Equal(t, []any{"Re: Paper", protocol.Announcement, "carol", "localhost", post.URI, false},
				[]any{got.Title, got.Kind, *got.Author.Handle, *got.Author.Node, got.ReplyTo, got.Author.Verified})
			require.Contains(t, n.logText(), reply, "everyone who follows the board learns of it")
		}
	}
	require.Equal(t, protocol.Deleted, n.state(reply))
	require.Equal(t, protocol.Visible, n.state(post.URI))
	require.NotContains(t, n.logText(), "12 rupees")
	require.Len(t, n.room.got, 1)
	n.read(func(ctx context.Context, tx *storage.Tx) error {
		dead, err := tx.Jobs().List(ctx, storage.JobDead, "", 10, "")
		for _, j := range dead.Items { // carol follows no actor of this node: the Reject finds no inbox in the captures
			require.Equal(t, storage.DeliverJob, j.Kind, j.LastError)
		}
		return err
	})
}

func (n *node) logText() string {
	return string(bytes.Join(n.entries(), nil))
}

// What Fedify sends, with a proof and an old linked-data signature inside.
func TestCapturedFedify(t *testing.T) {
	t.Parallel()
	n := capturedNode(t)
	n.post(func(p *protocol.StoredPost) { p.URI = n.base + "/objects/q1" })
	files := must.Get(filepath.Glob("testdata/fedify/*.json"))(t)
	for _, file := range files {
		c := load(t, file)
		if c.Request.Method != http.MethodPost {
			continue
		}
		n.tick.at = c.Clock
		w := httptest.NewRecorder()
		n.f.inbox(w, c.request(t))
		require.Equal(t, 202, w.Code, "%s: %s", file, w.Body)
		settle(t, n)
		if strings.HasSuffix(file, "05-reply.json") {
			require.Equal(t, protocol.Visible, n.state("http://localhost:18820/users/fay/notes/r1"))
		}
	}
	require.Equal(t, protocol.Deleted, n.state("http://localhost:18820/users/fay/notes/r1"))
	require.Equal(t, schemeRSA, n.f.schemeOf(t.Context(), "localhost:18820"), "a host that signs with RFC 9421 gets it back")
}

// The inbox door never fails inside and never panics, whatever comes.
func FuzzInbox(f *testing.F) {
	files, err := filepath.Glob("testdata/*/*.json")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		var c capture
		if json.Unmarshal(raw, &c) == nil && c.Request.Body != "" {
			sig, input := "", ""
			for _, h := range c.Request.Headers {
				switch h[0] {
				case "Signature":
					sig = h[1]
				case "Signature-Input":
					input = h[1]
				}
			}
			f.Add([]byte(c.Request.Body), sig, input)
		}
	}
	u, err := url.Parse("https://u.example")
	if err != nil {
		f.Fatal(err)
	}
	fed, err := New(Config{Base: u, DB: storagetest.Open(f), Client: &http.Client{Transport: newNetwork()}, Keys: nodeKeys(0),
		Receiver: &room{}, Software: "stoa", Version: "0", AllowPrivate: true})
	if err != nil {
		f.Fatal(err)
	}
	door := fed.Handler()
	f.Fuzz(func(t *testing.T, body []byte, sig, input string) {
		r := httptest.NewRequestWithContext(t.Context(), "POST", "/ap/inbox", bytes.NewReader(body))
		r.Host = "u.example"
		r.Header.Set("Content-Type", activity.MediaType)
		r.Header.Set("Date", time.Now().UTC().Format(http.TimeFormat))
		if sig != "" {
			r.Header.Set("Signature", sig)
		}
		if input != "" {
			r.Header.Set("Signature-Input", input)
		}
		w := httptest.NewRecorder()
		door.ServeHTTP(w, r)
		require.Less(t, w.Code, 500)
	})
}
