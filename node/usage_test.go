package node_test

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/node"
	"stoa/node/nodetest"
	"stoa/protocol/pow"
)

// TestUsage is of two processes on one database: what a network took at one is
// taken at the other, and what it paid there raises its price.
func TestUsage(t *testing.T) {
	t.Parallel()
	nodetest.Each(t, func(t *testing.T, change func(*node.Config)) {
		slow := func(c *node.Config) { c.Dev, c.WriteRate = false, 0.001 } // one write, and the next in a quarter of an hour
		h := nodetest.New(t, change, slow)
		two := h.Second(change, slow)
		if h.DB.Engine() == "sqlite" { // which one process serves
			require.Nil(t, h.Usage())
			return
		}
		here, there := h.Usage(), two.Usage()
		exchange := func() {
			require.NoError(t, here.Exchange(t.Context()))
			require.NoError(t, there.Exchange(t.Context()))
		}
		write := func(at *nodetest.House, address string) int {
			return at.From(address, "POST", "/api/public/board", nodetest.GoodPost).Code
		}
		level := func(at *nodetest.House, address string) int {
			var c struct{ Hint struct{ Level int } }
			at.From(address, "GET", "/api/public/pow?purpose=board", "").Into(&c)
			return c.Hint.Level
		}
		exchange()
		require.Zero(t, here.Sent, "nobody is busy")

		require.Equal(t, 401, write(h, "203.0.113.5"))
		require.Equal(t, 429, write(h, "203.0.113.5"))
		for range 5 {
			h.Table.Gate.Proofs.Paid(h.Keys.Networks.Of(netip.MustParseAddr("203.0.113.6")), pow.Parameters{}, nil)
		}
		require.Equal(t, 2, level(two, "203.0.113.6"))
		exchange()
		require.Equal(t, 429, write(two, "203.0.113.5"), "what was taken at one is taken at the other")
		require.Equal(t, 401, write(two, "203.0.113.7"))
		require.Equal(t, 3, level(h, "203.0.113.6"))
		require.Equal(t, 3, level(two, "203.0.113.6"))
		exchange()
		exchange()
		require.Equal(t, 3, level(two, "203.0.113.6"), "what was told is added once")
		require.EqualValues(t, 1, here.Sent)
		require.EqualValues(t, 1, there.Sent, "the write of 203.0.113.7, and nothing that it was told")
	})
}
