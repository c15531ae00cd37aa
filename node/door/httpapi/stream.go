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
	writeGrace = 5 * time.Second // a reader that accepts nothing for so long is gone; shorter than the time that a node has to stop
	streamLife = time.Hour       // then the client reconnects and continues
	reconnect  = 2 * time.Second // how long a client waits before it reconnects
)

// stream writes a stream as server-sent events (HTML Standard §9.2) until it ends, the client
// disconnects, or streamLife is over. A stream that is cut ends with a complete body, and the
// client reconnects with Last-Event-ID.
//
// The server keeps two goroutines with deep stacks, two buffers and the request for each request.
// A stream over HTTP/1 lasts for hours, so it hijacks the connection and keeps two small
// goroutines. Over HTTP/2, where streams share a connection, the server keeps it.
func (a *API) stream(w http.ResponseWriter, r *http.Request, op *protocol.Operation, s protocol.Stream) {
	head := w.Header()
	head["Content-Type"] = []string{op.Media}
	head["Cache-Control"] = []string{"no-store"}
	head["X-Accel-Buffering"] = []string{"no"} // nginx would buffer the stream
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
		more := rest.Reader.Buffered() > 0 // of a client that pipelines
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
	// The server's deadlines are meant for short requests; an expired read deadline would cancel
	// the request's context.
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

// Wait returns when every stream has ended, or ctx has. No stream may begin during or after it.
func (a *API) Wait(ctx context.Context) {
	done := make(chan struct{})
	go func() { a.streams.Wait(); close(done) }()
	select {
	case <-done:
	case <-ctx.Done():
	}
}

// answerHead returns the head of a response whose body ends with the connection (RFC 9112 §6.3).
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

// watch ends a stream when its client closes the connection. A client that sends more data is only
// noticed when it stops reading.
func watch(conn net.Conn, gone func()) {
	if n, _ := conn.Read(make([]byte, 1)); n == 0 {
		gone()
	}
}

// A sink writes and flushes.
type sink interface {
	io.Writer
	SetWriteDeadline(time.Time) error
}

// A flusher is the sink of a request that the server keeps.
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

// supported ignores the error of a step that a test's recorder does not implement.
func supported(err error) error {
	if errors.Is(err, http.ErrNotSupported) {
		return nil
	}
	return err
}

// follow writes a stream until it ends or life does, and closes it. Each batch is one write of
// bytes that all streams share.
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
	if !write(append(first, positionEvent(place)...)) {
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
				place, text = at, append(text, positionEvent(at)...)
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

// positionEvent informs the client of its position without an event, which is also past the events that it did
// not ask for.
func positionEvent(place string) []byte {
	if place == "" {
		return nil
	}
	return []byte("id: " + place + "\n\n")
}

// render returns events in the format of the event stream.
func render(events []protocol.Event) []byte {
	var b bytes.Buffer
	for _, v := range events {
		b.WriteString("id: " + v.ID + "\nevent: " + v.Type + "\ndata: ")
		b.Write(v.Data)
		b.WriteString("\n\n")
	}
	return b.Bytes()
}
