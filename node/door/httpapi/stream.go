package httpapi

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"

	"stoa/node/hall"
	"stoa/protocol"
)

const reconnect = 2 * time.Second // how long a client waits before it reconnects

// stream writes a stream as server-sent events (HTML Standard §9.2) until it ends, the client
// disconnects, or hall.StreamLife is over. A stream that is cut ends with a complete body, and the
// client reconnects with Last-Event-ID.
func (a *API) stream(w http.ResponseWriter, r *http.Request, op *protocol.Operation, s protocol.Stream) {
	w.Header()["Content-Type"] = []string{op.Media}
	if r.Method == http.MethodHead {
		s.Close()
		w.Header()["Cache-Control"] = []string{"no-store"}
		w.WriteHeader(op.HTTP.Status)
		return
	}
	a.streams.Serve(w, r, op.HTTP.Status, func(life context.Context, out hall.Sink, first []byte) { follow(life, out, first, s) })
}

// Wait returns when every stream has ended, or ctx has. No stream may begin during or after it.
func (a *API) Wait(ctx context.Context) { a.streams.Wait(ctx) }

// follow writes a stream until it ends or life does, and closes it. Each batch is one write of
// bytes that all streams share.
func follow(life context.Context, out hall.Sink, first []byte, s protocol.Stream) {
	defer s.Close()
	write := func(p []byte) bool { return hall.Put(out, p) }
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
