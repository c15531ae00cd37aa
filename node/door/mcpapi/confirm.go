package mcpapi

import (
	"encoding/json"
	"net/http"
	"time"

	"stoa/identity/strictjson"
	"stoa/protocol"
)

// A client of the newer wire that declares elicitation.url shows the link of a write that waits for a person by itself, and calls the tool again
// with what the first answer gave it as requestState: the id of the draft (MCP 2026-07-28, "Multi Round-Trip Requests").

// A client that declares the extension of tasks gets one instead (task.go).

// later is the first answer to such clients; nil for others.
func (a *API) later(m *message, c *protocol.Confirm) map[string]any {
	switch {
	case c == nil || c.URL == "" || m.params["requestState"] != nil:
	case a.tasks != nil && m.declares("extensions", tasksExtension):
		return drafts{a.c.Table}.begun(m, c, time.Now()).Begun()
	case m.declares("elicitation", "url"):
		return map[string]any{"resultType": "input_required", "content": []any{}, "inputRequests": confirmRequest(c.URL), "requestState": c.ID}
	}
	return nil
}

// confirmRequest asks a client to show its person a link.
func confirmRequest(url string) map[string]any {
	return map[string]any{"confirm": map[string]any{"method": "elicitation/create", "params": map[string]string{
		"mode": "url", "url": url, "message": "Look at what is to be sent, and confirm it.",
	}}}
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
