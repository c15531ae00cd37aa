package strictjson

import (
	"fmt"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"
)

// What the scanner lets pass, the decoder lets pass, and what it calls canonical is.
func agree(t *testing.T, raw string, lim Limits) (ok, canonical bool) {
	t.Helper()
	lim = lim.orDefault()
	ok, canonical = quick([]byte(raw), lim)
	if !ok {
		return ok, false
	}
	require.NoError(t, check([]byte(raw), lim), raw)
	if canonical {
		out := jsontext.Value(raw).Clone()
		require.NoError(t, out.Canonicalize(), raw)
		require.Equal(t, raw, string(out))
	}
	return ok, canonical
}

// many is an object of n members.
func many(n int) string {
	members := make([]string, n)
	for i := range members {
		members[i] = fmt.Sprintf(`"n%03d":0`, i)
	}
	return "{" + strings.Join(members, ",") + "}"
}

func TestQuick(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		in            string
		lim           Limits
		ok, canonical bool
	}{
		"canonical":              {in: `{"a":[1,"x\n\\ é",null,true,false,{}],"b":{"a":0}}`, ok: true, canonical: true},
		"blanks":                 {in: " {\t\"a\" :\r\n1 , \"b\": [ ] } ", ok: true},
		"names out of order":     {in: `{"b":1,"a":2}`, ok: true},
		"not ascending, twice":   {in: `{"b":1,"a":2,"b":3}`},
		"ascending, twice":       {in: `{"a":1,"b":2,"b":3}`},
		"twice after an object":  {in: `{"a":{"b":1},"a":2}`},
		"same name in another":   {in: `{"a":{"a":1},"b":{"a":1}}`, ok: true, canonical: true},
		"name with an escape":    {in: `{"a\n":1}`},
		"name beyond ASCII":      {in: `{"é":1}`, ok: true},
		"escapes":                {in: `"\u003c\/\u00E9"`, ok: true},
		"half an escape":         {in: `"\u00`},
		"U+0000":                 {in: `"\u0000"`},
		"surrogates":             {in: `"\ud83d\ude00"`},
		"numbers":                {in: `[0,-1,1.5,2e3,2E-3,1e+9,1234567890123456]`, ok: true},
		"number without digits":  {in: `[1.]`},
		"number with zeros":      {in: `[01]`},
		"minus":                  {in: `-`},
		"a word":                 {in: `nul`},
		"many words":             {in: `[true true]`},
		"comma at the end":       {in: `{"a":1,}`},
		"comma first":            {in: `[,1]`},
		"control":                {in: "\"\x1f\""},
		"invalid UTF-8":          {in: "\"\xff\""},
		"second value":           {in: `{}{}`},
		"nothing":                {in: ``},
		"not closed":             {in: `{"a":[1`},
		"tokens":                 {in: `{"a":[1,2]}`, lim: Limits{MaxTokens: 7}, ok: true, canonical: true},
		"too many tokens":        {in: `{"a":[1,2]}`, lim: Limits{MaxTokens: 6}},
		"too many bytes":         {in: `[1,2]`, lim: Limits{MaxBytes: 4}},
		"too deep":               {in: `[[1]]`, lim: Limits{MaxDepth: 1}},
		"nested":                 {in: strings.Repeat(`{"a":`, 32) + "1" + strings.Repeat("}", 32), ok: true, canonical: true},
		"more names than it has": {in: many(quickNames + 1)},
		"as many as it has":      {in: many(quickNames), ok: true, canonical: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ok, canonical := agree(t, c.in, c.lim)
			require.Equal(t, c.ok, ok)
			require.Equal(t, c.canonical, canonical)
		})
	}
}

// FuzzQuick compares the scanner with the decoder.
func FuzzQuick(f *testing.F) {
	for _, s := range []string{
		`{"b":1,"a":[1.5e3,"\u20ac"],"a":null}`, `{"a":{"a":"\u0000"}}`, `[[[[]]]]`, "\xff", `{"a":1,"a":2}`, `-0`, `"\ud800"`, `{"\u0061":1,"a":2}`, ` [ ] `,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		agree(t, string(raw), Limits{})
		agree(t, string(raw), Limits{MaxBytes: 64, MaxDepth: 3, MaxTokens: 9})
	})
}
