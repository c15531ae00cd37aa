package httpapi

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"stoa/protocol"
)

// PublicOpenAPI returns the part of a description that everybody's operations need, without
// indentation, because readers pay by the byte.
func PublicOpenAPI(whole []byte) ([]byte, error) {
	var doc map[string]any
	if err := json.Unmarshal(whole, &doc); err != nil {
		return nil, fmt.Errorf("read the OpenAPI description: %w", err)
	}
	open := map[string]bool{}
	for _, op := range protocol.OperationsFor(protocol.Everybody, protocol.HTTP) {
		open[op.HTTP.Path] = true
	}
	paths, _ := doc["paths"].(map[string]any)
	maps.DeleteFunc(paths, func(path string, _ any) bool { return !open[path] })
	tags, _ := doc["tags"].([]any)
	doc["tags"] = slices.DeleteFunc(tags, func(t any) bool {
		name := t.(map[string]any)["name"]
		return name == "owner" || name == "operator"
	})
	dropUnused(doc)
	openResults(doc)
	shareSchemas(doc)
	shareResults(doc)
	return json.Marshal(doc)
}

// shareResults replaces results that several operations have by references.
func shareResults(doc map[string]any) {
	found := map[string][]place{}
	each(doc["paths"], func(member string, of map[string]any) {
		listed, _ := of[member].(map[string]any)
		for status, r := range listed {
			if raw, err := json.Marshal(r); member == "responses" && status < "3" && err == nil && len(raw) > 60 {
				found[string(raw)] = append(found[string(raw)], place{r, func(v any) { listed[status] = v }})
			}
		}
	})
	maps.DeleteFunc(found, func(_ string, in []place) bool { return len(in) < 3 })
	hoist(doc, "responses", found, func(string, map[string]any) string { return "ok" })
}

// openResults lets the schemas that no request has take further members: results may have more of
// them later (contract §1).
func openResults(doc map[string]any) {
	all, _ := doc["components"].(map[string]any)
	asked := map[string]any{}
	paths, _ := doc["paths"].(map[string]any)
	for _, methods := range paths {
		for _, op := range methods.(map[string]any) { // not what is sent to a callback, which is a result too
			refer(all, op.(map[string]any)["requestBody"], asked)
		}
	}
	schemas, _ := all["schemas"].(map[string]any)
	for name, s := range schemas {
		s, ok := s.(map[string]any)
		if !ok || asked[components+"schemas/"+name] != nil {
			continue
		}
		delete(s, "additionalProperties")
		members, _ := s["properties"].(map[string]any)
		for name, m := range members {
			if m, ok := m.(map[string]any); ok && m["type"] == "boolean" && m["description"] == "Always true." {
				members[name] = map[string]any{"const": true}
			}
		}
	}
}
