package nodetest

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/identity/httpsig"
	"stoa/identity/key"
	"stoa/node"
	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/protocol/pow"
	"stoa/storage"
	"stoa/storage/storagetest"
)

// A House is a node that is asked through its public handler, without a server.
type House struct {
	*node.Node
	T testing.TB
}

// On is the house for a subtest, or for a benchmark: what fails there fails t.
func (h *House) On(t testing.TB) *House { return &House{h.Node, t} }

// New makes a node of a new database that serves no socket and whose background work does not run; its database is checked
// and it is closed at the end of the test.
func New(t testing.TB, change ...func(*node.Config)) *House {
	t.Helper()
	return Open(t, Config(t, change...), slog.New(slog.DiscardHandler))
}

// Served is New on a socket of loopback, whose address is the node's.
func Served(t testing.TB, change ...func(*node.Config)) *House {
	t.Helper()
	server := httptest.NewUnstartedServer(nil)
	h := New(t, append(change, func(c *node.Config) { c.BaseURL = "http://" + server.Listener.Addr().String() })...)
	server.Config.Handler = h.Handler()
	server.Start()
	t.Cleanup(server.Close)
	return h
}

// Open makes a house of any configuration, which ends with the test.
func Open(t testing.TB, c node.Config, log *slog.Logger) *House {
	t.Helper()
	n := must.Get(node.New(context.Background(), c, log))(t)
	t.Cleanup(func() {
		if n.DB != nil { // restart has closed it
			require.NoError(t, n.DB.Check(context.Background()), "the invariants of the database hold")
		}
		require.NoError(t, n.Close())
	})
	return &House{n, t}
}

// Deployment makes a process one of those of the house.
func (h *House) Deployment(c *node.Config) {
	c.Data, c.BaseURL, c.Chain = h.Config.Data, h.Base, h.Config.Chain
}

// An Answer is an HTTP response. What is read from it fails the test when it cannot be read.
type Answer struct {
	*httptest.ResponseRecorder
	T testing.TB
}

// Into decodes the body, which is JSON.
func (a Answer) Into(v any) {
	a.T.Helper()
	require.NoError(a.T, json.Unmarshal(a.Body.Bytes(), v), "%s", a.Body)
}

// As decodes the body of an answer, which is JSON.
func As[T any](a interface{ Into(any) }) (v T) {
	a.Into(&v)
	return v
}

// Is fails the test unless the answer has a status.
func (a Answer) Is(status int) Answer {
	a.T.Helper()
	require.Equal(a.T, status, a.Code, "%s", a.Body)
	return a
}

// Problem decodes the body, which is a problem document with the status of the answer (RFC 9457).
func (a Answer) Problem() (p struct {
	Code      protocol.Code
	Status    int
	Instance  string
	Errors    []protocol.Fault
	Challenge *pow.Challenge
	Accepts   []protocol.Way
}) {
	a.T.Helper()
	require.Equal(a.T, "application/problem+json", a.Header().Get("Content-Type"), "%s", a.Body)
	a.Into(&p)
	require.Equal(a.T, a.Code, p.Status)
	require.NotEmpty(a.T, p.Instance)
	return p
}

// Request makes a request as it comes to the node; headers come in pairs.
func (h *House) Request(method, path, body string, headers ...string) *http.Request {
	r := httptest.NewRequest(method, h.Base+path, strings.NewReader(body))
	r.RequestURI = path
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	} else {
		r.Body = http.NoBody
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	return r
}

// Serve has the node answer a request.
func (h *House) Serve(r *http.Request) Answer {
	h.T.Helper()
	w := httptest.NewRecorder()
	h.Handler().ServeHTTP(w, r)
	return Answer{w, h.T}
}

// Ask sends a request; headers come in pairs.
func (h *House) Ask(method, path, body string, headers ...string) Answer {
	h.T.Helper()
	return h.Serve(h.Request(method, path, body, headers...))
}

// Sign signs a request with a body by a key, as the options say besides.
func (h *House) Sign(r *http.Request, body string, pair key.Pair, o httpsig.SignOptions) *http.Request {
	h.T.Helper()
	o.Key = pair.Signer()
	require.NoError(h.T, httpsig.SignRequest(r, must.Get(httpsig.ParseTarget(h.Base))(h.T), []byte(body), o))
	return r
}

