package node_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"stoa/node/nodetest"
	"stoa/protocol"
)

func newOpenAPI(t testing.TB) *nodetest.OpenAPI {
	t.Helper()
	raw, err := os.ReadFile("../schemas/openapi.json")
	require.NoError(t, err)
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	require.NoError(t, err)
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	require.NoError(t, c.AddResource("openapi.json", doc))
	return &nodetest.OpenAPI{Compiler: c, Doc: doc.(map[string]any), Compiled: map[string]*jsonschema.Schema{}}
}

// general reports whether the default response of an operation names the status and the code of a problem.
func general(p *nodetest.OpenAPI, t testing.TB, response any, status int, body []byte) bool {
	t.Helper()
	var problem struct{ Code protocol.Code }
	require.NoError(t, json.Unmarshal(body, &problem))
	said, _ := follow(p, response).(map[string]any)["description"].(string)
	at := "" // a status holds for the codes after it
	for _, word := range strings.FieldsFunc(said, func(r rune) bool { return strings.ContainsRune(",:. ", r) }) {
		if _, err := strconv.Atoi(word); err == nil {
			at = word
		} else if at == strconv.Itoa(status) && word == string(problem.Code) {
			return true
		}
	}
	return false
}

// follow returns what a value of the document refers to, or the value.
func follow(p *nodetest.OpenAPI, v any) any {
	if ref, ok := v.(map[string]any)["$ref"].(string); ok {
		v = p.Doc
		for step := range strings.SplitSeq(strings.TrimPrefix(ref, "#/"), "/") {
			v = v.(map[string]any)[step]
		}
	}
	return v
}

// check holds an answer to what is published for it: the status is listed, the
// media type is that of the status, and the body is valid.
func checkAnswer(p *nodetest.OpenAPI, t testing.TB, op *protocol.Operation, res *http.Response, body []byte, about string) {
	t.Helper()
	at := []string{"paths", op.HTTP.Path, strings.ToLower(op.HTTP.Method), "responses", strconv.Itoa(res.StatusCode)}
	var v any = p.Doc
	for i, step := range at {
		within := v.(map[string]any)
		if v = within[step]; v == nil && i == len(at)-1 && general(p, t, within["default"], res.StatusCode, body) {
			at[i], v = "default", within["default"]
		}
		require.NotNil(t, v, "%s: %d is not listed at %s: %s", about, res.StatusCode, step, body)
	}
	if ref, ok := v.(map[string]any)["$ref"].(string); ok {
		at, v = strings.Split(strings.TrimPrefix(ref, "#/"), "/"), follow(p, v)
	}
	content, _ := v.(map[string]any)["content"].(map[string]any)
	if len(content) == 0 {
		require.Empty(t, body, about)
		return
	}
	media, _, _ := strings.Cut(res.Header.Get("Content-Type"), ";")
	var schema any
	for listed, c := range content {
		if base, _, _ := strings.Cut(listed, ";"); base == media {
			schema = c
			at = append(at, "content", listed, "schema")
		}
	}
	require.NotNil(t, schema, "%s: media type %s is not listed", about, media)
	if strings.HasSuffix(media, "json") {
		valid(p, t, at, body, about)
	}
}

// result holds a result of another door to what is published for the operation over HTTP.
func result(p *nodetest.OpenAPI, t testing.TB, op *protocol.Operation, body []byte, about string) {
	t.Helper()
	if op.Media == "" && op.HTTP.Status != http.StatusNoContent {
		valid(p, t, []string{"paths", op.HTTP.Path, strings.ToLower(op.HTTP.Method), "responses", strconv.Itoa(op.HTTP.Status),
			"content", "application/json", "schema"}, body, about)
	}
}

// valid validates a body by the schema at a path of the document.
func valid(p *nodetest.OpenAPI, t testing.TB, at []string, body []byte, about string) {
	t.Helper()
	for i, step := range at {
		at[i] = strings.NewReplacer("~", "~0", "/", "~1", "{", "%7B", "}", "%7D").Replace(step)
	}
	address := "openapi.json#/" + strings.Join(at, "/")
	if p.Compiled[address] == nil {
		var err error
		p.Compiled[address], err = p.Compiler.Compile(address)
		require.NoError(t, err)
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	require.NoError(t, err, about)
	require.NoError(t, p.Compiled[address].Validate(value), "%s: %s", about, body)
}
