package node_test

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/node"
	"stoa/node/hall"
	"stoa/node/nodetest"
	"stoa/protocol"
	"stoa/protocol/must"
)

// latencies are how long something took, again and again.
type latencies []time.Duration

// while repeats something until a channel is closed, at least so often.
func (l *latencies) while(done <-chan struct{}, least int, do func()) {
	for {
		begun := time.Now()
		do()
		*l = append(*l, time.Since(begun))
		select {
		case <-done:
			if len(*l) >= least {
				return
			}
		default:
		}
	}
}

func (l latencies) report(b *testing.B, what string) {
	slices.Sort(l)
	for name, at := range map[string]int{"p50": len(l) / 2, "p99": len(l) * 99 / 100} {
		b.ReportMetric(float64(l[at].Microseconds())/1000, name+"-"+what+"-ms")
	}
}

var closed = func() chan struct{} { c := make(chan struct{}); close(c); return c }()

// BenchmarkJoins sends 10,000 requests to join, with the proofs of work done already, from one network and from a thousand: how many join, and how
// long signing in takes for others before and meanwhile. The settings are those of a node with a public address.
func BenchmarkJoins(b *testing.B) {
	const joins = 10_000
	for _, networks := range []int{1, 1000} {
		b.Run(fmt.Sprint(networks, "networks"), func(b *testing.B) {
			for range b.N {
				h := nodetest.New(b, func(c *node.Config) { c.Registrations = "open" })
				h.Accounts.Joining.PerNetwork = 20
				account, _ := h.OpenAccount("Asha", protocol.RoleOwner, "asha@example.org")
				signIn := func() {
					secret := must.Get(h.Begin(must.Get(h.Admin().SignInLink(b.Context(), account.ID))(b)))(b)
					h.Ask("GET", "/api/owner/account", "", "Cookie", "stoa_session="+secret).Is(200)
				}
				var before, during latencies
				before.while(closed, 300, signIn)
				var joined, next atomic.Int64
				var group sync.WaitGroup
				begun, done := time.Now(), make(chan struct{})
				for range connections {
					group.Go(func() {
						for i := next.Add(1); i <= joins; i = next.Add(1) {
							c := protocol.Caller{Standing: protocol.Proof, Network: fmt.Sprint("net-", int(i)%networks)}
							args := fmt.Appendf(nil, `{"kind":"person","handle":"newcomer-%d","name":"Newcomer"}`, i)
							if _, err := h.Table.Invoke(b.Context(), hall.Request{Op: protocol.RegisterProfile.Name, Args: args, Door: "test", Caller: &c}); err == nil {
								joined.Add(1)
							}
						}
					})
				}
				go func() { group.Wait(); close(done) }()
				during.while(done, 1, signIn)
				b.ReportMetric(joins/time.Since(begun).Seconds(), "joins/s")
				b.ReportMetric(float64(joined.Load()), "joined")
				require.EqualValues(b, min(20*networks, 1000), joined.Load(), "20 of a network, and 1,000 strangers of all")
				before.report(b, "sign-in-before")
				during.report(b, "sign-in-during")
			}
		})
	}
}
