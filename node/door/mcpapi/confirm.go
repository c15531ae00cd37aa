package mcpapi

import (
	"encoding/json"
	"net/http"

	"stoa/identity/strictjson"
	"stoa/protocol"
)

// A client of the newer wire that declares elicitation.url shows the link of a write that waits for a person by itself, and calls the tool again
// with what the first answer gave it as requestState: the id of the draft (MCP 2026-07-28, "Multi Round-Trip Requests").

// elicit is the first answer to such a client.
func (a *API) elicit(m *message, c *protocol.Confirm) []byte {
	asks := map[string]any{"confirm": map[string]any{"method": "elicitation/create", "params": map[string]string{
		"mode": "url", "url": c.URL, "message": "Look at what is to be sent, and confirm it.",
	}}}
	raw, _ := json.Marshal(asks) // cannot fail: texts only
	state, _ := json.Marshal(c.ID)
	b := append([]byte(`{"resultType":"input_required","content":[],"inputRequests":`), raw...)
	b = append(append(b, `,"requestState":`...), state...)
	return a.close(b, m)
}

// resumed returns the arguments of a call with the id that an earlier answer gave as requestState. That a person has opened the link says nothing:
// what became of the write is asked of the hall.
func (m *message) resumed(t *tool, args json.RawMessage) (json.RawMessage, error) {
	raw := m.params["requestState"]
	if raw == nil {
		return args, nil
	}
	id, ok := strictjson.String(raw)
	members := strictjson.Members(args)
	if args == nil {
		members = map[string]json.RawMessage{}
	}
	if !ok || id == "" || t.op == nil || !t.op.Confirm || members == nil {
		return nil, &rpcError{status: http.StatusBadRequest, code: badParams, text: "requestState is not one that this tool gave",
			data: errorData{Code: protocol.InvalidRequest}}
	}
	members["confirmId"] = raw
	return json.Marshal(members)
}
