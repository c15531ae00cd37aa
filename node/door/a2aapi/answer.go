package a2aapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"

	"stoa/identity/httpsig"
	"stoa/node/hall"
	"stoa/protocol"
	"stoa/protocol/a2a"
	"stoa/protocol/netx"
)

// Refuse answers a request that the node has refused before it reaches this door.
func (a *API) Refuse(w http.ResponseWriter, r *http.Request, err error) {
	if rest := isREST(r); rest || r.Method == http.MethodPost {
		a.refuse(&visit{w: w, r: r, m: &message{version: a2a.Version, rest: rest}}, err)
		return
	}
	a.c.Fail(w, r, err)
}

// answer sends a result in the version of its request.
func (a *API) answer(v *visit, result any) error {
	raw, err := json.Marshal(a2a.In(v.m.version, result))
	if err != nil {
		return err
	}
	if v.m.rest {
		send(v.w, http.StatusOK, a2a.MediaType, raw)
		return nil
	}
	write(v.w, http.StatusOK, v.m.id, "result", raw)
	return nil
}

// refuse sends a JSON-RPC error.
func (a *API) refuse(v *visit, err error) {
	head := v.w.Header()
	status := statusOf(err)
	if v.m.rest {
		status = restStatus(err)
	}
	code, text, data := a.describe(v, err)
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
		if a.c.Callers == a2a.ChainCallers {
			head.Set("Accept-Signature", httpsig.AcceptFor(v.r, "agent-identity"))
		} else {
			head.Set("Accept-Signature", httpsig.AcceptFor(v.r))
		}
	}
	if status == http.StatusUnauthorized { // a 401 must name a scheme (RFC 9110 §15.5.2)
		head.Add("WWW-Authenticate", `Signature realm="stoa"`)
		if a.c.Callers == a2a.AnyCallers {
			head.Add("WWW-Authenticate", `ProofOfWork purpose="contact"`)
			head.Add("WWW-Authenticate", `Bearer realm="stoa"`)
		}
	}
	if v.m.rest {
		if body, err := hall.JSON(newRestError(status, code, text, data)); err == nil {
			send(v.w, status, "application/json", bytes.TrimSpace(body))
			return
		}
	}
	body, err := hall.JSON(struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
		Data    any    `json:"data,omitempty"`
	}{code, text, data})
	if err != nil {
		body = []byte(`{"code":-32603,"message":"internal"}`)
	}
	write(v.w, status, v.m.id, "error", bytes.TrimSpace(body))
}

func write(w http.ResponseWriter, status int, id json.RawMessage, member string, value []byte) {
	if id == nil {
		id = json.RawMessage("null")
	}
	body := append(make([]byte, 0, len(id)+len(value)+48), `{"jsonrpc":"2.0","id":`...)
	body = append(append(append(body, id...), `,"`...), member...)
	body = append(append(append(body, `":`...), value...), '}')
	send(w, status, "application/json", body)
}
