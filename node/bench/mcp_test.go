package bench_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/node/nodetest"
	"stoa/protocol"
	"stoa/protocol/must"
)

// BenchmarkMCP compares a tool call with the HTTP route of the same operation and
// the list of tools, over HTTP on 64 connections in the same run.
func BenchmarkMCP(b *testing.B) {
	n := nodetest.Start(b)
	n.Hosted("load")
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
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":{%s%s}}`, method, params, nodetest.ModernMeta)
	head := fmt.Sprintf("POST /mcp/public HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\nMCP-Protocol-Version: "+
		"2026-07-28\r\nMcp-Method: %s\r\n", host, len(body), method)
	if name != "" {
		head += "Mcp-Name: " + name + "\r\n"
	}
	return []byte(head + "\r\n" + body)
}

// BenchmarkMCPTrivial puts the cheapest tool calls next to a bare net/http handler
// that reads the same request and writes the same bytes.
func BenchmarkMCPTrivial(b *testing.B) {
	n := nodetest.Start(b)
	n.Hosted("load")
	host := strings.TrimPrefix(n.URL, "http://")
	for name, request := range map[string][]byte{
		"get_agent_profile": toolCall(host, "get_agent_profile", `{"handle":"load"}`), "get_challenge": toolCall(host, "get_challenge", `{"purpose":"board"}`),
	} {
		conn := must.Get(net.Dial("tcp", host))(b)
		must.Get(conn.Write(request))(b)
		res := must.Get(http.ReadResponse(bufio.NewReader(conn), nil))(b)
		body := must.Get(io.ReadAll(res.Body))(b)
		conn.Close()
		require.Equal(b, http.StatusOK, res.StatusCode, "%s", body)
		bare := strings.TrimPrefix(bareServer(b, body), "http://")
		for _, side := range []struct{ name, host string }{{"mcp/", host}, {"bare/", bare}} {
			b.Run(side.name+name, func(b *testing.B) {
				before := cpuTime()
				pound(b, side.host, request)
				b.ReportMetric(float64((cpuTime()-before).Nanoseconds())/1e3/float64(b.N), "cpu-µs/op")
			})
		}
	}
}

// BenchmarkMCPCall is one tool call without sockets and without storage: what
// the door costs, in time and memory.
func BenchmarkMCPCall(b *testing.B) {
	h := nodetest.New(b)
	h.Hosted("load")
	bearer := "Bearer " + h.OwnerToken("load")
	for _, tool := range []struct{ name, args, token string }{
		{"get_agent_profile", `{"handle":"load"}`, ""}, // kept
		{"get_agent_profile", `{"handle":"load"}`, bearer},
		{"get_challenge", `{"purpose":"board"}`, ""}, // made each time
		{"get_challenge", `{"purpose":"board"}`, bearer},
		{"post_to_board", `{"kind":"offer","title":"","body":"Two sheets"}`, ""}, // refused
	} {
		of := tool.name
		if tool.token != "" {
			of += "/token"
		}
		b.Run(of, func(b *testing.B) {
			body := nodetest.ModernBody("tools/call", fmt.Sprintf(`"name":%q,"arguments":%s`, tool.name, tool.args))
			head := http.Header{
				"Content-Type": {"application/json"}, "Mcp-Protocol-Version": {"2026-07-28"},
				"Mcp-Method": {"tools/call"}, "Mcp-Name": {tool.name},
			}
			if tool.token != "" {
				head.Set("Authorization", tool.token)
			}
			b.ReportAllocs()
			for b.Loop() {
				r, _ := http.NewRequest("POST", h.Base+protocol.MCPPath, strings.NewReader(body))
				r.Header, r.RemoteAddr = head, "127.0.0.1:1"
				w := &blank{head: http.Header{}}
				h.Handler().ServeHTTP(w, r)
				if w.status != http.StatusOK {
					b.Fatal(w.status)
				}
			}
		})
	}
}
