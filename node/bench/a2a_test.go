package bench_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"stoa/identity/httpsig"
	"stoa/node/nodetest"
	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/storage"
)

// unanswered sends what one caller may send to one agent that does not answer:
// ten threads of twenty messages, or the first of them. alongside is called after
// each. It returns how long each message took.
func unanswered(a *nodetest.Agent, handle string, most int, alongside func(n int)) (took []time.Duration) {
	thread := ""
	for n := range most {
		var each time.Duration
		each, thread = message(a, handle, thread, n)
		took = append(took, each)
		alongside(n)
	}
	return took
}

// message is the n-th of them, to the thread of the one before or a new one.
func message(a *nodetest.Agent, handle, thread string, n int) (took time.Duration, _ string) {
	extra := fmt.Sprintf(`,"contextId":%q`, thread)
	if n%protocol.MaxUnanswered == 0 {
		extra = ""
	}
	began := time.Now()
	answer := a.Write(handle, fmt.Sprint("m-", n), "Can you quote for forty chairs of oak, by March?", extra)
	return time.Since(began), answer.Task(a.H.T).ContextID
}

func percentile(took []time.Duration, of int) time.Duration {
	took = slices.Sorted(slices.Values(took))
	return took[(len(took)-1)*of/100]
}

// posts writes a signed board post each ten milliseconds until it is stopped, and
// then returns how long each took.
func posts(h *nodetest.House, by string) (stop func() []time.Duration) {
	h.T.Helper()
	pair := h.Hosted(by)
	writer := &nodetest.Agent{H: h, Pair: pair}
	end, done := make(chan struct{}), make(chan []time.Duration, 1)
	go func() {
		var took []time.Duration
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for n := 0; ; n++ {
			select {
			case <-end:
				done <- took
				return
			case <-tick.C:
			}
			body := fmt.Sprintf(`{"kind":"offer","title":"Post %d","body":"Two hundred sheets of hand-made paper, number %d."}`, n, n)
			r, _ := http.NewRequest("POST", h.Base+"/api/public/board", strings.NewReader(body))
			r.Header.Set("Content-Type", "application/json")
			began := time.Now()
			res, err := writer.RoundTrip(r)
			took = append(took, time.Since(began))
			if err != nil || res.StatusCode != http.StatusCreated {
				h.T.Errorf("post: %v %v", res, err)
			}
		}
	}()
	return func() []time.Duration { close(end); return <-done }
}

// An a2aBacklog is what messages and posts cost without and with unanswered
// messages of others.
type a2aBacklog struct {
	first, last       []time.Duration // a caller's messages to a fresh node and to one with those of the others, in turn
	idle, other, busy []time.Duration // board posts: before the others send theirs, meanwhile on another node, and on the same
}

// askedInVain lets callers send so many messages each to an agent that answers
// none, three at a time.
func askedInVain(t testing.TB, callers, each int, quiet time.Duration) (m a2aBacklog) {
	h, fresh := nodetest.Start(t), nodetest.Start(t)
	h.PutOpen("asha", nil)
	fresh.PutOpen("asha", nil)
	all, few := h.Agents(callers+2), fresh.Agents(2)
	none := func(int) {}
	unanswered(all[0], "asha", each, none) // caches are warm
	unanswered(few[0], "asha", each, none)

	stop := posts(h, "idle")
	<-time.After(quiet)
	m.idle = stop()

	work := make(chan *nodetest.Agent, callers)
	for _, a := range all[2:] {
		work <- a
	}
	close(work)
	stop = posts(h, "busy")
	stopOther := posts(fresh, "busy")
	var senders sync.WaitGroup
	for range 3 {
		senders.Go(func() {
			for a := range work {
				unanswered(a, "asha", each, none)
			}
		})
	}
	senders.Wait()
	m.busy, m.other = stop(), stopOther()
	thread := ""
	m.first = unanswered(few[1], "asha", each, func(n int) {
		var took time.Duration
		took, thread = message(all[1], "asha", thread, n)
		m.last = append(m.last, took)
	})
	return m
}

// BenchmarkA2ABacklog is a signed A2A message to a fresh node and to one with
// 10,000 unanswered ones of 50 callers, and board posts before and alongside them;
// those of another node meanwhile say what is the machine's share.
func BenchmarkA2ABacklog(b *testing.B) {
	for b.Loop() {
		m := askedInVain(b, 50, protocol.MaxOpenThreads*protocol.MaxUnanswered, 4*time.Second)
		for name, took := range map[string]time.Duration{
			"first-message": percentile(m.first, 50), "last-message": percentile(m.last, 50),
			"idle-post-p99": percentile(m.idle, 99), "other-post-p99": percentile(m.other, 99), "busy-post-p99": percentile(m.busy, 99),
		} {
			b.ReportMetric(float64(took.Microseconds()), "µs-"+name)
		}
	}
}

