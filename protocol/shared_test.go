package protocol

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The one rule for what strangers leave half done.
func TestShared(t *testing.T) {
	t.Parallel()
	stranger, known := Caller{Standing: Proof}, Caller{Standing: Signed}
	s := Shared{10}
	for slots, want := range map[int]int{1: 1, 2: 1, 3: 2, 5: 3, 10: 5, 100: 50} {
		require.Equal(t, want, Shared{slots}.Strangers())
	}
	for name, tt := range map[string]struct {
		c    Caller
		w    Waiting
		want Waiting
	}{
		"first of a stranger":                    {stranger, Waiting{}, Waiting{}},
		"strangers fill half":                    {stranger, Waiting{0, 4}, Waiting{}},
		"the oldest gives way":                   {stranger, Waiting{0, 5}, Waiting{0, 1}},
		"also after the cap was lowered":         {stranger, Waiting{0, 8}, Waiting{0, 4}},
		"never one of a known caller's":          {stranger, Waiting{10, 5}, Waiting{0, 1}},
		"nobody is a stranger too":               {Caller{}, Waiting{0, 5}, Waiting{0, 1}},
		"a known one beside half of strangers":   {known, Waiting{4, 5}, Waiting{}},
		"a known one beyond half takes of them":  {known, Waiting{5, 5}, Waiting{0, 1}},
		"until none is left":                     {known, Waiting{9, 1}, Waiting{0, 1}},
		"then the oldest of the known gives way": {known, Waiting{10, 0}, Waiting{1, 0}},
	} {
		require.Equal(t, tt.want, s.Admit(tt.c, tt.w), name)
	}
	for _, standing := range []Standing{Session, Signed, Operator, Federated} {
		require.True(t, Caller{Standing: standing}.Known(), standing)
	}
	require.False(t, stranger.Known())
}

func TestShared_Price(t *testing.T) {
	t.Parallel()
	s := Shared{100}
	for strangers, steps := range map[int]int{0: 0, 9: 0, 10: 1, 25: 2, 49: 4, 50: 5, 500: 5} {
		require.Equal(t, steps, s.Steps(strangers), strangers)
	}
	paid := func(above int) Caller { return Caller{Standing: Proof, Above: above} }
	require.NoError(t, Price(paid(0), 1), "it moved a little meanwhile")
	require.NoError(t, Price(paid(3), 4))
	err := AsError(Price(paid(0), 2))
	require.Equal(t, PowRequired, err.Code)
	require.Equal(t, 2, err.Steps)
	require.NoError(t, Price(Caller{Standing: Signed}, 5))
}
