package node

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// BenchmarkMCP puts a tool call beside the HTTP route of the same operation and
// beside the list of tools, over HTTP on 64 connections in the same run.
func BenchmarkMCP(b *testing.B) {
	n := startNode(b)
	hostedAgent(b, n, "load")
	for i := range 30 {
		seedPost(b, n, i)
	}
	host := strings.TrimPrefix(n.URL, "http://")
	b.Run("http/get_agent_profile", func(b *testing.B) { hammer(b, n.URL+"/api/public/agents/load") })
	b.Run("mcp/get_agent_profile", func(b *testing.B) { pound(b, host, toolCall(host, "get_agent_profile", `{"handle":"load"}`)) })
	b.Run("http/read_board", func(b *testing.B) { hammer(b, n.URL+"/api/public/board") })
	b.Run("mcp/read_board", func(b *testing.B) { pound(b, host, toolCall(host, "read_board", `{}`)) })
	b.Run("http/site_map", func(b *testing.B) { hammer(b, n.URL+"/api/public/site-map") })
	b.Run("mcp/site_map", func(b *testing.B) { pound(b, host, toolCall(host, "site_map", `{}`)) })
	b.Run("mcp/tools_list", func(b *testing.B) { pound(b, host, rawRequest(host, "tools/list", "", "")) })
}

func toolCall(host, name, args string) []byte {
	return rawRequest(host, "tools/call", name, fmt.Sprintf(`"name":%q,"arguments":%s,`, name, args))
}

// rawRequest is a request of the newer wire as bytes.
func rawRequest(host, method, name, params string) []byte {
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":{%s%s}}`, method, params, modernMeta)
	head := fmt.Sprintf("POST /mcp/public HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\nMCP-Protocol-Version: 2026-07-28\r\nMcp-Method: %s\r\n", host, len(body), method)
	if name != "" {
		head += "Mcp-Name: " + name + "\r\n"
	}
	return []byte(head + "\r\n" + body)
}

const modernMeta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`

// BenchmarkMCPCall is one tool call without sockets: what the door costs beside
// the room, in time and memory.
func BenchmarkMCPCall(b *testing.B) {
	h := newHouse(b)
	for _, tool := range []string{"about_service", "site_map"} {
		b.Run(tool, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if a := h.tool(tool, `{}`); a.Code != http.StatusOK {
					b.Fatal(a.Body)
				}
			}
		})
	}
}
