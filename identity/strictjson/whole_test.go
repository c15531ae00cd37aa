package strictjson_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/identity/strictjson"
)

func TestWhole(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`{"limit":20.0}`: `{"limit":20}`, `2e1`: `20`, `2E+1`: `20`, `200e-1`: `20`, `0.2e2`: `20`, `-20.00`: `-20`, `0.0`: `0`, `-0e5`: `0`, `0e999999999999`: `0`,
		`[1.0,2,3.0]`: `[1,2,3]`, `{"a":1.0,"b":{"c":[2.0]}}`: `{"a":1,"b":{"c":[2]}}`, ` 1.0 `: ` 1 `,
		`1e15`: `1000000000000000`, `9007199254740992.0`: `9007199254740992`, `1e17`: `1e17`, `1e400`: `1e400`,
		`1e99999999999999999999`: `1e99999999999999999999`, `1e-99999999999999999999`: `1e-99999999999999999999`,
		`120.50`: `120.50`, `1.5`: `1.5`, `120.0000000000000001`: `120.0000000000000001`, `15e-1`: `15e-1`, `12345678901234567890`: `12345678901234567890`,
		`"20.0"`: `"20.0"`, `{"1.0":"2.0"}`: `{"1.0":"2.0"}`, `"a\"1.0\\"`: `"a\"1.0\\"`, `["\\",1.0,"\""]`: `["\\",1,"\""]`, `{"q":"3.0 kg"}`: `{"q":"3.0 kg"}`,
		`true`: `true`, `null`: `null`, `[false,1.0]`: `[false,1]`, `{}`: `{}`,
	} {
		require.NoError(t, strictjson.Check([]byte(in), strictjson.Limits{}), in)
		require.Equal(t, want, string(strictjson.Whole([]byte(in))), in)
	}
}

// Whatever is JSON stays the same JSON.
func FuzzWhole(f *testing.F) {
	for _, s := range []string{`{"a":[1.0,"2.0\\\"",-3e2]}`, `1e400`, `[0.0,1e1]`, `"\u0022 1.0"`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		if strictjson.Check(raw, strictjson.Limits{}) != nil {
			return
		}
		out := strictjson.Whole(raw)
		require.NoError(t, strictjson.Check(out, strictjson.Limits{}))
		var before, after any
		if json.Unmarshal(raw, &before) != nil {
			return // a number that no double holds
		}
		require.NoError(t, json.Unmarshal(out, &after))
		if raw[0] != '-' { // -0 is 0
			require.Equal(t, before, after)
		}
	})
}
