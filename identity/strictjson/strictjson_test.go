package strictjson_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/identity/strictjson"
	"stoa/protocol/must"
)

func TestCheck(t *testing.T) {
	t.Parallel()
	deep := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	for name, c := range map[string]struct {
		in   string
		lim  strictjson.Limits
		want string // part of the error, "" for none
	}{
		"object":            {in: `{"a":[1,"x",null,true]}`},
		"blanks around":     {in: " \n{} \t"},
		"scalar":            {in: `"x"`},
		"depth 32":          {in: deep(32)},
		"depth 33":          {in: deep(33), want: "nested deeper than 32"},
		"depth 100000":      {in: deep(100_000), want: "nested deeper"},
		"tokens":            {in: `[1,2,3]`, lim: strictjson.Limits{MaxTokens: 4}, want: "more than 4 tokens"},
		"tokens enough":     {in: `[1,2,3]`, lim: strictjson.Limits{MaxTokens: 5}},
		"bytes":             {in: `[1,2,3]`, lim: strictjson.Limits{MaxBytes: 6}, want: "7 bytes, at most 6"},
		"twice":             {in: `{"a":{"b":1,"b":2}}`, want: "at /a/b: this member occurs twice"},
		"twice by escape":   {in: `{"a":1,"\u0061":2}`, want: "occurs twice"},
		"behind":            {in: `{} {}`, want: "after the JSON value"},
		"junk behind":       {in: `{}x`, want: "after the JSON value"},
		"early end":         {in: `{"a":`, want: "ends too early"},
		"nothing":           {in: ``, want: "ends too early"},
		"invalid UTF-8":     {in: "{\"a\":\"\xff\"}", want: "UTF-8"},
		"lone surrogate":    {in: `{"a":"\ud800"}`, want: "at /a"},
		"byte order mark":   {in: "\ufeff{}", want: "not JSON"},
		"U+0000":            {in: `{"a":"x\u0000"}`, want: "at /a: U+0000"},
		"U+0000 in a name":  {in: `{"x\u0000":1}`, want: "U+0000"},
		"backslash u0000":   {in: `{"a":"\\u0000"}`},
		"raw control":       {in: "{\"a\":\"\x00\"}", want: "not JSON"},
		"single quotes":     {in: `{'a':1}`, want: "not JSON"},
		"comma at the end":  {in: `[1,]`, want: "not JSON"},
		"not a number":      {in: `[NaN]`, want: "not JSON"},
		"number as a name":  {in: `{1:2}`, want: "must be a string"},
		"two top-level nos": {in: `1 2`, want: "after the JSON value"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := strictjson.Check([]byte(c.in), c.lim)
			if c.want == "" {
				require.NoError(t, err)
				return
			}
			var syn *strictjson.SyntaxError
			require.ErrorAs(t, err, &syn)
			require.ErrorContains(t, err, c.want)
		})
	}
}

type inner struct {
	N int `json:"n,omitempty"`
}

type sample struct {
	Title string          `json:"title"`
	When  time.Time       `json:"when"`
	Tags  []string        `json:"tags,omitempty"`
	Flag  *bool           `json:"flag,omitempty"`
	Raw   json.RawMessage `json:"raw"`
	inner
}

func TestDecode(t *testing.T) {
	t.Parallel()
	var got sample
	require.NoError(t, strictjson.Decode([]byte(`{"title":"x","when":"2026-11-20T10:00:00Z","tags":["a"],"raw":{"k":[1]}}`), &got))
	require.Equal(t, "x", got.Title)
	require.Equal(t, json.RawMessage(`{"k":[1]}`), got.Raw)

	for name, c := range map[string]struct{ in, pointer, detail string }{
		"unknown":       {`{"title":"x","titel":"y"}`, "/titel", "unknown member; check its spelling"},
		"wrong case":    {`{"Title":"x"}`, "/Title", "unknown member; check its spelling"},
		"wrong kind":    {`{"title":7}`, "/title", "a number where a string belongs"},
		"inside a list": {`{"tags":["a",true]}`, "/tags/1", "a boolean where a string belongs"},
		"not a list":    {`{"tags":{}}`, "/tags", "an object where an array belongs"},
		"not a time":    {`{"when":"today"}`, "/when", "a string where a time such as 2026-11-20T10:00:00Z belongs"},
		"twice":         {`{"title":"x","title":"x"}`, "/title", "this member occurs twice"},
		"top level":     {`[]`, "", "an array where an object belongs"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var v sample
			require.Equal(t, &strictjson.SyntaxError{Pointer: c.pointer, Detail: c.detail}, strictjson.Decode([]byte(c.in), &v))
		})
	}
}

