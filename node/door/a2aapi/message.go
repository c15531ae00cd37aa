package a2aapi

import (
	"encoding/json"
	"mime"
	"net/http"
	"strings"

	"stoa/identity/strictjson"
	"stoa/node/hall"
	"stoa/protocol"
	"stoa/protocol/a2a"
)

// A message is one JSON-RPC request or notification.
type message struct {
	id      json.RawMessage // as sent; nil for a notification
	rest    bool            // it came by the HTTP+JSON binding
	version string
	method  string          // as sent, then its name in 1.0
	params  json.RawMessage // nil when absent
}

// writes reports whether a message counts as a write of its network.
func (m *message) writes() bool {
	return m.sends() || m.method == a2a.CancelTask || m.method == a2a.CreatePush || m.method == a2a.DeletePush
}

// sends reports whether a request sends a message.
func (m *message) sends() bool { return m.method == a2a.SendMessage || m.method == a2a.StreamMessage }

var bodyLimits = strictjson.Limits{MaxBytes: a2a.MaxBody, MaxDepth: 24, MaxTokens: 16_384}

// parse reads a body (JSON-RPC 2.0 §4). On an error the message may still have
// its id and method; the error is an *a2a.Error.
func parse(body []byte) (*message, error) {
	m := &message{id: json.RawMessage("null")}
	if err := strictjson.Check(body, bodyLimits); err != nil {
		return m, a2a.ErrParse.With("the body cannot be read as JSON: " + err.Error())
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(body, &members) != nil || members == nil {
		return m, a2a.ErrInvalidRequest.With("send one JSON-RPC request object; batches are not supported")
	}
	id, sent := members["id"]
	if sent && !goodID(id) {
		return m, a2a.ErrInvalidRequest.With("id must be a string, a number or null")
	}
	isText(members["method"], &m.method)
	switch {
	case string(members["jsonrpc"]) != `"2.0"`:
		if sent {
			m.id = id
		}
		return m, a2a.ErrInvalidRequest.With(`jsonrpc must be "2.0"`)
	case m.method == "":
		if sent {
			m.id = id
		}
		return m, a2a.ErrInvalidRequest.With("method must be the name of a method")
	}
	m.id = id
	m.params = members["params"]
	if len(m.params) > 0 && m.params[0] != '{' {
		return m, a2a.ErrInvalidRequest.With("params must be an object")
	}
	return m, nil
}

const maxRequestID = 256 // bytes

func goodID(id json.RawMessage) bool {
	return len(id) <= maxRequestID && (id[0] == '"' || id[0] == 'n' || id[0] == '-' || id[0] >= '0' && id[0] <= '9')
}

// isText decodes a JSON string and reports whether raw is one.
func isText(raw json.RawMessage, into *string) bool {
	return len(raw) > 0 && raw[0] == '"' && json.Unmarshal(raw, into) == nil
}

// readBody reads a JSON body within the limit.
func readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || media != "application/json" && !(strings.HasPrefix(media, "application/") && strings.HasSuffix(media, "+json")) {
		return nil, transport(protocol.UnsupportedMediaType, "send the body as Content-Type: application/json")
	}
	body, err := hall.ReadBody(w, r, a2a.MaxBody)
	if err != nil {
		e := protocol.AsError(err)
		return nil, transport(e.Code, e.Detail)
	}
	return body, nil
}