// AskSigned is Ask, signed by a key.
func (h *House) AskSigned(pair key.Pair, method, path, body string, headers ...string) Answer {
	h.T.Helper()
	return h.Serve(h.Sign(h.Request(method, path, body, headers...), body, pair, httpsig.SignOptions{}))
}

// Metrics is what the node's monitoring reads.
func (h *House) Metrics() string {
	w := httptest.NewRecorder()
	h.OperatorHandler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	return w.Body.String()
}

// Proof solves a fresh challenge, as the base64 of the Proof-Of-Work header.
func (h *House) Proof(purpose string) string {
	h.T.Helper()
	c := As[pow.Challenge](h.Ask("GET", "/api/public/pow?purpose="+purpose, ""))
	s := must.Get(pow.Solve(context.Background(), c))(h.T)
	return s.Encode()
}

// Post posts an offer to the board as an anonymous caller.
func (h *House) Post(title string) protocol.Post {
	h.T.Helper()
	a := h.Ask("POST", "/api/public/board", fmt.Sprintf(`{"kind":"offer","title":%q,"body":"Body of it"}`, title), "Proof-Of-Work", h.Proof("board")).Is(201)
	p := As[protocol.Post](a)
	return p
}

// GoodPost is a post that is valid.
const GoodPost = `{"kind":"offer","title":"Looms","body":"Two looms."}`

// Pointers lists the fields that faults are about.
func Pointers(faults []protocol.Fault) []string {
	var all []string
	for _, f := range faults {
		all = append(all, f.Pointer)
	}
	return all
}

// Any runs a test of what is above the database as storagetest.Any does: rooms and storage have their own on both
// engines, and TestProperty, TestWalks and TestSpecification call every operation on both.
func Any(t *testing.T, test func(t *testing.T, change func(*node.Config))) {
	storagetest.Any(t, func(t *testing.T, c storage.Config) { test(t, func(of *node.Config) { of.Database = c.URL }) })
}

// AnyHouse is Any with a node of each database.
func AnyHouse(t *testing.T, test func(t *testing.T, h *House)) {
	Any(t, func(t *testing.T, change func(*node.Config)) { test(t, New(t, change)) })
}

// EachHouse is Each with a node of each database.
func EachHouse(t *testing.T, test func(t *testing.T, h *House)) {
	Each(t, func(t *testing.T, change func(*node.Config)) { test(t, New(t, change)) })
}

// Each runs a test on SQLite and, where the tests are given one, on
// PostgreSQL. change makes the node's database the engine's.
func Each(t *testing.T, test func(t *testing.T, change func(*node.Config))) {
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		test(t, func(*node.Config) {})
	})
	if os.Getenv(storagetest.PostgresEnv) == "" {
		return
	}
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		url := storagetest.PostgresURL(t)
		test(t, func(c *node.Config) { c.Database = url })
	})
}

// Signed makes a signed post of an agent of this node.
func (h *House) Signed(pair key.Pair, body string, change func(*http.Request, *httpsig.SignOptions)) Answer {
	h.T.Helper()
	r, o := h.Request("POST", "/api/public/board", body), httpsig.SignOptions{}
	if change != nil {
		change(r, &o)
	}
	return h.Serve(h.Sign(r, body, pair, o))
}

// Start runs a real node on loopback, with limits that a load does not meet.
func Start(t testing.TB, change ...func(*node.Config)) *House {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	n := must.Get(node.New(ctx, Config(t, change...), slog.New(slog.DiscardHandler)))(t)
	done := make(chan error, 1)
	go func() { done <- n.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		require.NoError(t, <-done)
	})
	return &House{n, t}
}

// Hosted puts a profile with a registered key on the node.
func (h *House) Hosted(handle string) key.Pair {
	h.T.Helper()
	ctx := context.Background()
	h.PutProfile(fmt.Appendf(nil, `{"handle":%q,"name":"Load","kind":"person"}`, handle))
	pair := must.Get(key.GenerateEd25519())(h.T)
	require.NoError(h.T, h.Admin().AddKey(ctx, handle, pair, false))
	return pair
}

// Second is another process of the deployment: on SQLite, which one process serves, the house itself.
func (h *House) Second(change ...func(*node.Config)) *House {
	h.T.Helper()
	if h.DB.Engine() == "sqlite" {
		return h
	}
	return New(h.T, append(change, h.Deployment)...)
}
