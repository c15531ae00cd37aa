package proof

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/protocol"
	"stoa/protocol/pow"
)

// Challenges that were fetched before the price rose do not pay the old price,
// neither one after another nor all at once.
func TestCheck_LevelOfThePresent(t *testing.T) {
	t.Parallel()
	start := time.Unix(1_800_000_000, 0)
	issuer := func(now *time.Time) *Issuer {
		return New(Config{Master: make([]byte, 32), Audience: "n", Now: func() time.Time { return *now }})
	}
	var fetched []pow.Solution // good at every issuer with the same secret
	for i := issuer(&start); len(fetched) < (lag+1)*perStep+2; {
		c := i.Issue("board", "net")
		require.Equal(t, 2, c.Hint.Level)
		fetched = append(fetched, solve(t, c))
	}
	for name, during := range map[string]bool{"one after another": false, "at once": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			now := start
			i := issuer(&now)
			pay := func(s pow.Solution) protocol.Code {
				_, p, err := i.Check(context.Background(), []byte(s.Encode()), "board", "net")
				if err == nil && !during {
					i.Paid("net", p, nil)
				}
				return protocol.CodeOf(err)
			}
			now = now.Add(youth + time.Second)
			paid := 0
			for _, s := range fetched {
				if code := pay(s); code != "" {
					require.Equal(t, protocol.PowExpired, code)
					break
				}
				paid++
			}
			require.Equal(t, (lag+1)*perStep, paid)
			if during { // writes that came to nothing are forgotten
				now = now.Add(underWay + time.Second)
				require.Empty(t, pay(fetched[paid+1]))
				return
			}
			require.Equal(t, 2+lag+1, i.Issue("board", "net").Hint.Level, "the fresh one")
			_, _, err := i.Check(context.Background(), []byte(fetched[paid+1].Encode()), "board", "another")
			require.NoError(t, err, "it is the network's own price")
		})
	}
}

// A challenge that is younger than a minute is good whatever happened since.
func TestCheck_YoungChallenge(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	i := New(Config{Master: make([]byte, 32), Audience: "n", Now: func() time.Time { return now }})
	s := solve(t, i.Issue("board", "net"))
	for range 4 * perStep {
		i.Paid("net", pow.Parameters{}, nil)
	}
	check := func() protocol.Code {
		_, _, err := i.Check(context.Background(), []byte(s.Encode()), "board", "net")
		return protocol.CodeOf(err)
	}
	now = now.Add(youth - time.Second)
	require.Empty(t, check())
	now = now.Add(2 * time.Second)
	require.Equal(t, protocol.PowExpired, check())
	flat := 0
	i.c.Flat = &flat
	require.Empty(t, check(), "no ramp, no lag")
}
