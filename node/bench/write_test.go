package bench_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/identity/httpsig"
	"stoa/identity/key"
	"stoa/node/nodetest"
	"stoa/protocol"
	"stoa/protocol/must"
)

const connections = 64

func loadClient() *http.Client {
	return &http.Client{Transport: &http.Transport{
		MaxIdleConns: connections, MaxIdleConnsPerHost: connections, MaxConnsPerHost: connections, DisableCompression: true,
	}}
}

// BenchmarkSignedWrite measures verified, durable writes over HTTP: Ed25519
// signed board posts on 64 connections, SQLite with synchronous=FULL. Client
// and server share the machine. Next to it are its limits: bare Ed25519
// verifications, and bare grouped inserts in package storage.
func BenchmarkSignedWrite(b *testing.B) {
	n := nodetest.Start(b)
	pair := n.Hosted("load")
	target := must.Get(httpsig.ParseTarget(n.Base))(b)
	signedWrites(b, n, target, func(i int) (string, []byte, key.Pair) {
		body := fmt.Appendf(nil, `{"kind":"offer","title":"Post %d","body":"Two hundred sheets of hand-made paper from Jaipur, number %d, samples first, `+
			`within the week."}`, i, i)
		return "/api/public/board", body, pair
	})
}

// signedWrites sends b.N signed requests on 64 connections, each to be answered 201, and reports
// their rate and cost.
func signedWrites(b *testing.B, n *nodetest.House, target httpsig.Target, request func(i int) (path string, body []byte, by key.Pair)) {
	client := loadClient()
	var next, failed atomic.Int64
	b.ResetTimer()
	start, before := time.Now(), cpuTime()
	var group sync.WaitGroup
	for range connections {
		group.Go(func() {
			for i := next.Add(1); i <= int64(b.N); i = next.Add(1) {
				path, body, by := request(int(i - 1))
				r, _ := http.NewRequest("POST", n.URL+path, bytes.NewReader(body))
				r.Header.Set("Content-Type", "application/json")
				if err := httpsig.SignRequest(r, target, body, httpsig.SignOptions{Key: by.Signer()}); err != nil {
					failed.Add(1)
					return
				}
				res, err := client.Do(r)
				if err != nil || res.StatusCode != 201 {
					failed.Add(1)
				}
				if err == nil {
					io.Copy(io.Discard, res.Body)
					res.Body.Close()
				}
			}
		})
	}
	group.Wait()
	b.ReportMetric(float64(b.N)/time.Since(start).Seconds(), "writes/s")
	b.ReportMetric(float64((cpuTime()-before).Microseconds())/float64(b.N), "cpu-µs/op")
	require.Zero(b, failed.Load())
}

// cpuTime is what this process has used of the cores, client and server.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkEd25519Verify is the first limit of BenchmarkSignedWrite, on as many
// goroutines as there are cores.
func BenchmarkEd25519Verify(b *testing.B) {
	pub, priv, err := ed25519.GenerateKey(nil)
	require.NoError(b, err)
	message := bytes.Repeat([]byte("x"), 450)
	sig := ed25519.Sign(priv, message)
	b.RunParallel(func(p *testing.PB) {
		for p.Next() {
			if !ed25519.Verify(pub, message, sig) {
				b.Fail()
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "verifications/s")
}

// BenchmarkRead compares warm reads with a bare net/http handler that writes
// the same bytes, over HTTP on 64 connections in the same run.
func BenchmarkRead(b *testing.B) {
	n := nodetest.Start(b)
	n.Hosted("load")
	for i := range 30 {
		seedPost(b, n, i)
	}
	for _, path := range []string{"/api/public/agents/load", "/api/public/feed"} {
		b.Run("node"+path, func(b *testing.B) { hammer(b, n.URL+path) })
		res := must.Get(http.Get(n.URL + path))(b)
		body := must.Get(io.ReadAll(res.Body))(b)
		res.Body.Close()
		bare := bareServer(b, body)
		b.Run("bare"+path, func(b *testing.B) { hammer(b, bare+path) })
	}
}

// BenchmarkPage compares the page of a post with the same post as JSON, warm, without sockets, one of each in turn. The
// figure page/json is the quotient of their times.
func BenchmarkPage(b *testing.B) {
	h := nodetest.New(b)
	post := h.Post("Two hundred sheets")
	for i := range 5 {
		h.Reply("", post.ID, fmt.Sprint("Reply ", i))
	}
	kinds := []struct {
		path, accept string
		spent        time.Duration
	}{{"/api/public/board/" + post.ID, "application/json", 0}, {"/board/" + post.ID, nodetest.Accept, 0}}
	ask := func(path, accept string) time.Duration {
		r, w := h.Request("GET", path, "", "Accept", accept), &blank{head: http.Header{}}
		start := time.Now()
		h.Handler().ServeHTTP(w, r)
		if w.status != 200 {
			b.Fatalf("%s: %d", path, w.status)
		}
		return time.Since(start)
	}
	for b.Loop() {
		for i := range kinds {
			kinds[i].spent += ask(kinds[i].path, kinds[i].accept)
		}
	}
	b.ReportMetric(float64(kinds[0].spent.Nanoseconds())/float64(b.N), "json-ns/op")
	b.ReportMetric(float64(kinds[1].spent.Nanoseconds())/float64(b.N), "page-ns/op")
	b.ReportMetric(float64(kinds[1].spent)/float64(kinds[0].spent), "page/json")
}

func seedPost(b testing.TB, n *nodetest.House, i int) {
	b.Helper()
	raw, _ := json.Marshal(protocol.NewPost{Kind: protocol.Offer, Title: fmt.Sprint("Seed ", i), Body: "Two hundred sheets of hand-made paper from Jaipur."})
	require.NoError(b, n.Operate(context.Background(), "post_to_board", raw))
}

func bareServer(b testing.TB, body []byte) string {
	b.Helper()
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(b)
	s := &http.Server{ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 15 * time.Second, WriteTimeout: 30 * time.Second, IdleTimeout: 2 * time.Minute,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body)
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Length", strconv.Itoa(len(body)))
			w.Write(body)
		})}
	go s.Serve(l)
	b.Cleanup(func() { s.Close() })
	return "http://" + l.Addr().String()
}

// hammer reads a URL over raw keep-alive connections: the client costs little,
// so that the servers differ and not the client.
func hammer(b *testing.B, address string) {
	u := must.Get(url.Parse(address))(b)
	pound(b, u.Host, []byte("GET "+u.Path+" HTTP/1.1\r\nHost: "+u.Host+"\r\n\r\n"))
}

// pound sends one request over and over.
func pound(b *testing.B, host string, request []byte) {
	poundEach(b, host, func(int64) []byte { return request })
}

// poundEach sends b.N requests, by their number.
func poundEach(b *testing.B, host string, request func(i int64) []byte) {
	var next atomic.Int64
	var group sync.WaitGroup
	b.ResetTimer()
	for range connections {
		group.Go(func() {
			conn, err := net.Dial("tcp", host)
			if err != nil {
				b.Error(err)
				return
			}
			defer conn.Close()
			reader := newAnswerReader(conn)
			for i := next.Add(1); i <= int64(b.N); i = next.Add(1) {
				if _, err := conn.Write(request(i)); err != nil {
					b.Error(err)
					return
				}
				if err := reader.next(); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	group.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "reads/s")
}
