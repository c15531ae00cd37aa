package main

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/protocol/must"
)

// Fields that are objects, or lists of objects, are given as JSON.
func TestCall_ObjectFields(t *testing.T) {
	for want, args := range map[string][]string{
		`{"handle":"asha","jwk":{"kty":"OKP","x":"abc"}}`: {"add_key", "--handle", "asha", "--jwk", `{"kty":"OKP","x":"abc"}`},
		`{"handle":"asha","hours":[{"day":"mo"}]}`:        {"put_merchant", "--handle", "asha", "--hours=" + `[{"day":"mo"}]`},
		`{"body":"b","kind":"offer","tags":["a","b","c"],"title":"{}"}`: {"post_to_board", "--kind", "offer", "--title", "{}",
			"--body", "b", "--tags", "a,b", "--tags", "c"},
	} {
		require.JSONEq(t, want, string(must.Get(json.Marshal(must.Get(parseCall(args))(t).args))(t)))
	}
	_, err := parseCall([]string{"add_key", "--jwk", "kty=OKP"})
	require.ErrorContains(t, err, "--jwk")
	require.ErrorContains(t, err, "not JSON")
}
