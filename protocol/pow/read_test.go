package pow

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/protocol/must"
)

func solutions() []Solution {
	p := Parameters{Algorithm: Algorithm, Cost: 250, Data: Data{Audience: "a.example", KeyID: "2026-11-21", Purpose: "board"},
		ExpiresAt: 1795250000, KeyLength: 32, KeyPrefix: "00", Nonce: strings.Repeat("0a", 16), Salt: strings.Repeat("0b", 16)}
	a := Solution{Challenge{Parameters: p, Signature: strings.Repeat("0c", 32)}, Answer{Counter: 7, DerivedKey: strings.Repeat("00", 32)}}
	b := a
	b.Challenge.Parameters.Data.Text, b.Solution = strings.Repeat("d", 32), Answer{}
	return []Solution{a, b}
}

// What the reader takes is what the decoder makes of it; what it leaves the decoder decides.
func TestReadSolution(t *testing.T) {
	t.Parallel()
	for _, want := range solutions() {
		raw := must.Get(json.Marshal(want))(t)
		got, ok := readSolution(raw)
		require.True(t, ok)
		require.Equal(t, want, got)
		for from, to := range map[string]string{
			`"cost":250`: `"cost":0250`, `"counter":`: `"counter":-`, `"salt":"`: `"salt":"\u0041`, `}}`: `}} `, `"kid"`: `"Kid"`,
			`"expiresAt":`: `"expiresAt":11111111111111111111`, `"nonce":`: `"nonce": `, `,"purpose":"board"`: ``, `a.example`: "a.\xffexample",
		} {
			_, ok := readSolution([]byte(strings.Replace(string(raw), from, to, 1)))
			require.False(t, ok, to)
		}
		for n := range raw {
			_, ok := readSolution(raw[:n])
			require.False(t, ok, "cut after %d bytes", n)
		}
	}
}

func FuzzReadSolution(f *testing.F) {
	for _, s := range solutions() {
		raw := must.Get(json.Marshal(s))(f)
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		if got, ok := readSolution(raw); ok {
			require.Equal(t, must.Get(decodeSolution(raw))(t), got)
		}
	})
}
