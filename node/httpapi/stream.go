package httpapi

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"stoa/protocol"
)

const (
	heartbeat  = 15 * time.Second // a comment, so that proxies and clients see that the stream lives
	writeGrace = 5 * time.Second  // a reader that takes nothing for so long is gone; less than a node may take to stop
	streamLife = time.Hour        // then the client comes back by itself and goes on
	reconnect  = 2 * time.Second  // how long a client waits before it comes back
)

// stream writes a stream as server-sent events (HTML Standard §9.2) until it
// ends, the client goes, or it has lasted its time. A reader that is cut finds
// the connection closed in order and comes back with Last-Event-ID.
func (a *API) stream(w http.ResponseWriter, r *http.Request, op *protocol.Operation, s protocol.Stream) {
	defer s.Close()
	head := w.Header()
	head["Content-Type"] = []string{op.Media}
	head["Cache-Control"] = []string{"no-store"}
	head["X-Accel-Buffering"] = []string{"no"} // nginx would gather what it passes on
	if r.Method == http.MethodHead {
		w.WriteHeader(op.HTTP.Status)
		return
	}
	out := &eventWriter{w: w, control: http.NewResponseController(w)}
	// The server's deadlines are those of an exchange; a passed read deadline
	// would end the request's context.
	if err := out.control.SetReadDeadline(time.Time{}); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return
	}
	w.WriteHeader(op.HTTP.Status)
	out.text.WriteString("retry: " + strconv.FormatInt(reconnect.Milliseconds(), 10) + "\n\n")
	out.stand(s.Place())
	if out.flush() != nil {
		return
	}
	defer out.grace() // for the end of the body
	life, cancel := context.WithTimeout(r.Context(), streamLife)
	defer cancel()
	for {
		events, err := nextEvents(life, s)
		switch {
		case err == nil:
			for _, e := range events {
				out.event(e)
			}
		case errors.Is(err, context.DeadlineExceeded) && life.Err() == nil:
			out.text.WriteString(": alive\n\n")
			out.stand(s.Place())
		default:
			if !errors.Is(err, io.EOF) && life.Err() == nil {
				out.text.WriteString(": " + string(protocol.CodeOf(err)) + "\n\n")
				out.flush()
			}
			return
		}
		if out.flush() != nil {
			return
		}
	}
}

func nextEvents(ctx context.Context, s protocol.Stream) ([]protocol.Event, error) {
	ctx, cancel := context.WithTimeout(ctx, heartbeat)
	defer cancel()
	return s.Next(ctx)
}

// An eventWriter gathers what goes out together.
type eventWriter struct {
	w       io.Writer
	control *http.ResponseController
	text    strings.Builder
	place   string // the last id that was written
}

func (e *eventWriter) event(v protocol.Event) {
	e.place = v.ID
	e.text.WriteString("id: " + v.ID + "\nevent: " + v.Type + "\ndata: ")
	e.text.Write(v.Data)
	e.text.WriteString("\n\n")
}

// stand tells the client where it stands, without an event: what it did not ask
// for is behind it too.
func (e *eventWriter) stand(place string) {
	if place != "" && place != e.place {
		e.place = place
		e.text.WriteString("id: " + place + "\n\n")
	}
}

// grace is the time that the reader has from now on to take what is written.
func (e *eventWriter) grace() error {
	err := e.control.SetWriteDeadline(time.Now().Add(writeGrace))
	if errors.Is(err, http.ErrNotSupported) { // a recorder of a test
		return nil
	}
	return err
}

func (e *eventWriter) flush() error {
	if err := e.grace(); err != nil {
		return err
	}
	if _, err := io.WriteString(e.w, e.text.String()); err != nil {
		return err
	}
	e.text.Reset()
	if err := e.control.Flush(); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	return nil
}
