package hall

import (
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/protocol/must"
)

// A closed connection is noticed, one that is open is kept, also when it has sent more, and no goroutine stays where there is nothing to watch.
func TestWatcher(t *testing.T) {
	t.Parallel()
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer l.Close()
	pair := func() (client, server net.Conn) {
		client = must.Get(net.Dial("tcp", l.Addr().String()))(t)
		server = must.Get(l.Accept())(t)
		t.Cleanup(func() { client.Close(); server.Close() })
		return client, server
	}
	var w watcher
	var gone [3]atomic.Bool
	var clients [3]net.Conn
	stops := make([]func(), 0, 3)
	for i := range clients {
		client, server := pair()
		clients[i] = client
		stops = append(stops, w.watch(server, func() { gone[i].Store(true) }))
	}
	must.Get(clients[1].Write([]byte("GET ")))(t)
	require.NoError(t, clients[0].Close())
	require.Eventually(t, gone[0].Load, time.Minute, time.Millisecond)
	require.False(t, gone[1].Load() || gone[2].Load())

	aside, pipe := net.Pipe() // has no socket to look at
	var closed atomic.Bool
	w.watch(pipe, func() { closed.Store(true) })
	require.NoError(t, aside.Close())
	require.Eventually(t, closed.Load, time.Minute, time.Millisecond)

	for _, stop := range stops {
		stop()
	}
	require.Eventually(t, func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.poll == nil
	}, time.Minute, time.Millisecond)
}
