package mcpapi

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"stoa/identity"
	"stoa/identity/session"
	"stoa/protocol"
)

// listing is what a message of the owners' door needs that calls no tool: the caller that any of its tools needs.
var listing = &protocol.Operation{Name: "tools/list", For: protocol.Owners, Access: protocol.Owner, ReadOnly: true}

// admit determines the caller of a message that calls no tool. At the owners' door there has to be one: a client that has no token begins its
// sign-in at the first 401, whichever message that answers.
func (a *API) admit(w http.ResponseWriter, r *http.Request, body []byte) (c protocol.Caller, err error) {
	if a.c.For != protocol.Owners {
		return c, nil
	}
	c, err = a.c.Table.Gate.Admit(r.Context(), identity.Evidence{Request: r, Body: body, Network: a.c.Network(r), Session: session.Of(r, a.c.Base)}, listing)
	if err == nil {
		return c, nil
	}
	e := protocol.AsError(err)
	a.challenge(w.Header(), r, e, listing)
	return c, &rpcError{status: e.Code.Status(), code: invalidRequest, text: e.Detail, retry: e.RetryAfter, data: errorData{Code: e.Code}, always: true}
}

// challenge says which credential an operation needs, where to get it, and what it has to allow (RFC 6750 §3, RFC 9728 §5.1).
func (a *API) challenge(head http.Header, r *http.Request, e *protocol.Error, op *protocol.Operation) {
	text := `Bearer realm="stoa"`
	if a.c.For == protocol.Owners {
		text += `, resource_metadata="` + a.c.Base + protocol.OAuthOwnerMCPPath + `"`
		scope := protocol.UsualScopes()
		if protocol.ByOAuth(op.Scope) {
			scope = string(op.Scope)
		}
		text += `, scope="` + scope + `"`
	}
	switch {
	case e.Scope != "":
		text += `, error="insufficient_scope"`
	case e.Code.Status() != http.StatusUnauthorized:
		return
	case e.Code == protocol.Unauthorized && r.Header["Authorization"] != nil:
		text += `, error="invalid_token"`
	}
	head.Set("WWW-Authenticate", text)
}

// keepLists is how many lists for different scopes are kept, and for how long.
const keepLists, keepListsFor = 64, time.Hour

// listFor returns the results of tools/list with the tools that a caller may use: all, for one that is limited to no scopes.
func (a *API) listFor(c protocol.Caller) (lists, error) {
	if c.Scopes == nil {
		return a.lists()
	}
	names := make([]string, len(c.Scopes))
	for i, s := range c.Scopes {
		names[i] = string(s)
	}
	slices.Sort(names)
	key, now := strings.Join(names, " "), time.Now()
	if lists, ok := a.scoped.Get(key, now); ok {
		return lists, nil
	}
	lists, err := a.list(func(t *tool) bool { return c.May(t.op.Scope) })
	if err == nil {
		a.scoped.Put(key, lists, 0, now.Add(keepListsFor))
	}
	return lists, err
}
