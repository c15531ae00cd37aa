package httpapi

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"

	"stoa/protocol"
)

const (
	writeGrace = 5 * time.Second // a reader that takes nothing for so long is gone; less than a node may take to stop
	streamLife = time.Hour       // then the client comes back by itself and goes on
	reconnect  = 2 * time.Second // how long a client waits before it comes back
)

// stream writes a stream as server-sent events (HTML Standard §9.2) until it
// ends, the client goes, or it has lasted its time. A reader that is cut finds
// the connection closed in order and comes back with Last-Event-ID.
//
// The server keeps for a request two goroutines with deep stacks, two buffers
// and the request. A stream over HTTP/1 waits for hours, so it takes the
// connection over and keeps two small goroutines. Over HTTP/2, where streams
// share a connection, it stays the server's.
func (a *API) stream(w http.ResponseWriter, r *http.Request, op *protocol.Operation, s protocol.Stream) {
	head := w.Header()
	head["Content-Type"] = []string{op.Media}
	head["Cache-Control"] = []string{"no-store"}
	head["X-Accel-Buffering"] = []string{"no"} // nginx would gather what it passes on
	if r.Method == http.MethodHead {
		s.Close()
		w.WriteHeader(op.HTTP.Status)
		return
	}
	control := http.NewResponseController(w)
	a.streams.Add(1) // while the server still counts the request
	conn, rest, err := control.Hijack()
	if err == nil {
		first := answerHead(r, op.HTTP.Status, head)
		more := rest.Reader.Buffered() > 0 // of a client that does not wait for an answer
		go func() {
			defer a.streams.Done()
			defer conn.Close()
			life, cancel := context.WithTimeout(context.Background(), streamLife)
			defer cancel()
			if !more {
				go watch(conn, cancel)
			}
			follow(life, conn, first, s)
		}()
		return
	}
	defer a.streams.Done()
	// The server's deadlines are those of an exchange; a passed read deadline
	// would end the request's context.
	if err := control.SetReadDeadline(time.Time{}); err != nil && !errors.Is(err, http.ErrNotSupported) {
		s.Close()
		return
	}
	w.WriteHeader(op.HTTP.Status)
	life, cancel := context.WithTimeout(r.Context(), streamLife)
	defer cancel()
	out := flusher{w, control}
	follow(life, out, nil, s)
	out.SetWriteDeadline(time.Now().Add(writeGrace)) // for the end of the body
}

// Wait returns when every stream has ended, or ctx has. No stream may begin any more.
func (a *API) Wait(ctx context.Context) {
	done := make(chan struct{})
	go func() { a.streams.Wait(); close(done) }()
	select {
	case <-done:
	case <-ctx.Done():
	}
}

// answerHead is the head of an answer whose body ends with the connection
// (RFC 9112 §6.3).
func answerHead(r *http.Request, status int, head http.Header) []byte {
	var b bytes.Buffer
	head["Connection"] = []string{"close"}
	head["Date"] = []string{time.Now().UTC().Format(http.TimeFormat)}
	version := "HTTP/1.0 "
	if r.ProtoAtLeast(1, 1) {
		version = "HTTP/1.1 "
	}
	b.WriteString(version + strconv.Itoa(status) + " " + http.StatusText(status) + "\r\n")
	head.Write(&b)
	b.WriteString("\r\n")
	return b.Bytes()
}

// watch ends a stream when its client closes the connection. A client that sends
// something instead is noticed when it takes no more.
func watch(conn net.Conn, gone func()) {
	if n, _ := conn.Read(make([]byte, 1)); n == 0 {
		gone()
	}
}

// A sink takes what a stream writes and passes it on at once.
type sink interface {
	io.Writer
	SetWriteDeadline(time.Time) error
}

// A flusher is the sink of a request that is the server's.
type flusher struct {
	io.Writer
	control *http.ResponseController
}

func (f flusher) Write(p []byte) (int, error) {
	n, err := f.Writer.Write(p)
	if err == nil {
		err = supported(f.control.Flush())
	}
	return n, err
}

func (f flusher) SetWriteDeadline(t time.Time) error { return supported(f.control.SetWriteDeadline(t)) }

// supported is the error of a step that a recorder of a test does not take.
func supported(err error) error {
	if errors.Is(err, http.ErrNotSupported) {
		return nil
	}
	return err
}

// follow writes a stream until it or life ends, and closes it. Each batch is one
// write of bytes that all streams share.
func follow(life context.Context, out sink, first []byte, s protocol.Stream) {
	defer s.Close()
	write := func(p []byte) bool {
		if out.SetWriteDeadline(time.Now().Add(writeGrace)) != nil {
			return false
		}
		_, err := out.Write(p)
		return err == nil
	}
	place := s.Place()
	first = append(first, "retry: "+strconv.FormatInt(reconnect.Milliseconds(), 10)+"\n\n"...)
	if !write(append(first, stand(place)...)) {
		return
	}
	for {
		b, err := s.Next(life)
		var text []byte
		switch {
		case err == nil && len(b.Events) > 0:
			place = b.Events[len(b.Events)-1].ID
			text = b.Text(render)
		case err == nil:
			text = []byte(": alive\n\n")
			if at := s.Place(); at != place {
				place, text = at, append(text, stand(at)...)
			}
		default:
			if !errors.Is(err, io.EOF) && life.Err() == nil {
				write([]byte(": " + string(protocol.CodeOf(err)) + "\n\n"))
			}
			return
		}
		if !write(text) {
			return
		}
	}
}

// stand tells the client where it stands, without an event: what it did not ask
// for is behind it too.
func stand(place string) []byte {
	if place == "" {
		return nil
	}
	return []byte("id: " + place + "\n\n")
}

// render is events as the client reads them.
func render(events []protocol.Event) []byte {
	var b bytes.Buffer
	for _, v := range events {
		b.WriteString("id: " + v.ID + "\nevent: " + v.Type + "\ndata: ")
		b.Write(v.Data)
		b.WriteString("\n\n")
	}
	return b.Bytes()
}
