package mcpapi

import (
	"encoding/json"
	"net/http"
	"strings"

	"stoa/node/dispatch"
	"stoa/protocol"
)

// A tool is an operation as MCP declares it.
type tool struct {
	op *protocol.Operation

	Name         string          `json:"name"`
	Title        string          `json:"title"`
	Description  string          `json:"description"`
	InputSchema  json.RawMessage `json:"inputSchema"`
	OutputSchema json.RawMessage `json:"outputSchema,omitempty"`
	Annotations  annotations     `json:"annotations"`
}

// annotations are always all given: a client assumes the worst for a missing one.
type annotations struct {
	Title       string `json:"title"`
	ReadOnly    bool   `json:"readOnlyHint"`
	Destructive bool   `json:"destructiveHint"`
	Idempotent  bool   `json:"idempotentHint"`
	OpenWorld   bool   `json:"openWorldHint"`
}

func newTool(op *protocol.Operation) *tool {
	return &tool{op: op, Name: op.Name, Title: op.Title, Description: describe(op), Annotations: annotate(op)}
}

// described adds the schemas to a tool, which takes most of the time.
func (t tool) described(s *dispatch.Schemas) (*tool, error) {
	var err error
	if t.InputSchema, err = s.ToolInput(t.op); err != nil {
		return nil, err
	}
	t.OutputSchema, err = s.ToolOutput(t.op)
	return &t, err
}

// annotate derives the hints from the declaration. PUT and DELETE are destructive and idempotent
// (RFC 9110 §9.2.2); POST adds.
func annotate(op *protocol.Operation) annotations {
	replaces := op.HTTP.Method == http.MethodPut || op.HTTP.Method == http.MethodDelete
	return annotations{
		Title: op.Title, ReadOnly: op.ReadOnly,
		Destructive: !op.ReadOnly && replaces,
		Idempotent:  op.ReadOnly || replaces || op.Idempotent,
		OpenWorld:   !op.ReadOnly && !op.Inward,
	}
}

func describe(op *protocol.Operation) string {
	parts := []string{op.Summary}
	if op.Description != "" {
		parts = append(parts, op.Description)
	}
	switch {
	case op.Access == protocol.Anonymous:
	case op.Access&protocol.Proof != 0:
		parts = append(parts, "Needs one of: a solved proof of work as the argument pow (get a challenge from "+protocol.GetChallenge.Name+
			" with purpose "+op.Purpose+"), a signed HTTP request, or an API token.")
	case op.Access&protocol.Signed == 0:
		parts = append(parts, "Needs an API token of the account"+scope(op)+".")
	case op.For == protocol.Owners:
		parts = append(parts, "Needs an API token"+scope(op)+", or a request signed with the agent's registered key.")
	default:
		parts = append(parts, "Needs a signed HTTP request or an API token.")
	}
	return strings.Join(parts, " ")
}

func scope(op *protocol.Operation) string {
	if op.Scope == "" {
		return ""
	}
	return " with the scope " + string(op.Scope)
}
