package mcpapi

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"time"

	"stoa/protocol"
	"stoa/protocol/netx"
)

// answer sends a result with status 200.
func (a *API) answer(w http.ResponseWriter, m *message, result []byte) {
	a.write(w, http.StatusOK, m.id, "result", result)
}

// refuse sends a JSON-RPC error. When the id could not be read the member is omitted, since MCP
// has no null ids.
func (a *API) refuse(w http.ResponseWriter, m *message, err error) {
	e, body := a.fault(err)
	status := http.StatusOK
	if e.always || m == nil || m.wire == modern {
		status = e.status
	}
	var id []byte
	if m != nil {
		id = m.id
	}
	if e.retry > 0 {
		setRetry(w.Header(), e.retry)
	}
	a.write(w, status, id, "error", body)
}

// fault is an error and its encoding.
func (a *API) fault(err error) (*rpcError, []byte) {
	e, ok := errors.AsType[*rpcError](err)
	if !ok {
		e = &rpcError{
			status: http.StatusInternalServerError, code: internalError, text: "something went wrong on our side",
			data: errorData{Code: protocol.Internal}, always: true,
		}
	}
	body, err := json.Marshal(struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
		Data    any    `json:"data,omitempty"`
	}{e.code, e.text, e.data})
	if err != nil {
		body = []byte(`{"code":-32603,"message":"internal"}`)
	}
	return e, body
}

// opening is a message up to the value of its member.
func opening(id []byte, member string) []byte {
	body := append(make([]byte, 0, len(id)+48), `{"jsonrpc":"2.0"`...)
	if id != nil {
		body = append(append(body, `,"id":`...), id...)
	}
	return append(append(append(body, `,"`...), member...), `":`...)
}

func envelope(id []byte, member string, value []byte) []byte {
	return append(append(opening(id, member), value...), '}')
}

func (a *API) write(w http.ResponseWriter, status int, id []byte, member string, value []byte) {
	body := opening(id, member)
	small := len(value) < 1<<13 // a longer one is not copied
	if small {
		body = append(append(body, value...), '}')
	}
	length := len(body)
	if !small {
		length += len(value) + 1
	}
	head := w.Header()
	head["Content-Type"] = []string{"application/json"}
	head["Cache-Control"] = []string{"no-store"}
	head["Content-Length"] = []string{strconv.Itoa(length)}
	w.WriteHeader(status)
	w.Write(body)
	if !small {
		w.Write(value)
		w.Write([]byte{'}'})
	}
}

func setRetry(head http.Header, d time.Duration) {
	head.Set("Retry-After", strconv.Itoa(netx.Seconds(d)))
}
