package main

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

// Fields that are objects, or lists of objects, are given as JSON.
func TestCall_ObjectFields(t *testing.T) {
	for want, args := range map[string][]string{
		`{"handle":"asha","jwk":{"kty":"OKP","x":"abc"}}`: {"add_key", "--handle", "asha", "--jwk", `{"kty":"OKP","x":"abc"}`},
		`{"handle":"asha","hours":[{"day":"mo"}]}`:        {"put_merchant", "--handle", "asha", "--hours=" + `[{"day":"mo"}]`},
		`{"body":"b","kind":"offer","tags":["a","b","c"],"title":"{}"}`: {"post_to_board", "--kind", "offer", "--title", "{}",
			"--body", "b", "--tags", "a,b", "--tags", "c"},
	} {
		in, err := parseCall(args)
		require.NoError(t, err)
		got, err := json.Marshal(in.args)
		require.NoError(t, err)
		require.JSONEq(t, want, string(got))
	}
	_, err := parseCall([]string{"add_key", "--jwk", "kty=OKP"})
	require.ErrorContains(t, err, "--jwk")
	require.ErrorContains(t, err, "not JSON")
}
