package mcpapi

import (
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"stoa/identity/strictjson"
	"stoa/protocol"
)

// The older wire has its notifications on a stream that the client opens by GET, and names it by the session of its handshake. A session is a name only:
// the process remembers it while it has a stream, or follows something and its stream is to come.

const sessionHeader = "Mcp-Session-Id"

// levels of log messages, the least first (RFC 5424 §6.2.1).
var levels = []string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}

// name distinguishes a listener from others.
func (l *listener) name() string { return fmt.Sprintf("%p", l) }

func newSession(m *message) string {
	if m.declaresApp() {
		return appSession + rand.Text()
	}
	return rand.Text()
}

// sessionOf returns the session that a request names, "" for none.
func sessionOf(r *http.Request) string {
	id := r.Header.Get(sessionHeader)
	bad := func(c byte) bool {
		return !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_')
	}
	if len(id) < 16 || len(id) > 64 || slices.ContainsFunc([]byte(id), bad) {
		return ""
	}
	return id
}

// enter returns the listener of a session, a new one where there is none.
func (h *Hub) enter(session, network string, known bool) (*listener, error) {
	if l := h.sessions[session]; l != nil {
		return l, nil
	}
	l, err := h.join(network, known)
	if err != nil {
		return nil, err
	}
	l.session, l.until = session, time.Now().Add(openWithin)
	h.sessions[session] = l
	h.begin()
	return l, nil
}

// open serves the stream of a session. It refuses as a server without streams does, which clients take for no fault.
func (a *API) open(w http.ResponseWriter, r *http.Request) bool {
	session := sessionOf(r)
	if a.c.Hub == nil || session == "" || !strings.Contains(r.Header.Get("Accept"), "text/event-stream") {
		return false
	}
	caller, err := a.admit(w, r, nil)
	if err != nil {
		a.refuse(w, nil, err)
		return true
	}
	h := a.c.Hub
	h.mu.Lock()
	l, err := h.enter(session, a.c.Network(r), caller.Known())
	done := make(chan struct{})
	if err == nil {
		close(l.done) // of a stream whose client is back
		l.done, l.until = done, time.Time{}
		l.rouse()
	}
	h.mu.Unlock()
	if err != nil {
		return false
	}
	h.stream(w, r, l, done, []byte(":\n\n"), nil, func(uri string) []byte { return notification("resources/updated", map[string]string{"uri": uri}) })
	return true
}

// ofSession runs a change of what a session hears.
func (a *API) ofSession(c *Call, caller protocol.Caller, change func(l *listener) error) error {
	session := sessionOf(c.R)
	if session == "" {
		return invalidParams("send the header " + sessionHeader + " that the answer to initialize had")
	}
	h := a.c.Hub
	h.mu.Lock()
	l, err := h.enter(session, a.c.Network(c.R), caller.Known())
	h.mu.Unlock()
	if err != nil {
		return c.refused(err, nil)
	}
	if err := change(l); err != nil {
		return c.reply(nil, err)
	}
	return c.reply(map[string]any{}, nil)
}

// subscribe answers resources/subscribe and resources/unsubscribe.
func (a *API) subscribe(c *Call, caller protocol.Caller) error {
	uri, ok := strictjson.String(c.m.params["uri"])
	if !ok {
		return invalidParams("params must have the member uri, the address of a resource")
	}
	h := a.c.Hub
	return a.ofSession(c, caller, func(l *listener) error {
		if c.m.method == "resources/unsubscribe" {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.drop(l, uri)
			return nil
		}
		w, err := a.watching(c.R, uri, l)
		if e, ok := errors.AsType[*rpcError](err); ok && e.code == badParams {
			e.code = unknownResource
		}
		if err != nil {
			return err
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		if !h.follow(l, w) {
			return invalidParams(fmt.Sprintf("a session follows at most %d resources", maxFollowed))
		}
		return nil
	})
}

// setLevel answers logging/setLevel.
func (a *API) setLevel(c *Call, caller protocol.Caller) error {
	name, _ := strictjson.String(c.m.params["level"])
	level := slices.Index(levels, name) + 1
	if level == 0 {
		return invalidParams("level must be one of " + strings.Join(levels, ", "))
	}
	if sessionOf(c.R) == "" { // without a session there is no stream for messages
		return c.reply(map[string]any{}, nil)
	}
	return a.ofSession(c, caller, func(l *listener) error {
		a.c.Hub.mu.Lock()
		defer a.c.Hub.mu.Unlock()
		l.level = level
		return nil
	})
}

// log tells the stream of a session that a call was refused, if it asked for messages of that level.
func (a *API) log(r *http.Request, t *tool, e *protocol.Error, requestID string) {
	session := sessionOf(r)
	if a.c.Hub == nil || session == "" {
		return
	}
	name := "warning"
	if e.Code == protocol.Internal {
		name = "error"
	}
	h := a.c.Hub
	h.mu.Lock()
	defer h.mu.Unlock()
	l := h.sessions[session]
	if l == nil || l.level == 0 || slices.Index(levels, name)+1 < l.level || len(l.logs) >= maxLogs {
		return
	}
	l.logs = append(l.logs, notification("message", map[string]any{"level": name, "logger": "tools",
		"data": map[string]string{"tool": t.Name, "code": string(e.Code), "requestId": requestID}}))
	l.rouse()
}
