package node_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/node"
	"stoa/node/nodetest"
	"stoa/protocol"
)

// contract §4: the author sees why a post is hidden, over every door that knows
// the caller, and no cache keeps it for others.
func TestHidden_AuthorSeesWhy(t *testing.T) {
	t.Parallel()
	nodetest.Any(t, func(t *testing.T, change func(*node.Config)) {
		h := nodetest.New(t, change)
		pair := h.Hosted("asha")
		secret := h.TokenOf("asha", "test")
		p := nodetest.As[protocol.Post](h.Signed(pair, nodetest.GoodPost, nil))
		require.NoError(t, h.Admin().Operate(context.Background(), protocol.HidePost.Operation, protocol.Decision{ID: p.ID, Reason: "looms are off topic"}, nil))

		path := "/api/public/board/" + p.ID
		for range 2 {
			require.Equal(t, protocol.Gone, h.Ask("GET", path, "").Problem().Code)
			a := h.Ask("GET", path, "", "Authorization", "Bearer "+secret).Is(200)
			require.Equal(t, "private, no-cache", a.Header().Get("Cache-Control"))
			own := nodetest.As[protocol.PostWithReplies](a)
			require.Equal(t, protocol.Hidden, own.State)
			require.Equal(t, "operator: looms are off topic", *own.Reason)
		}
		require.Equal(t, "public, no-cache", h.Ask("GET", "/api/public/board", "").Header().Get("Cache-Control"))
		require.Equal(t, 204, h.Ask("DELETE", path, "", "Authorization", "Bearer "+secret).Code, "a hidden post can be taken back")
		require.Equal(t, protocol.Gone, h.Ask("GET", path, "", "Authorization", "Bearer "+secret).Problem().Code)
	})
}
