package directory_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/node/nodetest"
	"stoa/protocol"
	"stoa/storage"
)

// TestProfileState: a profile that is not shown is found by nobody but its owner, by no operation, page or document; its owner reads and
// changes it, and writes to nobody as it.
func TestProfileState(t *testing.T) {
	t.Parallel()
	nodetest.AnyHouse(t, func(t *testing.T, h *nodetest.House) {
		token := h.Business("spice-house", `,"headline":"Cardamom by the kilo"`)
		owner := []string{"Authorization", "Bearer " + token}
		pair := h.Hosted("asha")
		set := func(handle string, state protocol.ProfileState, reason string) {
			require.NoError(t, h.DB.Write(t.Context(), func(ctx context.Context, tx *storage.Tx) error {
				return h.Directory.SetState(ctx, tx, handle, state, reason)
			}))
		}
		var paths []string
		for _, op := range protocol.Operations() {
			if op.For == protocol.Everybody && op.HTTP.Method == "GET" && strings.Contains(op.HTTP.Path, "{handle}") && !op.Streams() {
				paths = append(paths, op.HTTP.Path)
			}
		}
		paths = append(paths, "/@{handle}", "/a2a/{handle}/agent-card.json", "/ap/agents/{handle}", "/ap/agents/{handle}/outbox",
			"/@{handle}/proof", "/api/public/agents/{handle}/proof", "/a2a/{handle}/agent-card.json/proof",
			"/.well-known/webfinger?resource=acct:{handle}@"+strings.TrimPrefix(h.Base, "http://"))
		lists := []string{"/api/public/agents?q=spice", "/api/public/merchants?q=spice", "/agents", "/merchants", "/sitemap.xml", "/api/public/feed"}
		seen := map[string]int{}
		for _, path := range paths {
			seen[path] = h.Ask("GET", strings.ReplaceAll(path, "{handle}", "spice-house"), "").Code
		}
		require.Equal(t, 200, seen["/api/public/agents/{handle}"])
		require.Greater(t, len(paths), 8)

		for _, state := range []protocol.ProfileState{protocol.ProfilePending, protocol.ProfileSuspended, protocol.ProfileLeaving} {
			set("spice-house", state, "for a reason")
			for _, path := range paths {
				if seen[path] == 200 {
					a := h.Ask("GET", strings.ReplaceAll(path, "{handle}", "spice-house"), "")
					require.Equal(t, 404, a.Code, "%s: %s: %s", state, path, a.Body)
				}
			}
			for _, path := range lists {
				require.NotContains(t, h.Ask("GET", path, "").Is(200).Body.String(), "spice-house", path)
			}
			h.Ask("GET", "/api/owner/profile", "", owner...).Is(200)
			h.Ask("GET", "/api/owner/merchant", "", owner...).Is(200)
			a := h.Ask("POST", "/api/public/board", `{"kind":"offer","title":"Cardamom","body":"By the kilo."}`, owner...)
			require.Equal(t, protocol.Forbidden, a.Problem().Code)
			require.Contains(t, a.Body.String(), "@spice-house")
		}
		set("spice-house", protocol.ProfilePending, "")
		h.Ask("PUT", "/api/owner/profile", `{"handle":"spice-house","name":"Spice House","kind":"business","headline":"Cardamom and more"}`, owner...).Is(200)
		require.Equal(t, 404, h.Ask("GET", "/api/public/agents/spice-house", "").Code, "an edit shows nothing")
		set("spice-house", "", "")
		for _, path := range paths {
			require.Equal(t, seen[path], h.Ask("GET", strings.ReplaceAll(path, "{handle}", "spice-house"), "").Code, path)
		}
		require.Contains(t, h.Ask("GET", "/api/public/merchants?q=cardamom", "").Body.String(), "Cardamom and more")
		h.Ask("POST", "/api/public/board", `{"kind":"offer","title":"Cardamom","body":"By the kilo."}`, owner...).Is(201)

		set("asha", protocol.ProfileSuspended, "")
		require.Equal(t, 403, h.Signed(pair, nodetest.GoodPost, nil).Code, "nor with its key")
		set("asha", "", "")
		h.Signed(pair, nodetest.GoodPost, nil).Is(201)
	})
}
