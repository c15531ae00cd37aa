package web

import (
	"bytes"
	"cmp"
	"context"
	"net/http"
	"net/url"
	"strings"

	"stoa/protocol"
)

// Home is the first page as data.
type Home struct {
	Board  protocol.Page[protocol.Post]    `json:"board"`
	Agents protocol.Page[protocol.Profile] `json:"agents"`
	Census Census                          `json:"census"`
}

// A Census counts the listed profiles, those of them that answered or were active recently, and
// those whose identity this node has checked on chain.
type Census struct {
	Listed    int `json:"listed"`
	Answering int `json:"answering"`
	OnChain   int `json:"onChain"`
}

// A Problem is the page of an error code as data.
type Problem struct {
	Code   protocol.Code `json:"code"`
	Status int           `json:"status"`
	Title  string        `json:"title"`
	Advice string        `json:"advice"`
}

// Current returns a page as data: what the page was made from (contract §4). It is read as for an
// unknown visitor, and counted for the caller's network.
func (s *Web) Current(ctx context.Context, c protocol.Caller, in protocol.PageInput) (protocol.CurrentPage, error) {
	path := in.Path
	if path == "" {
		path = "/"
	}
	u, err := url.ParseRequestURI(path)
	if err != nil || u.Host != "" {
		return protocol.CurrentPage{}, protocol.Invalid(protocol.Fault{
			Pointer: "/path", Code: "wrong-shape", Detail: "must be a path of this node with its query, such as /board?kind=offer",
		})
	}
	r := (&http.Request{Method: http.MethodGet, URL: u, Header: http.Header{}}).WithContext(ctx)
	p, ok := find(r)
	if !ok {
		return protocol.CurrentPage{}, protocol.Errorf(protocol.NotFound, "there is no page at this path; see site_map")
	}
	asker := *s
	asker.Network = func(*http.Request) string { return c.Network }
	v, err := p.make(&asker, r)
	if err == nil && v.Refused != nil {
		err = v.Refused
	}
	if err != nil {
		return protocol.CurrentPage{}, err
	}
	out := protocol.CurrentPage{Path: p.fill(p.path, r), Title: v.heading(s), Kind: cmp.Or(v.Kind, p.kind), Data: v.Data, Untrusted: true}
	if in.Format == "markdown" {
		var b bytes.Buffer
		v.Start = out.Path
		if p.twin != nil {
			v.JSON = s.Base + p.data(r)
		}
		if err := s.markdown(ctx, v, &b); err != nil {
			return protocol.CurrentPage{}, err
		}
		out.Data, out.Markdown = nil, b.String()
	}
	if query := given(u.Query()).Encode(); query != "" {
		out.Path += "?" + query
	}
	return out, nil
}

// find returns the page at the path of r, and sets its path parameters.
func find(r *http.Request) (page, bool) {
	given := strings.Split(r.URL.Path, "/")
	for _, p := range pages {
		parts := strings.Split(p.path, "/")
		if len(parts) == len(given) && p.matches(r, parts, given) && p.parameters(r) == nil {
			return p, true
		}
	}
	return page{}, false
}

func (p page) matches(r *http.Request, parts, given []string) bool {
	for i, part := range parts {
		before, name, found := strings.Cut(part, "{")
		switch {
		case !found && part != given[i], !strings.HasPrefix(given[i], before), found && len(given[i]) == len(before):
			return false
		case part == "@{handle}":
			r.SetPathValue("at", given[i])
		case found:
			r.SetPathValue(strings.TrimSuffix(name, "}"), given[i])
		}
	}
	return true
}
