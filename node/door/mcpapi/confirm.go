package mcpapi

import (
	"encoding/json"
	"io"
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

// A client that asks again, and gives a token for progress, is answered when the person has decided, or after so many looks.
const (
	awaitLooks = 20
	awaitEach  = time.Second
)

// awaited answers such a call: with its progress, and then as it would be answered then. It reports false for another one, and where there is no place
// for one more that waits.
func (a *API) awaited(w http.ResponseWriter, r *http.Request, m *message, body []byte, args json.RawMessage, waits *protocol.Confirm) bool {
	if waits == nil || waits.URL == "" || m.awaited || m.meta["progressToken"] == nil || a.c.Hub == nil || !streams(r) {
		return false
	}
	if id, _ := strictjson.String(strictjson.Members(args)["confirmId"]); id != waits.ID {
		return false // it has just begun
	}
	h := a.c.Hub
	h.mu.Lock()
	place, err := h.join(a.c.Network(r), false)
	h.mu.Unlock()
	if err != nil {
		return false
	}
	defer func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.leave(place)
	}()
	c := a.newCall(w, r, m, body)
	for i := 0; i < awaitLooks; i++ {
		c.Progress(i, awaitLooks, "The person has not decided yet.")
		select {
		case <-r.Context().Done():
			return true
		case <-h.ended:
			i = awaitLooks
		case <-time.After(awaitEach):
		}
		if d, _, err := a.c.Table.Waiting(r.Context(), waits.ID); err != nil || !d.Waits() {
			break
		}
	}
	m.awaited = true
	last := &lastEvent{Writer: w, head: http.Header{requestIDHeader: w.Header()[requestIDHeader]}}
	if err := a.call(last, r, m, body); err != nil {
		a.refuse(last, m, err)
	}
	c.flush("\n\n")
	return true
}

// A lastEvent writes an answer as the last event of a stream.
type lastEvent struct {
	io.Writer
	head  http.Header
	begun bool
}

func (l *lastEvent) Header() http.Header { return l.head }
func (l *lastEvent) WriteHeader(int)     {}
func (l *lastEvent) Write(p []byte) (int, error) {
	if !l.begun {
		l.begun = true
		io.WriteString(l.Writer, "data: ")
	}
	return l.Writer.Write(p)
}
