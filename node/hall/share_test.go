package hall

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/protocol"
)

// A caller that asks each of four processes as often as it can gets, over all of
// them, what one process would give, and a burst at each before they know.
func TestLimits_Shared(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		share bool
		most  float64
	}{{"shared", true, 5*600 + 4*(40+2*5)}, {"by itself", false, 4 * (5*600 + 41)}} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var all []*Limits
				for range 4 {
					l := NewLimits(DefaultRates())
					if tt.share {
						l.Share()
					}
					all = append(all, l)
				}
				given := 0
				for range 300 { // ten minutes
					for range 200 {
						for _, l := range all {
							if l.Write("n") == nil {
								given++
							}
						}
						time.Sleep(10 * time.Millisecond)
					}
					told := map[int][]Use{}
					for i, l := range all {
						told[i] = l.Used(2 * time.Second)
					}
					for i, l := range all {
						for from, uses := range told {
							if from != i && tt.share {
								l.Add(uses)
							}
						}
					}
				}
				require.LessOrEqual(t, float64(given), tt.most)
				require.Greater(t, float64(given), tt.most*0.9, "and not much less")
			})
		})
	}
}

// What is too little to matter is not told, nor what is over the bound; what is
// told is told once, and comes back from nobody.
func TestLimits_Used(t *testing.T) {
	t.Parallel()
	l := NewLimits(DefaultRates())
	l.Share()
	for range 3 {
		require.NoError(t, l.Write("busy"))
	}
	require.NoError(t, l.Write("quiet"))
	require.Equal(t, []Use{{"write", "busy", 3}}, l.Used(2*time.Second))
	require.Empty(t, l.Used(2*time.Second))
	l.Add([]Use{{"write", "busy", 37}, {"nothing", "busy", 1}, {"write", "quiet", -5}})
	require.Empty(t, l.Used(2*time.Second))
	require.Equal(t, protocol.RateLimited, protocol.CodeOf(l.Write("busy")), "three here and 37 elsewhere are the burst")
	l.Add([]Use{{"write", "busy", 1 << 40}})
	_, reset := l.networkWrite.Load().left("busy")
	require.LessOrEqual(t, reset, 8*time.Second+maxDebt)
	for i := range 2 * maxUses {
		require.NoError(t, l.Write(fmt.Sprint(i)))
		require.NoError(t, l.Write(fmt.Sprint(i)))
	}
	require.Len(t, l.Used(2*time.Second), maxUses)

	// A rate that changes continues to be shared.
	l.Set(DefaultRates().With(nil, new(1.0), nil))
	require.NoError(t, l.Write("busy"))
	require.Equal(t, []Use{{"write", "busy", 1}}, l.Used(2*time.Second))

	alone := NewLimits(DefaultRates())
	require.NoError(t, alone.Write("busy"))
	require.Empty(t, alone.Used(0), "who shares nothing counts nothing")
}
