package hall

import (
	"net"
	"sync"
	"syscall"
	"time"
)

// watchEvery is how soon it is noticed that a client has closed the connection of a stream.
const watchEvery = time.Second

// A watcher looks now and then whether the clients of connections are still there, in one goroutine for all while there are any: one that
// waits in Read for each would be half of what a quiet stream costs.
type watcher struct {
	mu      sync.Mutex
	conns   map[*watched]bool
	running bool
}

type watched struct {
	raw  syscall.RawConn
	gone func()
}

// watch calls gone once the client has closed the connection, unless stop is called before. A client that has sent more data is only noticed
// when it stops reading.
func (w *watcher) watch(conn net.Conn, gone func()) (stop func()) {
	var raw syscall.RawConn
	if c, ok := conn.(syscall.Conn); ok && canPeek {
		raw, _ = c.SyscallConn()
	}
	if raw == nil {
		go func() {
			if n, _ := conn.Read(make([]byte, 1)); n == 0 {
				gone()
			}
		}()
		return func() {}
	}
	one := &watched{raw, gone}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.conns == nil {
		w.conns = map[*watched]bool{}
	}
	w.conns[one] = true
	if !w.running {
		w.running = true
		go w.run()
	}
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.conns, one)
	}
}

func (w *watcher) run() {
	for {
		time.Sleep(watchEvery)
		w.mu.Lock()
		if len(w.conns) == 0 {
			w.conns, w.running = nil, false
			w.mu.Unlock()
			return
		}
		for c := range w.conns {
			if !c.there() {
				delete(w.conns, c)
				c.gone()
			}
		}
		w.mu.Unlock()
	}
}

// there reports whether the other side may still read.
func (c *watched) there() bool {
	there := false
	err := c.raw.Control(func(fd uintptr) { there = peek(int(fd)) })
	return there && err == nil
}
