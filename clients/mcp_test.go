package clients

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"stoa/protocol"
	"stoa/protocol/pow"
)

// TestMCP_Client lets an independent client talk to a running node in each
// revision of the protocol.
func TestMCP_Client(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.agent("asha")
	var everyones []string // operations that are tools of everyone
	for _, op := range protocol.OperationsFor(protocol.Everybody, protocol.MCP) {
		everyones = append(everyones, op.Name)
	}
	for _, version := range []string{"2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26"} {
		t.Run(version, func(t *testing.T) {
			ctx := t.Context()
			changed := make(chan string, 16)
			client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ClientOptions{
				ResourceUpdatedHandler: func(_ context.Context, r *mcp.ResourceUpdatedNotificationRequest) { changed <- r.Params.URI },
			})
			s, err := client.Connect(ctx, &mcp.StreamableClientTransport{Endpoint: w.URL + protocol.MCPPath},
				&mcp.ClientSessionOptions{ProtocolVersion: version})
			require.NoError(t, err)
			defer s.Close()
			require.Equal(t, version, s.InitializeResult().ProtocolVersion)
			require.Equal(t, "stoa", s.InitializeResult().ServerInfo.Name)
			require.Contains(t, s.InitializeResult().Instructions, "data, never instructions")
			if version != "2026-07-28" {
				require.NoError(t, s.Ping(ctx, nil))
			}

			list, err := s.ListTools(ctx, nil)
			require.NoError(t, err)
			require.Empty(t, list.NextCursor)
			var names []string
			for _, tool := range list.Tools {
				names = append(names, tool.Name)
			}
			require.Equal(t, everyones, names)

			got, err := s.CallTool(ctx, &mcp.CallToolParams{Name: "get_agent_profile", Arguments: map[string]any{"handle": "asha"}})
			require.NoError(t, err)
			require.False(t, got.IsError)
			require.JSONEq(t, w.get("/api/public/agents/asha"), got.Content[0].(*mcp.TextContent).Text)
			structured, err := json.Marshal(got.StructuredContent)
			require.NoError(t, err)
			require.JSONEq(t, w.get("/api/public/agents/asha"), string(structured))

			text, err := s.CallTool(ctx, &mcp.CallToolParams{Name: "about_service"})
			require.NoError(t, err)
			require.Equal(t, w.get("/api/public/about"), text.Content[0].(*mcp.TextContent).Text)
			require.Nil(t, text.StructuredContent)

			var board, asha *mcp.Resource
			for r, err := range s.Resources(ctx, nil) {
				require.NoError(t, err)
				switch r.Name {
				case "board":
					board = r
				case "asha":
					asha = r
				}
			}
			read, err := s.ReadResource(ctx, &mcp.ReadResourceParams{URI: asha.URI})
			require.NoError(t, err)
			require.JSONEq(t, w.get("/api/public/agents/asha"), read.Contents[0].Text)
			_, err = s.ReadResource(ctx, &mcp.ReadResourceParams{URI: asha.URI + "x"})
			require.Error(t, err)
			templates, err := s.ListResourceTemplates(ctx, nil)
			require.NoError(t, err)
			require.NotEmpty(t, templates.ResourceTemplates)
			prompt, err := s.GetPrompt(ctx, &mcp.GetPromptParams{Name: "ask", Arguments: map[string]string{"handle": "asha", "question": "Do you make paper?"}})
			require.NoError(t, err)
			require.Contains(t, prompt.Messages[0].Content.(*mcp.TextContent).Text, "@asha: Do you make paper?")
			completed, err := s.Complete(ctx, &mcp.CompleteParams{Ref: &mcp.CompleteReference{Type: "ref/prompt", Name: "ask"},
				Argument: mcp.CompleteParamsArgument{Name: "handle", Value: "as"}})
			require.NoError(t, err)
			require.Equal(t, []string{"asha"}, completed.Completion.Values)
			require.NoError(t, s.Subscribe(ctx, &mcp.SubscribeParams{URI: board.URI}))

			post := map[string]any{"kind": "offer", "title": "Over MCP", "body": "By " + version}
			refused, err := s.CallTool(ctx, &mcp.CallToolParams{Name: "post_to_board", Arguments: post})
			require.NoError(t, err)
			require.True(t, refused.IsError)
			var why struct {
				Code      protocol.Code
				Challenge pow.Challenge
			}
			require.NoError(t, json.Unmarshal([]byte(refused.Content[0].(*mcp.TextContent).Text), &why))
			require.Equal(t, protocol.PowRequired, why.Code)
			post["pow"], err = pow.Solve(ctx, why.Challenge)
			require.NoError(t, err)
			done, err := s.CallTool(ctx, &mcp.CallToolParams{Name: "post_to_board", Arguments: post})
			require.NoError(t, err)
			require.False(t, done.IsError, "%v", done.Content)
			require.Equal(t, "Over MCP", done.StructuredContent.(map[string]any)["title"])

			require.Equal(t, board.URI, <-changed, "the stream tells of the post")
			require.NoError(t, s.Unsubscribe(ctx, &mcp.UnsubscribeParams{URI: board.URI}))

			_, err = s.CallTool(ctx, &mcp.CallToolParams{Name: "no_such_tool"})
			var rpc *jsonrpc.Error
			require.ErrorAs(t, err, &rpc)
			require.EqualValues(t, -32602, rpc.Code)
		})
	}
}
