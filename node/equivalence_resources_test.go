package node_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/node/nodetest"
	"stoa/protocol"
)

// A resourceAnswer is what resources/read gives.
type resourceAnswer struct {
	nodetest.RPCAnswer
	Contents   []struct{ URI, MimeType, Text string }
	TTLMs      *int `json:"ttlMs"`
	CacheScope string
}

func readResource(h *nodetest.House, door, uri string, headers ...string) (a resourceAnswer) {
	h.T.Helper()
	a.RPCAnswer = h.ModernAt(door, "resources/read", fmt.Sprintf(`"uri":%q`, uri), append([]string{"Mcp-Name", uri}, headers...)...)
	if a.Error == nil {
		require.NoError(h.T, json.Unmarshal(a.Result, &a))
		require.Len(h.T, a.Contents, 1)
		require.Equal(h.T, uri, a.Contents[0].URI)
		require.Equal(h.T, "application/json", a.Contents[0].MimeType)
		require.NotNil(h.T, a.TTLMs)
	}
	return a
}

// TestEquivalence_Resources reads every resource of the MCP doors, as what is there and as what is not: it is what the operation gives over HTTP,
// byte by byte, and of the page of that address, where there is one; with a token, and without one.
func TestEquivalence_Resources(t *testing.T) {
	t.Parallel()
	d := newDoors(t)
	for _, r := range protocol.Resources {
		op := r.Operation
		t.Run(op.Name, func(t *testing.T) {
			d := *d
			d.T, d.House = t, d.House.On(t)
			if op.For == protocol.Owners && ofShop(op) {
				d.Token = d.Shop
			}
			door := protocol.MCPPath
			if op.For == protocol.Owners {
				door = protocol.OwnerMCPPath
			}
			args, inPath := worldOf(&d, op, nodetest.Members(t, op.Example))(), map[string]any{}
			path, route := r.Path, op.HTTP.Path
			for _, part := range regexp.MustCompile(`\{[a-zA-Z]+\}`).FindAllString(r.Path, -1) {
				name := strings.Trim(part, "{}")
				inPath[name] = args[name]
				path = strings.Replace(path, "{"+name+"}", fmt.Sprint(args[name]), 1)
				route = strings.Replace(route, "{"+name+"}", fmt.Sprint(args[name]), 1)
			}
			for _, token := range []bool{false, true} {
				var headers []string
				if token {
					headers = []string{"Authorization", "Bearer " + d.Token}
				}
				want, ok := overHTTP(&d, call{op, inPath, token})
				require.True(t, ok)
				got := readResource(d.House, door, d.House.Base+path, headers...)
				if want.Code != "" {
					require.NotNil(t, got.Error, "%s", got.Body)
					require.Equal(t, want.Code, got.Error.Data.Code)
					continue
				}
				require.Nil(t, got.Error, "%s", got.Body)
				require.Equal(t, strings.TrimSuffix(want.JSON, "\n"), got.Contents[0].Text)
				require.Equal(t, map[bool]string{true: "public", false: "private"}[!op.NoStore], got.CacheScope)
				require.Equal(t, int(op.MaxAge.Milliseconds()), *got.TTLMs)
				if op.For == protocol.Everybody && r.Path != op.HTTP.Path {
					page := d.House.Ask("GET", path, "", "Accept", "application/json").Is(http.StatusSeeOther)
					require.Equal(t, d.House.Base+route, page.Header().Get("Location"), "the page of that address has the same as JSON")
				}
			}
			if len(inPath) == 0 {
				return
			}
			for name, s := range map[string]string{"handle": "nobody", "id": "zzz", "threadId": "zzz"} {
				missing := strings.Replace(r.Path, "{"+name+"}", s, 1)
				if missing == r.Path || op == protocol.GetOwnProfile.Operation { // that of another is forbidden
					continue
				}
				got := readResource(d.House, door, d.House.Base+missing, "Authorization", "Bearer "+d.Token)
				require.Equal(t, 400, got.Answer.Code)
				require.Equal(t, -32602, got.Error.Code)
				require.Contains(t, got.Body.String(), `"uri":"`+d.House.Base+missing+`"`)
				old := d.House.RPCAt(door, fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":%q}}`, d.House.Base+missing),
					"Authorization", "Bearer "+d.Token)
				require.Equal(t, 200, old.Answer.Code)
				require.Equal(t, -32002, old.Error.Code)
			}
		})
	}
}
