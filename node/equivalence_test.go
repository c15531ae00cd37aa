package node

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"stoa/node/client"
	"stoa/node/httpapi"
	"stoa/protocol"
	"stoa/protocol/pow"
)

// outcome is what a caller learns from one call, whatever the door: a result,
// or a code with the pointers of its faults.
type outcome struct {
	Code   protocol.Code
	Faults []string // pointers, sorted
	JSON   string   // of a result
}

// doors are the ways to call one node in the equivalence test.
type doors struct {
	t     *testing.T
	n     *Node
	house *house
	token string
	mine  *client.Client // with the token
	paid  *client.Client // with a proof of work
}

func newDoors(t *testing.T) *doors {
	d := &doors{t: t, n: startNode(t)}
	d.house = &house{d.n, t}
	hostedAgent(t, d.n, "asha")
	var err error
	d.token, _, err = d.n.Admin().CreateToken(t.Context(), "asha", "equivalence", 0)
	require.NoError(t, err)
	d.mine, err = client.New(d.n.URL, client.Options{Token: d.token})
	require.NoError(t, err)
	d.paid, err = client.New(d.n.URL, client.Options{Workers: 1})
	require.NoError(t, err)
	return d
}

// A call is one operation with its arguments and who makes it.
type call struct {
	op    *protocol.Operation
	args  map[string]any
	token bool // as an owner; else with a proof of work where one is taken
}

// overHTTP sends a call to its route. ok is false for what no request to that
// route can say: a path without one of its parameters.
func (d *doors) overHTTP(c call) (o outcome, ok bool) {
	d.t.Helper()
	rest := maps.Clone(c.args)
	path := c.op.HTTP.Path
	for _, name := range httpapi.PathParams(path) {
		s, isText := rest[name].(string)
		if !isText || s == "" || s == "." || s == ".." {
			return o, false
		}
		path = strings.Replace(path, "{"+name+"}", url.PathEscape(s), 1)
		delete(rest, name)
	}
	var body io.Reader
	if c.op.HTTP.Method == "POST" || c.op.HTTP.Method == "PUT" {
		raw, err := json.Marshal(rest)
		require.NoError(d.t, err)
		body = bytes.NewReader(raw)
	} else {
		query := url.Values{}
		for name, v := range rest {
			if list, isList := v.([]any); isList {
				var parts []string
				for _, e := range list {
					parts = append(parts, fmt.Sprint(e))
				}
				v = strings.Join(parts, ",")
			}
			query.Set(name, fmt.Sprint(v))
		}
		path += "?" + query.Encode()
	}
	r, err := http.NewRequestWithContext(d.t.Context(), c.op.HTTP.Method, d.n.URL+path, body)
	require.NoError(d.t, err)
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	d.identify(r.Header, c)
	res, err := http.DefaultClient.Do(r)
	require.NoError(d.t, err)
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	require.NoError(d.t, err)
	if res.StatusCode < 300 {
		require.Equal(d.t, c.op.HTTP.Status, res.StatusCode)
		return outcome{JSON: string(raw)}, true
	}
	var p httpapi.Problem
	require.NoError(d.t, json.Unmarshal(raw, &p), "%s %s: %s", c.op.HTTP.Method, path, raw)
	return refusal(p.Code, p.Errors), true
}

func (d *doors) identify(head http.Header, c call) {
	if c.token {
		head.Set("Authorization", "Bearer "+d.token)
	} else if c.op.Access&protocol.Proof != 0 {
		head.Set("Proof-Of-Work", d.house.proof(c.op.Purpose))
	}
}

// overMCP makes the same call as a tool call, with the proof among its arguments.
func (d *doors) overMCP(c call) outcome {
	d.t.Helper()
	args := maps.Clone(c.args)
	var headers []string
	if c.token {
		headers = []string{"Authorization", "Bearer " + d.token}
	} else if c.op.Access&protocol.Proof != 0 {
		s, err := pow.Parse([]byte(d.house.proof(c.op.Purpose)))
		require.NoError(d.t, err)
		args["pow"] = s
	}
	raw, err := json.Marshal(args)
	require.NoError(d.t, err)
	a := d.house.tool(c.op.Name, string(raw), headers...)
	switch {
	case a.IsError:
		return refusal(a.Refused.Code, a.Refused.Errors)
	case c.op.Media != "":
		require.Empty(d.t, a.Structured)
		return outcome{JSON: a.Content[0].Text}
	}
	require.JSONEq(d.t, a.Content[0].Text, string(a.Structured))
	return outcome{JSON: string(a.Structured)}
}

// overCall makes the same call as stoa call does.
func (d *doors) overCall(c call) outcome {
	d.t.Helper()
	caller := d.paid
	if c.token {
		caller = d.mine
	}
	res, err := caller.Call(d.t.Context(), c.op.Name, c.args)
	if err == nil {
		return outcome{JSON: string(res.Body)}
	}
	e, ok := errors.AsType[*protocol.Error](err)
	require.True(d.t, ok, "%v", err)
	return refusal(e.Code, e.Faults)
}

func refusal(code protocol.Code, faults []protocol.Fault) outcome {
	o := outcome{Code: code}
	for _, f := range faults {
		o.Faults = append(o.Faults, f.Pointer)
	}
	slices.Sort(o.Faults)
	return o
}

