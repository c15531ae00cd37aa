package hall

import (
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A closed connection is noticed, one that is open is kept, also when it has sent more, and no goroutine stays where there is nothing to watch.
func TestWatcher(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	pair := func() (client, server net.Conn) {
		client, err := net.Dial("tcp", l.Addr().String())
		require.NoError(t, err)
		server, err = l.Accept()
		require.NoError(t, err)
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
	_, err = clients[1].Write([]byte("GET "))
	require.NoError(t, err)
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
