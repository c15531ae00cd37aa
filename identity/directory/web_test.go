package directory

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/identity/httpsig"
	"stoa/identity/key"
	"stoa/protocol"
	"stoa/protocol/must"
)

// web is an internet of HTTP servers in memory, so that everything happens in
// the fake time of a synctest bubble: one real server, asked for many hosts. TLS
// is left out.
type web struct {
	conns  chan net.Conn
	closed chan struct{}
	close  func()

	mu    sync.Mutex
	pages map[string]http.HandlerFunc // by URL
	hits  map[string]int
}

func newWeb(t *testing.T) *web {
	w := &web{conns: make(chan net.Conn), closed: make(chan struct{}), pages: map[string]http.HandlerFunc{}, hits: map[string]int{}}
	w.close = sync.OnceFunc(func() { close(w.closed) })
	s := httptest.NewUnstartedServer(w)
	s.Listener.Close()
	s.Listener = w
	s.Start()
	t.Cleanup(s.Close)
	return w
}

func (w *web) Accept() (net.Conn, error) {
	select {
	case c := <-w.conns:
		return c, nil
	case <-w.closed:
		return nil, net.ErrClosed
	}
}

func (w *web) Close() error   { w.close(); return nil }
func (w *web) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 443} }

func (w *web) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	select {
	case w.conns <- theirs:
		return ours, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-w.closed:
		return nil, net.ErrClosed
	}
}

func (w *web) client(t *testing.T) *http.Client {
	tr := &http.Transport{DialContext: w.dial, DialTLSContext: w.dial}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr}
}

func (w *web) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	url := "https://" + r.Host + r.RequestURI
	w.mu.Lock()
	w.hits[url]++
	page := w.pages[url]
	w.mu.Unlock()
	if page == nil {
		http.NotFound(rw, r)
		return
	}
	page(rw, r)
}

func (w *web) put(url string, page http.HandlerFunc) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pages[url] = page
}

func (w *web) count(url string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.hits[url]
}

// run starts a cache and stops it with the test.
func run(t *testing.T, cfg Config) *Cache {
	t.Helper()
	c := must.Get(New(cfg))(t)
	runFor(t, c)
	synctest.Wait()
	return c
}

func runFor(t *testing.T, c *Cache) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		require.NoError(t, <-done)
	})
	t.Cleanup(stop)
	return stop
}

func origin(host string) httpsig.AgentRef {
	return httpsig.AgentRef{Form: httpsig.AgentOrigin, URL: "https://" + host}
}

func jwks(url string) httpsig.AgentRef {
	return httpsig.AgentRef{Form: httpsig.AgentJWKS, URL: url}
}

func cimd(url string) httpsig.AgentRef {
	return httpsig.AgentRef{Form: httpsig.AgentCard, URL: url}
}

func wellKnownOf(host string) string { return "https://" + host + httpsig.DirectoryPath }

func newPair(t testing.TB) key.Pair {
	t.Helper()
	return must.Get(key.GenerateEd25519())(t)
}

func setOf(t testing.TB, pairs ...key.Pair) string {
	t.Helper()
	var keys []key.Public
	for _, p := range pairs {
		keys = append(keys, p.Published())
	}
	b := must.Get(key.MarshalSet(keys))(t)
	return string(b)
}

// answer serves body with a media type and any further header fields.
func answer(media, body string, fields ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", media)
		for i := 0; i < len(fields); i += 2 {
			w.Header().Add(fields[i], fields[i+1])
		}
		w.Write([]byte(body))
	}
}

func status(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
}

// known requires that the lookup finds the key of the pair.
func known(t *testing.T, c *Cache, ref httpsig.AgentRef, p key.Pair) {
	t.Helper()
	k := must.Get(c.Lookup(ref, p.Thumbprint(), time.Now()))(t)
	require.Equal(t, p.Thumbprint(), k.Thumbprint())
}

// unknown requires that the lookup fails for the reason, to be tried again after
// wait.
func unknown(t *testing.T, c *Cache, ref httpsig.AgentRef, p key.Pair, code httpsig.Code, wait time.Duration) *protocol.Error {
	t.Helper()
	k, err := c.Lookup(ref, p.Thumbprint(), time.Now())
	require.Nil(t, k)
	require.IsType(t, (*protocol.Error)(nil), err)
	e := err.(*protocol.Error)
	require.Equal(t, protocol.KeyUnknown, e.Code)
	f, ok := errors.AsType[*Failure](err)
	require.True(t, ok)
	require.Equal(t, code, f.Code, "%v", f)
	require.ErrorIs(t, err, code)
	require.Equal(t, wait, e.RetryAfter, e.Detail)
	require.Contains(t, e.Signature, "error=")
	return e
}

// fetched looks a key up twice: the first time sets the fetch off.
func fetched(t *testing.T, c *Cache, ref httpsig.AgentRef, p key.Pair) {
	t.Helper()
	require.Contains(t, unknown(t, c, ref, p, httpsig.CodeKeyUnknown, fetchSoon).Detail, "is being fetched; send the request again")
	synctest.Wait()
	known(t, c, ref, p)
}

// bubble runs f in fake time.
func bubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, f)
}
