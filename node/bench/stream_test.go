package bench_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/identity/httpsig"
	"stoa/identity/key"
	"stoa/node"
	"stoa/node/nodetest"
	"stoa/protocol/must"
)

// BenchmarkStreams measures what 1024 streams of the feed cost that take
// everything: a signed write in a closed loop of 64 connections, without them and
// with them in the same run; the process without any write; and the memory of a
// stream. Writers and readers are processes of their own, so that µs-cpu/op is the
// node's. BenchmarkStreams_Many has 5000.
func BenchmarkStreams(b *testing.B) { benchmarkStreams(b, 1024) }

func BenchmarkStreams_Many(b *testing.B) { benchmarkStreams(b, 5000) }

func benchmarkStreams(b *testing.B, streams int) {
	n := nodetest.Start(b, func(c *node.Config) { c.MaxStreams = 2 * streams })
	pair := n.Hosted("load")
	private := must.Get(pair.MarshalPrivate())(b)
	cost := map[int]float64{}
	round := func(open int) {
		b.Run(fmt.Sprintf("write/streams=%d", open), func(b *testing.B) {
			before, start := processTime(b), time.Now()
			writer := benchClient(b, "write", n.URL, n.Base, string(private), strconv.Itoa(b.N))
			require.NoError(b, writer.Wait())
			spent := processTime(b) - before
			cost[open] = float64(spent.Microseconds()) / float64(b.N)
			rate := float64(b.N) / time.Since(start).Seconds()
			b.ReportMetric(cost[open], "µs-cpu/op")
			b.ReportMetric(rate, "writes/s")
			if open > 0 {
				b.ReportMetric(cost[open]/cost[0], "x-without")
				b.ReportMetric((cost[open]-cost[0])*rate/1e4, "%core-streams")
			}
		})
	}
	steady := map[int]float64{}
	even := func(open int) { // 100 writes a second
		b.Run(fmt.Sprintf("steady/streams=%d", open), func(b *testing.B) {
			spent, start := processTime(b), time.Now()
			writer := benchClient(b, "write", n.URL, n.Base, string(private), "500", "100")
			require.NoError(b, writer.Wait())
			steady[open] = (processTime(b) - spent).Seconds() / time.Since(start).Seconds() * 100
			b.ReportMetric(steady[open], "%core")
			if open > 0 {
				b.ReportMetric(steady[open]-steady[0], "%core-streams")
			}
		})
	}
	round(0)
	even(0)
	debug.FreeOSMemory()
	before := resident(b)
	reader := benchClient(b, "read", n.URL, strconv.Itoa(streams))
	require.Eventually(b, func() bool { return n.Feed.Hub.Streams() == streams }, time.Minute, 10*time.Millisecond)
	b.Run(fmt.Sprintf("quiet/streams=%d", streams), func(b *testing.B) {
		<-time.After(15 * time.Second) // in which the hub gives back what their requests took (feed/tidy.go)
		start, at := processTime(b), time.Now()
		<-time.After(max(5*time.Second, time.Duration(b.N)))
		b.ReportMetric((processTime(b)-start).Seconds()/time.Since(at).Seconds()*100, "%core")
		b.ReportMetric(float64(resident(b)-before)/float64(streams), "bytes/stream")
	})
	even(streams)
	round(streams)
	b.Logf("%d bytes of resident memory a stream after the writes", (resident(b)-before)/streams)
	require.NoError(b, reader.Process.Kill())
	require.Eventually(b, func() bool { return n.Feed.Hub.Streams() == 0 }, time.Minute, 10*time.Millisecond)
	at := time.Now()
	require.Eventually(b, func() bool { return resident(b)-before < 16<<20 }, time.Minute, 100*time.Millisecond)
	b.Logf("%d kB more than before the streams, %s after they were closed", (resident(b)-before)>>10, time.Since(at).Round(time.Second))
}

