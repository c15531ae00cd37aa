package httpapi

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// components is where a description has what several places refer to.
const components = "#/components/"

// tidy moves the responses and parameters that several operations have in common to the
// components, and removes the components that nothing refers to, such as inputs whose members
// became parameters: a reader pays by the byte (contract §8).
func tidy(raw []byte) ([]byte, error) {
	var doc map[string]any
	if err := json.Unmarshal(raw, &doc); err != nil {
		return nil, fmt.Errorf("read the OpenAPI description: %w", err)
	}
	each(doc["paths"], shorten)
	each(doc["components"], shorten)
	share(doc)
	dropUnused(doc)
	return json.Marshal(doc)
}

// shorten deletes what says nothing: the width of a number, and the description and the example of a parameter once more in its schema.
func shorten(member string, of map[string]any) {
	switch format, _ := of[member].(string); {
	case member == "format" && (format == "int32" || format == "int64" || format == "double"):
		delete(of, member)
	case member == "schema" && of["in"] != nil:
		schema, ok := of[member].(map[string]any)
		if ok && schema["description"] == of["description"] {
			delete(schema, "description")
		}
		if ok && of["example"] != nil {
			delete(schema, "examples")
		}
	}
}

// A place holds a value that another operation may have too.
type place struct {
	value any
	set   func(any)
}

// share replaces responses and parameters that are there twice by references.
func share(doc map[string]any) {
	responses, parameters := map[string][]place{}, map[string][]place{}
	note := func(in map[string][]place, value any, set func(any)) {
		if raw, err := json.Marshal(value); err == nil && !strings.HasPrefix(string(raw), `{"$ref"`) {
			in[string(raw)] = append(in[string(raw)], place{value, set})
		}
	}
	each(doc["paths"], func(member string, of map[string]any) {
		switch listed := of[member].(type) {
		case map[string]any:
			for status, r := range listed {
				if member == "responses" && status >= "3" { // what succeeds is each operation's own
					note(responses, r, func(v any) { listed[status] = v })
				}
			}
		case []any:
			for i, p := range listed {
				if member == "parameters" {
					note(parameters, p, func(v any) { listed[i] = v })
				}
			}
		}
	})
	hoist(doc, "responses", responses, func(_ string, v map[string]any) string {
		about := strings.ToLower(fmt.Sprint(v["description"]))
		words := strings.Fields(about[:strings.IndexAny(about+".", ",.:")])
		return strings.Join(words[:min(len(words), 3)], "-")
	})
	hoist(doc, "parameters", parameters, func(_ string, v map[string]any) string { return fmt.Sprint(v["name"]) })
}

// shareSchemas replaces the schemas of members, elements and parameters that are there several times by references, where that is shorter:
// first those that are the same, then those that differ by their descriptions, which stay beside the reference.
func shareSchemas(doc map[string]any) {
	shareBy(doc, func(s map[string]any) (map[string]any, any) { return s, nil })
	shareBy(doc, func(s map[string]any) (map[string]any, any) {
		without := maps.Clone(s)
		delete(without, "description")
		return without, s["description"]
	})
}

// shareBy shares what split leaves of schemas; what it takes off a schema stays where it is.
func shareBy(doc map[string]any, split func(map[string]any) (shared map[string]any, description any)) {
	schemas, names := map[string][]place{}, map[string]string{}
	note := func(name string, value any, set func(any)) {
		s, ok := value.(map[string]any)
		if !ok {
			return
		}
		s, description := split(s)
		raw, err := json.Marshal(s)
		if err != nil || s["$ref"] != nil && len(s) == 1 {
			return
		}
		schemas[string(raw)] = append(schemas[string(raw)], place{s, func(v any) {
			if description != nil {
				v.(map[string]any)["description"] = description
			}
			set(v)
		}})
		if names[string(raw)] == "" {
			names[string(raw)] = name
		}
	}
	members := map[uintptr]bool{} // the objects that have members by the names of an input or result, such as items
	each(doc, func(member string, of map[string]any) {
		within, ok := of[member].(map[string]any)
		switch {
		case !ok || members[reflect.ValueOf(of).Pointer()]:
		case member == "properties":
			members[reflect.ValueOf(within).Pointer()] = true
			for _, name := range slices.Sorted(maps.Keys(within)) {
				note(name, within[name], func(v any) { within[name] = v })
			}
		case member == "items" || member == "schema":
			note(member, within, func(v any) { of[member] = v })
		}
	})
	maps.DeleteFunc(schemas, func(raw string, in []place) bool {
		ref := len(`{"$ref":"`+components+`schemas/"}`) + len(names[raw])
		return len(in)*ref+len(raw)+len(names[raw])+4 >= len(in)*len(raw)
	})
	hoist(doc, "schemas", schemas, func(raw string, _ map[string]any) string { return names[raw] })
}

// hoist moves the values with several places to the components of a kind, under names that do not
// depend on the order in which they were found.
func hoist(doc map[string]any, kind string, found map[string][]place, name func(raw string, v map[string]any) string) {
	owner, _ := doc["components"].(map[string]any)
	all, _ := owner[kind].(map[string]any)
	if all == nil {
		all = map[string]any{}
	}
	for _, raw := range slices.Sorted(maps.Keys(found)) {
		places := found[raw]
		if len(places) < 2 {
			continue
		}
		value, _ := places[0].value.(map[string]any)
		as := name(raw, value)
		for n := 2; all[as] != nil; n++ {
			as = fmt.Sprintf("%s-%d", name(raw, value), n)
		}
		all[as] = value
		for _, p := range places {
			p.set(map[string]any{"$ref": components + kind + "/" + as})
		}
	}
	if len(all) > 0 {
		owner[kind] = all
	}
}

// each calls visit for every member of every object in a value.
func each(v any, visit func(member string, of map[string]any)) {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			each(e, visit)
		}
	case map[string]any:
		for _, member := range slices.Sorted(maps.Keys(v)) {
			visit(member, v)
			each(v[member], visit)
		}
	}
}

// dropUnused removes the components that nothing refers to, but for the security schemes, which
// are referred to by name.
func dropUnused(doc map[string]any) {
	all, _ := doc["components"].(map[string]any)
	used := map[string]any{}
	refer(all, doc["paths"], used)
	for kind, listed := range all {
		if listed, ok := listed.(map[string]any); ok && kind != "securitySchemes" {
			maps.DeleteFunc(listed, func(name string, _ any) bool { return used[components+kind+"/"+name] == nil })
		}
	}
}

// refer adds to used what a value refers to, by reference, directly or through other components.
func refer(all map[string]any, v any, used map[string]any) {
	each(v, func(member string, of map[string]any) {
		ref, _ := of[member].(string)
		if member != "$ref" || used[ref] != nil {
			return
		}
		used[ref] = true
		if kind, name, ok := strings.Cut(strings.TrimPrefix(ref, components), "/"); ok {
			listed, _ := all[kind].(map[string]any)
			refer(all, listed[name], used)
		}
	})
}