// TestEquivalence calls every declared operation over HTTP, MCP and the client
// behind stoa call with the same input: its example, the example with names of
// things that are there, and inputs that each break one or two rules of its
// schema. The result, or the code and the set of faults, must be the same.
func TestEquivalence(t *testing.T) {
	t.Parallel()
	d := newDoors(t)
	schemas := mcpSchemas(t, d.house)
	for _, op := range protocol.Operations() {
		if op.Doors&protocol.HTTP == 0 || op.Doors&protocol.MCP == 0 {
			continue
		}
		t.Run(op.Name, func(t *testing.T) {
			d := *d
			d.t, d.house = t, &house{d.n, t}
			example := members(t, op.Example)
			for _, token := range []bool{false, true} {
				if token && op.Access&protocol.Session == 0 {
					continue
				}
				d.compare(call{op, example, token}, nil)
				d.compareWorld(op, example, token, schemas[op.Name].output)
				for name, args := range broken(example, schemas[op.Name].input, op) {
					t.Run(fmt.Sprintf("%s token=%t", name, token), func(t *testing.T) {
						d := d
						d.t, d.house = t, &house{d.n, t}
						got := d.compare(call{op, args, token}, nil)
						if op.Access == protocol.Anonymous || op.Access&protocol.Proof != 0 || token {
							require.Equal(t, protocol.Validation, got.Code)
							require.NotEmpty(t, got.Faults)
						} else {
							require.Equal(t, protocol.Unauthorized, got.Code, "who may not is not told what is wrong")
						}
					})
				}
			}
		})
	}
}

// compareWorld calls with names of things that are there. A write gets a post of
// its own for each door, so that each finds the same world.
func (d *doors) compareWorld(op *protocol.Operation, example map[string]any, token bool, output *jsonschema.Schema) {
	d.t.Helper()
	world := func() map[string]any {
		post := d.house.as(d.token)
		return replaced(example, func(name, s string) string {
			if strings.HasPrefix(s, "post_") {
				return post.ID
			}
			return s
		})
	}
	if op.ReadOnly {
		args := world()
		fixed := func() map[string]any { return args }
		d.compareEach(op, fixed, token, output)
		return
	}
	d.compareEach(op, world, token, output)
}

// as posts as the owner of asha, who may take the post back.
func (h *house) as(token string) (p protocol.Post) {
	h.t.Helper()
	a := h.ask("POST", "/api/public/board", goodPost, "Authorization", "Bearer "+token)
	require.Equal(h.t, 201, a.Code, "%s", a.Body)
	a.into(&p)
	return p
}

func (d *doors) compare(c call, output *jsonschema.Schema) outcome {
	d.t.Helper()
	return d.compareEach(c.op, func() map[string]any { return c.args }, c.token, output)
}

func (d *doors) compareEach(op *protocol.Operation, args func() map[string]any, token bool, output *jsonschema.Schema) outcome {
	d.t.Helper()
	overMCP := d.overMCP(call{op, args(), token})
	overCall := d.overCall(call{op, args(), token})
	overHTTP, said := d.overHTTP(call{op, args(), token})
	if output != nil && overMCP.Code == "" {
		valid(d.t, output, []byte(overMCP.JSON))
	}
	exact := op.ReadOnly && !op.NoStore
	for _, o := range []*outcome{&overMCP, &overCall, &overHTTP} {
		o.JSON = plain(d.t, op, o.JSON, exact)
	}
	if !said {
		// No request can say it, so stoa call refuses it itself, in the node's words.
		require.Equal(d.t, protocol.Validation, overCall.Code)
		if overMCP.Code == protocol.Validation {
			require.Subset(d.t, overMCP.Faults, overCall.Faults)
		}
		return overMCP
	}
	require.Equal(d.t, overMCP, overCall, "stoa call")
	require.Equal(d.t, overMCP, overHTTP, "HTTP")
	return overMCP
}

// masks hide what two calls cannot have in common.
var masks = []struct {
	what *regexp.Regexp
	with string
}{
	{regexp.MustCompile(`\b([a-z]+)_[0-7][0-9a-hjkmnp-tv-z]{25}\b`), "${1}_ID"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`), "TIME"},
	{regexp.MustCompile(`\b[0-9a-f]{32,}\b`), "HEX"},
	{regexp.MustCompile(`\b\d{10}\b`), "UNIX"},
	{regexp.MustCompile(`stoa_[0-9A-Za-z_-]{16,}|"[0-9A-Za-z_-]{22,}"`), "SECRET"},
}

// plain brings a result into a form that can be compared: members in order, and
// for writes and challenges what is new each time masked.
func plain(t *testing.T, op *protocol.Operation, result string, exact bool) string {
	t.Helper()
	if op.HTTP.Status == http.StatusNoContent && (result == "" || result == "{}") {
		return "" // no content over HTTP is an object without members over MCP
	}
	if result == "" || op.Media != "" {
		return result
	}
	var v any
	require.NoError(t, json.Unmarshal([]byte(result), &v))
	raw, err := json.Marshal(v)
	require.NoError(t, err)
	result = string(raw)
	if exact {
		return result
	}
	for _, m := range masks {
		result = m.what.ReplaceAllString(result, m.with)
	}
	return result
}

func members(t *testing.T, v any) map[string]any {
	t.Helper()
	raw, err := json.Marshal(v)
	require.NoError(t, err)
	m := map[string]any{}
	require.NoError(t, json.Unmarshal(raw, &m))
	return m
}

func replaced(args map[string]any, f func(name, s string) string) map[string]any {
	out := maps.Clone(args)
	for name, v := range out {
		if s, ok := v.(string); ok {
			out[name] = f(name, s)
		}
	}
	return out
}

// broken makes inputs that break the schema of an operation: an unknown member,
// and for each member the absence of what is required, a wrong type, too much, a
// wrong pattern, a value that is not in the list; and each of these beside an
// unknown member. A path or a query holds text only, so that no number can stand
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
