package node_test

import (
	"bufio"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"stoa/node"
	"stoa/node/nodetest"
	"stoa/protocol"
)

// MCPEnv names the program that signs in with released clients of MCP; make test sets it.
const MCPEnv = "STOA_TEST_MCP"

// TestConnect_Client: the TypeScript SDK and mcp-remote, as they are, go from no token to an owner's answered thread. A person presses once, in
// Chromium.
func TestConnect_Client(t *testing.T) {
	t.Parallel()
	program := os.Getenv(MCPEnv)
	if program == "" {
		t.Skip("the clients are not here; make test installs them")
	}
	for _, client := range []string{"sdk", "remote"} {
		t.Run(client, func(t *testing.T) {
			t.Parallel()
			h := nodetest.Served(t, func(c *node.Config) { c.Dev = true })
			h.Hosted("asha")
			_, link := h.OpenAccount("Asha", protocol.RoleOwner, "", "asha")
			var begun protocol.ContactReceipt
			h.Ask("POST", "/api/public/agents/asha/contact", `{"kind":"question","message":"Do you make paper?"}`, "Proof-Of-Work", h.Proof("contact")).
				Is(201).Into(&begun)
			b := nodetest.OpenBrowser(t, h.Base)
			require.Equal(t, 200, b.Load(chromedp.Navigate(link)))
			require.Equal(t, 200, b.Send("form:has([name=ticket])"))

			ctx, stop := context.WithTimeout(t.Context(), time.Minute)
			defer stop()
			cmd := exec.CommandContext(ctx, "node", program, h.Base, client, begun.ThreadID)
			cmd.Stderr = os.Stderr
			out, err := cmd.StdoutPipe()
			require.NoError(t, err)
			require.NoError(t, cmd.Start())
			var said struct {
				Open, Answer      string
				Tools             []string
				Failed, Refreshed bool
			}
			opened := 0
			for lines := bufio.NewScanner(out); lines.Scan(); {
				said.Open = ""
				require.NoError(t, json.Unmarshal(lines.Bytes(), &said), "%s", lines.Bytes())
				if said.Open == "" {
					continue
				}
				opened++
				require.Equal(t, 200, b.Load(chromedp.Navigate(said.Open)))
				require.Contains(t, b.Text("main"), "asks to act for you here")
				b.Picture("connect-" + client)
				b.Load(chromedp.Click(chromedp.CSS("#connect button[type=submit]")))
			}
			require.NoError(t, cmd.Wait())
			require.Equal(t, 1, opened)
			require.False(t, said.Failed, said.Answer)
			require.Contains(t, said.Answer, "By "+client)
			require.Contains(t, said.Tools, "answer_thread")
			require.NotContains(t, said.Tools, "list_keys", "no scope that was not given")
			require.Equal(t, client == "sdk", said.Refreshed)
		})
	}
}
