package federation

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/identity/integrity"
	"stoa/identity/key"
	"stoa/protocol"
	"stoa/protocol/activity"
	"stoa/protocol/must"
	"stoa/storage"
)

// attack is one case of attacks.json.
type attack struct {
	ID       string
	SignedBy string `json:"signed_by"`
	Served   map[string]struct {
		ContentType string `json:"content_type"`
		Status      int
		Location    string
		Body        json.RawMessage
	} `json:"served_by_origins"`
	Delivered json.RawMessage `json:"delivered_to_inbox"`
	Transport struct {
		RawBody string `json:"raw_body"`
	}
	Status string `json:"expected_status"`
}

func attacks(t *testing.T) []attack {
	t.Helper()
	raw := must.Get(os.ReadFile("testdata/attacks.json"))(t)
	var file struct{ Cases []attack }
	require.NoError(t, json.Unmarshal(raw, &file))
	require.Len(t, file.Cases, 71)
	return file.Cases
}

// elsewhere says where a case is driven that has no document to deliver.
var elsewhere = map[string]string{
	"proof-vm-not-in-assertionMethod": "TestAttack_Proofs", "proof-context-differs": "TestAttack_Proofs", "proof-multiple": "TestAttack_Proofs",
	"statement-replay-other-node": "integrity.TestJudge_Statement", "statement-edit-outer": "integrity.TestJudge_Statement",
	"sig-replay-old": "TestAttack_Transport", "sig-replay-other-path": "TestAttack_Transport", "sig-no-digest": "TestAttack_Transport",
	"sig-digest-mismatch": "TestAttack_Transport", "sig-digest-multi": "cavage and httpsig vectors", "sig-header-dup": "TestAttack_Transport",
	"sig-alg-hmac": "cavage and httpsig vectors", "id-not-https": "TestParseID", "domain-block-subdomain": "TestAttack_Blocked",
	"blocked-host-relayed": "TestAttack_Blocked", "ctype-html": "TestAttack_Fetch", "ctype-json": "TestAttack_Fetch",
	"redirect-cross-origin": "TestAttack_Fetch", "redirect-loop": "TestAttack_Fetch", "redirect-private": "TestAttack_Fetch and outbound",
	"ssrf-literals": "outbound", "ssrf-dns-rebind": "outbound", "ssrf-port": "outbound", "ssrf-discovery-links": "TestAttack_Fetch",
	"fetch-recursion-thread": "TestAttack_NoFetchFromContent", "fetch-recursion-collection": "TestAttack_NoFetchFromContent",
	"fetch-fanout-mentions": "TestAttack_Bodies", "body-huge": "TestAttack_Bodies", "body-deep": "TestAttack_Bodies",
	"body-gzip-bomb": "TestAttack_Bodies", "body-bad-utf8": "TestAttack_Bodies", "body-array": "TestAttack_Bodies",
	"slowloris": "the server's timeouts", "jsonld-remote-context": "TestAttack_NoFetchFromContent",
	"webfinger-mismatch":      "handles are shown with the actor's own host",
	"preferred-username-html": "TestFediverseReply", "content-xss": "TestPlainText", "url-xss": "activity.TestQuirks", "link-spoof": "TestPlainText",
	"flag-flood": "TestAttack_Flags", "follow-flood": "TestAttack_Flood", "new-host-flood": "TestAttack_Flood",
	"seq-forgery": "TestAttack_Log", "log-split-view": "TestAttack_Log",
}

// actorKeys are the keys of one made-up actor.
type actorKeys struct {
	id     string
	keys   Keys
	former []ed25519.PublicKey // which the document names too
}

// world is the node under test with the hosts of the attack cases around it.
type world struct {
	*node
	t      *testing.T
	post   *protocol.StoredPost // local
	reply  string               // https://victim.example/n/1, held as a reply
	actors map[string]*actorKeys
	served map[string]http.HandlerFunc
}

const (
	mallory = "https://evil.example/u/mallory"
	alice   = "https://victim.example/u/alice"
	bob     = "https://victim.example/u/bob"
)

// newWorld is a world of a test that runs beside others.
func newWorld(t *testing.T) *world {
	t.Helper()
	t.Parallel()
	return newWorldOn(t, storage.Config{})
}

