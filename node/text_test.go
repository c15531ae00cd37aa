package node_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/danielgtaylor/huma/v2"
	"github.com/stretchr/testify/require"

	"stoa/identity"
	"stoa/node/door/httpapi"
	"stoa/node/hall"
	"stoa/node/nodetest"
	"stoa/protocol"
)

// TestText_EveryInput puts characters that no text may hold into every string
// of every operation's input, one at a time: each is refused with a fault that
// points to that string, whatever the room does with it.
func TestText_EveryInput(t *testing.T) {
	t.Parallel()
	h := nodetest.New(t)
	texts := 0
	acc, _ := h.OpenAccount("owner", protocol.RoleOwner, "")
	owner, _, err := h.Admin().CreateAccountToken(t.Context(), acc.ID, "texts", 0, protocol.ScopeAccount, protocol.ScopeNotify, protocol.ScopeArchive,
		protocol.ScopeProfile, protocol.ScopeKeys)
	require.NoError(t, err)
	for _, op := range protocol.Operations() {
		example := nodetest.Members(t, op.Example)
		schema := h.Table.Schemas.Resolve(h.Table.Schemas.Of(op.In))
		for name, p := range schema.Properties {
			p = h.Table.Schemas.Resolve(p)
			var v any
			at := "/" + name
			switch {
			case p.Type == huma.TypeString && p.ContentEncoding == "":
				v = "x\u202ey"
			case p.Type == huma.TypeArray && h.Table.Schemas.Resolve(p.Items).Type == huma.TypeString:
				v, at = []string{"x\u202ey"}, at+"/0"
			default:
				continue
			}
			texts++
			args := maps.Clone(example)
			args[name] = v
			err := asSomebody(h, op, args, owner)
			require.Equal(t, protocol.Validation, protocol.CodeOf(err), "%s %s: %v", op.Name, name, err)
			require.True(t, slices.ContainsFunc(protocol.AsError(err).Faults, func(f protocol.Fault) bool {
				return f.Pointer == at && f.Code == "forbidden-character"
			}), "%s %s: %v", op.Name, name, protocol.AsError(err).Faults)
		}
	}
	require.Greater(t, texts, 20)
}

// asSomebody invokes an operation as one whom it admits: the operator on the
// spot, or an owner. Of what admits signers alone it makes the hall's check.
func asSomebody(h *nodetest.House, op *protocol.Operation, args map[string]any, token string) error {
	raw, err := json.Marshal(args)
	require.NoError(h.T, err)
	if op.Access != protocol.Anonymous && op.Access&(protocol.Operator|protocol.Session) == 0 {
		var v any
		require.NoError(h.T, json.Unmarshal(raw, &v))
		return protocol.Invalid(h.Table.Schemas.Check(h.Table.Schemas.Of(op.In), v)...)
	}
	ev := identity.Evidence{Operator: true}
	if op.Access != protocol.Anonymous && op.Access&protocol.Operator == 0 {
		r, err := http.NewRequestWithContext(h.T.Context(), op.HTTP.Method, h.Base, nil)
		require.NoError(h.T, err)
		r.Header.Set("Authorization", "Bearer "+token)
		ev = identity.Evidence{Request: r}
	}
	_, err = h.Table.Invoke(h.T.Context(), hall.Request{Op: op.Name, Args: raw, Evidence: ev})
	return err
}

// TestText_Schemas applies the rule where texts nest, and passes over what a
// type keeps byte for byte.
func TestText_Schemas(t *testing.T) {
	t.Parallel()
	type inner struct {
		Note string          `json:"note" minLength:"1"`
		Key  json.RawMessage `json:"key,omitempty"`
		Hash []byte          `json:"hash,omitempty"`
	}
	type outer struct {
		List []inner           `json:"list,omitempty"`
		Map  map[string]string `json:"map,omitempty"`
		Null *string           `json:"null,omitempty"`
		URL  string            `json:"url,omitempty" format:"uri"`
	}
	s := hall.NewSchemas()
	schema := s.Of(reflect.TypeFor[outer]())
	tests := []struct {
		name, value string
		want        []string
	}{
		{"fit", `{"list":[{"note":"अ\u200dब\nc"}],"map":{"a":"b"}}`, nil},
		{"in a list", `{"list":[{"note":"a"},{"note":"\u202e"}]}`, []string{"/list/1/note forbidden-character"}},
		{"blank", `{"list":[{"note":" \u200d"}]}`, []string{"/list/0/note blank"}},
		{"in a map", `{"map":{"a":"\u0007"}}`, []string{"/map/a forbidden-character"}},
		{"name of a member", `{"map":{"a\u200b":"b"}}`, []string{"/map/a forbidden-character"}},
		{"raw JSON and bytes", `{"list":[{"note":"a","key":{"x":"\u202e"},"hash":"4oCu"}]}`, nil},
		{"address", `{"url":"https://अ.example/%E2%80%8D"}`, nil},
		{"joiner in an address", `{"url":"https://a\u200d.example/"}`, []string{"/url forbidden-character"}},
		{"direction mark in an address", `{"url":"https://a.example/\u200fx"}`, []string{"/url forbidden-character"}},
		{"name nobody knows", `{"\u202ex":1}`, []string{"/x forbidden-character", "/x unknown-member"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var v any
			require.NoError(t, json.Unmarshal([]byte(tt.value), &v))
			var got []string
			for _, f := range s.Check(schema, v) {
				got = append(got, f.Pointer+" "+f.Code)
			}
			require.ElementsMatch(t, tt.want, got)
		})
	}
}

