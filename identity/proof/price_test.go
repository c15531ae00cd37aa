package proof

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/protocol"
	"stoa/protocol/pow"
)

// An agora is one network that pays for posts with as many challenges as it likes to fetch.
type agora struct {
	*Issuer
	now   time.Time
	spent int // iterations
	posts int
}

func newAgora() *agora {
	a := &agora{now: time.Unix(1_800_000_000, 0)}
	a.Issuer = New(Config{Master: make([]byte, 32), Audience: "n", Now: func() time.Time { return a.now }})
	return a
}

// post solves a challenge, which takes its time, and sends it: false when it is not accepted.
func (a *agora) post(c pow.Challenge) bool {
	work := c.Parameters.Cost * pow.Level{Prefix: c.Parameters.KeyPrefix}.MeanTries()
	a.spent += work
	a.now = a.now.Add(time.Duration(work) * 640 * time.Nanosecond) // 160 ms at level 2
	if !a.recent(c.Parameters, "net", a.now) {
		return false
	}
	a.Paid("net", c.Parameters, nil)
	a.posts++
	return true
}

// Who fetches challenges beforehand posts at most 1.2 times what who fetches each fresh does: for the
// work of 28 fresh ones, and at the top of the ladder.
func TestCheck_FetchedBeforehand(t *testing.T) {
	t.Parallel()
	for name, budget := range map[string]int{"28 posts": 28, "60 posts, beyond the top": 60, "8 posts": 8} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fresh := newAgora()
			for fresh.posts < budget {
				require.True(t, fresh.post(fresh.Issue("board", "net")))
			}
			for _, batch := range []int{1, 3, 4, 5, 6, 7, 8, 10, 70, 1000} {
				a := newAgora()
				store := []pow.Challenge{}
				refused := true
				for a.spent < fresh.spent {
					if refused || len(store) == 0 { // the answer to a refusal has a fresh challenge; the others are of the same price
						store = store[:0]
						for range batch {
							store = append(store, a.Issue("board", "net"))
						}
					}
					refused = !a.post(store[0])
					store = store[1:]
				}
				most := max(1.2*float64(fresh.posts), float64(fresh.posts+slack-1))
				require.LessOrEqual(t, float64(a.posts), most, "%d at a time", batch)
			}
		})
	}
}

// Nor does it help to send them all at once, whatever the age of the challenges.
func TestCheck_AtOnce(t *testing.T) {
	t.Parallel()
	for name, age := range map[string]time.Duration{"young": 0, "old": 5 * time.Minute} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			now := time.Unix(1_800_000_000, 0)
			i := New(Config{Master: make([]byte, 32), Audience: "n", Now: func() time.Time { return now }})
			var fetched []pow.Solution
			for range perStep + slack + 2 {
				fetched = append(fetched, solve(t, i.Issue("report", "net")))
			}
			now = now.Add(age)
			accepted := 0
			for _, s := range fetched {
				_, _, err := i.Check(context.Background(), []byte(s.Encode()), "report", "net")
				if err == nil {
					accepted++
					continue
				}
				require.Equal(t, protocol.PowExpired, protocol.CodeOf(err))
			}
			require.Equal(t, perStep+slack, accepted)
			last := []byte(fetched[len(fetched)-1].Encode())
			_, _, err := i.Check(context.Background(), last, "report", "another")
			require.NoError(t, err, "it is the network's own price")
			now = now.Add(underWay + time.Second) // writes that came to nothing are forgotten
			_, _, err = i.Check(context.Background(), []byte(fetched[0].Encode()), "report", "net")
			require.NoError(t, err)
		})
	}
}

// One challenge is good although others of the network, or of the node, wrote a little meanwhile.
func TestCheck_MovesALittle(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	i := New(Config{Master: make([]byte, 32), Audience: "n", Target: 10, Now: func() time.Time { return now }})
	for range perStep - 1 {
		i.Paid("net", pow.Parameters{}, nil)
	}
	one := i.Issue("board", "net")
	require.Equal(t, 2, one.Hint.Level)
	for range slack {
		i.Paid("net", pow.Parameters{}, nil)
	}
	for n := range 20 { // twice the target
		i.Paid(fmt.Sprint("other", n), pow.Parameters{}, nil)
	}
	require.Equal(t, 4, i.Issue("board", "net").Hint.Level, "a fresh one")
	require.True(t, i.recent(one.Parameters, "net", now))
	require.True(t, i.recent(i.Issue("contact", "new").Parameters, "new", now), "also for what has a dearer purpose")
	for range slack {
		i.Paid("net", pow.Parameters{}, nil)
	}
	require.False(t, i.recent(one.Parameters, "net", now))
	flat := 0
	i.c.Flat = &flat
	require.True(t, i.recent(one.Parameters, "net", now), "no ramp")
}

// What waits at one place raises the price there alone.
func TestIssueAbove(t *testing.T) {
	t.Parallel()
	i := New(Config{Master: make([]byte, 32), Audience: "n"})
	for steps, level := range []int{2, 3, 4, 5, 6, 7, 7, 7} {
		c := i.IssueAbove("meeting", "net", steps)
		require.Equal(t, level, c.Hint.Level)
		require.GreaterOrEqual(t, i.Above(c.Parameters), steps)
	}
	require.Zero(t, i.Above(i.Issue("bid", "net").Parameters))
	flat := 0
	i.c.Flat = &flat
	require.Zero(t, i.IssueAbove("bid", "net", 5).Hint.Level)
	require.Equal(t, len(pow.Ladder), i.Above(i.Issue("bid", "net").Parameters))
}
