package mcpapi_test

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"stoa/node/nodetest"
	"stoa/protocol"
	"stoa/protocol/must"
)

func compileTool(t testing.TB, schema map[string]any) *jsonschema.Schema {
	t.Helper()
	raw := must.Get(json.Marshal(schema))(t)
	return nodetest.Compile(t, raw, "")
}

// TestMCP_Tools: every operation of the door is a tool that clients and model
// providers take. What they refuse is a name with other letters, a composition
// at the top of a schema, a reference, a list of types.
func TestMCP_Tools(t *testing.T) {
	t.Parallel()
	h := nodetest.New(t)
	tools := nodetest.ListTools(t, h)
	require.Len(t, tools, len(operationsOf(protocol.MCP))+len(protocol.OperationsFor(protocol.Owners, protocol.MCP)))
	name := regexp.MustCompile(`^[a-z_]{1,64}$`)
	for _, tool := range tools {
		op := protocol.Lookup(tool.Name)
		require.NotNil(t, op, tool.Name)
		require.Regexp(t, name, tool.Name)
		require.Equal(t, op.Title, tool.Title)
		require.True(t, strings.HasPrefix(tool.Description, op.Summary))
		require.Equal(t, false, tool.InputSchema["additionalProperties"], tool.Name)
		soundSchema(t, tool.Name+" input", tool.InputSchema, true)
		explained(t, tool.Name, tool.InputSchema)
		for member, p := range tool.InputSchema["properties"].(map[string]any) {
			p := p.(map[string]any)
			require.True(t, p["type"] != nil || p["anyOf"] != nil, "%s: %s has no type", tool.Name, member)
		}
		example := must.Get(json.Marshal(op.Example))(t)
		nodetest.Valid(t, compileTool(t, tool.InputSchema), example)
		_, takesProof := tool.InputSchema["properties"].(map[string]any)["pow"]
		require.Equal(t, op.Access&protocol.Proof != 0, takesProof, tool.Name)
		require.Nil(t, tool.OutputSchema, "a model pays for the list before it does anything")
	}
}

// explained: a client that fills in an input reads what each member of it is.
func explained(t *testing.T, at string, schema map[string]any) {
	t.Helper()
	members, _ := schema["properties"].(map[string]any)
	for name, p := range members {
		p, at := p.(map[string]any), at+"/"+name
		require.NotEmpty(t, p["description"], "%s: say in a doc tag what it is", at)
		explained(t, at, p)
	}
	if items, ok := schema["items"].(map[string]any); ok {
		explained(t, at+"/*", items)
	}
	options, _ := schema["anyOf"].([]any)
	for _, option := range options {
		explained(t, at, option.(map[string]any))
	}
}

func soundSchema(t *testing.T, at string, schema map[string]any, top bool) {
	t.Helper()
	if top {
		require.Equal(t, "object", schema["type"], at)
		require.Contains(t, schema, "properties", at)
		for _, word := range []string{"oneOf", "anyOf", "allOf", "not", "if"} {
			require.NotContains(t, schema, word, at)
		}
	}
	require.NotContains(t, schema, "$ref", at)
	if schema["type"] != nil {
		require.IsType(t, "", schema["type"], "%s: a list of types", at)
	}
	if format, ok := schema["format"]; ok {
		require.Contains(t, []any{"uri", "uri-reference", "date-time", "date"}, format, at)
	}
	if properties, ok := schema["properties"].(map[string]any); ok {
		for name, p := range properties {
			soundSchema(t, at+"/"+name, p.(map[string]any), false)
		}
	}
	if items, ok := schema["items"].(map[string]any); ok {
		soundSchema(t, at+"/*", items, false)
	}
	options, _ := schema["anyOf"].([]any)
	for _, option := range options {
		soundSchema(t, at+"|", option.(map[string]any), false)
	}
}

// TestMCP_Annotations: all hints are given, since what a client assumes without
// them is the worst.
func TestMCP_Annotations(t *testing.T) {
	t.Parallel()
	h := nodetest.New(t)
	want := map[string][4]bool{ // read only, destructive, idempotent, open world
		"read_board":    {true, false, true, false},
		"get_challenge": {true, false, true, false},
		"post_to_board": {false, false, false, true},
		"delete_post":   {false, true, true, true},
		"report_post":   {false, false, true, false},
	}
	seen := 0
	for _, tool := range nodetest.ListTools(t, h) {
		a := tool.Annotations
		require.Len(t, a, 4, tool.Name)
		require.Equal(t, protocol.Lookup(tool.Name).ReadOnly, a["readOnlyHint"], tool.Name)
		if hints, ok := want[tool.Name]; ok {
			seen++
			require.Equal(t, hints, [4]bool{a["readOnlyHint"].(bool), a["destructiveHint"].(bool), a["idempotentHint"].(bool), a["openWorldHint"].(bool)}, tool.Name)
		}
	}
	require.Equal(t, len(want), seen)
}