// TestAddresses_Hostile asks every route with characters that no address here
// holds, in each parameter of the path and in the query: nothing is our fault.
func TestAddresses_Hostile(t *testing.T) {
	t.Parallel()
	hostile := []string{"%00", "a%00b", "%ff", "%c3%28", "%ed%a0%80", "%e2%80%ae", "%0a", "%0d%0a", "%7f", "%ef%bf%bf", "%f0%9f%98%80", "%25", "%",
		"%zz", "'", "%22%3b--", strings.Repeat("%e0%a4%85", 300)}
	nodetest.EachHouse(t, func(t *testing.T, h *nodetest.House) {
		paths := map[string]bool{
			"/ap/posts/{x}": true, "/ap/agents/{x}": true, "/ap/agents/{x}/outbox?before={x}": true, "/ap/{x}": true, "/ap/board/outbox?before={x}": true,
			"/ap/board/log/{x}": true, "/ap/board/announces/{x}": true, "/ap/board/log?before={x}": true,
			"/.well-known/webfinger?resource={x}": true, "/.well-known/webfinger?resource=acct:{x}@{x}": true,
			"/.well-known/service-agents/{x}/jwks.json": true, "/.well-known/service-agents/{x}/registration.json": true,
			"/@{x}": true, "/board/{x}": true, "/board?q={x}": true, "/board?after={x}": true, "/board?tag={x}": true, "/agents?q={x}": true,
			"/feed?types={x}": true, "/problems/{x}": true, "/{x}": true,
		}
		for _, op := range protocol.Operations() {
			if op.Doors&protocol.HTTP == 0 || op.HTTP.Method != http.MethodGet && len(httpapi.PathParams(op.HTTP.Path)) == 0 {
				continue
			}
			path := op.HTTP.Path
			for _, name := range httpapi.PathParams(path) {
				path = strings.Replace(path, "{"+name+"}", "{x}", 1)
			}
			paths[path] = true
			if op.HTTP.Method == http.MethodGet {
				for name := range h.Table.Schemas.Resolve(h.Table.Schemas.Of(op.In)).Properties {
					paths[path+"?"+name+"={x}"] = true
				}
			}
		}
		for path := range paths {
			for _, x := range hostile {
				target := strings.ReplaceAll(path, "{x}", x)
				r, err := http.NewRequest(http.MethodGet, h.Base+target, nil)
				if err != nil {
					continue // no client and no server takes it
				}
				r.RequestURI = target
				a := httptest.NewRecorder()
				h.Handler().ServeHTTP(a, r)
				require.NotEqual(t, 500, a.Code, "GET %s: %s", target, a.Body)
				require.NotContains(t, a.Body.String(), "\u202e", "GET %s", target)
			}
		}
	})
}

// TestText_CommandLine applies the rule to the name of a token that the operator
// makes: its owner sees it on a page.
func TestText_CommandLine(t *testing.T) {
	t.Parallel()
	h := nodetest.New(t)
	acc, _ := h.OpenAccount("owner", protocol.RoleOwner, "")
	for _, name := range []string{"a\u202eb", "a\x1b[2J", "\u200d", "", "two\nlines", strings.Repeat("x", 500)} {
		_, _, err := h.Admin().CreateAccountToken(t.Context(), acc.ID, name, 0, protocol.ScopeAccount)
		require.Equal(t, protocol.Validation, protocol.CodeOf(err), "%q", name)
	}
	_ = h.AccountToken(acc.ID, "दुकान 🏳\ufe0f\u200d🌈", protocol.ScopeAccount)
}
