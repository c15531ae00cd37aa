package webhook_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/identity/httpsig"
	"stoa/identity/key"
	"stoa/node/outbound"
	"stoa/node/webhook"
)

type knows struct{ key.Pair }

func (k knows) Resolve(_ context.Context, q httpsig.KeyRequest) (httpsig.Resolved, error) {
	if q.Params.KeyID != k.Thumbprint() {
		return httpsig.Resolved{}, httpsig.CodeKeyUnknown
	}
	found, err := httpsig.NewKey(k.Public())
	return httpsig.Resolved{Key: found}, err
}

func sender(t *testing.T, private bool) *webhook.Sender {
	t.Helper()
	pair, err := key.GenerateEd25519()
	require.NoError(t, err)
	return &webhook.Sender{
		Client: outbound.New(outbound.Options{AllowPrivate: private, Timeout: 2 * time.Second}),
		Key:    pair, Base: "https://n1.example", Private: private,
	}
}

// TestSend_Signed checks the request as its receiver does: RFC 9421, covering
// what it says, under the key that the node publishes.
func TestSend_Signed(t *testing.T) {
	t.Parallel()
	s := sender(t, true)
	var got *http.Request
	var verdict error
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r
		body, _ := io.ReadAll(r.Body)
		m, err := httpsig.FromRequest(r, httpsig.NewTarget("http", r.Host))
		if err != nil {
			verdict = err
			return
		}
		v := &httpsig.Verifier{Keys: knows{s.Key}, Now: time.Now, AllowLoopback: true}
		_, verdict = v.Verify(r.Context(), &m, body, httpsig.WritePolicy())
		require.Equal(t, `{"type":"x"}`, string(body))
		w.WriteHeader(http.StatusAccepted)
	}))
	t.Cleanup(receiver.Close)
	require.NoError(t, s.Send(t.Context(), receiver.URL+"/hook?x=1", "msg_1", []byte(`{"type":"x"}`)))
	require.NoError(t, verdict)
	require.Equal(t, "msg_1", got.Header.Get("Webhook-Id"))
	require.Equal(t, "application/json", got.Header.Get("Content-Type"))
	require.Equal(t, `sig1="https://n1.example"`, got.Header.Get("Signature-Agent"))
	for _, covered := range []string{`"@method"`, `"@target-uri"`, `"content-digest"`, `"webhook-id"`, `"signature-agent"`} {
		require.Contains(t, got.Header.Get("Signature-Input"), covered)
	}
}

func TestSend_Outcomes(t *testing.T) {
	t.Parallel()
	s := sender(t, true)
	var elsewhere atomic.Int64
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere.Add(1) }))
	t.Cleanup(other.Close)
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/gone":
			w.WriteHeader(http.StatusGone)
		case "/later":
			w.Header().Set("Retry-After", "90")
			w.WriteHeader(http.StatusServiceUnavailable)
		case "/much-later":
			w.Header().Set("Retry-After", "99999999999")
			w.WriteHeader(http.StatusTooManyRequests)
		case "/missing":
			w.WriteHeader(http.StatusNotFound)
		case "/redirect":
			http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
		case "/moved":
			http.Redirect(w, r, other.URL, http.StatusFound)
		case "/long":
			io.WriteString(w, strings.Repeat("x", 1<<20))
		case "/announced", "/gone-announced": // more than anybody reads
			w.Header().Set("Content-Length", "1099511627776")
			if r.URL.Path == "/gone-announced" {
				w.WriteHeader(http.StatusGone)
			}
			io.WriteString(w, strings.Repeat("x", 1<<16))
		}
	}))
	t.Cleanup(receiver.Close)
	for _, tt := range []struct {
		path   string
		kind   error
		status int
		after  time.Duration
	}{
		{"/gone", webhook.ErrGone, 410, 0},
		{"/gone-announced", webhook.ErrGone, 410, 0},
		{"/later", webhook.ErrRetry, 503, 90 * time.Second},
		{"/much-later", webhook.ErrRetry, 429, 6 * time.Hour},
		{"/missing", webhook.ErrRetry, 404, 0},
		{"/redirect", webhook.ErrRetry, 307, 0},
		{"/moved", webhook.ErrRetry, 302, 0},
	} {
		err := s.Send(t.Context(), receiver.URL+tt.path, "id", []byte("{}"))
		require.ErrorIs(t, err, tt.kind, tt.path)
		f, ok := errors.AsType[*webhook.Failure](err)
		require.True(t, ok)
		require.Equal(t, tt.status, f.Status, tt.path)
		require.Equal(t, tt.after, f.RetryAfter, tt.path)
	}
	for _, path := range []string{"/long", "/announced"} {
		require.NoError(t, s.Send(t.Context(), receiver.URL+path, "id", []byte("{}")), "an answer is read in part and taken")
	}
	require.Zero(t, elsewhere.Load(), "redirects are not followed")
	receiver.Close()
	require.ErrorIs(t, s.Send(t.Context(), receiver.URL, "id", []byte("{}")), webhook.ErrRetry, "nobody there")
}

// TestSend_Refuses names addresses that are never connected to, and shows that
// the refusal does not say where a name leads.
func TestSend_Refuses(t *testing.T) {
	t.Parallel()
	s := sender(t, false)
	var hits atomic.Int64
	receiver := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { hits.Add(1) }))
	t.Cleanup(receiver.Close)
	for _, address := range []string{
		receiver.URL, "http://example.com/", "https://127.0.0.1/", "https://[::1]/", "https://10.0.0.7/", "https://169.254.169.254/latest",
		"https://localhost/", "https://user:secret@example.com/", "https://example.com:8443/", "https://example.com/#x", "ftp://example.com/", "::", "",
		"https://[::ffff:10.0.0.7]/", "https://[64:ff9b::a00:7]/",
	} {
		err := s.Send(t.Context(), address, "id", []byte("{}"))
		require.ErrorIs(t, err, webhook.ErrRefused, address)
		for _, secret := range []string{"10.0.0.7", "127.0.0.1", "secret", "private"} {
			require.NotContains(t, err.Error(), secret)
		}
	}
	require.Zero(t, hits.Load())
}