// newWorldOn is newWorld with a database of its own.
func newWorldOn(t *testing.T, c storage.Config) *world {
	t.Helper()
	net, tick := newNetwork(), newClock()
	w := &world{t: t, actors: map[string]*actorKeys{}, served: map[string]http.HandlerFunc{}}
	w.node = newNodeOn(t, net, tick, 'u'-'a', nil, c)
	for i, id := range []string{mallory, alice, bob} {
		w.actors[id] = &actorKeys{id: id, keys: nodeKeys(100 + i)}
	}
	for _, host := range []string{"evil.example", "victim.example"} {
		net.hosts[host] = http.HandlerFunc(w.remote)
	}
	w.node.base, w.node.name = "https://u.example", "u.example"
	w.post = w.node.post(nil)
	w.reply = "https://victim.example/n/1"
	settle(t, w.node)
	code := w.deliver(alice, w.fill(fmt.Sprintf(`{"@context":"https://www.w3.org/ns/activitystreams","id":"https://victim.example/a/0","type":"Create",
		"actor":%q,"to":"as:Public",
		"object":{"id":%q,"type":"Note","attributedTo":%q,"content":"<p>hello</p>","published":"2026-11-20T10:00:00Z","to":"as:Public",
		"inReplyTo":"POST"}}`, alice, w.reply, alice)))
	require.Equal(t, 202, code)
	code = w.deliver(alice, w.fill(fmt.Sprintf(`{"@context":"https://www.w3.org/ns/activitystreams","id":"https://victim.example/f/1","type":"Follow",`+
		`"actor":%q,"object":"https://us.example/ap/board"}`, alice)))
	require.Equal(t, 202, code)
	require.NoError(t, w.write(func(ctx context.Context, tx *storage.Tx) error {
		return tx.Subscriptions().Put(ctx, storage.Subscription{Board: "https://victim.example/ap/board", Host: "victim.example",
			State: storage.SubscriptionPending, FollowID: "https://u.example/ap/follows/1"})
	}))
	settle(t, w.node)
	require.Equal(t, protocol.Visible, w.state(w.reply))
	return w
}

// fill puts the node's own address and post into a document of the vectors.
func (w *world) fill(doc string) []byte {
	doc = strings.ReplaceAll(doc, "https://us.example/ap/posts/01", w.post.URI)
	doc = strings.ReplaceAll(doc, "POST", w.post.URI)
	return []byte(strings.ReplaceAll(doc, "us.example", "u.example"))
}

// document is what an actor's id serves.
func (a *actorKeys) document(t testing.TB) []byte {
	t.Helper()
	pem := must.Get(key.PublicPEM(a.keys.RSA.Public()))(t)
	method := func(id string, k ed25519.PublicKey) any {
		return map[string]any{"id": a.id + "#" + id, "type": "Multikey", "controller": a.id, "publicKeyMultibase": key.Multikey(k)}
	}
	methods := []any{method("ed25519-key", a.keys.Ed25519.Public().(ed25519.PublicKey))}
	for _, k := range a.former {
		methods = append(methods, method(key.Multikey(k), k))
	}
	return asJSON(t, map[string]any{
		"@context": "https://www.w3.org/ns/activitystreams", "id": a.id, "type": "Person", "preferredUsername": a.id[strings.LastIndexByte(a.id, '/')+1:],
		"name": "A\u202e <b>name</b>", "inbox": a.id + "/inbox", "outbox": a.id + "/outbox",
		"publicKey":       map[string]any{"id": a.id + "#main-key", "owner": a.id, "publicKeyPem": pem},
		"assertionMethod": methods,
	})
}

func (w *world) remote(rw http.ResponseWriter, r *http.Request) {
	id := "https://" + r.Host + r.URL.RequestURI()
	if h, ok := w.served[id]; ok {
		h(rw, r)
		return
	}
	if a, ok := w.actors[id]; ok && r.Method == "GET" {
		rw.Header().Set("Content-Type", activity.MediaType)
		_, _ = rw.Write(a.document(w.t))
		return
	}
	if r.Method == "POST" {
		rw.WriteHeader(202)
		return
	}
	rw.WriteHeader(404)
}

// as signs like another server: its own federation with its own keys.
func (w *world) as(actor string) *Federation {
	a := w.actors[actor]
	f := w.start(a.keys, nil)
	f.site.Base = "https://" + hostOf(actor)
	return f
}

