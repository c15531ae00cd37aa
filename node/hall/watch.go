package hall

import (
	"net"
	"sync"
	"syscall"
)

// A watcher notices when the clients of streams close their connections. Where the system can, one goroutine watches all connections: one that
// waits in Read for each would be half of what a quiet stream costs.
type watcher struct {
	mu    sync.Mutex
	poll  *poll // while it runs
	last  int32
	conns map[int32]func()
}

// watch calls gone once the client has closed the connection, unless stop is called before.
func (w *watcher) watch(conn net.Conn, gone func()) (stop func()) {
	if c, ok := conn.(syscall.Conn); ok {
		if raw, err := c.SyscallConn(); err == nil {
			if stop = w.add(raw, gone); stop != nil {
				return stop
			}
		}
	}
	go func() { // of a client that sends more, the end is noticed by a write that fails
		if n, _ := conn.Read(make([]byte, 1)); n == 0 {
			gone()
		}
	}()
	return func() {}
}

// add watches a socket, if the system can; nil when it cannot.
func (w *watcher) add(raw syscall.RawConn, gone func()) (stop func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.poll == nil {
		p, err := newPoll()
		if err != nil {
			return nil
		}
		w.poll, w.conns = p, map[int32]func(){}
		go w.run(p)
	}
	var failed error
	p := w.poll
	for w.last++; w.conns[w.last] != nil; w.last++ {
	}
	id := w.last
	if err := raw.Control(func(fd uintptr) { failed = p.add(int(fd), id) }); err != nil || failed != nil {
		return nil
	}
	w.conns[id] = gone
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.conns[id] != nil && w.poll == p {
			delete(w.conns, id)
			raw.Control(func(fd uintptr) { p.remove(int(fd)) }) // an error: it is closed, and no longer watched
		}
	}
}

// run ends when there is nothing to watch.
func (w *watcher) run(p *poll) {
	defer p.close()
	for {
		ended := p.wait()
		w.mu.Lock()
		for _, id := range ended {
			if gone := w.conns[id]; gone != nil {
				delete(w.conns, id)
				gone()
			}
		}
		if len(w.conns) == 0 {
			w.poll = nil
			w.mu.Unlock()
			return
		}
		w.mu.Unlock()
	}
}
