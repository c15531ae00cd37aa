package a2aapi

import (
	"net/http"

	"stoa/identity"
	"stoa/node/hall"
	"stoa/protocol"
	"stoa/protocol/a2a"
)

// call answers one request. It checks in this order: HTTP, version, caller, envelope, method,
// parameters, operation.
func (a *API) call(w http.ResponseWriter, r *http.Request) {
	v := a.visit(w, r)
	body, err := readBody(w, r)
	if err != nil {
		a.refuse(v, err)
		return
	}
	m, broken := parse(body)
	if broken == nil && m.id == nil { // a notification; none needs an action
		w.WriteHeader(http.StatusNoContent)
		return
	}
	v.m = m
	var unknown *a2a.Error
	m.version, unknown = a2a.Negotiate(versionOf(r), m.method)
	w.Header().Set("A2A-Version", m.version)
	if unknown != nil {
		a.refuse(v, unknown)
		return
	}
	var unoffered *a2a.Error
	if m.method, unoffered = a2a.Method(m.version, m.method); broken == nil && unoffered != nil {
		broken = unoffered
	}
	a.process(v, body, broken)
}

// visit begins to answer a request of either binding.
func (a *API) visit(w http.ResponseWriter, r *http.Request) *visit {
	head := w.Header()
	head.Set("Access-Control-Allow-Origin", "*")
	head.Set("Access-Control-Expose-Headers", "A2A-Version, "+protocol.ExposedHeaders)
	head.Add("Vary", "A2A-Version") // in addition to what the compression layer adds
	return &visit{w: w, r: r, m: &message{version: a2a.Version}, handle: protocol.CleanHandle(r.PathValue("handle"))}
}

// process admits the caller of a request, and serves it unless it is broken.
func (a *API) process(v *visit, body []byte, broken error) {
	if a.aimed(v); broken == nil {
		broken = v.wrong
	}
	err := a.admit(v, body)
	if err == nil {
		err = broken
	}
	if err == nil {
		err = a.serve(v)
	}
	if err != nil {
		a.refuse(v, err)
	}
}

// versionOf returns the version of A2A that a client asks for, "" for none (A2A 1.0 §3.6.1).
func versionOf(r *http.Request) string {
	if asked := r.Header.Get("A2A-Version"); asked != "" {
		return asked
	}
	return r.URL.Query().Get("A2A-Version")
}

// A visit is one request. What it aims at is known before its caller is.
type visit struct {
	w      http.ResponseWriter
	r      *http.Request
	m      *message
	handle string // of the agent that the endpoint belongs to; "" for the node's own

	send  a2a.Send // of a message
	call  *a2a.Call
	op    *protocol.Operation // that the request comes to; of a request about a task, get_exchange
	args  []byte              // its arguments, nil when they cannot be made
	proof []byte              // the solved challenge, nil for none
	wrong error               // with the parameters of a message

	c        *protocol.Caller
	exchange *protocol.Exchange // that a message began or continued
	thing    string             // the bid or meeting request that it made
}

// serve executes a request of an admitted caller.
func (a *API) serve(v *visit) error {
	var result any
	var err error
	switch v.m.method {
	case a2a.SendMessage:
		if result, err = a.send(v); err == nil && a.await(v, &result) {
			return nil
		}
	case a2a.StreamMessage:
		return a.stream(v)
	case a2a.SubscribeTask:
		return a.subscribe(v)
	case a2a.ListTasks:
		result, err = a.list(v)
	case a2a.ExtendedCard:
		result, err = a.extended(v)
	case a2a.CreatePush:
		result, err = a.createPush(v)
	case a2a.GetPush, a2a.ListPush, a2a.DeletePush:
		result, err = a.pushes(v)
	default:
		result, err = a.task(v)
	}
	if err != nil {
		return err
	}
	a.c.Table.Limits.Fields(v.w.Header(), v.c.Network, !v.m.writes())
	return a.answer(v, result)
}

// invoke runs an operation for the caller that this door has admitted.
func (a *API) invoke(v *visit, op *protocol.Operation, args []byte, idemKey string) (hall.Result, error) {
	res, err := a.c.Table.Invoke(v.r.Context(), hall.Request{
		Op: op.Name, Args: args, Caller: v.c, Evidence: identity.Evidence{Network: v.c.Network},
		IdempotencyKey: idemKey, Door: "a2a", ID: v.w.Header().Get(requestIDHeader),
	})
	if err == nil && res.Replayed {
		v.w.Header().Set("Idempotency-Replayed", "true")
	}
	return res, err
}