// request is a delivery signed by an actor, ready to be bent.
func (w *world) request(actor, scheme string, body []byte) *http.Request {
	w.t.Helper()
	r := must.Get(http.NewRequestWithContext(w.t.Context(), "POST", w.base+"/ap/board/inbox", bytes.NewReader(body)))(w.t)
	r.Header.Set("Content-Type", activity.MediaType)
	require.NoError(w.t, w.as(actor).sign(r, body, actor, scheme))
	return r
}

func (w *world) do(r *http.Request) int {
	w.t.Helper()
	res := must.Get(w.net.RoundTrip(r))(w.t)
	defer res.Body.Close()
	return res.StatusCode
}

func (w *world) deliver(actor string, body []byte) int {
	w.t.Helper()
	return w.do(w.request(actor, schemeCavage, body))
}

// unharmed checks that nothing of what was there has changed.
func (w *world) unharmed(posts int) {
	w.t.Helper()
	settle(w.t, w.node)
	require.Equal(w.t, protocol.Visible, w.state(w.post.URI))
	require.Equal(w.t, protocol.Visible, w.state(w.reply))
	require.Equal(w.t, "hello", w.held(w.reply).Body)
	require.Len(w.t, w.room.got, posts)
	require.Equal(w.t, storage.SubscriptionPending, w.subscription("https://victim.example/ap/board").State)
	w.read(func(ctx context.Context, tx *storage.Tx) error {
		require.Equal(w.t, 1, must.Get(tx.Followers().Count(ctx, protocol.BoardID(w.base)))(w.t))
		return nil
	})
	known := must.Get(w.f.knownKey(w.t.Context(), alice+"#main-key"))(w.t)
	require.Equal(w.t, w.actors[alice].keys.RSA.Public(), known.Public)
}

// allowed are the statuses that a case permits. Where the table says that a
// request may be accepted and ignored, refusing it is as good.
func allowed(expected string) []int {
	switch {
	case strings.HasPrefix(expected, "202 allowed"):
		return []int{202, 400, 401, 403}
	case strings.HasPrefix(expected, "401 or 403"), strings.HasPrefix(expected, "400 or 401"):
		return []int{400, 401, 403}
	case strings.HasPrefix(expected, "202"):
		return []int{202}
	case strings.HasPrefix(expected, "400"):
		return []int{400}
	}
	return []int{401}
}

func TestAttacks(t *testing.T) {
	t.Parallel()
	for _, c := range attacks(t) {
		body := []byte(c.Transport.RawBody)
		if len(body) == 0 && string(c.Delivered) != "" {
			body = c.Delivered
		}
		if len(body) == 0 || elsewhere[c.ID] != "" {
			require.NotEmpty(t, elsewhere[c.ID], c.ID)
			continue
		}
		t.Run(c.ID, func(t *testing.T) {
			w := newWorld(t)
			for id, s := range c.Served {
				w.served[id] = func(rw http.ResponseWriter, r *http.Request) {
					rw.Header().Set("Content-Type", s.ContentType)
					_, _ = rw.Write(bytes.ReplaceAll(s.Body, []byte("PEM of attacker"), w.pem(mallory)))
				}
			}
			r := w.request(mallory, schemeCavage, w.fill(string(body)))
			switch {
			case c.SignedBy == "":
				r.Header.Del("Signature")
			case w.actors[withoutFragment(c.SignedBy)] != nil:
				r = w.request(withoutFragment(c.SignedBy), schemeCavage, w.fill(string(body)))
			default:
				r.Header.Set("Signature", strings.Replace(r.Header.Get("Signature"), mallory+"#main-key", c.SignedBy, 1))
			}
			require.Contains(t, allowed(c.Status), w.do(r))
			settle(t, w.node)
			w.unharmed(1)
		})
	}
}

// pem is an actor's key as part of a JSON string.
func (w *world) pem(actor string) []byte {
	w.t.Helper()
	pem := must.Get(key.PublicPEM(w.actors[actor].keys.RSA.Public()))(w.t)
	return bytes.Trim(asJSON(w.t, pem), `"`)
}

// A squatted id does not keep the genuine activity out.
func TestAttack_DedupeIsAfterVerification(t *testing.T) {
	w := newWorld(t)
	body := w.fill(fmt.Sprintf(`{"id":"https://victim.example/a/9","type":"Create","actor":%q,"to":"as:Public",
		"object":{"id":"https://victim.example/n/9","type":"Note",
		"attributedTo":%q,"content":"<p>hi</p>","published":"2026-11-20T10:00:00Z","to":"as:Public","inReplyTo":"POST"}}`, alice, alice))
	require.Equal(t, 403, w.deliver(mallory, body))
	require.Equal(t, 202, w.deliver(alice, body))
	require.Equal(t, 202, w.deliver(alice, body), "again: nothing more")
	settle(t, w.node)
	require.Equal(t, protocol.Visible, w.state("https://victim.example/n/9"))
	w.unharmed(2)
}

