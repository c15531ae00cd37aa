package nodetest

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"
)

// Compile reads a schema that a node serves with an independent checker.
func Compile(t testing.TB, document []byte, at string) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(document))
	require.NoError(t, err)
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	require.NoError(t, c.AddResource("https://schema.example/doc.json", doc))
	s, err := c.Compile("https://schema.example/doc.json" + at)
	require.NoError(t, err)
	return s
}

// Valid checks JSON against a schema.
func Valid(t testing.TB, s *jsonschema.Schema, raw []byte) {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	require.NoError(t, err, "%s", raw)
	require.NoError(t, s.Validate(v), "%s", raw)
}

// Encoded is JSON; a json.RawMessage is there as it is.
func Encoded(v any) []byte {
	raw, err := json.Marshal(v)
	if err != nil {
		return []byte(`{}`)
	}
	return raw
}

// Members is a value as a JSON object.
func Members(t *testing.T, v any) map[string]any {
	t.Helper()
	raw, err := json.Marshal(v)
	require.NoError(t, err)
	m := map[string]any{}
	require.NoError(t, json.Unmarshal(raw, &m))
	return m
}
