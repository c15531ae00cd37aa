package mcpapi

import (
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"stoa/node/hall"
	"stoa/protocol"
)

// A Tool is a tool beside the operations, or in place of them: its arguments and results have the form of another protocol.
type Tool struct {
	Name, Title, Description  string
	InputSchema, OutputSchema json.RawMessage
	Writes                    bool
	// Call returns the result. An error is a *Failure or internal.
	Call func(c *Call) (Result, error)
}

// A Result is what a tool answers: Structured, a JSON object, with its text; or, without it, the members of the result.
type Result struct {
	Structured []byte
	Members    map[string]any
}

// A Failure is an error of a [Tool], sent as a JSON-RPC error with that HTTP status.
type Failure struct {
	Status, Code int
	Text         string
	Data         any
	RetryAfter   time.Duration
}

func (f *Failure) Error() string { return f.Text }

// A tool is an operation as MCP declares it.
type tool struct {
	op   *protocol.Operation // nil for a Tool
	call func(c *Call) (Result, error)

	Name         string          `json:"name"`
	Title        string          `json:"title"`
	Description  string          `json:"description"`
	InputSchema  json.RawMessage `json:"inputSchema"`
	OutputSchema json.RawMessage `json:"outputSchema,omitempty"`
	Annotations  annotations     `json:"annotations"`
	Meta         *toolMeta       `json:"_meta,omitempty"`
}

// annotations are always all given: a client assumes the worst for a missing one.
type annotations struct {
	ReadOnly    bool `json:"readOnlyHint"`
	Destructive bool `json:"destructiveHint"`
	Idempotent  bool `json:"idempotentHint"`
	OpenWorld   bool `json:"openWorldHint"`
}

func newTool(op *protocol.Operation) *tool {
	return &tool{op: op, Name: op.Name, Title: op.Title, Description: describe(op), Annotations: annotate(op)}
}

// added converts a Tool.
func added(t Tool) *tool {
	return &tool{call: t.Call, Name: t.Name, Title: t.Title, Description: t.Description, InputSchema: t.InputSchema, OutputSchema: t.OutputSchema,
		Annotations: annotations{ReadOnly: !t.Writes, Idempotent: !t.Writes}}
}

// described adds the schema of its input to a tool, which takes most of the time. Results have none:
// they would double the list that a model reads first (contract §8), and /openapi.json has them.
func (t tool) described(s *hall.Schemas) (*tool, error) {
	if t.op == nil {
		return &t, nil
	}
	var err error
	t.InputSchema, err = s.ToolInput(t.op)
	return &t, err
}

// annotate derives the hints from the declaration. PUT and DELETE are destructive and idempotent
// (RFC 9110 §9.2.2); POST adds.
func annotate(op *protocol.Operation) annotations {
	replaces := op.HTTP.Method == http.MethodPut || op.HTTP.Method == http.MethodDelete
	return annotations{
		ReadOnly:    op.ReadOnly,
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
		parts = append(parts, "Needs pow ("+protocol.GetChallenge.Name+", purpose "+op.Purpose+"), a signed request or an API token.")
	case op.Access&protocol.Signed == 0:
		parts = append(parts, "Only with an API token"+scope(op)+".")
	case op.For == protocol.Owners && op.Scope != "": // what it needs is in the instructions
		parts = append(parts, "Scope: "+string(op.Scope)+".")
	default:
		parts = append(parts, "Needs a signed request or an API token.")
	}
	return strings.Join(parts, " ")
}

func scope(op *protocol.Operation) string {
	if op.Scope == "" {
		return ""
	}
	return ", scope " + string(op.Scope)
}