func (w *world) note(n int, more string) []byte {
	return w.fill(fmt.Sprintf(`{"@context":["https://www.w3.org/ns/activitystreams"],"id":"https://victim.example/a/%d","type":"Create","actor":%q,
		"to":["as:Public"],
		"object":{"id":"https://victim.example/n/%d","type":"Note","attributedTo":%q,"content":"<p>hi</p>","published":"2026-11-20T10:00:00Z",
		"to":["as:Public"],"inReplyTo":"POST"%s}}`, n, alice, n, alice, more))
}

func TestAttack_Proofs(t *testing.T) {
	w := newWorld(t)
	prove := func(body []byte, actor, method string) []byte {
		return must.Get(integrity.Sign(body, w.actors[actor].keys.Ed25519.Signer(), method, w.tick.now()))(t)
	}
	require.Equal(t, 202, w.deliver(mallory, prove(w.note(20, ""), alice, alice+"#ed25519-key")), "relayed with the actor's own proof")
	settle(t, w.node)
	require.Equal(t, protocol.Visible, w.state("https://victim.example/n/20"))

	one := prove(w.note(21, ""), alice, alice+"#ed25519-key")
	doc := must.JSON[map[string]json.RawMessage](one)(t)
	change := func(name, value string) []byte {
		copied := maps.Clone(doc)
		copied[name] = json.RawMessage(value)
		return asJSON(t, copied)
	}
	proof := string(doc["proof"])
	for name, body := range map[string][]byte{
		"made by another key":      prove(w.note(22, ""), mallory, mallory+"#ed25519-key"),
		"another's key as alice's": prove(w.note(23, ""), mallory, alice+"#ed25519-key"),
		"key under publicKey":      prove(w.note(24, ""), alice, alice+"#main-key"),
		"unknown key":              prove(w.note(25, ""), alice, alice+"#nothing"),
		"several proofs":           change("proof", "["+proof+","+proof+"]"),
		"other context":            change("proof", strings.Replace(proof, "activitystreams", "security", 1)),
		"content changed":          []byte(strings.Replace(string(one), "<p>hi</p>", "<p>ho</p>", 1)),
		"no proof":                 w.note(26, ""),
	} {
		require.Contains(t, []int{401, 403}, w.deliver(mallory, body), name)
	}
	require.Equal(t, 401, w.deliver(alice, change("proof", "["+proof+"]")), "a broken proof is refused from the actor too")
	w.unharmed(2)
}

func TestAttack_Transport(t *testing.T) {
	w := newWorld(t)
	for _, scheme := range []string{schemeCavage, schemeRSA, schemeEd25519} {
		n := 30
		for name, bend := range map[string]func(r *http.Request, body []byte) *http.Request{
			"another body": func(r *http.Request, body []byte) *http.Request {
				r.Body = http.NoBody
				changed, err := http.NewRequestWithContext(t.Context(), "POST", r.URL.String(), bytes.NewReader(bytes.Replace(body, []byte("hi"), []byte("ho"), 1)))
				require.NoError(t, err)
				changed.Header = r.Header
				return changed
			},
			"another inbox": func(r *http.Request, _ []byte) *http.Request { r.URL.Path = "/ap/inbox"; return r },
			"no signature": func(r *http.Request, _ []byte) *http.Request {
				r.Header.Del("Signature")
				r.Header.Del("Signature-Input")
				return r
			},
			"no digest": func(r *http.Request, _ []byte) *http.Request {
				r.Header.Del("Digest")
				r.Header.Del("Content-Digest")
				return r
			},
			"two signatures": func(r *http.Request, _ []byte) *http.Request {
				r.Header.Add("Signature", r.Header.Get("Signature"))
				return r
			},
			"other date": func(r *http.Request, _ []byte) *http.Request {
				r.Header.Set("Date", w.tick.now().Add(time.Minute).UTC().Format(http.TimeFormat))
				if scheme != schemeCavage {
					r.Header.Set("Signature-Input", strings.Replace(r.Header.Get("Signature-Input"), ";created=", ";created=1", 1))
				}
				return r
			},
			"downgrade to nothing covered": func(r *http.Request, _ []byte) *http.Request {
				r.Header.Set("Signature", strings.Replace(r.Header.Get("Signature"), "(request-target) ", "", 1))
				r.Header.Set("Signature-Input", strings.Replace(r.Header.Get("Signature-Input"), `"@target-uri" `, "", 1))
				return r
			},
		} {
			n++
			body := w.note(n, "")
			require.Contains(t, []int{400, 401}, w.do(bend(w.request(alice, scheme, body), body)), "%s %s", scheme, name)
		}
		body := w.note(n+100, "")
		r := w.request(alice, scheme, body)
		w.tick.pass(2 * time.Hour)
		require.Equal(t, 401, w.do(r), "two hours old")
	}
	w.unharmed(1)
}

