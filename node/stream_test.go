package node_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/textproto"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/node"
	"stoa/node/door/httpapi"
	"stoa/node/nodetest"
	"stoa/protocol"
	"stoa/protocol/must"
)

// A subscriber reads the feed's stream of a running node.
type subscriber struct {
	t     testing.TB
	lines *bufio.Scanner
	close func()
}

func subscribe(t testing.TB, base, query string, headers ...string) *subscriber {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	r := must.Get(http.NewRequestWithContext(ctx, "GET", base+"/api/public/feed/stream"+query, nil))(t)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	res := must.Get(http.DefaultTransport.RoundTrip(r))(t)
	require.Equal(t, 200, res.StatusCode)
	require.Equal(t, "text/event-stream", res.Header.Get("Content-Type"))
	require.Empty(t, res.Header.Get("Content-Encoding"))
	require.Equal(t, "*", res.Header.Get("Access-Control-Allow-Origin"))
	s := &subscriber{t, bufio.NewScanner(res.Body), func() { cancel(); res.Body.Close() }}
	t.Cleanup(s.close)
	require.True(t, s.lines.Scan())
	require.Equal(t, "retry: 2000", s.lines.Text())
	return s
}

// event is the next one; ok is false at the end of the stream.
func (s *subscriber) event() (id string, item protocol.FeedItem, ok bool) {
	s.t.Helper()
	for s.lines.Scan() {
		switch name, value, _ := strings.Cut(s.lines.Text(), ": "); name {
		case "id":
			id = value
		case "data":
			require.NoError(s.t, json.Unmarshal([]byte(value), &item))
			return id, item, true
		}
	}
	return "", item, false
}

// TestStream_Node follows the feed over real connections, on PostgreSQL at two processes
// of one deployment, and stops them while streams are open.
func TestStream_Node(t *testing.T) {
	t.Parallel()
	nodetest.Each(t, func(t *testing.T, change func(*node.Config)) {
		c, one, two, stop := processes(t, change)

		all, offers := subscribe(t, one.URL, ""), subscribe(t, two.URL, "?types=board_post")
		posts := one.On(t)
		first := posts.Post("First")
		id, item, ok := all.event()
		require.True(t, ok)
		require.Equal(t, id, item.ID)
		require.Equal(t, "First", item.Subject.Title)
		require.Equal(t, one.Base+"/board/"+first.ID, item.Subject.URL)
		_, there, ok := offers.event()
		require.True(t, ok)
		require.Equal(t, item, there)

		all.close()
		posts.Post("Second")
		posts.Post("Third")
		for _, resumed := range []*subscriber{
			subscribe(t, two.URL, "", "Last-Event-ID", id),
			subscribe(t, two.URL, "?after="+id),
			subscribe(t, one.URL, "?after=feed_01k9y3v6k8e5w9q2x4z7c1m0ad", "Last-Event-ID", id),
		} {
			_, second, _ := resumed.event()
			_, third, _ := resumed.event()
			require.Equal(t, []string{"Second", "Third"}, []string{second.Subject.Title, third.Subject.Title})
		}

		open := subscribe(t, one.URL, "")
		stop()
		_, _, ok = open.event()
		require.False(t, ok)
		require.NoError(t, open.lines.Err(), "an end in order")

		again, stopAgain := run(t, c)
		_, second, ok := subscribe(t, again.URL, "", "Last-Event-ID", id).event()
		require.True(t, ok)
		require.Equal(t, "Second", second.Subject.Title, "after a restart")
		stopAgain()
	})
}

// processes runs two processes of a deployment until stop; of SQLite, which one process serves, the same one.
func processes(t *testing.T, change func(*node.Config)) (c node.Config, one, two *nodetest.House, stop func()) {
	c = node.Config{Listen: "127.0.0.1:0", Data: t.TempDir(), Dev: true, Version: "test"}
	change(&c)
	one, stopOne := run(t, c)
	if c.BaseURL = one.Base; c.Database == "" {
		return c, one, one, stopOne
	}
	two, stopTwo := run(t, c)
	return c, one, two, func() { stopOne(); stopTwo() }
}

// run runs a node until stop, which waits for its end.
func run(t testing.TB, c node.Config) (n *nodetest.House, stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	made := must.Get(node.New(ctx, c, slog.New(slog.DiscardHandler)))(t)
	done := make(chan error, 1)
	go func() { done <- made.Run(ctx) }()
	ended := false
	stop = func() {
		cancel()
		if !ended {
			ended = true
			require.NoError(t, <-done)
		}
	}
	t.Cleanup(stop)
	n = &nodetest.House{Node: made, T: t}
	require.Eventually(t, func() bool {
		res, err := http.Get(n.URL + "/readyz")
		if err != nil {
			return false
		}
		defer res.Body.Close()
		_, err = io.Copy(io.Discard, res.Body)
		return err == nil && res.StatusCode == 200
	}, time.Minute, 10*time.Millisecond)
	return n, stop
}