// BenchmarkA2AOpenThreads is the node's CPU time of a signed A2A message that begins a thread, from another process on 64 connections, to an
// agent without and with 100,000 open threads of others, each with an unanswered message.
func BenchmarkA2AOpenThreads(b *testing.B) {
	for _, batches := range []int{0, 100} {
		b.Run(fmt.Sprint(batches*1000), func(b *testing.B) {
			h := nodetest.Start(b)
			h.PutOpen("asha", nil)
			for from := range batches {
				openThreads(h, from)
			}
			target := must.Get(httpsig.ParseTarget(h.Base))(b)
			callers := h.Agents(b.N/protocol.MaxOpenThreads + 1)
			file := must.Get(os.Create(filepath.Join(b.TempDir(), "requests")))(b)
			for n := range b.N {
				body := fmt.Appendf(nil, `{"jsonrpc":"2.0","id":7,"method":"SendMessage","params":{"configuration":{"returnImmediately":true},`+
					`"message":{"messageId":"m-%d","role":"ROLE_USER","parts":[{"text":"Can you quote for forty chairs of oak, by March?"}]}}}`, n)
				r := must.Get(http.NewRequest("POST", h.Base+"/a2a/asha", bytes.NewReader(body)))(b)
				a := callers[n/protocol.MaxOpenThreads]
				r.Header = http.Header{"Content-Type": {"application/json"}, "A2a-Version": {"1.0"}, "Agent-Identity": {a.ID}}
				require.NoError(b, httpsig.SignRequest(r, target, body, httpsig.SignOptions{Key: a.Pair.Signer()}))
				require.NoError(b, r.Write(file))
			}
			require.NoError(b, file.Close())
			before := cpuTime()
			b.ResetTimer()
			require.NoError(b, benchClient(b, "replay", h.URL, file.Name()).Wait())
			b.ReportMetric(float64((cpuTime()-before).Microseconds())/float64(b.N), "cpu-µs/op")
		})
	}
}

// replay sends the requests of a file on 64 connections. None may be answered by a fault.
func replay(t *testing.T, host, file string) {
	in := bufio.NewReader(must.Get(os.Open(file))(t))
	requests, group := make(chan *http.Request, connections), sync.WaitGroup{}
	for range connections {
		conn := must.Get(net.Dial("tcp", host))(t)
		out := bufio.NewReader(conn)
		group.Go(func() {
			for r := range requests {
				if !assert.NoError(t, r.Write(conn)) {
					continue
				}
				res, err := http.ReadResponse(out, r)
				if assert.NoError(t, err) {
					answer, err := io.ReadAll(res.Body)
					assert.True(t, err == nil && bytes.Contains(answer, []byte(`"result"`)), "%v %s", err, answer)
				}
			}
		})
	}
	for {
		r, err := http.ReadRequest(in)
		if err != nil {
			require.ErrorIs(t, err, io.EOF)
			break
		}
		body := must.Get(io.ReadAll(r.Body))(t)
		r.Body = io.NopCloser(bytes.NewReader(body))
		requests <- r
	}
	close(requests)
	group.Wait()
}

// openThreads stores a thousand threads with asha that wait, ten of a writer.
func openThreads(h *nodetest.House, from int) {
	require.NoError(h.T, h.DB.Write(h.T.Context(), func(ctx context.Context, tx *storage.Tx) error {
		for n := range 1000 {
			t := &storage.StoredThread{ID: protocol.NewID(protocol.ThreadID, tx.Now), Handle: "asha", Kind: protocol.Question, State: protocol.ThreadOpen,
				Writer: fmt.Sprintf("key:%d-%d", from, n/10), TokenHash: protocol.SecretHash(fmt.Sprint(from, n)), Author: protocol.Author{Name: "Agent"},
				Task: 1, TaskState: protocol.ExchangeOpen, Unread: 1}
			m := protocol.Message{ID: protocol.NewID(protocol.MessageID, tx.Now), From: protocol.WriterSide, Author: t.Author, Text: "Hello", CreatedAt: tx.Now}
			if err := errors.Join(tx.Threads().Insert(ctx, t), tx.Threads().AppendMessage(ctx, t, m), tx.Threads().Save(ctx, t)); err != nil {
				return err
			}
		}
		return nil
	}))
}