// A request with Signature-Input is never read in the older form, even where
// that would verify.
func TestAttack_NoDowngrade(t *testing.T) {
	w := newWorld(t)
	r := w.request(alice, schemeCavage, w.note(29, ""))
	r.Header.Set("Signature-Input", `sig1=("@method");created=1;keyid="x"`)
	require.Equal(t, 401, w.do(r))
	w.unharmed(1)
}

func TestAttack_Bodies(t *testing.T) {
	w := newWorld(t)
	list := func(n int, s string) string { return "[" + strings.TrimSuffix(strings.Repeat(s+",", n), ",") + "]" }
	for name, c := range map[string]struct {
		body string
		want int
	}{
		"huge":           {strings.Repeat(" ", activity.MaxBody+1), 413},
		"deep":           {strings.Repeat(`{"a":`, 33) + "1" + strings.Repeat("}", 33), 400},
		"very deep":      {strings.Repeat("[", 100_000), 400},
		"invalid UTF-8":  {"{\"id\":\"\xff\"}", 400},
		"lone surrogate": {`{"id":"\ud800"}`, 400},
		"BOM":            {"\ufeff{}", 400},
		"U+0000":         {`{"id":"a\u0000"}`, 400},
		"array":          {`[{"id":"x"}]`, 400},
		"null":           {`null`, 400},
		"nothing":        {``, 400},
		"actors":         {`{"id":"https://victim.example/1","type":"Create","actor":["` + alice + `","` + bob + `"]}`, 400},
		"addressees":     {string(w.note(1, `,"cc":`+list(501, `"https://x.example/u"`))), 400},
		"tags":           {string(w.note(1, `,"tag":`+list(101, `{"type":"Mention","href":"https://x.example/u"}`))), 400},
		"attachments":    {string(w.note(1, `,"attachment":`+list(33, `{"type":"Image"}`))), 400},
		"long content":   {string(w.note(1, `,"contentMap":{"en":"`+strings.Repeat("x", activity.MaxContent+1)+`"},"content":null`)), 400},
		"no id":          {`{"type":"Create","actor":"` + alice + `"}`, 400},
		"graph":          {`{"id":"https://victim.example/1","type":"Create","actor":"` + alice + `","@graph":[{}]}`, 400},
	} {
		require.Equal(t, c.want, w.deliver(alice, []byte(c.body)), name)
	}
	r := w.request(alice, schemeCavage, w.note(2, ""))
	r.Header.Set("Content-Encoding", "gzip")
	require.Equal(t, 415, w.do(r))
	for kind, want := range map[string]int{
		"application/json": 415, "application/ld+json": 415, "": 415, "text/html": 415,
		`application/ld+json; profile="https://www.w3.org/ns/activitystreams"`: 202, "application/activity+json; charset=utf-8": 202,
	} {
		r := w.request(alice, schemeCavage, []byte(`{"id":"https://victim.example/v/1","type":"View","actor":"`+alice+`","object":"x"}`))
		r.Header.Set("Content-Type", kind)
		require.Equal(t, want, w.do(r), kind)
	}
	w.unharmed(1)
}

func TestAttack_Blocked(t *testing.T) {
	t.Parallel()
	for name, block := range map[string]func(ctx context.Context, tx *storage.Tx) error{
		"by policy": func(ctx context.Context, tx *storage.Tx) error {
			return tx.Peers().SetPolicy(ctx, storage.HostPolicy{Host: "evil.example", Policy: storage.PolicyReject})
		},
		"by a block": func(ctx context.Context, tx *storage.Tx) error {
			return tx.Blocks().Put(ctx, nodeBlock(protocol.BlockHost, "evil.example"))
		},
	} {
		t.Run(name, func(t *testing.T) { blocked(t, block) })
	}
}

