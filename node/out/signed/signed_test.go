package signed_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/identity/httpsig"
	"stoa/identity/key"
	"stoa/node/out/signed"
	"stoa/protocol/must"
)

type memory struct {
	mu    sync.Mutex
	forms map[string]string
}

func (m *memory) Form(_ context.Context, host string) (string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.forms[host], nil
}

func (m *memory) Keep(_ context.Context, host, form string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.forms[host] = form
	return nil
}

// keys resolves the one key of the node.
type keys struct{ pair key.Pair }

func (k keys) Resolve(context.Context, httpsig.KeyRequest) (httpsig.Resolved, error) {
	found, err := httpsig.NewKey(k.pair.Public())
	return httpsig.Resolved{Key: found}, err
}

// form tells the form of a request, "" without a signature.
func form(r *http.Request) string {
	switch agent, input := r.Header.Get("Signature-Agent"), r.Header.Get("Signature-Input"); {
	case input == "":
		return ""
	case !strings.HasPrefix(agent, "sig1="):
		return "string"
	case strings.Contains(input, `;key="sig1"`):
		return "member"
	}
	return "field"
}

// TestClient: reads are signed with the node's key; a host that wants another form, or no signature, is served from the second read on
// with one request, also by the next process; what is no read is left as it is.
func TestClient(t *testing.T) {
	t.Parallel()
	pair := must.Get(key.GenerateEd25519())(t)
	for _, tt := range []struct {
		wants string // the form that the host takes, "none" for a host that takes what is not signed, "nothing" for one that takes nothing
		first []string
		then  string
	}{
		{"field", []string{"field"}, "field"},
		{"member", []string{"field", "member"}, "member"},
		{"string", []string{"field", "member", "string"}, "string"},
		{"none", []string{"field", "member", "string", ""}, ""},
		{"nothing", []string{"field", "member", "string", ""}, ""},
	} {
		t.Run(tt.wants, func(t *testing.T) {
			t.Parallel()
			var mu sync.Mutex
			var asked []string
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				got := form(r)
				mu.Lock()
				asked = append(asked, got)
				mu.Unlock()
				if got != "" {
					m := must.Get(httpsig.FromRequest(r, httpsig.NewTarget("http", r.Host)))(t)
					v := httpsig.Verifier{Keys: keys{pair}, Now: time.Now, AllowLoopback: true}
					res := must.Get(v.Verify(r.Context(), &m, nil, httpsig.ReadPolicy()))(t)
					if res.Thumbprint != pair.Thumbprint() {
						t.Errorf("signed with %s", res.Thumbprint)
					}
				}
				if got != tt.wants && (got != "" || tt.wants != "none") {
					w.WriteHeader(http.StatusUnauthorized)
				}
			}))
			defer server.Close()
			kept := &memory{forms: map[string]string{}}
			client := func() *http.Client {
				return (&signed.Signer{Key: pair, Base: "https://n1.example", Memory: kept}).Client(server.Client())
			}
			read := func(c *http.Client, method string, head http.Header) (status int, seen []string) {
				mu.Lock()
				asked = nil
				mu.Unlock()
				r := must.Get(http.NewRequestWithContext(t.Context(), method, server.URL+"/a?b=c", nil))(t)
				r.Header = head
				res := must.Get(c.Do(r))(t)
				res.Body.Close()
				mu.Lock()
				defer mu.Unlock()
				return res.StatusCode, asked
			}
			want := map[bool]int{true: 401, false: 200}[tt.wants == "nothing"]
			c := client()
			status, seen := read(c, "GET", http.Header{})
			require.Equal(t, tt.first, seen)
			require.Equal(t, want, status)
			for _, again := range []*http.Client{c, client()} {
				status, seen = read(again, "HEAD", http.Header{})
				require.Equal(t, []string{tt.then}, seen, "remembered")
				require.Equal(t, want, status)
			}
			_, seen = read(c, "GET", http.Header{"Authorization": {"Bearer x"}})
			require.Equal(t, []string{""}, seen, "who has other credentials speaks for another")
			_, seen = read(c, "POST", http.Header{})
			require.Equal(t, []string{""}, seen)
		})
	}
}
