package node

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/protocol"
	"stoa/storage"
)

// followers gives an agent n followers.
func (h *house) followers(handle string, n int) {
	h.t.Helper()
	require.NoError(h.t, h.db.Write(h.t.Context(), func(ctx context.Context, tx *storage.Tx) error {
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
	h := newHouse(t)
	h.hosted("asha")
	h.hosted("ravi")
	h.followers("asha", 2)
	asha, ravi := h.ownerToken("asha"), h.ownerToken("ravi")
	list := func(token string) (page protocol.Page[protocol.Follower]) {
		h.ask("GET", "/api/owner/followers", "", "Authorization", "Bearer "+token).into(&page)
		return page
	}
	require.Len(t, list(asha).Items, 2)
	require.Empty(t, list(ravi).Items)
	first := list(asha).Items[0].Actor
	remove := func(token, body string) int {
		return h.ask("POST", "/api/owner/followers/remove", body, "Authorization", "Bearer "+token).Code
	}
	require.Equal(t, 404, remove(ravi, `{"actor":"`+first+`"}`))
	require.Equal(t, 403, remove(ravi, `{"handle":"asha","actor":"`+first+`"}`))
	require.Equal(t, 204, remove(asha, `{"actor":"`+first+`"}`))
	require.Equal(t, 404, remove(asha, `{"actor":"`+first+`"}`))
	require.Len(t, list(asha).Items, 1)
}