func TestAttack_BlockedActor(t *testing.T) {
	w := newWorld(t)
	require.NoError(t, w.write(func(ctx context.Context, tx *storage.Tx) error {
		return tx.Blocks().Put(ctx, nodeBlock(protocol.BlockActor, mallory))
	}))
	send := func(actor string) int {
		return w.deliver(actor, fmt.Appendf(nil, `{"id":"%s/v/1","type":"View","actor":%q,"object":"x"}`, actor, actor))
	}
	require.Equal(t, 403, send(mallory))
	require.Equal(t, 202, send(alice), "others are heard")
}

func nodeBlock(kind protocol.BlockKind, value string) protocol.Block {
	return protocol.Block{ID: protocol.NewID(protocol.BlockID, time.Now()), Kind: kind, Value: value, CreatedAt: time.Now()}
}

func blocked(t *testing.T, block func(ctx context.Context, tx *storage.Tx) error) {
	w := newWorld(t)
	require.NoError(t, w.write(block))
	sub := "https://sub.evil.example/u/mallory"
	w.actors[sub] = &actorKeys{id: sub, keys: nodeKeys(100)}
	w.net.hosts["sub.evil.example"] = http.HandlerFunc(w.remote)
	for _, actor := range []string{mallory, sub} {
		body := fmt.Sprintf(`{"id":"%s/v/1","type":"View","actor":%q,"object":"x"}`, strings.TrimSuffix(actor, "/u/mallory"), actor)
		require.Equal(t, 403, w.deliver(actor, []byte(body)))
	}
	gets := w.net.count("GET evil.example") + w.net.count("GET sub.evil.example")
	require.Zero(t, gets, "a blocked host is not asked for keys either")

	// A trusted board relays what a blocked author wrote.
	a := newNode(t, w.net, w.tick, 0, nil)
	w.node.follow(a)
	raw, err := integrity.Sign(asJSON(t, map[string]any{
		"@context": []any{map[string]any{"stoa": activity.Namespace}}, "id": mallory + "/a/1", "type": "Create", "actor": mallory,
		"object": map[string]any{"id": "https://evil.example/n/1", "type": "Note", "attributedTo": mallory, "to": activity.Public,
			"audience":  protocol.BoardID(a.base),
			"stoa:kind": "offer", "stoa:title": "x", "source": map[string]any{"content": "x"}, "published": "2026-11-20T10:00:00Z"},
	}), w.actors[mallory].keys.Ed25519.Signer(), mallory+"#ed25519-key", w.tick.now())
	require.NoError(t, err)
	p := a.post(nil)
	require.NoError(t, a.write(func(ctx context.Context, tx *storage.Tx) error {
		err := tx.Logs().Append(ctx, protocol.BoardID(a.base), "create", p.ID, raw)
		return err
	}))
	settle(t, w.node, a)
	require.Nil(t, w.held("https://evil.example/n/1"))
	require.Equal(t, int64(2), w.subscription(protocol.BoardID(a.base)).LastSeq, "dropped, and the log continues")
}

