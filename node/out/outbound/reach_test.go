package outbound

import (
	"context"
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/protocol/must"
)

// TestReach: it connects where a client may, and is refused elsewhere before it does.
func TestReach(t *testing.T) {
	t.Parallel()
	l := must.Get(net.Listen("tcp4", "127.0.0.1:0"))(t)
	defer l.Close()
	port := uint16(l.Addr().(*net.TCPAddr).Port)
	ctx := context.Background()
	require.NoError(t, Reach(ctx, Options{AllowPrivate: true}, "tcp4", "127.0.0.1", port))
	for _, o := range []Options{{}, {Ports: []uint16{port, 80}}} {
		require.ErrorContains(t, Reach(ctx, o, "tcp4", "127.0.0.1", port), "loopback")
		require.ErrorContains(t, Reach(ctx, o, "tcp4", "192.0.2.1", 22), "refused")
	}
	require.ErrorContains(t, Reach(ctx, Options{Ports: []uint16{443, 80}}, "tcp4", "9.9.9.9", 22), "port")
	var family *net.AddrError
	require.ErrorAs(t, Reach(ctx, Options{AllowPrivate: true}, "tcp6", "127.0.0.1", port), &family)
	require.NoError(t, l.Close())
	require.ErrorContains(t, Reach(ctx, Options{AllowPrivate: true}, "tcp4", "127.0.0.1", port), "refused")
}
