package node_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/node/hall"
	"stoa/node/nodetest"
	"stoa/protocol"
)

// TestBrowserOnly: what no token can do is declared so, and the reference and the OpenAPI description
// say it; nothing else refuses a token that may do everything.
func TestBrowserOnly(t *testing.T) {
	t.Parallel()
	h := nodetest.New(t)
	h.Hosted("asha")
	secret := h.OwnerToken("asha")
	account := nodetest.As[protocol.Account](h.Ask("GET", "/api/owner/account", "", "Authorization", "Bearer "+secret))
	var doc struct {
		Paths map[string]map[string]struct {
			OperationID string `json:"operationId"`
			Security    []map[string][]string
		}
	}
	h.Ask("GET", "/openapi.json?for=all", "").Into(&doc)
	security := map[string]string{}
	for _, methods := range doc.Paths {
		for _, op := range methods {
			raw, err := json.Marshal(op.Security)
			require.NoError(t, err)
			security[op.OperationID] = string(raw)
		}
	}
	raw, err := os.ReadFile("../docs/reference/operations.md")
	require.NoError(t, err)
	reference := string(raw)
	n := 0
	for _, op := range protocol.Operations() {
		if op.For != protocol.Owners || op.Upload > 0 || op.Doors&protocol.HTTP == 0 {
			continue
		}
		c := protocol.Caller{Standing: protocol.Session, Account: account.ID, Secret: protocol.NewID(protocol.TokenID, time.Now()), Handle: "asha",
			Handles: []string{"asha"}, Network: "n"}
		_, err := h.Table.Invoke(t.Context(), hall.Request{Op: op.Name, Args: nodetest.Encoded(op.Example), Door: "test", Caller: &c})
		require.Equal(t, op.Browser, err != nil && strings.Contains(err.Error(), "a token cannot do this"), "%s: %v", op.Name, err)
		_, section, found := strings.Cut(reference, "\n## "+op.Name+"\n")
		require.True(t, found, op.Name)
		section, _, _ = strings.Cut(section, "\n## ")
		require.Equal(t, op.Browser, strings.Contains(section[:min(len(section), 900)], "a browser that signed in lately"), op.Name)
		require.Equal(t, op.Browser, security[op.Name] == `[{"browser":[]}]`, "%s: %s", op.Name, security[op.Name])
		if op.Browser {
			n++
		}
	}
	require.Equal(t, 10, n)
}