func TestAttack_Fetch(t *testing.T) {
	w := newWorld(t)
	good := w.actors[alice].document(t)
	answer := func(kind string, body []byte) http.HandlerFunc {
		return func(rw http.ResponseWriter, _ *http.Request) {
			rw.Header().Set("Content-Type", kind)
			_, _ = rw.Write(body)
		}
	}
	redirect := func(to string) http.HandlerFunc {
		return func(rw http.ResponseWriter, r *http.Request) { http.Redirect(rw, r, to, http.StatusFound) }
	}
	as := func(id string) []byte { return bytes.ReplaceAll(good, []byte(alice), []byte(id)) }
	host := "https://victim.example/x/"
	w.net.hosts["victim.example:8443"] = http.HandlerFunc(w.remote) // another server on the same machine
	for name, h := range map[string]http.HandlerFunc{
		"html":         answer("text/html", as(host+"html")),
		"upload":       answer("application/octet-stream", as(host+"upload")),
		"json":         answer("application/json", as(host+"json")),
		"ld-plain":     answer("application/ld+json", as(host+"ld-plain")),
		"other-id":     answer(activity.MediaType, good),
		"cross":        redirect("https://evil.example/fake"),
		"private":      redirect("http://127.0.0.1/"),
		"port":         redirect("https://victim.example:8443/port"),
		"scheme":       redirect("http://victim.example/scheme"),
		"loop":         redirect(host + "loop"),
		"inbox-away":   answer(activity.MediaType, bytes.ReplaceAll(as(host+"inbox-away"), []byte(host+"inbox-away/inbox"), []byte("https://evil.example/in"))),
		"no-actor":     answer(activity.MediaType, bytes.Replace(as(host+"no-actor"), []byte(`"Person"`), []byte(`"Note"`), 1)),
		"twice":        answer(activity.MediaType, bytes.Replace(as(host+"twice"), []byte(`"type":"Person"`), []byte(`"type":"Person","type":"Group"`), 1)),
		"huge":         answer(activity.MediaType, bytes.Repeat([]byte(" "), maxFetch+1)),
		"foreign-keys": answer(activity.MediaType, bytes.ReplaceAll(as(host+"foreign-keys"), []byte(`"owner":"`+host+"foreign-keys"), []byte(`"owner":"`+alice))),
	} {
		w.served[host+name] = h
		w.served["https://victim.example/"+name] = answer(activity.MediaType, as(host+name)) // where some redirects lead
		w.served["https://victim.example:8443/"+name] = w.served["https://victim.example/"+name]
		require.Error(t, must.Err(w.f.keyOf(t.Context(), host+name+"#main-key", false)), name)
		before := w.net.count("GET victim.example/x/" + name)
		require.Error(t, must.Err(w.f.keyOf(t.Context(), host+name+"#main-key", false)), name)
		require.Equal(t, before, w.net.count("GET victim.example/x/"+name), "not asked again: "+name)
	}
	require.LessOrEqual(t, w.net.count("GET victim.example/x/loop"), 4)
	w.served["https://evil.example/fake"] = answer(activity.MediaType, good)
	require.Zero(t, w.net.count("GET evil.example/fake"))
	must.Get(w.f.keyOf(t.Context(), alice+"#main-key", false))(t)
}

// Nothing in a document makes this node fetch: no context, no mention, no parent.
func TestAttack_NoFetchFromContent(t *testing.T) {
	w := newWorld(t)
	before := w.net.count("GET")
	body := bytes.Replace(w.note(40,
		`,"replies":"https://evil.example/r","url":"https://evil.example/u","tag":[{"type":"Mention","href":"https://evil.example/m"}]`),
		[]byte(`"https://www.w3.org/ns/activitystreams"`), []byte(`"https://evil.example/ctx"`), 1)
	require.Equal(t, 202, w.deliver(alice, body))
	chain := fmt.Sprintf(`{"id":"https://victim.example/a/41","type":"Create","actor":%q,"to":"as:Public","object":{"id":"https://victim.example/n/41",
		"type":"Note","attributedTo":%q,
		"content":"x","published":"2026-11-20T10:00:00Z","to":"as:Public","inReplyTo":"https://evil.example/endless/1"}}`, alice, alice)
	require.Equal(t, 202, w.deliver(alice, []byte(chain)))
	settle(t, w.node)
	require.Equal(t, before, w.net.count("GET"))
	require.Nil(t, w.held("https://victim.example/n/41"))
}

func TestAttack_Flags(t *testing.T) {
	w := newWorld(t)
	for i := range 5 {
		host := fmt.Sprintf("throwaway%d.example", i)
		id := "https://" + host + "/u/x"
		w.actors[id] = &actorKeys{id: id, keys: nodeKeys(100)}
		w.net.hosts[host] = http.HandlerFunc(w.remote)
		body := fmt.Sprintf(`{"id":"%s/f","type":"Flag","actor":%q,"content":"spam","object":[%q]}`, id, id, w.post.URI)
		require.Equal(t, 202, w.deliver(id, []byte(body)))
	}
	w.unharmed(1)
	require.Len(t, w.room.told, 5)
	require.Contains(t, w.room.told, "flag by throwaway0.example: spam", "for the operator to see")
	require.NoError(t, w.write(func(ctx context.Context, tx *storage.Tx) error {
		return tx.Peers().SetPolicy(ctx, storage.HostPolicy{Host: "victim.example", Policy: storage.PolicyTrusted})
	}))
	require.Equal(t, 202, w.deliver(alice, []byte(fmt.Sprintf(`{"id":"%s/f","type":"Flag","actor":%q,"content":"spam","object":[%q]}`, alice, alice, w.post.URI))))
	settle(t, w.node)
	require.Equal(t, "report by node:victim.example: spam", w.room.told[5], "of a trusted node it counts")
}

