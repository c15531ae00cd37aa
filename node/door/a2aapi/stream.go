package a2aapi

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

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
	e, err := a.exchange(v, protocol.GetExchange.Operation, q.ID)
	if err != nil {
		return err
	}
	if e.State.Final() {
		return a2a.ErrUnsupportedOperation.With("the task is over; ask for it", "taskId", q.ID)
	}
	return a.follow(v, e)
}

// stream is the method SendStreamingMessage.
func (a *API) stream(v *visit) error {
	result, err := a.send(v)
	if err != nil {
		return err
	}
	sent := result.(a2a.SendResult)
	if sent.Task != nil && !sent.Task.Status.State.Over() && v.exchange != nil {
		return a.follow(v, *v.exchange)
	}
	a.events(v, func(_ context.Context, out hall.Sink, first []byte) {
		hall.Put(out, append(first, v.event(a2a.StreamResponse{Task: sent.Task, Message: sent.Message})...))
	})
	return nil
}

// follow writes the task of an exchange and what follows.
func (a *API) follow(v *visit, e protocol.Exchange) error {
	s, err := a.followed(v, e.ID)
	if err != nil {
		return err
	}
	length := v.send.HistoryLength
	was := a2a.FromExchange(e, length)
	task := a2a.StreamResponse{Task: &was}
	start := v.event(task)
	frame := v.frame()
	a.events(v, func(life context.Context, out hall.Sink, first []byte) {
		defer s.Close()
		if !hall.Put(out, append(first, start...)) {
			return
		}
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
				was = a2a.Task{Status: a2a.Status{State: is.Status.State, Timestamp: is.Status.Timestamp}, Artifacts: make([]a2a.Artifact, len(is.Artifacts))}
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
	args, err := json.Marshal(protocol.ExchangeInput{Handle: v.handle, ID: id})
	if err != nil {
		return nil, err
	}
	res, err := a.invoke(v, protocol.FollowExchange.Operation, args, "")
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
	a.Streams.Serve(v.w, v.r, 200, follow)
}

// A frame is what the events of a stream have in common.
type frame struct {
	version string
	id      json.RawMessage
}

func (v *visit) frame() frame { return frame{v.m.version, bytes.Clone(v.m.id)} }

func (v *visit) event(r a2a.StreamResponse) []byte { return v.frame().event(r) }

// event renders an event: one line of data (HTML Standard §9.2), which JSON without indents is.
func (f frame) event(r a2a.StreamResponse) []byte {
	raw, err := json.Marshal(a2a.In(f.version, r))
	if err != nil {
		return nil
	}
	return fmt.Appendf(nil, "data: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":%s}\n\n", f.id, raw)
}

// await waits until an exchange has ended or waits for the caller, or for so long as the door waits, and returns it as it is then.
func (a *API) await(v *visit, e protocol.Exchange) protocol.Exchange {
	if a.c.Wait <= 0 || v.send.Immediately || e.State.Final() || e.State == protocol.ExchangeAsked {
		return e
	}
	s, err := a.followed(v, e.ID)
	if err != nil { // too many wait: the answer is the task as it is
		return e
	}
	defer s.Close()
	ctx, cancel := context.WithTimeout(v.r.Context(), a.c.Wait)
	defer cancel()
	for {
		b, err := s.Next(ctx)
		if err != nil { // mostly the end of the wait
			return e
		}
		for _, event := range b.Events {
			now := protocol.Exchange{}
			if json.Unmarshal(event.Data, &now) == nil {
				now.ReadToken, e = e.ReadToken, now
			}
		}
		if e.State.Final() || e.State == protocol.ExchangeAsked {
			return e
		}
	}
}