func TestStream_Refused(t *testing.T) {
	t.Parallel()
	h := nodetest.New(t) // does not run, so that no stream begins
	a := h.Ask("GET", "/api/public/feed/stream", "")
	require.Equal(t, protocol.Overloaded, a.Problem().Code)
	require.NotEmpty(t, a.Header().Get("Retry-After"))
	for path, pointer := range map[string]string{
		"?types=rumour": "/types", "?after=post_01k9y3v6k8e5w9q2x4z7c1m0ad": "/after", "?typ=review": "/typ",
	} {
		p := h.Ask("GET", "/api/public/feed/stream"+path, "").Problem()
		require.Equal(t, protocol.Validation, p.Code, path)
		require.Equal(t, pointer, p.Errors[0].Pointer)
	}
	p := h.Ask("GET", "/api/public/feed/stream", "", "Last-Event-ID", "17").Problem()
	require.Equal(t, protocol.Validation, p.Code)
	p = h.Ask("GET", "/api/public/feed/stream", "", "Last-Event-ID", "feed_00000000000000000000000000").Problem()
	require.Equal(t, protocol.InvalidCursor, p.Code)
	require.Contains(t, protocol.StreamFeed.Codes, p.Code)
	a = h.Ask("POST", "/api/public/feed/stream", "{}")
	require.Equal(t, protocol.MethodNotAllowed, a.Problem().Code)
	require.Equal(t, "GET, HEAD", a.Header().Get("Allow"))
}

// TestStream_Wire reads streams as they are on the wire: what every answer
// carries is there although the stream has the connection for itself, and a place
// is free as soon as its client has gone.
func TestStream_Wire(t *testing.T) {
	t.Parallel()
	n, stop := run(t, node.Config{Listen: "127.0.0.1:0", Data: t.TempDir(), Dev: true, Version: "test"})
	host := strings.TrimPrefix(n.URL, "http://")
	for proto, status := range map[string]string{"HTTP/1.1": "HTTP/1.1 200 OK", "HTTP/1.0": "HTTP/1.0 200 OK"} {
		conn, err := net.Dial("tcp", host)
		require.NoError(t, err)
		defer conn.Close()
		_, err = io.WriteString(conn, "GET /api/public/feed/stream HTTP/"+proto[5:]+"\r\nHost: "+host+"\r\nAccept-Encoding: gzip\r\n\r\nGET / HTTP/1.1\r\n")
		require.NoError(t, err)
		in := bufio.NewReader(conn)
		line, err := in.ReadString('\n')
		require.NoError(t, err)
		require.Equal(t, status, strings.TrimSpace(line))
		head, err := textproto.NewReader(in).ReadMIMEHeader()
		require.NoError(t, err)
		for name, value := range map[string]string{
			"Content-Type": "text/event-stream", "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "Connection": "close",
			"Access-Control-Allow-Origin": "*", "Access-Control-Expose-Headers": protocol.ExposedHeaders, "X-Accel-Buffering": "no",
		} {
			require.Equal(t, []string{value}, head.Values(name), name)
		}
		for _, name := range []string{"Date", httpapi.RequestIDHeader, "RateLimit"} {
			require.NotEmpty(t, head.Get(name), name)
		}
		for _, name := range []string{"Content-Encoding", "Content-Length", "Transfer-Encoding"} {
			require.Empty(t, head.Get(name), name)
		}
		line, err = in.ReadString('\n')
		require.NoError(t, err)
		require.Equal(t, "retry: 2000\n", line)
	}

	var two http.Protocols
	two.SetUnencryptedHTTP2(true)
	transport := &http.Transport{Protocols: &two}
	defer transport.CloseIdleConnections()
	ctx, cancel := context.WithCancel(t.Context())
	r := must.Get(http.NewRequestWithContext(ctx, "GET", n.URL+"/api/public/feed/stream", nil))(t)
	res := must.Get(transport.RoundTrip(r))(t)
	require.Equal(t, 2, res.ProtoMajor)
	require.Equal(t, "nosniff", res.Header.Get("X-Content-Type-Options"))
	shared := &subscriber{t, bufio.NewScanner(res.Body), cancel}
	posts := n.On(t)
	posts.Post("Over HTTP/2")
	_, item, ok := shared.event()
	require.True(t, ok)
	require.Equal(t, "Over HTTP/2", item.Subject.Title)

	var open []*subscriber
	for n.Feed.Hub.Streams() < 8 {
		open = append(open, subscribe(t, n.URL, ""))
	}
	for _, s := range open {
		s.close()
	}
	cancel()
	require.Eventually(t, func() bool { return n.Feed.Hub.Streams() == 2 }, time.Minute, time.Millisecond,
		"those that have sent more than a request are noticed at the next write")
	stop()
	require.Zero(t, n.Feed.Hub.Streams(), "Run returns after the last stream")
}

// TestStream_Setting: max-streams is the number of a process, and no more.
func TestStream_Setting(t *testing.T) {
	t.Parallel()
	for max, right := range map[int]bool{-1: false, 0: true, 1: true, 5000: true, 100_000: true, 100_001: false} {
		err := node.Config{Listen: "127.0.0.1:0", Data: t.TempDir(), MaxStreams: max}.Validate()
		require.Equal(t, right, err == nil, "%d: %v", max, err)
	}
	n, _ := run(t, node.Config{Listen: "127.0.0.1:0", Data: t.TempDir(), Dev: true, Version: "test", MaxStreams: 4})
	first := subscribe(t, n.URL, "")
	subscribe(t, n.URL, "")
	refused := func() bool {
		res := must.Get(http.Get(n.URL + "/api/public/feed/stream"))(t)
		defer res.Body.Close()
		return res.StatusCode == http.StatusServiceUnavailable && res.Header.Get("Retry-After") != ""
	}
	require.True(t, refused())
	first.close()
	require.Eventually(t, func() bool { return n.Feed.Hub.Streams() == 1 }, time.Minute, time.Millisecond)
	subscribe(t, n.URL, "")
}