func TestAttack_Flood(t *testing.T) {
	w := newWorld(t)
	var codes []int
	for i := range int(lookUpRate.Burst) + 20 {
		host := fmt.Sprintf("s%d.evil.example", i)
		body := fmt.Sprintf(`{"id":"https://%s/f/%d","type":"Follow","actor":"https://%s/u","object":"https://u.example/ap/board"}`, host, i, host)
		r := w.request(mallory, schemeCavage, []byte(body))
		r.Header.Set("Signature", strings.Replace(r.Header.Get("Signature"), "https://evil.example", "https://"+host, 1))
		codes = append(codes, w.do(r))
	}
	require.Equal(t, 503, codes[0], "no such host answers")
	require.Equal(t, 429, codes[len(codes)-1], "sub-domains are one sender")
	require.Equal(t, 202, w.deliver(alice, w.note(50, "")), "others are not held up")
}

// Forged numbers and split views of a log.
func TestAttack_Log(t *testing.T) {
	w := newWorld(t)
	a := newNode(t, w.net, w.tick, 0, nil)
	w.node.follow(a)
	p := a.post(nil)
	settle(t, w.node, a)
	var epoch string
	a.read(func(ctx context.Context, tx *storage.Tx) (err error) {
		epoch, _, err = tx.Logs().Head(ctx, protocol.BoardID(a.base))
		return err
	})
	inner := asJSON(t, map[string]any{"id": a.base + "/x", "type": "Remove", "actor": protocol.BoardID(a.base), "object": p.URI,
		"target": protocol.BoardID(a.base) + "/posts"})
	forge := func(f *Federation, seq int64, epoch string) []byte {
		return must.Get(f.prove(f.site.Entry(epoch, seq, w.tick.now(), inner), f.site.Board(), w.tick.now()))(t)
	}
	require.Contains(t, []int{401, 403}, w.deliver(bob, forge(w.as(bob), 2, epoch)), "announced by another actor than it says")
	for name, body := range map[string][]byte{
		"far ahead":      forge(a.f, 1<<62, epoch),
		"back":           forge(a.f, 1, epoch),
		"another epoch":  forge(a.f, 1, "01zzz"),
		"split view":     forge(a.f, 1, epoch),
		"below nothing":  forge(a.f, -1, epoch),
		"beyond the end": forge(a.f, 40, epoch),
	} {
		require.True(t, a.push(w.node, body).done(), name)
		settle(t, w.node, a)
		require.Equal(t, protocol.Visible, w.state(p.URI), name)
		require.Equal(t, int64(1), w.subscription(protocol.BoardID(a.base)).LastSeq, name)
	}
	q := a.post(nil)
	settle(t, w.node, a)
	require.Equal(t, protocol.Visible, w.state(q.URI), "the true log continues")
}

func TestParseID(t *testing.T) {
	w := newWorld(t)
	for _, id := range []string{
		"https://a.example/u", "https://a.example?c=1", "https://a.example:8443/u", "https://[2001:db8::1]/u", "https://xn--bcher-kva.example/u",
	} {
		require.NoError(t, must.Err(w.f.parseID(id)), id)
	}
	for _, id := range []string{
		"", "http://a.example/u", "data:x", "javascript:1", "file:///etc/passwd", "gopher://a.example/", "ap://did:key:z/x", "/u", "u", "//a.example/u",
		"https://A.example/u", "HTTPS://a.example/u", "https://a.example./u", "https://a.example:443/u", "https://u@a.example/u", "https://u:p@a.example/u",
		"https://%61.example/u", "https://bücher.example/u", "https://a.example/\\x", "https://a.example/ x", "https:///u", "https://a.example:/u",
		"https://a.example/" + strings.Repeat("x", 2048), "https://a_b.example/",
	} {
		require.ErrorIs(t, must.Err(w.f.parseID(id)), errIdentity, id)
	}
}

func TestElsewhereNamesRealCases(t *testing.T) {
	t.Parallel()
	var ids []string
	for _, c := range attacks(t) {
		ids = append(ids, c.ID)
	}
	for id := range elsewhere {
		require.True(t, slices.Contains(ids, id), id)
	}
}
