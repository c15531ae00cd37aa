package erc8004

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// For a minute, 45 new identities a second ask from a network each, without payment. Newcomers that pay are all read, three a second; known
// identities are too; and the chain is asked no more than its budget says.
func TestBudget_PayingNewcomers(t *testing.T) {
	t.Parallel()
	s := newStub(t)
	s.setAgent(t)
	r := newTestReader(t, func(c *Config) {
		c.Known = func(_ context.Context, id string) (bool, error) { return id == vectorID, nil }
	}, s)
	began := r.clock()
	paid, refused := 0, map[string]int{}
	ask := func(who string, agent int64, pays bool) {
		ctx := WithSource(t.Context(), fmt.Sprint("network ", agent))
		if pays {
			ctx = WithPayment(ctx, func(context.Context) error { paid++; return nil })
		}
		id := mustID(t, vectorID)
		id.AgentID = big.NewInt(agent)
		_, err := r.Snapshot(ctx, id)
		var spent *BudgetError
		if errors.As(err, &spent) {
			require.Equal(t, who == "stranger", spent.Payable)
			refused[who]++
		} else if agent != 1 {
			require.ErrorIs(t, err, ErrNotRegistered)
		}
	}
	for n := range int64(60 * 45) {
		r.pass(time.Second / 45)
		ask("stranger", 1_000_000+n, false)
		if n%15 == 0 {
			ask("newcomer", 2_000_000+n, true)
			r.cache.InvalidateAll()
			ask("known", 1, false)
		}
	}
	const each = 60 * 3
	took := r.clock().Sub(began).Seconds()
	require.Zero(t, refused["newcomer"], "of %d", each)
	require.Zero(t, refused["known"])
	require.Greater(t, refused["stranger"], 60*(45-20)/2)
	require.LessOrEqual(t, paid, each)
	require.Greater(t, paid, each/2, "strangers use up their share")
	require.LessOrEqual(t, float64(s.count("eth_call")), 5*(40+20*took))
	t.Logf("in %.0f s: refused %v, %d payments, %d eth_calls", took, refused, paid, s.count("eth_call"))
}

// A payment is used up only where it admits a read, and its refusal is the caller's alone.
func TestBudget_Payment(t *testing.T) {
	t.Parallel()
	s := newStub(t)
	r := newTestReader(t, func(c *Config) { c.ReadsPerSec, c.ReadBurst = 0.001, 8 }, s)
	offered := 0
	read := func(agent int64, pay func(context.Context) error) error {
		id := mustID(t, vectorID)
		id.AgentID = big.NewInt(agent)
		ctx := WithSource(t.Context(), fmt.Sprint("network ", agent))
		if pay != nil {
			ctx = WithPayment(ctx, pay)
		}
		_, err := r.Snapshot(ctx, id)
		return err
	}
	good := func(context.Context) error { offered++; return nil }
	for n := range int64(4) {
		require.ErrorIs(t, read(n, good), ErrNotRegistered)
	}
	require.Zero(t, offered, "there is room without")
	var spent *BudgetError
	require.ErrorAs(t, read(10, nil), &spent)
	require.True(t, spent.Payable)
	bad := errors.New("used already")
	require.ErrorAs(t, read(11, func(context.Context) error { return bad }), &spent)
	require.Equal(t, bad, spent.Payment)
	for n := range int64(2) {
		require.ErrorIs(t, read(20+n, good), ErrNotRegistered)
	}
	require.Equal(t, 2, offered)
	require.ErrorAs(t, read(30, good), &spent, "a quarter of the burst is for known identities")
	require.False(t, spent.Payable)
	require.Equal(t, 2, offered, "nothing is paid in vain")
	require.NoError(t, r.chains[stubChain].budget.take(r.clock(), asker{"known", known}))
}

// One network pays for 30 reads at once, and then for one each two seconds.
func TestBudget_PayingNetwork(t *testing.T) {
	t.Parallel()
	b, now, taken := newBudget(1e6, 1e6), time.Now(), 0
	for b.take(now, asker{"one", paying}) == nil {
		taken++
	}
	require.EqualValues(t, limits[paying].Burst, taken)
	require.NoError(t, b.take(now, asker{"two", paying}))
}
