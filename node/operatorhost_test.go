package node_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/node"
	"stoa/node/nodetest"
)

// TestOperatorHosts: a page that had its own name lead to the operator's address
// reads nothing there.
func TestOperatorHosts(t *testing.T) {
	t.Parallel()
	n := nodetest.Start(t, func(c *node.Config) { c.OperatorListen, c.OperatorHosts = "127.0.0.1:0", []string{"stoa-a.internal"} })
	get := func(host, path string) *http.Response {
		r, err := http.NewRequest("GET", "http://"+n.OperatorAddr().String()+path, nil)
		require.NoError(t, err)
		r.Host = host
		res, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		res.Body.Close()
		require.Equal(t, "nosniff", res.Header.Get("X-Content-Type-Options"), host)
		return res
	}
	for _, host := range []string{
		"evil.example", "evil.example:8081", "127.0.0.1.evil.example", "localhost.evil.example", "evillocalhost", "stoa-a.internal.evil.example",
	} {
		for _, path := range []string{"/metrics", "/debug/pprof/goroutine?debug=2", "/healthz"} {
			require.Equal(t, 421, get(host, path).StatusCode, host+path)
		}
	}
	for _, host := range []string{
		"127.0.0.1:8081", "localhost", "LOCALHOST:8081", "a.localhost:1", "[::1]:8081", "192.0.2.7", "stoa-a.internal:8081", "Stoa-A.internal",
	} {
		for _, path := range []string{"/metrics", "/healthz"} {
			require.NotEqual(t, 421, get(host, path).StatusCode, host+path) // 500 while the database is busy
		}
	}
	for _, name := range []string{"", "a:1", "http://a", "a b"} {
		require.ErrorContains(t, node.Config{Listen: "127.0.0.1:0", Data: "d", OperatorHosts: []string{name}}.Validate(), "operator-hosts")
	}
	require.True(t, node.Config{OperatorListen: "ops.internal:8081"}.TakesHost("ops.internal:8081"), "the name it listens on")
	require.False(t, node.Config{}.TakesHost(""))
}
