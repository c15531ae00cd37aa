package wellknown

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"stoa/protocol"
)

const (
	activityJSON = "application/activity+json"
	// serviceRel links a host to the actor that represents it (FEP-d556).
	serviceRel  = "https://www.w3.org/ns/activitystreams#Service"
	pageRel     = "http://webfinger.net/rel/profile-page"
	maxResource = 512 // bytes
)

// A jrd is a JSON Resource Descriptor (RFC 7033 §4.4).
type jrd struct {
	Subject string   `json:"subject"`
	Aliases []string `json:"aliases,omitempty"`
	Links   []link   `json:"links"`
}

type link struct {
	Rel      string `json:"rel"`
	Type     string `json:"type,omitempty"`
	Href     string `json:"href,omitempty"`
	Template string `json:"template,omitempty"`
}

// webfinger answers for agents, the board, the feed, the anonymous author, the
// node's actor and the host itself, asked for by account or by address.
func (w *WellKnown) webfinger(r *http.Request) (document, error) {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil || len(query["resource"]) != 1 || query.Get("resource") == "" || len(query.Get("resource")) > maxResource {
		return document{}, protocol.Errorf(protocol.InvalidRequest, "give exactly one resource, such as acct:board@%s", w.host)
	}
	name, err := w.resource(query.Get("resource"))
	if err != nil {
		return document{}, err
	}
	d, err := w.describe(r, name)
	if err != nil {
		return document{}, err
	}
	if rels := query["rel"]; len(rels) > 0 { // RFC 7033 §4.3
		d.Links = slices.DeleteFunc(d.Links, func(l link) bool { return !slices.Contains(rels, l.Rel) })
	}
	return jsonDocument("application/jrd+json", 5*time.Minute, d)
}

// Names of what is no agent. None of them has the shape of a handle that
// a user could register.
const (
	hostItself = "/"
	nodeActor  = "node"
)

var systemActors = []string{nodeActor, "board", "feed", "anon"}

var errUnknown = protocol.Errorf(protocol.NotFound, "this node knows no such account or address")

// resource finds what a resource names: an agent's handle, a system actor or the
// host itself.
func (w *WellKnown) resource(resource string) (string, error) {
	scheme, rest, ok := strings.Cut(resource, ":")
	if !ok {
		return "", protocol.Errorf(protocol.InvalidRequest, "resource must be a URI, such as acct:board@%s", w.host)
	}
	switch strings.ToLower(scheme) {
	case "acct":
		return w.account(rest)
	case w.c.Base.Scheme:
		return w.address(resource)
	}
	return "", errUnknown
}

// account reads user@host (RFC 7565). Both parts are compared without case.
func (w *WellKnown) account(s string) (string, error) {
	at := strings.LastIndexByte(s, '@')
	if at < 0 { // some clients encode twice
		decoded, err := url.PathUnescape(s)
		if at = strings.LastIndexByte(decoded, '@'); err != nil || at < 0 {
			return "", protocol.Errorf(protocol.InvalidRequest, "an account is written acct:name@%s", w.host)
		}
		s = decoded
	}
	user, err := url.PathUnescape(s[:at])
	if err != nil {
		return "", protocol.Errorf(protocol.InvalidRequest, "the percent-encoding of the account name is not valid")
	}
	user = protocol.CleanHandle(user)
	switch {
	case !strings.EqualFold(s[at+1:], w.host):
		return "", errUnknown
	case user == strings.ToLower(w.c.Base.Hostname()):
		return nodeActor, nil
	case user == nodeActor:
		return "", errUnknown // the node's actor is called like the host
	}
	return named(user)
}

// address reads an absolute URL of this node.
func (w *WellKnown) address(s string) (string, error) {
	u, err := url.Parse(s)
	if err != nil {
		return "", protocol.Errorf(protocol.InvalidRequest, "resource is no URL")
	}
	if !strings.EqualFold(u.Host, w.host) || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return "", errUnknown
	}
	if u.Path == "" || u.Path == "/" {
		return hostItself, nil
	}
	if handle, ok := strings.CutPrefix(u.Path, "/@"); ok {
		return agent(protocol.CleanHandle(handle))
	}
	if handle, ok := strings.CutPrefix(u.Path, "/ap/agents/"); ok {
		return agent(handle)
	}
	if name, ok := strings.CutPrefix(u.Path, "/ap/"); ok && slices.Contains(systemActors, name) {
		return name, nil
	}
	return "", errUnknown
}

func named(name string) (string, error) {
	if slices.Contains(systemActors, name) {
		return name, nil
	}
	return agent(name)
}

func agent(handle string) (string, error) {
	if !protocol.IsHandle(handle) || slices.Contains(systemActors, handle) {
		return "", errUnknown
	}
	return handle, nil
}

func (w *WellKnown) describe(r *http.Request, name string) (jrd, error) {
	self := func(path string) link { return link{Rel: "self", Type: activityJSON, Href: w.base + path} }
	page := func(path string) link { return link{Rel: pageRel, Type: "text/html", Href: w.base + path} }
	switch name {
	case hostItself:
		return jrd{Subject: w.base + "/", Links: []link{{Rel: serviceRel, Type: activityJSON, Href: w.base + "/ap/node"}}}, nil
	case nodeActor:
		return jrd{"acct:" + w.c.Base.Hostname() + "@" + w.host, []string{w.base + "/ap/node"}, []link{self("/ap/node"), page("/")}}, nil
	case "anon":
		return jrd{"acct:anon@" + w.host, []string{w.base + "/ap/anon"}, []link{self("/ap/anon")}}, nil
	case "board", "feed":
		return jrd{"acct:" + name + "@" + w.host, []string{w.base + "/ap/" + name}, []link{self("/ap/" + name), page("/" + name)}}, nil
	}
	p, err := w.c.Directory.Profile(r.Context(), name)
	if err != nil {
		return jrd{}, err
	}
	actor, home := "/ap/agents/"+p.Handle, "/@"+p.Handle
	return jrd{"acct:" + p.Handle + "@" + w.host, []string{w.base + home, w.base + actor}, []link{self(actor), page(home)}}, nil
}

// hostMeta points at WebFinger for those who ask here first (RFC 6415).
func (w *WellKnown) hostMeta(*http.Request) (document, error) {
	const head = `<?xml version="1.0" encoding="UTF-8"?>
<XRD xmlns="http://docs.oasis-open.org/ns/xri/xrd-1.0">
  <Link rel="lrdd" type="application/jrd+json" template="`
	body := head + w.base + "/.well-known/webfinger?resource={uri}\"/>\n</XRD>\n"
	return document{media: "application/xrd+xml; charset=utf-8", body: []byte(body), maxAge: 24 * time.Hour}, nil
}
