package webhook_test

import (
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/identity/httpsig"
	"stoa/identity/key"
	"stoa/node/out/outbound"
	"stoa/node/out/signed"
	"stoa/node/out/webhook"
	"stoa/protocol/must"
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
	pair := must.Get(key.GenerateEd25519())(t)
	return &webhook.Sender{
		Client: outbound.New(outbound.Options{AllowPrivate: private, Timeout: time.Minute}),
		Sign:   &signed.Signer{Key: pair, Base: "https://n1.example"}, Private: private,
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
		v := &httpsig.Verifier{Keys: knows{s.Sign.Key}, Now: time.Now, AllowLoopback: true}
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
		case "/announced", "/gone-announced": // more than anyone reads
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

// TestSend_FormsOfSignatureAgent: the usual form is one that the npm clients
// verify. A receiver that wants another gets it with the next try, and from then on.
func TestSend_FormsOfSignatureAgent(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		wants signed.Form
		first signed.Form
		tries int
	}{
		{signed.FormField, "", 1}, {signed.FormMember, "", 2}, {signed.FormString, "", 3},
		{signed.FormString, signed.FormString, 1}, {signed.FormField, signed.FormString, 2},
	} {
		s := sender(t, true)
		s.Sign.First = tt.first
		receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			got := signed.FormField
			if strings.HasPrefix(r.Header.Get("Signature-Agent"), `"`) {
				got = signed.FormString
			} else if strings.Contains(r.Header.Get("Signature-Input"), `"signature-agent";key="sig1"`) {
				got = signed.FormMember
			}
			body, _ := io.ReadAll(r.Body)
			m, err := httpsig.FromRequest(r, httpsig.NewTarget("http", r.Host))
			if err == nil {
				v := &httpsig.Verifier{Keys: knows{s.Sign.Key}, Now: time.Now, AllowLoopback: true}
				_, err = v.Verify(r.Context(), &m, body, httpsig.WritePolicy())
			}
			if err != nil {
				t.Error(got, err)
			}
			if got != tt.wants {
				w.WriteHeader(http.StatusUnauthorized)
			}
		}))
		for n := range tt.tries + 3 {
			err := s.Send(t.Context(), receiver.URL, "id", []byte("{}"))
			if n < tt.tries-1 {
				require.ErrorIs(t, err, webhook.ErrRetry)
			} else {
				require.NoError(t, err, "%v after %d tries", tt, n)
			}
		}
		receiver.Close()
	}
}

// TestForms_Captured: the vectors were signed by this code and verified by the npm
// packages, whose verdicts they carry. What is signed today is the same to the byte.
func TestForms_Captured(t *testing.T) {
	t.Parallel()
	raw := must.Get(os.ReadFile("testdata/npm-verdicts.json"))(t)
	var file struct {
		Cases []struct {
			Body, URL string
			Form      signed.Form
			Created   int64
			Headers   map[string]string
			WBA       bool `json:"accepted_by_web_bot_auth_0_1_3"`
			HMS       bool `json:"accepted_by_http_message_sig_0_3_0"`
		}
	}
	require.NoError(t, json.Unmarshal(raw, &file))
	require.Len(t, file.Cases, 6)
	seed := must.Get(base64.RawURLEncoding.DecodeString("n4Ni-HpISpVObnQMW0wOhCKROaIKqKtW_2ZYb2p9KcU"))(t) // RFC 9421 test-key-ed25519
	for _, c := range file.Cases {
		r := must.Get(http.NewRequest("POST", c.URL, strings.NewReader(c.Body)))(t)
		for _, name := range []string{"Content-Type", "Webhook-Id", "Signature-Agent"} {
			r.Header.Set(name, c.Headers[name])
		}
		require.NoError(t, httpsig.SignRequest(r, httpsig.NewTarget("https", "agent.example"), []byte(c.Body), httpsig.SignOptions{
			Key: ed25519.NewKeyFromSeed(seed), Created: time.Unix(c.Created, 0), TTL: 5 * time.Minute, Nonce: "c3RvYSB3ZWJob29rIDE",
			Extra: []string{"webhook-id"}, WholeAgent: c.Form == signed.FormField,
		}))
		for name, want := range c.Headers {
			require.Equal(t, want, r.Header.Get(name), name)
		}
		require.True(t, c.HMS, c.Form)
		require.Equal(t, c.Form != signed.FormMember, c.WBA, c.Form)
	}
}
