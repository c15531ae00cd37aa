package mcpapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"stoa/identity"
	"stoa/identity/session"
	"stoa/node/hall"
	"stoa/protocol"
)

// Resources and lists of them are reads of the hall: what may be read, by whom and how often is what the operation says.

// views are the resources that the operations of an audience have.
func (a *API) views() (list []Resource) {
	for _, v := range protocol.Resources {
		if v.Operation.For != a.c.For {
			continue
		}
		r := Resource{URI: a.c.Base + v.Path, Name: v.Name, Title: v.Title, Description: v.Operation.Summary, Media: "application/json",
			scope: v.Operation.Scope, Read: func(c *Call, args map[string]string) (Contents, error) { return c.view(v.Operation, args) }}
		if v.List != nil {
			r.list = func(c *Call, handle, after string) (entries, error) { return c.viewed(v, handle, after) }
		}
		list = append(list, r)
	}
	return list
}

// evidence is what a request shows of its sender.
func (a *API) evidence(r *http.Request, body []byte) identity.Evidence {
	ev := identity.Evidence{Request: r, Body: body, Network: a.c.Network(r), Session: session.Of(r, a.c.Base), ActAs: r.Header.Get("Act-As")}
	if p := r.Header.Get("Proof-Of-Work"); p != "" {
		ev.Proof = []byte(p)
	}
	return ev
}

// invoke runs a read for the sender of the call.
func (c *Call) invoke(op *protocol.Operation, args any) (hall.Result, error) {
	raw, err := json.Marshal(args)
	if err != nil {
		return hall.Result{}, err
	}
	a := c.api
	return a.c.Table.Invoke(c.R.Context(), hall.Request{Op: op.Name, Args: raw, Evidence: a.evidence(c.R, c.Body), Door: "mcp", Quiet: c.again,
		ID: c.W.Header().Get(requestIDHeader)})
}

// view is the answer of a read at an address.
func (c *Call) view(op *protocol.Operation, args map[string]string) (Contents, error) {
	res, err := c.invoke(op, args)
	if !c.again {
		c.api.c.Table.Limits.Fields(c.W.Header(), c.api.c.Network(c.R), true)
	}
	if err != nil {
		return Contents{}, c.refused(err, op)
	}
	body := string(bytes.TrimSuffix(res.JSON, []byte("\n")))
	return Contents{Parts: []any{map[string]any{"uri": c.URI, "mimeType": "application/json", "text": body}}, MaxAge: op.MaxAge, Open: res.Open}, nil
}

// refused is the error of a read as one of JSON-RPC. op is nil for a list.
func (c *Call) refused(err error, op *protocol.Operation) error {
	e := protocol.AsError(err)
	switch e.Code {
	case protocol.NotFound, protocol.Gone, protocol.Validation:
		return c.m.missing(c.URI, e.Detail, e.Code)
	case protocol.Internal:
		return err
	}
	head := c.W.Header()
	if op != nil && c.api.credentialRefused(c.R, e) {
		c.api.challenged(head, c.R, e, op)
	}
	code := invalidRequest
	if e.Code.Status() >= http.StatusInternalServerError {
		code = internalError
	}
	return &rpcError{status: e.Code.Status(), code: code, text: e.Detail, retry: e.RetryAfter, data: errorData{Code: e.Code}, always: true}
}

// perPage is how many resources a page of a list holds of one kind.
const perPage = 50

// viewed is a page of what a list says is at a template.
func (c *Call) viewed(v protocol.Resource, handle, after string) (page entries, err error) {
	args := map[string]any{"limit": perPage}
	if handle != "" {
		args["handle"] = handle
	}
	if after != "" {
		args["after"] = after
	}
	if v.List == protocol.SearchAgents.Operation {
		args["local"] = true
	}
	res, err := c.invoke(v.List, args)
	if err != nil {
		return page, err
	}
	add := func(key, value, title, about string, modified *time.Time) {
		e := entry{URI: c.api.c.Base + strings.Replace(v.Path, "{"+key+"}", url.PathEscape(value), 1), Name: value, Title: title, Description: about,
			Media: "application/json"}
		if modified != nil {
			e.Annotations = &dated{modified.UTC().Format(time.RFC3339)}
		}
		page.items = append(page.items, e)
	}
	switch list := res.Value.(type) {
	case protocol.List[protocol.Profile]:
		for _, p := range list.Items {
			add("handle", p.Handle, p.Name, p.Headline, p.UpdatedAt)
		}
		page.next = text(list.Next)
	case protocol.List[protocol.Post]:
		for _, p := range list.Items {
			add("id", p.ID, p.Title, string(p.Kind), &p.CreatedAt)
		}
		page.next = text(list.Next)
	case protocol.Page[protocol.Thread]:
		for _, t := range list.Items {
			add("threadId", t.ThreadID, t.Subject, string(t.Kind)+", "+string(t.State), &t.UpdatedAt)
		}
		page.next = text(list.Next)
	case protocol.Page[protocol.OwnBid]:
		for _, b := range list.Items {
			add("id", b.ID, b.Message, string(b.State), &b.CreatedAt)
		}
		page.next = text(list.Next)
	case protocol.Page[protocol.OwnMeeting]:
		for _, m := range list.Items {
			add("id", m.ID, m.Purpose, string(m.State), &m.CreatedAt)
		}
		page.next = text(list.Next)
	default:
		return page, fmt.Errorf("mcp: %s gives %T, whose resources are not known", v.List.Name, res.Value)
	}
	return page, nil
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
