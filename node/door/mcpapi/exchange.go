package mcpapi

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"

	"stoa/identity/strictjson"
)

// A Call is one request that a [Tool], [Resource] or [Prompt] answers.
type Call struct {
	W    http.ResponseWriter
	R    *http.Request
	Body []byte          // of the whole message
	Args json.RawMessage // of a tool or prompt: a JSON object, nil for none
	URI  string          // of a resource

	api   *API
	m     *message
	begun bool // the answer is a stream of events
	again bool // it is read again, for one who follows it
}

func (a *API) newCall(w http.ResponseWriter, r *http.Request, m *message, body []byte) *Call {
	return &Call{W: w, R: r, Body: body, api: a, m: m}
}

// Param returns a member of the request's params, nil for none.
func (c *Call) Param(name string) json.RawMessage { return c.m.params[name] }

// Declares reports whether the client has declared a capability, by the names of nested members. Clients of the older
// wire declare theirs in a handshake that this server does not remember.
func (c *Call) Declares(path ...string) bool { return c.m.declares(path...) }

func (m *message) declares(path ...string) bool {
	if m.wire != modern {
		return false
	}
	raw := m.meta[metaCapabilities]
	for _, name := range path {
		if raw = strictjson.Members(raw)[name]; raw == nil {
			return false
		}
	}
	return true
}

// Progress tells a client that gave a token for it how far the call is (MCP 2026-07-28, "Progress"). done grows with each.
func (c *Call) Progress(done, total int, text string) {
	token := c.m.meta["progressToken"]
	if token == nil || !goodID(token) || !streams(c.R) {
		return
	}
	params := map[string]any{"progressToken": token, "progress": done, "total": total}
	if text != "" {
		params["message"] = text
	}
	c.Notify("progress", params)
}

// Notify sends the client a notification before the answer.
func (c *Call) Notify(name string, params any) {
	if !c.begun {
		c.begun = true
		head := c.W.Header()
		head["Content-Type"] = []string{"text/event-stream"}
		head["Cache-Control"] = []string{"no-store"}
		head["X-Accel-Buffering"] = []string{"no"}
		c.W.WriteHeader(http.StatusOK)
	}
	c.event(notification(name, params))
}

func notification(name string, params any) []byte {
	raw, _ := json.Marshal(struct {
		Version string `json:"jsonrpc"`
		Method  string `json:"method"`
		Params  any    `json:"params"`
	}{"2.0", "notifications/" + name, params}) // cannot fail: of our own
	return raw
}

func (c *Call) event(message []byte) { c.flush(string(event(message))) }

func (c *Call) flush(s string) {
	io.WriteString(c.W, s)
	_ = http.NewResponseController(c.W).Flush() // a client that is gone is noticed by its answer
}

// streams reports whether a client reads events.
func streams(r *http.Request) bool {
	accept := r.Header.Get("Accept")
	return accept == "" || strings.Contains(accept, "text/event-stream") || strings.Contains(accept, "*/*")
}

// reply sends the answer, as an event where the call has sent others.
func (c *Call) reply(members map[string]any, err error) error {
	var result []byte
	if err == nil {
		result, err = c.api.encode(c.m, members)
	}
	if err != nil {
		err = failed(err)
	}
	switch {
	case err == nil && !c.begun:
		c.api.answer(c.W, c.m, result)
	case err == nil:
		c.event(envelope(c.m.id, "result", result))
	case c.begun:
		_, body := c.api.fault(err)
		c.event(envelope(c.m.id, "error", body))
	default:
		return err
	}
	return nil
}

// encode writes a result of these members; the newer wire wants its type and the server's name in each.
func (a *API) encode(m *message, members map[string]any) ([]byte, error) {
	if m.wire == legacy {
		delete(members, "resultType")
	} else {
		if members["resultType"] == nil {
			members["resultType"] = "complete"
		}
		if members["_meta"] == nil {
			members["_meta"] = a.meta()
		}
	}
	return json.Marshal(members)
}
