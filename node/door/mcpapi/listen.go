package mcpapi

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"stoa/protocol"
)

// watching reads a resource for one who wants to follow it. What is the same for everybody is read once for all.
func (a *API) watching(r *http.Request, uri string, l *listener) (*watch, error) {
	res, args := a.find(uri)
	m := &message{wire: modern}
	if res == nil {
		return nil, m.missing(uri, "there is no resource at this address", protocol.NotFound)
	}
	// A token is asked again each time, so that one that is revoked ends what it opened. A signature is of one request.
	sender := &http.Request{Method: r.Method, URL: r.URL, Host: r.Host, RemoteAddr: r.RemoteAddr, Header: http.Header{}}
	for _, name := range []string{"Authorization", "Act-As"} {
		if v := r.Header[name]; v != nil {
			sender.Header[name] = v
		}
	}
	look := func(ctx context.Context, sender *http.Request) (Contents, error) {
		c := a.newCall(nowhere{}, sender.WithContext(ctx), m, nil)
		c.URI, c.again = uri, true
		return res.Read(c, args)
	}
	got, err := look(r.Context(), sender)
	if err != nil {
		return nil, err
	}
	w := &watch{key: uri, uri: uri, sum: sumOf(got), of: map[*listener]bool{}}
	if got.Open {
		sender.Header = http.Header{}
	} else {
		w.key = uri + "\x00" + l.name()
	}
	w.read = func(ctx context.Context) ([sha256.Size]byte, bool) {
		got, err := look(ctx, sender)
		if err == nil {
			return sumOf(got), true
		}
		e, ok := errors.AsType[*rpcError](err)
		if !ok || e.status >= http.StatusInternalServerError || e.status == http.StatusTooManyRequests {
			return w.sum, false
		}
		return sha256.Sum256([]byte(e.text)), true // it is gone, or not theirs any more
	}
	return w, nil
}

// subscriptionsListen answers subscriptions/listen: first what is followed of what was asked, then each change.
func (a *API) subscriptionsListen(c *Call, caller protocol.Caller) error {
	var asked struct {
		Resources []string `json:"resourceSubscriptions"`
	}
	if err := json.Unmarshal(c.m.params["notifications"], &asked); err != nil || len(asked.Resources) > maxFollowed {
		return invalidParams(fmt.Sprintf("params must have notifications: an object, with resourceSubscriptions of at most %d addresses", maxFollowed))
	}
	h := a.c.Hub
	h.mu.Lock()
	l, err := h.join(a.c.Network(c.R), caller.Known())
	h.mu.Unlock()
	if err != nil {
		return c.refused(err, nil)
	}
	followed := map[string]any{}
	var uris []string
	for i, uri := range asked.Resources {
		if i > 0 { // each is a read, and the request was counted as one
			if err := a.c.Table.Limits.Request(l.network); err != nil {
				h.mu.Lock()
				h.leave(l)
				h.mu.Unlock()
				return c.refused(err, nil)
			}
		}
		w, err := a.watching(c.R, uri, l)
		if err != nil {
			continue // what the answer leaves out
		}
		h.mu.Lock()
		h.follow(l, w)
		h.mu.Unlock()
		uris = append(uris, uri)
	}
	if uris != nil {
		followed["resourceSubscriptions"] = uris
	}
	meta := map[string]any{"io.modelcontextprotocol/subscriptionId": c.m.id}
	hello := event(notification("subscriptions/acknowledged", map[string]any{"notifications": followed, "_meta": meta}))
	done, err := a.encode(c.m, map[string]any{"_meta": map[string]any{"io.modelcontextprotocol/subscriptionId": c.m.id, metaServerInfo: json.RawMessage(a.info)}})
	if err != nil {
		return err
	}
	a.c.Table.Limits.Fields(c.W.Header(), l.network, true)
	h.stream(c.W, c.R, l, l.done, hello, event(envelope(c.m.id, "result", done)), func(uri string) []byte {
		return notification("resources/updated", map[string]any{"uri": uri, "_meta": meta})
	})
	return nil
}

// nowhere takes what a look would write to a client.
type nowhere struct{}

func (nowhere) Header() http.Header         { return http.Header{} }
func (nowhere) Write(p []byte) (int, error) { return len(p), nil }
func (nowhere) WriteHeader(int)             {}

func sumOf(c Contents) [sha256.Size]byte {
	raw, _ := json.Marshal(c.Parts) // cannot fail: it is sent so
	return sha256.Sum256(raw)
}
