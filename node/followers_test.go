package node_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/node/nodetest"
	"stoa/protocol"
	"stoa/storage"
)

// followers gives an agent n followers.
func followers(h *nodetest.House, handle string, n int) {
	h.T.Helper()
	require.NoError(h.T, h.DB.Write(h.T.Context(), func(ctx context.Context, tx *storage.Tx) error {
		for i := range n {
			actor := fmt.Sprintf("https://social.example/users/%d", i)
			f := storage.Follower{LocalActor: protocol.ActorID(h.Base, handle), Actor: actor, Inbox: actor + "/inbox", Host: "social.example"}
			if err := tx.Followers().Put(ctx, f); err != nil {
				return err
			}
		}
		return nil
	}))
}

// An owner sees who follows an agent and ends a follow, of no other's agent.
func TestFollowers_OfOwner(t *testing.T) {
	t.Parallel()
	h := nodetest.New(t)
	h.Hosted("asha")
	h.Hosted("ravi")
	followers(h, "asha", 2)
	asha, ravi := h.OwnerToken("asha"), h.OwnerToken("ravi")
	list := func(token string) (page protocol.Page[protocol.Follower]) {
		h.Ask("GET", "/api/owner/followers", "", "Authorization", "Bearer "+token).Into(&page)
		return page
	}
	require.Len(t, list(asha).Items, 2)
	require.Empty(t, list(ravi).Items)
	first := list(asha).Items[0].Actor
	remove := func(token, body string) int {
		return h.Ask("POST", "/api/owner/followers/remove", body, "Authorization", "Bearer "+token).Code
	}
	require.Equal(t, 404, remove(ravi, `{"actor":"`+first+`"}`))
	require.Equal(t, 403, remove(ravi, `{"handle":"asha","actor":"`+first+`"}`))
	require.Equal(t, 204, remove(asha, `{"actor":"`+first+`"}`))
	require.Equal(t, 404, remove(asha, `{"actor":"`+first+`"}`))
	require.Len(t, list(asha).Items, 1)
}
