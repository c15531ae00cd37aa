package a2aapi

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"stoa/node/hall"
	"stoa/protocol"
	"stoa/protocol/a2a"
)

// Streams of A2A are server-sent events, each a whole JSON-RPC answer. What goes wrong before the first is answered as JSON.

// subscribe is the method SubscribeToTask: the task, then what changes, until it ends or waits for the caller.
func (a *API) subscribe(v *visit) error {
	q, err := a2a.ParseTaskQuery(v.m.params)
	if err != nil {
		return err
	}
	if err := ownTenant(q.Tenant, v.handle); err != nil {
		return err
	}
	return a.follow(v, q.ID, nil)
}

// stream is the method SendStreamingMessage.
func (a *API) stream(v *visit) error {
	result, err := a.send(v)
	if err != nil {
		return err
	}
	sent := result.(a2a.SendResult)
	if sent.Task != nil && !sent.Task.Status.State.Over() && (v.exchange != nil || v.thing != "") {
		return a.follow(v, sent.Task.ID, sent.Task)
	}
	a.events(v, func(_ context.Context, out hall.Sink, first []byte) {
		hall.Put(out, append(first, v.event(a2a.StreamResponse{Task: sent.Task, Message: sent.Message})...))
	})
	return nil
}

// now returns a task as it is.
func (a *API) now(v *visit, id string) (a2a.Task, error) {
	if isThing(id) {
		return a.thing(v, id)
	}
	e, err := a.exchange(v, protocol.GetExchange.Operation, id)
	return a2a.FromExchange(e, v.send.HistoryLength), err
}

// follow writes a task and what follows. A new task is shown as it was made, with its secrets, unless it has changed since.
func (a *API) follow(v *visit, id string, made *a2a.Task) error {
	if isThing(id) && made == nil { // whose it is, the hub does not know
		if _, err := a.thing(v, id); err != nil {
			return err
		}
	}
	s, err := a.followed(v, id)
	if err != nil {
		return err
	}
	was, err := a.now(v, id) // now that no change is missed
	if err == nil && was.Status.State.Over() && v.m.method == a2a.SubscribeTask {
		err = a2a.ErrUnsupportedOperation.With("the task is over; ask for it", "taskId", id)
	}
	if err != nil {
		s.Close()
		return err
	}
	if made != nil {
		if was.Metadata = made.Metadata; isThing(id) {
			was.Artifacts, was.Status.Message = made.Artifacts, made.Status.Message
		}
	}
	start := v.event(a2a.StreamResponse{Task: &was})
	frame, next := v.frame(), a.reads(v, id)
	a.events(v, func(life context.Context, out hall.Sink, first []byte) {
		defer s.Close()
		if !hall.Put(out, append(first, start...)) || was.Status.State.Over() {
			return
		}
		was = was.Settled()
		start, first = nil, nil
		for {
			b, err := s.Next(life)
			if err != nil {
				return
			}
			var text []byte
			for _, event := range b.Events {
				is, err := next(life, event.Data)
				if err != nil {
					return
				}
				if isThing(id) && (is.Status.State != was.Status.State || is.Status.Timestamp != was.Status.Timestamp) {
					was.Artifacts = nil // it is another, under the same id
				}
				for _, r := range is.Since(was) {
					text = append(text, frame.event(r)...)
				}
				was = is.Settled()
			}
			if len(b.Events) == 0 {
				text = []byte(": alive\n\n")
			}
			ends := len(b.Events) > 0 && (was.Status.State.Waits() || was.Status.State.Over())
			if len(text) > 0 && (!hall.Put(out, text) || ends) {
				return
			}
		}
	})
	return nil
}

// reads returns what reads a task of a stream after a change, and holds nothing of the request that asked for the stream.
func (a *API) reads(v *visit, id string) func(ctx context.Context, event []byte) (a2a.Task, error) {
	length := v.send.HistoryLength
	if !isThing(id) {
		return func(_ context.Context, event []byte) (a2a.Task, error) { return taskOf(event, length) }
	}
	c, handle := *v.c, v.handle
	c.Evidence, c.Key, c.Spend = nil, nil, nil
	return func(ctx context.Context, _ []byte) (a2a.Task, error) {
		r := (&http.Request{}).WithContext(ctx)
		return a.thing(&visit{w: unanswered{}, r: r, m: &message{method: a2a.GetTask}, handle: handle, c: &c}, id)
	}
}

// unanswered is the answer to a request that there is no more: it has no header fields.
type unanswered struct{ http.ResponseWriter }

func (unanswered) Header() http.Header { return http.Header{} }

