package a2aapi

import (
	"net/http"

	"stoa/identity"
	"stoa/node/hall"
	"stoa/protocol"
	"stoa/protocol/a2a"
)

// signedCall is what the gate requires of every request to this door. Reading a task needs a
// signature like a write, so that an old signature cannot be used to read.
var signedCall = &protocol.Operation{Name: "a2a", Access: protocol.Signed}

// call answers one request. It checks in this order: HTTP, version, caller, envelope, method,
// parameters, operation.
func (a *API) call(w http.ResponseWriter, r *http.Request) {
	head := w.Header()
	head.Set("Access-Control-Allow-Origin", "*")
	head.Set("Access-Control-Expose-Headers", "A2A-Version, "+protocol.ExposedHeaders)
	head.Set("A2A-Version", a2a.Version)
	head.Add("Vary", "A2A-Version") // in addition to what the compression layer adds
	body, err := readBody(w, r)
	if err != nil {
		a.refuse(w, r, nil, err)
		return
	}
	m, broken := parse(body)
	if broken == nil && m.id == nil { // a notification; none needs an action
		w.WriteHeader(http.StatusNoContent)
		return
	}
	if err := a2a.Negotiate(versionOf(r), m.method); err != nil {
		a.refuse(w, r, m.id, err)
		return
	}
	c, err := a.admit(r, m, body)
	if err == nil {
		err = broken
	}
	if err == nil {
		err = a.serve(&visit{w, r, m, c, protocol.CleanHandle(r.PathValue("handle"))})
	}
	if err != nil {
		a.refuse(w, r, m.id, err)
	}
}

// versionOf returns the version of A2A that a client asks for, "" for none (A2A 1.0 §3.6.1).
func versionOf(r *http.Request) string {
	if asked := r.Header.Get("A2A-Version"); asked != "" {
		return asked
	}
	return r.URL.Query().Get("A2A-Version")
}

// A visit is one request of an admitted caller.
type visit struct {
	w      http.ResponseWriter
	r      *http.Request
	m      *message
	c      *protocol.Caller
	handle string // of the agent that the endpoint belongs to; "" for the node's own
}

// serve executes a request.
func (a *API) serve(v *visit) error {
	if err := a2a.Unoffered(v.m.method); err != nil {
		return err
	}
	var result any
	var err error
	if v.m.method == a2a.SendMessage {
		result, err = a.send(v)
	} else {
		result, err = a.task(v)
	}
	if err != nil {
		return err
	}
	a.c.Table.Limits.Fields(v.w.Header(), v.c.Network, v.m.method != a2a.SendMessage)
	return a.answer(v.w, v.m.id, result)
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
