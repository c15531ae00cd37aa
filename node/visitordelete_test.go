package node_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/node"
	"stoa/node/nodetest"
	"stoa/protocol"
)

// TestVisitor_DeletesPost: a post without an account is deleted with the secret that its answer has, also by the browser that wrote it, and by no other.
func TestVisitor_DeletesPost(t *testing.T) {
	t.Parallel()
	nodetest.Each(t, func(t *testing.T, change func(*node.Config)) {
		h := nodetest.New(t, change)
		write := func() (made protocol.MadePost) {
			h.Ask("POST", "/api/public/board", nodetest.GoodPost, "Proof-Of-Work", h.Proof("board")).Is(201).Into(&made)
			require.NotEmpty(t, made.DeleteToken)
			return made
		}
		made, other := write(), write()
		path := "/api/public/board/" + made.ID
		require.NotContains(t, h.Ask("GET", path, "").Body.String(), made.DeleteToken)
		require.Equal(t, protocol.Unauthorized, h.Ask("DELETE", path, "").Problem().Code)
		require.Equal(t, protocol.Unauthorized, h.Ask("DELETE", path, "", "Authorization", "Bearer "+other.DeleteToken).Problem().Code)
		require.Equal(t, protocol.Forbidden, h.Ask("DELETE", path, "", "Authorization", "Bearer "+h.OwnerToken(hosted(h, "asha"))).Problem().Code)
		h.Ask("GET", path, "").Is(200)
		h.Ask("DELETE", path, "", "Authorization", "Bearer "+made.DeleteToken).Is(204)
		require.Equal(t, 410, h.Ask("GET", path, "").Code)
		require.Equal(t, protocol.Gone, h.Ask("DELETE", path, "", "Authorization", "Bearer "+made.DeleteToken).Problem().Code)
		h.Ask("GET", "/api/public/board/"+other.ID, "").Is(200)

		sent := h.SendForm("/board", url.Values{"kind": {"offer"}, "title": {"Yarn"}, "body": {"Two bales of it."}, "name": {"Ravi"}, "altcha": {h.Proof("board")}})
		require.Equal(t, 303, sent.Code, "%s", sent.Body)
		page := strings.TrimPrefix(sent.Header().Get("Location"), h.Base)
		cookie, _, _ := strings.Cut(sent.Header().Get("Set-Cookie"), ";")
		press := url.Values{"do": {"delete_post"}}
		require.Contains(t, h.Ask("GET", page, "", "Accept", "text/html").Is(200).Body.String(), "delete_post")
		require.GreaterOrEqual(t, h.SendForm(page, press).Code, 400, "another browser")
		h.Ask("GET", page, "", "Accept", "text/html").Is(200)
		h.SendForm(page, press, "Cookie", cookie).Is(200)
		require.Equal(t, 410, h.Ask("GET", page, "", "Accept", "text/html").Code)
	})
}

func hosted(h *nodetest.House, handle string) string {
	h.Hosted(handle)
	return handle
}