// followed returns the stream of a task.
func (a *API) followed(v *visit, id string) (protocol.Stream, error) {
	unknown := a2a.ErrTaskNotFound.With(a2a.ErrTaskNotFound.Text, "taskId", id)
	handle := v.handle
	if isThing(id) && handle == "" { // the node's own agent reads those of all
		handle = "any"
	}
	if _, ok := protocol.ParseExchangeID(id); !ok && !isThing(id) || !protocol.IsHandle(handle) {
		return nil, unknown
	}
	args, err := json.Marshal(protocol.ExchangeInput{Handle: handle, ID: id})
	if err != nil {
		return nil, err
	}
	res, err := a.invoke(v, protocol.FollowExchange.Operation, args, "")
	if protocol.CodeOf(err) == protocol.NotFound {
		err = unknown
	}
	if err != nil {
		return nil, err
	}
	s, ok := res.Value.(protocol.Stream)
	if !ok {
		return nil, fmt.Errorf("%s gave %T", res.Op.Name, res.Value)
	}
	return s, nil
}

func taskOf(raw []byte, historyLength *int) (a2a.Task, error) {
	var e protocol.Exchange
	if err := json.Unmarshal(raw, &e); err != nil {
		return a2a.Task{}, err
	}
	return a2a.FromExchange(e, historyLength), nil
}

// events answers with a stream.
func (a *API) events(v *visit, follow func(life context.Context, out hall.Sink, first []byte)) {
	v.w.Header()["Content-Type"] = []string{"text/event-stream"}
	a.c.Table.Limits.Fields(v.w.Header(), v.c.Network, !v.m.writes())
	a.Streams.Serve(v.w, v.r, http.StatusOK, follow)
}

// A frame is what the events of a stream have in common.
type frame struct {
	rest    bool
	version string
	id      json.RawMessage
}

func (v *visit) frame() frame { return frame{v.m.rest, v.m.version, bytes.Clone(v.m.id)} }

func (v *visit) event(r a2a.StreamResponse) []byte { return v.frame().event(r) }

// event renders an event: one line of data (HTML Standard §9.2), which JSON without indents is.
func (f frame) event(r a2a.StreamResponse) []byte {
	return fmt.Appendf(nil, "data: %s\n\n", f.answer(r))
}

// answer renders a result in its binding.
func (f frame) answer(result any) []byte {
	raw, err := json.Marshal(a2a.In(f.version, result))
	if err != nil {
		return nil
	}
	if f.rest {
		return raw
	}
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":%s}`, f.id, raw)
}

// await answers a message when its exchange has ended or waits for the caller, or after so long as the door waits. It returns false when
// it does not: the message is to be answered at once, with the result. As a stream does, one that waits keeps little more than its connection.
func (a *API) await(v *visit, result *any) bool {
	e := v.exchange
	over := func(s protocol.ExchangeState) bool { return s.Final() || s == protocol.ExchangeAsked }
	if e == nil || a.c.Wait <= 0 || v.send.Immediately || over(e.State) {
		return false
	}
	s, err := a.followed(v, e.ID)
	if err != nil { // too many wait
		return false
	}
	last, err := a.exchange(v, protocol.GetExchange.Operation, e.ID)
	if err != nil || over(last.State) {
		if s.Close(); err == nil {
			last.ReadToken = e.ReadToken
			t := a2a.FromExchange(last, v.send.HistoryLength)
			*result = a2a.SendResult{Task: &t}
		}
		return false
	}
	raw, err := json.Marshal(last)
	if err != nil {
		s.Close()
		return false
	}
	frame, token, length, wait := v.frame(), e.ReadToken, v.send.HistoryLength, a.c.Wait
	v.w.Header()["Content-Type"] = []string{"application/json"}
	if v.m.rest {
		v.w.Header()["Content-Type"] = []string{a2a.MediaType}
	}
	a.c.Table.Limits.Fields(v.w.Header(), v.c.Network, false)
	a.Streams.Serve(v.w, v.r, http.StatusOK, func(life context.Context, out hall.Sink, first []byte) {
		defer s.Close()
		ctx, cancel := context.WithTimeout(life, wait)
		defer cancel()
		for {
			b, err := s.Next(ctx)
			if err != nil { // mostly the end of the wait
				break
			}
			var now protocol.Exchange
			for _, event := range b.Events {
				raw = event.Data
			}
			if len(b.Events) > 0 && json.Unmarshal(raw, &now) == nil && over(now.State) {
				break
			}
		}
		var now protocol.Exchange
		if json.Unmarshal(raw, &now) != nil {
			return
		}
		now.ReadToken = token
		t := a2a.FromExchange(now, length)
		hall.Put(out, append(first, frame.answer(a2a.SendResult{Task: &t})...))
	})
	return true
}
