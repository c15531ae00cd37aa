package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"stoa/protocol"
)

// The pages of conversations are kept up to date by server-sent events (HTML Standard §9.2): an event says that the
// conversation has changed, and the script of the page reads the page again. Without script the page is loaded again.

const (
	liveBeat  = 20 * time.Second // longest silence, so that a client that has gone is noticed
	liveLife  = time.Hour        // then the browser connects again
	liveGrace = 5 * time.Second  // a client that accepts nothing for so long has gone
)

// A Live tells when something may have happened; see feed.Pulse.
type Live interface {
	Join(network string, known bool) (leave func(), err error)
	Next(ctx context.Context, seen int64) (int64, error)
}

// markOfThread identifies the state of a conversation.
func markOfThread(c protocol.Conversation) string {
	return strconv.Itoa(c.Count) + "-" + string(c.State)
}

// liveThread streams to the page of who began a conversation.
func (s *Web) liveThread(w http.ResponseWriter, r *http.Request) {
	args := openedThread.args(r)
	s.stream(w, r, false, func(r *http.Request) (string, error) {
		c, err := s.readThread(r, args)
		return markOfThread(c), err
	})
}

// liveInbox streams to the page of the owner.
func (s *Web) liveInbox(w http.ResponseWriter, r *http.Request) {
	args := map[string]any{"threadId": r.PathValue("id")}
	s.stream(w, r, true, func(r *http.Request) (string, error) {
		var c protocol.Conversation
		err := s.invokeSignedIn(r, protocol.GetThread.Operation, args, &c)
		return markOfThread(c), err
	})
}

// stream sends an event whenever what read returns differs from what the page has, which the browser gives as
// Last-Event-ID or seen. What known callers read is told from what strangers do (protocol.Shared).
func (s *Web) stream(w http.ResponseWriter, r *http.Request, known bool, read func(r *http.Request) (string, error)) {
	seen := r.Header.Get("Last-Event-ID")
	if seen == "" {
		seen = r.URL.Query().Get("seen")
	}
	now, err := read(r)
	if err != nil {
		s.failSecret(w, r, err)
		return
	}
	leave, err := s.Live.Join(s.Network(r), known)
	if err != nil {
		s.failSecret(w, r, err)
		return
	}
	defer leave()
	control := http.NewResponseController(w)
	if err := control.SetReadDeadline(time.Time{}); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return
	}
	head := w.Header()
	guard(head)
	head.Set("Content-Type", "text/event-stream")
	head.Set("Cache-Control", "no-store")
	head.Set("X-Accel-Buffering", "no") // nginx would buffer the stream
	w.WriteHeader(http.StatusOK)
	send := func(text string) bool {
		if err := control.SetWriteDeadline(time.Now().Add(liveGrace)); err != nil && !errors.Is(err, http.ErrNotSupported) {
			return false
		}
		_, err := w.Write([]byte(text))
		if err == nil {
			err = control.Flush()
		}
		return err == nil
	}
	if !send("retry: 3000\n\n") {
		return
	}
	life, cancel := context.WithTimeout(r.Context(), liveLife)
	defer cancel()
	for at := int64(0); ; {
		if now != seen {
			if seen = now; !send(fmt.Sprintf("id: %s\nevent: change\ndata: {}\n\n", seen)) {
				return
			}
		}
		wait, stop := context.WithTimeout(life, liveBeat)
		at, err = s.Live.Next(wait, at)
		stop()
		switch {
		case err == nil:
			if now, err = read(r.WithContext(life)); err != nil {
				return
			}
		case life.Err() != nil || !errors.Is(err, context.DeadlineExceeded) || !send(": alive\n\n"):
			return
		}
	}
}
