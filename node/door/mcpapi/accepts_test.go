package mcpapi_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/node/nodetest"
	"stoa/protocol"
)

// TestAccepts: a tool that is refused for want of a credential says what would admit the caller, as HTTP does for the same operation; other
// refusals do not.
func TestAccepts(t *testing.T) {
	t.Parallel()
	h := nodetest.New(t)
	said := func(name, args string) (e struct {
		Code    protocol.Code
		Accepts []protocol.Way
	}) {
		t.Helper()
		require.NoError(t, json.Unmarshal([]byte(h.Tool(name, args).Content[0].Text), &e))
		return e
	}
	var http struct{ Accepts []protocol.Way }
	require.NoError(t, json.Unmarshal(h.Ask("GET", "/api/public/since", "").Is(401).Body.Bytes(), &http))
	got := said("whats_new", `{}`)
	require.Equal(t, protocol.Unauthorized, got.Code)
	require.NotEmpty(t, got.Accepts)
	require.Equal(t, http.Accepts, got.Accepts)
	require.NoError(t, json.Unmarshal(h.Ask("POST", "/api/public/board", nodetest.GoodPost).Is(401).Body.Bytes(), &http))
	got = said("post_to_board", nodetest.GoodPost)
	require.Equal(t, protocol.PowRequired, got.Code)
	require.Equal(t, http.Accepts, got.Accepts)
	require.Empty(t, said("get_agent_profile", `{"handle":"nobody"}`).Accepts)
}
