package hall

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"stoa/protocol"
)

// ToolInput returns the JSON Schema of an operation's input in the form that agents' tools need:
// one closed object with every reference resolved, no lists of types, and the member pow when a
// proof of work is accepted. Model providers refuse a whole tool list for smaller deviations.
//
// It is short, since a model reads the whole list before it does anything (contract §8): names,
// types, what each member means, choices and limits. Patterns and examples are in /openapi.json,
// and what has a tag "as" is described where the tag says, in the tool of that name for the elements of a list.
// An object that is there twice is described once. It allows every value that the operation accepts.
func (s *Schemas) ToolInput(op *protocol.Operation) (json.RawMessage, error) {
	in, err := s.Input(op)
	if err != nil {
		return nil, err
	}
	for _, f := range reflect.VisibleFields(op.In) {
		member, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		p, like := in.Properties[member], f.Tag.Get("as")
		switch {
		case like == "":
		case p.Items != nil:
			p.Items = &huma.Schema{Type: huma.TypeObject, Description: "As the arguments of " + like + "."}
		default:
			in.Properties[member] = alike(p, like)
		}
	}
	shorten(in)
	once("", in, map[string]string{})
	in.AdditionalProperties = false
	if op.Access&protocol.Proof != 0 {
		in.Properties["pow"] = &huma.Schema{
			Description: `A solved ` + protocol.GetChallenge.Name + `: {"challenge": as you got it, "solution": {"counter": n}}, or the same as base64.`,
			AnyOf:       []*huma.Schema{{Type: huma.TypeObject}, {Type: huma.TypeString}},
		}
	}
	if op.Confirm {
		in.Properties["confirmId"] = &huma.Schema{Type: huma.TypeString, Description: "Of the refusal: what became of it."}
	}
	return encodeTool(in)
}

// Input returns the whole schema of an operation's input, with every reference resolved.
func (s *Schemas) Input(op *protocol.Operation) (*huma.Schema, error) {
	in, err := s.inline(op.In)
	if err != nil {
		return nil, fmt.Errorf("input of %s: %w", op.Name, err)
	}
	return in, nil
}

// Names reports whether a value of the type, or anything in it, has a member of that name.
func (s *Schemas) Names(t reflect.Type, member string) bool {
	out, err := s.inline(t)
	return err == nil && names(out, member)
}

func names(s *huma.Schema, member string) bool {
	if s.Properties[member] != nil || s.Items != nil && names(s.Items, member) {
		return true
	}
	within := func(s *huma.Schema) bool { return names(s, member) }
	return slices.ContainsFunc(s.AnyOf, within) || slices.ContainsFunc(slices.Collect(maps.Values(s.Properties)), within)
}

// alike returns an object that is described elsewhere.
func alike(p *huma.Schema, where string) *huma.Schema {
	return &huma.Schema{Type: huma.TypeObject, Description: strings.TrimSpace(p.Description + " As " + where + ".")}
}

// once keeps the first description of each object in the schema at a path, and replaces further objects with the same members by "As <its path>.".
func once(path string, s *huma.Schema, seen map[string]string) {
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		at, p := strings.TrimPrefix(path+"."+name, "."), s.Properties[name]
		members, err := json.Marshal(p.Properties)
		switch first := seen[string(members)]; {
		case err != nil:
		case first != "":
			s.Properties[name] = alike(p, first)
			continue
		case p.Type == huma.TypeObject && len(members) > leastShared:
			seen[string(members)] = at
		}
		once(at, p, seen)
		if p.Items != nil {
			once(at, p.Items, seen)
		}
	}
}

// leastShared is the length of the description of an object's members from which on a reference is much shorter.
const leastShared = 120

// unbounded is a limit that no sensible number reaches.
const unbounded = 1e9

// shorten removes from an inlined schema what a model does without.
func shorten(s *huma.Schema) {
	s.Examples, s.Pattern, s.UniqueItems, s.AdditionalProperties = nil, "", false, nil
	if s.Minimum != nil && (*s.Minimum == 0 || *s.Minimum == 1) { // of counts and amounts
		s.Minimum = nil
	}
	if s.Maximum != nil && *s.Maximum >= unbounded {
		s.Maximum, s.Minimum = nil, nil
	}
	if s.Format == "date" {
		s.MaxLength = nil
	}
	if s.Format == "uri" {
		s.Format = ""
	}
	if s.MinLength != nil && *s.MinLength == 1 {
		s.MinLength = nil
	}
	if s.Items != nil {
		shorten(s.Items)
	}
	for _, p := range s.Properties {
		shorten(p)
	}
	for _, option := range s.AnyOf {
		shorten(option)
	}
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

func (s *Schemas) inline(t reflect.Type) (*huma.Schema, error) {
	schema := s.Of(t)
	w := inliner{s, nil}
	out, err := w.copy(schema)
	if err == nil && out.Type != huma.TypeObject {
		err = fmt.Errorf("%s is not an object", t)
	}
	return out, err
}

// inliner copies a schema and resolves its references on the way.
type inliner struct {
	s      *Schemas
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
