package nodetest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/identity/httpsig"
	"stoa/identity/key"
	"stoa/protocol"
	"stoa/protocol/pow"
)

// An RPCAnswer is a JSON-RPC response as a client reads it.
type RPCAnswer struct {
	Answer
	ID     json.RawMessage `json:"id"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Code    int
		Message string
		Data    struct {
			Code       protocol.Code
			Supported  []string
			Requested  string
			RetryAfter int
		}
	} `json:"error"`
}

// ToolAnswer is the result of a tool call. Refused is set with IsError.
type ToolAnswer struct {
	RPCAnswer
	ResultType string
	Content    []struct{ Type, Text string }
	Structured json.RawMessage `json:"structuredContent"`
	IsError    bool
	Meta       map[string]any `json:"_meta"`

	Refused struct {
		Code       protocol.Code
		Detail     string
		Errors     []protocol.Fault
		RetryAfter int
		Challenge  *pow.Challenge
		How, Retry string
		Instance   string
	} `json:"-"`
}

// RPCAt posts a JSON-RPC request to a path.
func (h *House) RPCAt(path, body string, headers ...string) RPCAnswer {
	h.T.Helper()
	return h.SendSigned(h.Request("POST", path, body, headers...))
}

// Modern makes a request of the newer wire, headers and all.
func (h *House) Modern(method, params string, headers ...string) RPCAnswer {
	h.T.Helper()
	return h.ModernAt(protocol.MCPPath, method, params, headers...)
}

// ModernAt is Modern at one of the MCP doors.
func (h *House) ModernAt(path, method, params string, headers ...string) RPCAnswer {
	h.T.Helper()
	return h.RPCAt(path, ModernBody(method, params), append([]string{"MCP-Protocol-Version", "2026-07-28", "Mcp-Method", method}, headers...)...)
}

// ModernBody is the body of a request of the newer wire; params are members of its object, or "".
func ModernBody(method, params string) string {
	if params != "" {
		params += ","
	}
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":"q-1","method":%q,"params":{%s%s}}`, method, params, ModernMeta)
}

// Tool calls a tool on the newer wire.
func (h *House) Tool(name, args string, headers ...string) ToolAnswer {
	h.T.Helper()
	return h.ReadTool(h.ModernAt(DoorOf(name), "tools/call", fmt.Sprintf(`"name":%q,"arguments":%s`, name, args),
		append([]string{"Mcp-Name", name}, headers...)...))
}

// DoorOf is the MCP door whose tool an operation is.
func DoorOf(name string) string {
	if op := protocol.Lookup(name); op != nil && op.For == protocol.Owners {
		return protocol.OwnerMCPPath
	}
	return protocol.MCPPath
}

// ReadTool reads the result of a tool call.
func (h *House) ReadTool(a RPCAnswer) ToolAnswer {
	h.T.Helper()
	t := ToolAnswer{RPCAnswer: a}
	require.Nil(h.T, a.Error, "%s", a.Body)
	require.NoError(h.T, json.Unmarshal(a.Result, &t))
	require.NotEmpty(h.T, t.Content)
	texts := 1
	if strings.HasPrefix(t.Content[0].Text, `{"items":[]`) && !t.IsError {
		texts = 2 // what to try
	}
	require.Len(h.T, t.Content, texts, "%s", t.Content)
	require.Equal(h.T, "text", t.Content[0].Type)
	if t.IsError {
		require.Empty(h.T, t.Structured, "clients check structured content against the output schema, errors too")
		require.NoError(h.T, json.Unmarshal([]byte(t.Content[0].Text), &t.Refused))
		require.NotEmpty(h.T, t.Refused.Instance)
	}
	return t
}

// ModernMeta is the member that each request of the newer wire has.
const ModernMeta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`

// ToolDeclaration is a tool as a client reads it.
type ToolDeclaration struct {
	Name, Title, Description  string
	InputSchema, OutputSchema map[string]any
	Annotations               map[string]any
}

// OwnerTools lists the tools of the owners' door, for a token that may do everything an owner may.
func (h *House) OwnerTools() RPCAnswer {
	h.T.Helper()
	acc, _ := h.OpenAccount("Lists", protocol.RoleOwner, "")
	secret := h.AccountToken(acc.ID, "lists", append([]protocol.Scope{protocol.ScopeAccount}, protocol.OwnerScopes...)...)
	return h.ModernAt(protocol.OwnerMCPPath, "tools/list", "", "Authorization", "Bearer "+secret)
}

// ListTools lists the tools of both doors.
func ListTools(t testing.TB, h *House) (all []ToolDeclaration) {
	t.Helper()
	for path, a := range map[string]RPCAnswer{protocol.MCPPath: h.Modern("tools/list", ""), protocol.OwnerMCPPath: h.OwnerTools()} {
		var list struct{ Tools []ToolDeclaration }
		require.NoError(t, json.Unmarshal(a.Result, &list))
		require.NotEmpty(t, list.Tools)
		for _, tool := range list.Tools {
			require.Equal(t, path, DoorOf(tool.Name), tool.Name)
		}
		all = append(all, list.Tools...)
	}
	return all
}

// WithProof puts a solution among the arguments of a tool.
func WithProof(t testing.TB, args string, proof any) string {
	t.Helper()
	var members map[string]any
	require.NoError(t, json.Unmarshal([]byte(args), &members))
	members["pow"] = proof
	raw, err := json.Marshal(members)
	require.NoError(t, err)
	return string(raw)
}

// SignedTool calls a tool with a signed HTTP request.
func (h *House) SignedTool(pair key.Pair, name, args string, change func(*http.Request, *httpsig.SignOptions)) RPCAnswer {
	h.T.Helper()
	r, _ := h.SignTool(pair, name, args, change)
	return h.SendSigned(r)
}

// SendSigned sends a request that SignTool made.
func (h *House) SendSigned(r *http.Request) RPCAnswer {
	h.T.Helper()
	a := RPCAnswer{Answer: h.Serve(r)}
	if a.Body.Len() > 0 {
		require.Equal(h.T, "application/json", a.Header().Get("Content-Type"), "%s", a.Body)
		a.Into(&a)
	}
	return a
}

// SignTool makes the signed request of a tool call and its body.
func (h *House) SignTool(pair key.Pair, name, args string, change func(*http.Request, *httpsig.SignOptions)) (*http.Request, []byte) {
	h.T.Helper()
	body, o := ModernBody("tools/call", fmt.Sprintf(`"name":%q,"arguments":%s`, name, args)), httpsig.SignOptions{}
	r := h.Request("POST", protocol.MCPPath, body, "MCP-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", name)
	if change != nil {
		change(r, &o)
	}
	return h.Sign(r, body, pair, o), []byte(body)
}
