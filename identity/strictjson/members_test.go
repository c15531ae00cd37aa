package strictjson_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/identity/strictjson"
	"stoa/protocol/must"
)

func TestMembers(t *testing.T) {
	t.Parallel()
	for _, in := range []string{
		`{}`, ` { "a" : 1 , "b" :[ {"c":2}, "x" ] } `, `{"a\n":"\ud83d\ude00","b":"\u0041"}`, `{"é":null,"a":{"a":{}}}`, `{"":""}`, `{"a":-1.5e3,"b":true}`,
	} {
		require.NoError(t, strictjson.Check([]byte(in), strictjson.Limits{}), in)
		want := must.JSON[map[string]json.RawMessage]([]byte(in))(t)
		require.Equal(t, want, strictjson.Members([]byte(in)), in)
	}
	for _, in := range []string{`[]`, `"x"`, `null`, `1`, ` true`} {
		require.Nil(t, strictjson.Members([]byte(in)), in)
	}
}

func TestString(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{`""`: "", `"x y"`: "x y", `"é\"\\\u0041"`: `é"\A`, `"\ud83d\ude00"`: "😀"} {
		got, ok := strictjson.String([]byte(in))
		require.True(t, ok, in)
		require.Equal(t, want, got)
	}
	for _, in := range []string{`1`, `null`, `["x"]`, `{}`, ``} {
		_, ok := strictjson.String([]byte(in))
		require.False(t, ok, in)
	}
}

// FuzzMembers compares with the decoder of the standard library.
func FuzzMembers(f *testing.F) {
	for _, s := range []string{`{"a":[1.0,"\\"],"b":{"a":{}}}`, `{"\u0061":1}`, `{ "" : "\ud83d\ude00" }`, `null`, `"x"`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		if strictjson.Check(raw, strictjson.Limits{}) != nil {
			return
		}
		var want map[string]json.RawMessage
		if json.Unmarshal(raw, &want) != nil {
			want = nil
		}
		require.Equal(t, want, strictjson.Members(raw))
		var text string
		got, ok := strictjson.String(raw)
		if ok {
			require.NoError(t, json.Unmarshal(raw, &text))
			require.Equal(t, text, got)
		}
	})
}
