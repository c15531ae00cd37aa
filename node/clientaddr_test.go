package node

import (
	"net/http/httptest"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestClientAddr reads the hops of trusted proxies, from the right, in every form
// that proxies write.
func TestClientAddr(t *testing.T) {
	t.Parallel()
	trusted := []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("10.0.0.0/8")}
	for _, c := range []struct{ hops, want string }{
		{"", "127.0.0.1"},
		{"192.0.2.7", "192.0.2.7"},
		{"192.0.2.7:99", "192.0.2.7"},
		{"[2001:db8::7]:99", "2001:db8::7"},
		{"[2001:db8::7]", "2001:db8::7"},
		{"2001:db8::7", "2001:db8::7"},
		{"203.0.113.1, 192.0.2.7:99", "192.0.2.7"},
		{"192.0.2.7, 10.1.1.1:4000", "192.0.2.7"},
		{"192.0.2.7, unknown, 10.1.1.1", "10.1.1.1"},
		{"192.0.2.7, [nonsense], 10.1.1.1:1", "10.1.1.1"},
	} {
		r := httptest.NewRequest("GET", "/", nil)
		r.RemoteAddr = "127.0.0.1:4711"
		r.Header.Set("X-Forwarded-For", c.hops)
		require.Equal(t, c.want, clientAddr(r, trusted).String(), c.hops)
	}
	r := httptest.NewRequest("GET", "/", nil)
	r.RemoteAddr = "203.0.113.9:1"
	r.Header.Set("X-Forwarded-For", "192.0.2.7:99")
	require.Equal(t, "203.0.113.9", clientAddr(r, trusted).String(), "who is no proxy is not believed")
}
