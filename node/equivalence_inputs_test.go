package node_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"stoa/node/door/httpapi"
	"stoa/protocol"
)

// broken makes inputs that break the schema of an operation: an unknown member,
// and for each member the absence of what is required, a wrong type, too much, a
// wrong pattern, a value that is not in the list; and each of these next to an
// unknown member. A path or a query holds text only, so that no number can be
// there for text.
func broken(example map[string]any, schema map[string]any, op *protocol.Operation) map[string]map[string]any {
	cases := map[string]map[string]any{}
	with := func(what, name string, v any) {
		args := maps.Clone(example)
		args[name] = v
		cases[what+" "+name] = args
	}
	with("unknown", "nonsense", "x")
	required, _ := schema["required"].([]any)
	properties, _ := schema["properties"].(map[string]any)
	inBody := op.HTTP.Method == "POST" || op.HTTP.Method == "PUT"
	inPath := httpapi.PathParams(op.HTTP.Path)
	for name, p := range properties {
		if name == "pow" {
			continue
		}
		p := p.(map[string]any)
		if slices.Contains(required, any(name)) {
			args := maps.Clone(example)
			delete(args, name)
			cases["without "+name] = args
		}
		text := inBody && !slices.Contains(inPath, name)
		switch p["type"] {
		case "string":
			if text {
				with("number for", name, 5)
				with("list for", name, []any{"a", "b"})
			}
			if most, ok := p["maxLength"].(float64); ok {
				with("too long", name, strings.Repeat("x", int(most)+1))
			}
			if least, ok := p["minLength"].(float64); ok && least > 0 {
				with("empty", name, "")
			}
			if p["pattern"] != nil {
				with("wrong shape", name, "%% no %%")
			}
			if p["enum"] != nil {
				with("not one of", name, "nonsense")
			}
		case "integer", "number":
			with("word for", name, "many")
			if most, ok := p["maximum"].(float64); ok {
				with("too large", name, int(most)+1)
			}
			if least, ok := p["minimum"].(float64); ok {
				with("too small", name, int(least)-1)
			}
		case "boolean":
			with("word for", name, "perhaps")
		case "array":
			if text {
				with("word for", name, "x")
				with("list of lists", name, []any{[]any{}})
			}
			if most, ok := p["maxItems"].(float64); ok {
				var items []any
				for i := range int(most) + 1 {
					items = append(items, fmt.Sprint("a", i))
				}
				with("too many", name, items)
			}
		}
	}
	for _, what := range slices.Sorted(maps.Keys(cases)) {
		if name := strings.Fields(what)[len(strings.Fields(what))-1]; name != "nonsense" {
			args := maps.Clone(cases[what])
			args["nonsense"] = "x"
			cases["unknown and "+what] = args
		}
	}
	return cases
}
