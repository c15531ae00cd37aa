package mcpapi_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/node/nodetest"
	"stoa/protocol"
	"stoa/protocol/must"
)

// FuzzMCP throws bodies at the door: no 5xx, no panic, and every answer that is
// not empty is a JSON-RPC response with a result or an error.
func FuzzMCP(f *testing.F) {
	for _, op := range protocol.Operations() {
		args := must.Get(json.Marshal(op.Example))(f)
		f.Add([]byte(nodetest.ModernBody("tools/call", fmt.Sprintf(`"name":%q,"arguments":%s`, op.Name, args))), "2026-07-28", "tools/call", op.Name)
		f.Add([]byte(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q,"arguments":{"pow":{},"kind":[{}],"tags":[{},[]],`+
			`"limit":1e400}}}`, op.Name)), "", "", "")
	}
	f.Add([]byte(`{"jsonrpc":"2.0","id":-0,"method":"initialize","params":{"protocolVersion":7}}`), "2025-11-25", "", "")
	f.Add([]byte(`[{"jsonrpc":"2.0"}]`), "2026-07-28", "x", "=?base64?!?=")
	f.Add([]byte(nodetest.ModernBody("tools/list", `"cursor":"\ud83d\ude00"`)), "2026-07-28", "tools/list", "")
	h := nodetest.New(f)
	f.Fuzz(func(t *testing.T, body []byte, version, method, name string) {
		r := httptest.NewRequest("POST", h.Base+protocol.MCPPath, strings.NewReader(string(body))).WithContext(context.Background())
		r.RequestURI = protocol.MCPPath
		r.Header = http.Header{"Content-Type": {"application/json"}}
		for key, value := range map[string]string{"Mcp-Protocol-Version": version, "Mcp-Method": method, "Mcp-Name": name} {
			if value != "" {
				r.Header[key] = []string{value}
			}
		}
		w := httptest.NewRecorder()
		h.Handler().ServeHTTP(w, r)
		require.Less(t, w.Code, 500, "%s: %s", body, w.Body)
		if w.Code == 202 {
			require.Empty(t, w.Body.Bytes())
			return
		}
		var got struct {
			JSONRPC       string
			Result, Error json.RawMessage
		}
		require.NoError(t, json.Unmarshal(w.Body.Bytes(), &got), "%q", w.Body)
		require.Equal(t, "2.0", got.JSONRPC)
		require.True(t, (got.Result == nil) != (got.Error == nil), "%s", w.Body)
	})
}
