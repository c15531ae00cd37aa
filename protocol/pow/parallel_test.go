package pow_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/protocol/must"
	"stoa/protocol/pow"
)

func parallelChallenge() pow.Challenge {
	return pow.Challenge{Parameters: pow.Parameters{
		Algorithm: pow.Algorithm, Cost: 10, KeyLength: 32, KeyPrefix: "00",
		Nonce: "000102030405060708090a0b0c0d0e0f", Salt: "101112131415161718191a1b1c1d1e1f",
	}, Signature: "mac", Hint: &pow.Hint{Level: 2}}
}

func TestSolveParallel(t *testing.T) {
	t.Parallel()
	for _, workers := range []int{0, 1, 2, 7} {
		s := must.Get(pow.SolveParallel(t.Context(), parallelChallenge(), workers))(t)
		require.True(t, s.Check())
		require.Equal(t, "mac", s.Challenge.Signature)
		require.Nil(t, s.Challenge.Hint, "the hint is not signed and not sent back")
	}
	one := must.Get(pow.SolveParallel(t.Context(), parallelChallenge(), 1))(t)
	require.Equal(t, must.Get(pow.Solve(t.Context(), parallelChallenge()))(t), one)
}

func TestSolveParallel_Refuses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*pow.Parameters)
		want   error
	}{
		"algorithm":    {func(p *pow.Parameters) { p.Algorithm = "SCRYPT" }, pow.ErrShape},
		"nonce no hex": {func(p *pow.Parameters) { p.Nonce = "zz" }, pow.ErrShape},
		"key length":   {func(p *pow.Parameters) { p.KeyLength = 1 << 30 }, pow.ErrShape},
		"no cost":      {func(p *pow.Parameters) { p.Cost = 0 }, pow.ErrShape},
		"cost":         {func(p *pow.Parameters) { p.Cost = 1 << 30 }, pow.ErrTooHard},
		"prefix":       {func(p *pow.Parameters) { p.KeyPrefix = "00000000" }, pow.ErrTooHard},
		"both":         {func(p *pow.Parameters) { p.KeyPrefix, p.Cost = "000000", 10_000 }, pow.ErrTooHard},
	} {
		ch := parallelChallenge()
		c.change(&ch.Parameters)
		require.ErrorIs(t, must.Err(pow.SolveParallel(t.Context(), ch, 2)), c.want, name)
	}
}

func TestSolveParallel_EndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	ch := parallelChallenge()
	ch.Parameters.KeyPrefix = "x0" // no hex: never found
	require.ErrorIs(t, must.Err(pow.SolveParallel(ctx, ch, 2)), context.DeadlineExceeded)
	for _, l := range pow.Ladder {
		ch.Parameters.Cost, ch.Parameters.KeyPrefix = l.Cost, l.Prefix
		require.ErrorIs(t, must.Err(pow.SolveParallel(ctx, ch, 1)), context.DeadlineExceeded, "every level is taken on")
	}
}
