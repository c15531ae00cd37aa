package httpapi

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/node/hall"
	"stoa/protocol"
	"stoa/protocol/must"
)

// A script is a stream that tells what is put into it.
type script struct {
	events chan *protocol.Batch
	ends   chan error
	closed chan struct{}

	mu    sync.Mutex // guards place
	place string
}

func newScript() *script {
	return &script{events: make(chan *protocol.Batch, 1), ends: make(chan error, 1), closed: make(chan struct{})}
}

func (s *script) Next(ctx context.Context) (*protocol.Batch, error) {
	select {
	case e := <-s.events:
		if n := len(e.Events); n > 0 {
			s.position(e.Events[n-1].ID)
		}
		return e, nil
	case err := <-s.ends:
		return nil, err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (s *script) position(at string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.place = at
}

func (s *script) Place() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.place
}

func (s *script) Close() { close(s.closed) }

// serveStream serves a script over a pipe, which holds nothing back: a reader
// that does not read stops the writer at once.
func serveStream(t *testing.T, s *script, method string) (client net.Conn, stop func()) {
	t.Helper()
	client, server := net.Pipe()
	listener := &oneConn{conns: make(chan net.Conn, 1)}
	listener.conns <- server
	srv := &http.Server{ReadTimeout: 15 * time.Second, WriteTimeout: 30 * time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		new(API).stream(w, r, protocol.StreamFeed.Operation, s)
	})}
	done := make(chan struct{})
	go func() { srv.Serve(listener); close(done) }()
	must.Get(io.WriteString(client, method+" /api/public/feed/stream HTTP/1.1\r\nHost: n.example\r\nConnection: close\r\n\r\n"))(t)
	return client, func() {
		client.Close()
		srv.Close()
		listener.Close()
		<-done
	}
}

type oneConn struct {
	conns chan net.Conn
}

func (l *oneConn) Accept() (net.Conn, error) {
	c, ok := <-l.conns
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}

func (l *oneConn) Close() error {
	defer func() { recover() }() // closed already
	close(l.conns)
	return nil
}

func (l *oneConn) Addr() net.Addr { return &net.TCPAddr{} }

func event(n int) *protocol.Batch {
	return &protocol.Batch{Events: []protocol.Event{{ID: "feed_" + strconv.Itoa(n), Type: "board_post", Data: []byte(`{"n":` + strconv.Itoa(n) + `}`)}}}
}

// TestStream_Wire lets two hours pass: events as they come, a comment when
// nothing comes, the position of the reader when it passed something over, and the
// end after an hour.
func TestStream_Wire(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newScript()
		s.position("feed_0")
		client, stop := serveStream(t, s, "GET")
		defer stop()
		began := time.Now()
		res := must.Get(http.ReadResponse(bufio.NewReader(client), nil))(t)
		require.Equal(t, 200, res.StatusCode)
		require.Equal(t, "text/event-stream", res.Header.Get("Content-Type"))
		require.Equal(t, "no-store", res.Header.Get("Cache-Control"))
		lines := bufio.NewScanner(res.Body)
		block := func() string {
			var b strings.Builder
			for lines.Scan() && lines.Text() != "" {
				b.WriteString(lines.Text() + "\n")
			}
			return b.String()
		}
		require.Equal(t, "retry: 2000\n", block())
		require.Equal(t, "id: feed_0\n", block())
		s.events <- event(1)
		require.Equal(t, "id: feed_1\nevent: board_post\ndata: {\"n\":1}\n", block())
		require.Zero(t, time.Since(began))
		s.events <- new(protocol.Batch)
		require.Equal(t, ": alive\n", block())
		s.position("feed_7")
		s.events <- new(protocol.Batch)
		require.Equal(t, ": alive\n", block())
		require.Equal(t, "id: feed_7\n", block())
		require.Zero(t, time.Since(began))
		require.Empty(t, block())
		require.NoError(t, lines.Err(), "an end in order")
		require.Equal(t, hall.StreamLife, time.Since(began))
		<-s.closed
	})
}

// TestStream_EndsWith gives back the stream's place whichever side ends it.
func TestStream_EndsWith(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		end  func(s *script, client net.Conn)
		rest string
	}{
		"the node":   {func(s *script, _ net.Conn) { s.ends <- io.EOF }, ""},
		"the client": {func(_ *script, c net.Conn) { c.Close() }, ""},
		"the hub":    {func(s *script, _ net.Conn) { s.ends <- protocol.Errorf(protocol.Overloaded, "too slow") }, ": overloaded\n"},
		"a fault":    {func(s *script, _ net.Conn) { s.ends <- io.ErrUnexpectedEOF }, ": internal\n"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newScript()
				client, stop := serveStream(t, s, "GET")
				defer stop()
				res := must.Get(http.ReadResponse(bufio.NewReader(client), nil))(t)
				body := bufio.NewReader(res.Body)
				must.Get(body.ReadString('\n'))(t)
				test.end(s, client)
				rest, _ := io.ReadAll(body)
				require.Equal(t, test.rest, strings.TrimPrefix(strings.TrimSuffix(string(rest), "\n"), "\n"))
				<-s.closed
			})
		})
	}
}

// A reader that takes nothing holds a stream for the grace of one write.
func TestStream_StuckReader(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newScript()
		client, stop := serveStream(t, s, "GET")
		defer stop()
		must.Get(http.ReadResponse(bufio.NewReaderSize(client, 64), nil))(t)
		began := time.Now()
		go func() {
			for n := 0; ; n++ {
				select {
				case s.events <- event(n):
				case <-s.closed:
					return
				}
			}
		}()
		<-s.closed
		require.LessOrEqual(t, time.Since(began), hall.WriteGrace)
	})
}

func TestStream_Head(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newScript()
		client, stop := serveStream(t, s, "HEAD")
		defer stop()
		all := must.Get(io.ReadAll(client))(t)
		require.Contains(t, string(all), "text/event-stream")
		require.True(t, strings.HasSuffix(string(all), "\r\n\r\n"))
		<-s.closed
	})
}
