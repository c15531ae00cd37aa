package web

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/a-h/templ"

	"stoa/node/hall"
	"stoa/protocol"
	"stoa/protocol/sorting"
)

// A pageTool is a tool for agents in the browser (spec §4.2), as the script of the pages reads it.
type pageTool struct {
	Name        string          `json:"name"`
	Title       string          `json:"title"`
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"inputSchema"`
	Annotations toolHints       `json:"annotations"`
	Method      string          `json:"method,omitempty"`
	Path        string          `json:"path,omitempty"`   // parameters in braces are members of the input
	Media       string          `json:"media,omitempty"`  // of a result that is text
	Secret      string          `json:"secret,omitempty"` // member of the input that is sent as Authorization: Bearer
	Of          string          `json:"of,omitempty"`     // the tool that is called with the handle of the page
	On          []string        `json:"on,omitempty"`     // kinds of the pages that have the tool; empty for every page
	Pages       []string        `json:"pages,omitempty"`  // patterns of the pages that go_to opens
}

// toolHints are the annotations of WebMCP. A browser asks the person before a consequential tool is
// called: it takes money, or a person's time.
type toolHints struct {
	ReadOnly      bool `json:"readOnlyHint"`
	Untrusted     bool `json:"untrustedContentHint"`
	Consequential bool `json:"consequentialHint"`
}

// Tools returns the tools of the pages as JSON, an array in order of name. It is made from the
// declarations when the node is built, and is part of the pages' script.
func Tools(s *hall.Schemas) ([]byte, error) {
	var tools []pageTool
	for _, op := range protocol.OperationsFor(protocol.Everybody, protocol.InPage) {
		if op.Streams() || op.GivesFile() {
			continue
		}
		t, err := toolOf(s, op)
		if err != nil {
			return nil, err
		}
		tools = append(tools, t)
		for name, here := range contextual {
			if here.op == op.Name {
				tool, err := here.tool(name, t, op)
				if err != nil {
					return nil, err
				}
				tools = append(tools, tool)
			}
		}
	}
	open := pageTool{Name: "go_to", Title: "Open a page", Description: "Opens a public page in the current tab.",
		InputSchema: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string","pattern":"^/","maxLength":1000,` +
			`"description":"Path of a public page with its query, such as /board?kind=offer."}},"required":["path"],"additionalProperties":false}`)}
	for _, p := range pages {
		open.Pages = append(open.Pages, p.path)
	}
	tools = append(tools, open)
	sorting.Stable(tools, func(a, b pageTool) int { return strings.Compare(a.Name, b.Name) })
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	b.WriteString("[\n")
	for i, t := range tools {
		if err := e.Encode(t); err != nil {
			return nil, err
		}
		if i < len(tools)-1 {
			b.Truncate(b.Len() - 1)
			b.WriteString(",\n")
		}
	}
	b.WriteString("]\n")
	return b.Bytes(), nil
}

// toolForm makes a tool of the form that does a read operation, for browsers that offer forms to agents and run no script here: the
// operation's name, and as its result the linked data of the page that the form opens.
func toolForm(op *protocol.Operation) templ.Attributes {
	if op.Doors&protocol.InPage == 0 || !op.ReadOnly {
		return nil
	}
	return templ.Attributes{"toolname": op.Name, "tooldescription": op.Summary, "toolautosubmit": true}
}

func toolOf(s *hall.Schemas, op *protocol.Operation) (pageTool, error) {
	t := pageTool{
		Name: op.Name, Title: op.Title, Description: strings.TrimSpace(op.Summary + " " + op.Description), Method: op.HTTP.Method, Path: op.HTTP.Path,
		Media: op.Media, Secret: op.Secret,
		Annotations: toolHints{ReadOnly: op.ReadOnly, Consequential: op.Purpose == "bid" || op.Purpose == "meeting"},
	}
	t.Annotations.Untrusted = op.Media == "" && s.Names(op.Out, "untrusted_content")
	in, err := s.ToolInput(op)
	if err != nil {
		return t, err
	}
	t.InputSchema, err = changed(in, func(properties map[string]json.RawMessage) {
		delete(properties, "pow") // the page solves it
		if !op.ReadOnly && op.Access&protocol.Session != 0 {
			properties["actAs"] = json.RawMessage(`{"type":"string","maxLength":40,` +
				`"description":"Handle of the profile that writes, where the account that is signed in in this browser has several."}`)
		}
	})
	if op.Access&protocol.Proof != 0 {
		t.Description += " The page solves the proof of work itself."
	}
	return t, err
}

// contextual are the tools of some pages only: another tool with the handle of the page.
var contextual = map[string]contextTool{
	"ask_this_agent": {protocol.ContactAgent.Name, "Ask this agent", "Writes to the agent of this page, with no account; returns a thread id.",
		[]string{"person", "business"}},
	"bid_on_this_board": {protocol.BidForAttention.Name, "Bid on this board", "Bids for a slot on the attention board of this page; returns a payment link.",
		[]string{"attention-board"}},
}

type contextTool struct {
	op, title, summary string
	on                 []string
}

func (c contextTool) tool(name string, of pageTool, op *protocol.Operation) (pageTool, error) {
	t := of
	t.Name, t.Title, t.Of, t.On, t.Method, t.Path = name, c.title, of.Name, c.on, "", ""
	t.Description = c.summary + strings.TrimPrefix(of.Description, op.Summary)
	var err error
	t.InputSchema, err = changed(of.InputSchema, func(properties map[string]json.RawMessage) { delete(properties, "handle") })
	return t, err
}

// changed changes the properties of a schema; what is gone is no longer required.
func changed(schema json.RawMessage, change func(properties map[string]json.RawMessage)) (json.RawMessage, error) {
	var s struct {
		Type       string                     `json:"type"`
		Properties map[string]json.RawMessage `json:"properties"`
		Required   []string                   `json:"required,omitempty"`
		Additional bool                       `json:"additionalProperties"`
	}
	d := json.NewDecoder(bytes.NewReader(schema))
	d.DisallowUnknownFields()
	if err := d.Decode(&s); err != nil {
		return nil, err
	}
	if s.Properties == nil {
		s.Properties = map[string]json.RawMessage{}
	}
	change(s.Properties)
	s.Required = slices.DeleteFunc(s.Required, func(name string) bool { return s.Properties[name] == nil })
	return json.Marshal(s)
}
