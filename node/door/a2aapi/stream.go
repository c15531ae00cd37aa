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
	if protocol.IsID(protocol.BidID, q.ID) || protocol.IsID(protocol.MeetingID, q.ID) {
		if _, err := a.taskByID(v, q); err != nil {
			return err
		}
		return a2a.ErrUnsupportedOperation.With("a bid and a meeting request have no stream; ask for the task", "taskId", q.ID)
	}
	return a.follow(v, q.ID, "")
}

// stream is the method SendStreamingMessage.
func (a *API) stream(v *visit) error {
	result, err := a.send(v)
	if err != nil {
		return err
	}
	sent := result.(a2a.SendResult)
	if sent.Task != nil && !sent.Task.Status.State.Over() && v.exchange != nil {
		return a.follow(v, sent.Task.ID, v.exchange.ReadToken)
	}
	a.events(v, func(_ context.Context, out hall.Sink, first []byte) {
		hall.Put(out, append(first, v.event(a2a.StreamResponse{Task: sent.Task, Message: sent.Message})...))
	})
	return nil
}

// follow writes the task of an exchange and what follows. token is the read token that the first event shows.
func (a *API) follow(v *visit, id, token string) error {
	s, err := a.followed(v, id)
	if err != nil {
		return err
	}
	e, err := a.exchange(v, protocol.GetExchange.Operation, id) // now that no change is missed
	if err == nil && e.State.Final() && v.m.method == a2a.SubscribeTask {
		err = a2a.ErrUnsupportedOperation.With("the task is over; ask for it", "taskId", id)
	}
	if err != nil {
		s.Close()
		return err
	}
	e.ReadToken = token
	length := v.send.HistoryLength
	was := a2a.FromExchange(e, length)
	task := a2a.StreamResponse{Task: &was}
	start := v.event(task)
	frame := v.frame()
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
				is, err := taskOf(event.Data, length)
				if err != nil {
					return
				}
				for _, r := range is.Since(was) {
					text = append(text, frame.event(r)...)
				}
				was = is.Settled()
			}
			if len(b.Events) == 0 {
				text = []byte(": alive\n\n")
			}
			if len(text) > 0 && (!hall.Put(out, text) || was.Status.State.Waits() && len(b.Events) > 0) {
				return
			}
		}
	})
	return nil
}

// followed returns the stream of an exchange.
func (a *API) followed(v *visit, id string) (protocol.Stream, error) {
	unknown := a2a.ErrTaskNotFound.With(a2a.ErrTaskNotFound.Text, "taskId", id)
	if _, ok := protocol.ParseExchangeID(id); !ok || !protocol.IsHandle(v.handle) {
		return nil, unknown
	}
	args, err := json.Marshal(protocol.ExchangeInput{Handle: v.handle, ID: id})
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
