package node_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/node"
	"stoa/node/nodetest"
	"stoa/storage"
)

// A request that comes from a trusted proxy keeps the id that this gave it, and the jobs that it causes have it. Others get one of the node.
func TestRequestID_OfAProxy(t *testing.T) {
	t.Parallel()
	nodetest.Each(t, func(t *testing.T, change func(*node.Config)) {
		h := nodetest.New(t, change, func(c *node.Config) { c.TrustedProxies = []string{"192.0.2.0/24"} })
		h.Hosted("asha")
		ask := func(id string) nodetest.Answer {
			return h.Ask("POST", "/api/public/agents/asha/contact", `{"kind":"question","message":"Do you weave to order?"}`,
				"Proof-Of-Work", h.Proof("contact"), "X-Request-Id", id).Is(201)
		}
		require.Equal(t, "edge-0123456789", ask("edge-0123456789").Header().Get("Request-Id"))
		own := ask("not an id").Header().Get("Request-Id")
		require.NotEqual(t, "not an id", own)
		require.NotEmpty(t, own)
		var caused []string
		require.NoError(t, h.DB.Read(t.Context(), func(ctx context.Context, tx *storage.Tx) error {
			page, err := tx.Jobs().List(ctx, storage.JobWaiting, storage.SilenceJob, 10, "")
			for _, j := range page.Items {
				caused = append(caused, j.Request)
			}
			return err
		}))
		require.ElementsMatch(t, []string{"edge-0123456789", own}, caused)
	})
	h := nodetest.New(t)
	a := h.Ask("GET", "/healthz", "", "X-Request-Id", "edge-0123456789")
	require.NotEqual(t, "edge-0123456789", a.Header().Get("Request-Id"), "who is no proxy is not believed")
}
