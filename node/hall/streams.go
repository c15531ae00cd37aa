package hall

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"
)

const (
	WriteGrace = 5 * time.Second // a reader that accepts nothing for so long is gone; shorter than the time that a node has to stop
	StreamLife = time.Hour       // then the client reconnects and continues
)

// Streams are the answers of a door that last: server-sent events (HTML Standard §9.2).
type Streams struct {
	open    sync.WaitGroup
	watcher watcher
}

// A Sink writes and flushes.
type Sink interface {
	io.Writer
	SetWriteDeadline(time.Time) error
}

// Serve writes a stream until follow returns. life ends when the client disconnects or StreamLife is over. follow writes first
// before anything else, and may append to it. The header of w has the fields of the answer.
//
// The server keeps two goroutines with deep stacks, two buffers and the request for each request.
// A stream over HTTP/1 lasts for hours, so it hijacks the connection and keeps one small
// goroutine. Over HTTP/2, where streams share a connection, the server keeps it.
func (s *Streams) Serve(w http.ResponseWriter, r *http.Request, status int, follow func(life context.Context, out Sink, first []byte)) {
	head := w.Header()
	head["Cache-Control"] = []string{"no-store"}
	head["X-Accel-Buffering"] = []string{"no"} // nginx would buffer the stream
	control := http.NewResponseController(w)
	s.open.Add(1) // while the server still counts the request
	conn, rest, err := control.Hijack()
	if err == nil {
		first := answerHead(r, status, head)
		more := rest.Reader.Buffered() > 0 // of a client that pipelines
		go func() {
			defer s.open.Done()
			defer conn.Close()
			life, cancel := context.WithTimeout(context.Background(), StreamLife)
			defer cancel()
			if !more {
				defer s.watcher.watch(conn, cancel)()
			}
			follow(life, conn, first)
		}()
		return
	}
	defer s.open.Done()
	// The server's deadlines are meant for short requests; an expired read deadline would cancel
	// the request's context.
	life, cancel := context.WithTimeout(r.Context(), StreamLife)
	defer cancel()
	if err := control.SetReadDeadline(time.Time{}); err != nil && !errors.Is(err, http.ErrNotSupported) {
		cancel()
	}
	w.WriteHeader(status)
	out := flusher{w, control}
	follow(life, out, nil)
	out.SetWriteDeadline(time.Now().Add(WriteGrace)) // for the end of the body
}

// Wait returns when every stream has ended, or ctx has. No stream may begin during or after it.
func (s *Streams) Wait(ctx context.Context) {
	done := make(chan struct{})
	go func() { s.open.Wait(); close(done) }()
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

// Put writes within WriteGrace, and reports whether it could.
func Put(out Sink, p []byte) bool {
	if out.SetWriteDeadline(time.Now().Add(WriteGrace)) != nil {
		return false
	}
	_, err := out.Write(p)
	return err == nil
}
