package bench_test

import (
	"context"
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
	"stoa/storage"
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

// BenchmarkLeave deletes a profile with 100,000 posts: how long it takes until the last of them is hidden, and how long reading the board and writing
// to it take for others before and meanwhile.
func BenchmarkLeave(b *testing.B) {
	const posts = 100_000
	for range b.N {
		h := nodetest.New(b)
		h.Hosted("asha")
		owner := protocol.Caller{Standing: protocol.Session, Handle: "asha", Handles: []string{"asha"}, Name: "Asha", Network: "n"}
		for done := 0; done < posts; done += 500 {
			require.NoError(b, h.DB.Write(b.Context(), func(ctx context.Context, tx *storage.Tx) error {
				for n := range 500 {
					in := protocol.NewPost{Kind: protocol.Offer, Title: fmt.Sprint("Sheets ", done+n), Body: "Hand-made paper from Jaipur, samples first."}
					if _, err := h.Board.Post(ctx, tx, owner, in); err != nil {
						return err
					}
				}
				return nil
			}))
		}
		require.NoError(b, h.DB.Numbered(b.Context()))
		h.Hosted("ravi")
		token := "Bearer " + h.OwnerToken("ravi")
		read := func() { h.Ask("GET", "/api/public/board", "").Is(200) }
		write := func() {
			h.Ask("POST", "/api/public/board", nodetest.GoodPost, "Authorization", token).Is(201)
		}
		var readBefore, writeBefore, readDuring, writeDuring latencies
		readBefore.while(closed, 300, read)
		writeBefore.while(closed, 300, write)
		h.Work()
		begun, done := time.Now(), make(chan struct{})
		_, err := h.Table.Invoke(b.Context(), hall.Request{Op: protocol.DeleteProfile.Name, Args: []byte(`{"handle":"asha"}`), Door: "test", Caller: &owner})
		require.NoError(b, err)
		b.ReportMetric(float64(time.Since(begun).Microseconds())/1000, "delete-ms")
		go func() {
			defer close(done)
			for more := true; more; time.Sleep(20 * time.Millisecond) {
				h.DB.Read(context.Background(), func(ctx context.Context, tx *storage.Tx) error {
					jobs, err := tx.Jobs().List(ctx, storage.JobWaiting, "", 100, "")
					more = err != nil || slices.ContainsFunc(jobs.Items, func(j storage.Job) bool { return j.Kind == storage.ConcealJob })
					return nil
				})
			}
		}()
		readDuring.while(done, 1, func() { read(); begun := time.Now(); write(); writeDuring = append(writeDuring, time.Since(begun)) })
		b.ReportMetric(time.Since(begun).Seconds(), "s-until-hidden")
		for i := range readDuring {
			readDuring[i] -= writeDuring[i]
		}
		readBefore.report(b, "read-before")
		readDuring.report(b, "read-during")
		writeBefore.report(b, "write-before")
		writeDuring.report(b, "write-during")
	}
}
