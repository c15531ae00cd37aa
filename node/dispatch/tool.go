package dispatch

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/danielgtaylor/huma/v2"

	"stoa/protocol"
)

// ToolInput returns the JSON Schema of an operation's input in the form that agents' tools need:
// one closed object with every reference resolved, no lists of types, and the member pow when a
// proof of work is accepted. Model providers refuse a whole tool list for smaller deviations.
func (s *Schemas) ToolInput(op *protocol.Operation) (json.RawMessage, error) {
	in, err := s.inline(op.In, true)
	if err != nil {
		return nil, fmt.Errorf("input of %s: %w", op.Name, err)
	}
	if op.Access&protocol.Proof != 0 {
		in.Properties["pow"] = &huma.Schema{
			Type: huma.TypeObject, Required: []string{"challenge", "solution"},
			Description: "A solved challenge of " + protocol.GetChallenge.Name + "; not needed when the HTTP request is signed or carries a token.",
			Properties: map[string]*huma.Schema{
				"challenge": {Type: huma.TypeObject, Description: "The challenge as you got it."},
				"solution":  {Type: huma.TypeObject, Description: `The solution: {"counter": n}.`, Required: []string{"counter"}},
			},
		}
	}
	return encodeTool(in)
}

// ToolOutput returns the JSON Schema of an operation's result in the same form, but open, since
// members may be added later (contract §1), and short, since a model reads the whole list: names
// and types, down to the members of the result's objects. /openapi.json has the rest. It is nil
// for an operation whose result is text.
func (s *Schemas) ToolOutput(op *protocol.Operation) (json.RawMessage, error) {
	if op.Media != "" {
		return nil, nil
	}
	out, err := s.inline(op.Out, false)
	if err != nil {
		return nil, fmt.Errorf("output of %s: %w", op.Name, err)
	}
	depth := 2 // the members of the result, and of the objects and lists in it
	if op.For != protocol.Everybody {
		depth = 1 // they are many, and their results are mostly what was put
	}
	short := outline(out, depth)
	short.Required = out.Required
	return encodeTool(short)
}

// outline reduces a schema to names and types, down to a depth. It allows every value that the
// schema allows.
func outline(s *huma.Schema, depth int) *huma.Schema {
	out := &huma.Schema{Type: s.Type}
	if s.Items != nil {
		out.Items = outline(s.Items, depth)
	}
	for _, option := range s.AnyOf {
		out.AnyOf = append(out.AnyOf, outline(option, depth))
	}
	if depth == 0 {
		return out
	}
	out.Properties = make(map[string]*huma.Schema, len(s.Properties))
	for name, p := range s.Properties {
		out.Properties[name] = outline(p, depth-1)
	}
	return out
}

// encodeTool encodes the schema. An object without members gets an empty "properties", because
// strict clients require it.
func encodeTool(schema *huma.Schema) (json.RawMessage, error) {
	raw, err := json.Marshal(schema)
	if err != nil || len(schema.Properties) > 0 {
		return raw, err
	}
	var members map[string]any
	if err := json.Unmarshal(raw, &members); err != nil {
		return nil, err
	}
	members["properties"] = map[string]any{}
	return json.Marshal(members)
}

func (s *Schemas) inline(t reflect.Type, closed bool) (*huma.Schema, error) {
	schema := s.Of(t)
	w := inliner{s, closed, nil}
	out, err := w.copy(schema)
	if err == nil && out.Type != huma.TypeObject {
		err = fmt.Errorf("%s is not an object", t)
	}
	return out, err
}

// inliner copies a schema and resolves its references on the way.
type inliner struct {
	s      *Schemas
	closed bool     // keep additionalProperties: false
	within []string // references being resolved
}

func (w inliner) copy(from *huma.Schema) (*huma.Schema, error) {
	if from.Ref != "" {
		if slices.Contains(w.within, from.Ref) {
			return nil, fmt.Errorf("%s contains itself", from.Ref)
		}
		w.within = append(slices.Clip(w.within), from.Ref)
		to, err := w.copy(w.s.SchemaFromRef(from.Ref))
		if err == nil && from.Description != "" {
			to.Description = from.Description
		}
		return to, err
	}
	to := *from
	switch to.Format {
	case "int32", "int64", "float", "double": // formats of OpenAPI, not of JSON Schema
		to.Format = ""
	}
	var err error
	if extra, ok := from.AdditionalProperties.(*huma.Schema); ok {
		if to.AdditionalProperties, err = w.copy(extra); err != nil {
			return nil, err
		}
	} else if !w.closed {
		to.AdditionalProperties = nil
	}
	if from.Items != nil {
		if to.Items, err = w.copy(from.Items); err != nil {
			return nil, err
		}
	}
	to.Properties = make(map[string]*huma.Schema, len(from.Properties))
	for _, name := range slices.Sorted(maps.Keys(from.Properties)) {
		if to.Properties[name], err = w.copy(from.Properties[name]); err != nil {
			return nil, err
		}
	}
	to.AnyOf = make([]*huma.Schema, len(from.AnyOf))
	for i, option := range from.AnyOf {
		if to.AnyOf[i], err = w.copy(option); err != nil {
			return nil, err
		}
	}
	if to.Nullable { // not as "type": [..., "null"], which some clients refuse
		about := to.Description
		to.Nullable, to.Description = false, ""
		return &huma.Schema{Description: about, AnyOf: []*huma.Schema{&to, {Type: "null"}}}, nil
	}
	return &to, nil
}
