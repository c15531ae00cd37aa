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
	return json.Marshal(doc)
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
		if s, ok := s.(map[string]any); ok && asked[components+"schemas/"+name] == nil {
			delete(s, "additionalProperties")
		}
	}
}