// processTime is the processor time of this process.
func processTime(t testing.TB) time.Duration {
	var u syscall.Rusage
	require.NoError(t, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// resident is the resident memory of this process, in bytes.
func resident(t testing.TB) int {
	raw, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Skip("resident memory is read from /proc")
	}
	pages, err := strconv.Atoi(strings.Fields(string(raw))[1])
	require.NoError(t, err)
	return pages * os.Getpagesize()
}

// benchClient starts TestBenchClient in a process, which ends with the benchmark.
func benchClient(b *testing.B, args ...string) *exec.Cmd {
	b.Helper()
	ctx, stop := context.WithCancel(context.Background())
	c := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestBenchClient$")
	c.Env = append(os.Environ(), "STOA_BENCH_CLIENT="+strings.Join(args, "\x1f"))
	c.Stdout, c.Stderr = os.Stderr, os.Stderr
	require.NoError(b, c.Start())
	b.Cleanup(func() {
		stop()
		c.Wait()
	})
	return c
}

// TestBenchClient is the other side of BenchmarkStreams.
func TestBenchClient(t *testing.T) {
	set := os.Getenv("STOA_BENCH_CLIENT")
	if set == "" {
		t.Skip("a process of a benchmark")
	}
	args := strings.Split(set, "\x1f")
	number := func(i int) int {
		n := must.Get(strconv.Atoi(args[i]))(t)
		return n
	}
	switch args[0] {
	case "read":
		readStreams(t, strings.TrimPrefix(args[1], "http://"), number(2))
	case "replay":
		replay(t, strings.TrimPrefix(args[1], "http://"), args[2])
	case "hold":
		holdTasks(t, strings.TrimPrefix(args[1], "http://"), args[2], number(3))
	case "write":
		pair := must.Get(key.ParsePair([]byte(args[3])))(t)
		rate := 0
		if len(args) > 5 {
			rate = number(5)
		}
		writeSigned(t, args[1], args[2], pair, number(4), rate)
	}
}

// readStreams holds streams until the process is ended, and takes what comes. A
// network may have eight of them.
func readStreams(t *testing.T, host string, streams int) {
	var group sync.WaitGroup
	for i := range streams {
		from := net.IPv4(127, 1, byte(i/8/256), byte(i/8%256))
		conn := must.Get((&net.Dialer{LocalAddr: &net.TCPAddr{IP: from}}).Dial("tcp", host))(t)
		must.Get(io.WriteString(conn, "GET /api/public/feed/stream HTTP/1.1\r\nHost: "+host+"\r\n\r\n"))(t)
		in := bufio.NewReaderSize(conn, 4<<10)
		line := must.Get(in.ReadString('\n'))(t)
		require.Contains(t, line, "200")
		group.Go(func() { io.CopyBuffer(io.Discard, struct{ io.Reader }{in}, make([]byte, 4<<10)) })
	}
	group.Wait()
}

// writeSigned makes posts on 64 connections, at a rate a second if that is set.
func writeSigned(t *testing.T, address, base string, pair key.Pair, posts, rate int) {
	target := must.Get(httpsig.ParseTarget(base))(t)
	client := loadClient()
	var next atomic.Int64
	start := time.Now()
	var group sync.WaitGroup
	for range connections {
		group.Go(func() {
			for i := int(next.Add(1)); i <= posts; i = int(next.Add(1)) {
				if rate > 0 {
					<-time.After(time.Until(start.Add(time.Duration(i) * time.Second / time.Duration(rate))))
				}
				body := fmt.Appendf(nil, `{"kind":"offer","title":"Post %d","body":"Two hundred sheets of hand-made paper from Jaipur, %d of %d."}`, i, i, start.UnixNano())
				r, _ := http.NewRequest("POST", address+"/api/public/board", bytes.NewReader(body))
				r.Header.Set("Content-Type", "application/json")
				if err := httpsig.SignRequest(r, target, body, httpsig.SignOptions{Key: pair.Signer()}); err != nil {
					t.Error(err)
					return
				}
				res, err := client.Do(r)
				if err != nil {
					t.Error(err)
					return
				}
				io.Copy(io.Discard, res.Body)
				res.Body.Close()
				if res.StatusCode != 201 {
					t.Error(res.Status)
				}
			}
		})
	}
	group.Wait()
}
