package federation

import (
	"net/http"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/protocol/must"
)

// A fetch stays at the origin that the id names: another port or scheme of the
// host is another server.
func TestSameOriginRedirect(t *testing.T) {
	t.Parallel()
	request := func(address string) *http.Request {
		u := must.Get(url.Parse(address))(t)
		return &http.Request{URL: u}
	}
	for _, tt := range []struct {
		from, to string
		via      int
		ok       bool
	}{
		{"https://a.example/1", "https://a.example/2", 1, true},
		{"https://a.example/1", "https://a.example/2", 3, true},
		{"https://a.example/1", "https://a.example/2", 4, false},
		{"https://a.example/1", "https://b.example/1", 1, false},
		{"https://a.example/1", "https://sub.a.example/1", 1, false},
		{"https://a.example/1", "https://a.example:8443/1", 1, false},
		{"https://a.example:8443/1", "https://a.example/1", 1, false},
		{"https://a.example/1", "http://a.example/1", 1, false},
		{"http://127.0.0.1:8080/1", "http://127.0.0.1:8090/1", 1, false},
	} {
		via := []*http.Request{request(tt.from)}
		for len(via) < tt.via {
			via = append(via, request(tt.from))
		}
		err := sameOriginRedirect(request(tt.to), via)
		require.Equal(t, tt.ok, err == nil, "%s to %s after %d: %v", tt.from, tt.to, tt.via, err)
	}
}