func TestDecodeLoose(t *testing.T) {
	t.Parallel()
	var got sample
	require.NoError(t, strictjson.DecodeLoose([]byte(`{"title":"x","Title":"y","more":1}`), &got))
	require.Equal(t, "x", got.Title, "names are case-sensitive")
	require.Error(t, strictjson.DecodeLoose([]byte(`{"more":1,"more":2}`), &got))
}

// The examples of RFC 8785 §3.2.2, §3.2.3 and appendix B.
func TestCanonical(t *testing.T) {
	t.Parallel()
	got := must.Get(strictjson.Canonical([]byte(`{
		"numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
		"string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
		"literals": [null, true, false]
	}`)))(t)
	require.Equal(t, `{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"string":"€$\u000f\nA'B\"\\\\\"/"}`, string(got))

	got = must.Get(strictjson.Canonical([]byte(`{"\u20ac":"Euro Sign","\r":"Carriage Return","\ufb33":"Hebrew Letter Dalet With Dagesh","1":"One",` +
		`"\ud83d\ude00":"Emoji: Grinning Face","\u0080":"Control","\u00f6":"Latin Small Letter O With Diaeresis"}`)))(t)
	var order []string
	for _, word := range []string{"Carriage", "One", "Control", "Latin", "Euro", "Emoji", "Hebrew"} {
		require.Contains(t, string(got), word)
		order = append(order, word)
	}
	for i := 1; i < len(order); i++ {
		require.Less(t, strings.Index(string(got), order[i-1]), strings.Index(string(got), order[i]))
	}

	for in, want := range map[string]string{
		"-0": "0", "5e-324": "5e-324", "1.7976931348623157e308": "1.7976931348623157e+308",
		"9007199254740993": "9007199254740992", "295147905179352830000": "295147905179352830000", "1e21": "1e+21",
	} {
		require.Equal(t, want, string(must.Get(strictjson.Canonical([]byte(in)))(t)))
	}
	for _, in := range []string{"1e999", "[-1e400]", `{"a":1,"a":1}`, strings.Repeat("[", 33) + strings.Repeat("]", 33)} {
		require.Error(t, must.Err(strictjson.Canonical([]byte(in))), in)
	}
}

func TestCanonicalObject(t *testing.T) {
	t.Parallel()
	got, err := strictjson.CanonicalObject(map[string]json.RawMessage{"b": json.RawMessage(` {"y": 1.0, "x":"<"}`), "a": nil, "\"": json.RawMessage(`[]`)})
	require.NoError(t, err)
	require.Equal(t, `{"\"":[],"a":null,"b":{"x":"<","y":1}}`, string(got))
	for _, bad := range []string{``, `1,"a":2`, `1}`} {
		require.Error(t, must.Err(strictjson.CanonicalObject(map[string]json.RawMessage{"a": json.RawMessage(bad)})), bad)
	}
}

// Canonicalising twice changes nothing, and the result means the same.
func FuzzCanonical(f *testing.F) {
	for _, s := range []string{`{}`, `{"b":1,"a":[1.5e3,"\u20ac"]}`, `{"a":"\u0000"}`, `[[[[]]]]`, "\xff", `{"a":1,"a":2}`, `1e999`, `"\ud800"`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		kept := string(raw)
		one, err := strictjson.Canonical(raw)
		require.Equal(t, kept, string(raw), "the input is not changed")
		if err != nil {
			return
		}
		two := must.Get(strictjson.Canonical(one))(t)
		require.Equal(t, string(one), string(two))
		var a, b any
		require.NoError(t, json.Unmarshal(raw, &a))
		require.NoError(t, json.Unmarshal(one, &b))
		require.Equal(t, a, b)
		var v any
		require.NoError(t, strictjson.Decode(raw, &v))
	})
}
