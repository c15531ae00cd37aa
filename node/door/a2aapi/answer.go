package a2aapi

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"

	"stoa/identity"
	"stoa/identity/httpsig"
	"stoa/protocol"
	"stoa/protocol/a2a"
	"stoa/protocol/netx"
)

// admit returns the caller, which must have an identity that the chain vouches for (spec §5). The
// error has the status of its answer.
func (a *API) admit(r *http.Request, m *message, body []byte) (*protocol.Caller, error) {
	network := a.c.Network(r)
	if m.method == a2a.SendMessage {
		if err := a.c.Table.Limits.Write(network); err != nil {
			return nil, err
		}
	}
	c, err := a.c.Table.Gate.Admit(r.Context(), identity.Evidence{Request: r, Body: body, Network: network}, signedCall)
	if err != nil {
		e := protocol.AsError(err)
		if e.Code == protocol.Unauthorized {
			err = protocol.Errorf(protocol.Unauthorized, "sign the request (RFC 9421) with a key that the chain grants to your ERC-8004 identity "+
				"and name the identity in Agent-Identity; a token or a proof of work is not enough here")
		}
		return nil, &refusal{err, e.Code.Status()}
	}
	if c.Agent == "" {
		err = protocol.Errorf(protocol.IdentityUnverified, "the signature is valid but names no ERC-8004 identity; send Agent-Identity, covered by the signature")
		return nil, &refusal{err, protocol.IdentityUnverified.Status()}
	}
	return &c, nil
}

// Refuse answers a request that the node has refused before it reaches this door.
func (a *API) Refuse(w http.ResponseWriter, r *http.Request, err error) {
	if r.Method == http.MethodPost {
		a.refuse(w, r, nil, err)
		return
	}
	a.c.Fail(w, r, err)
}

// answer sends a result.
func (a *API) answer(w http.ResponseWriter, id json.RawMessage, result any) error {
	raw, err := json.Marshal(result)
	if err != nil {
		return err
	}
	write(w, http.StatusOK, id, "result", raw)
	return nil
}

// refuse sends a JSON-RPC error.
func (a *API) refuse(w http.ResponseWriter, r *http.Request, id json.RawMessage, err error) {
	head := w.Header()
	status := statusOf(err)
	code, text, data := a.describe(err, head.Get(requestIDHeader))
	if _, foreign := errors.AsType[*a2a.Error](err); !foreign {
		e := protocol.AsError(err)
		if e.Signature != "" {
			head.Set("Signature-Error", e.Signature)
		}
		if e.RetryAfter > 0 || status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable {
			head.Set("Retry-After", strconv.Itoa(netx.Seconds(e.RetryAfter)))
		}
	}
	if status == http.StatusUnauthorized || status == http.StatusForbidden {
		head.Set("Accept-Signature", httpsig.AcceptFor(r, "agent-identity"))
	}
	if status == http.StatusUnauthorized { // a 401 must name a scheme (RFC 9110 §15.5.2); this is the only one
		head.Set("WWW-Authenticate", `Signature realm="stoa"`)
	}
	body, err := json.Marshal(struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
		Data    []any  `json:"data,omitempty"`
	}{code, text, data})
	if err != nil {
		body = []byte(`{"code":-32603,"message":"internal"}`)
	}
	write(w, status, id, "error", body)
}

func write(w http.ResponseWriter, status int, id json.RawMessage, member string, value []byte) {
	if id == nil {
		id = json.RawMessage("null")
	}
	body := append(make([]byte, 0, len(id)+len(value)+48), `{"jsonrpc":"2.0","id":`...)
	body = append(append(append(body, id...), `,"`...), member...)
	body = append(append(append(body, `":`...), value...), '}')
	head := w.Header()
	head.Set("Content-Type", "application/json")
	head.Set("Cache-Control", "no-store")
	head.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	w.Write(body)
}
