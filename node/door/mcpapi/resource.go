package mcpapi

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"stoa/identity/strictjson"
	"stoa/protocol"
)

// A Resource is what is read at an address, or at the addresses of a template whose {parts} hold no slash (RFC 6570 §3.2.2).
type Resource struct {
	URI, Name, Title, Description, Media string
	// Read returns what is at the address; args are the parts of the template. An error is a *Failure or internal.
	Read func(c *Call, args map[string]string) (Contents, error)

	scope protocol.Scope                                       // that a token needs
	list  func(c *Call, handle, after string) (entries, error) // what is at the template, nil for what is not listed
}

// Contents is what is at an address, in the form of MCP.
type Contents struct {
	Parts  []any
	MaxAge time.Duration // how long a client may keep it
	Open   bool          // it is the same for every caller
}

// An entry is a resource in a list.
type entry struct {
	URI         string `json:"uri,omitempty"`
	Template    string `json:"uriTemplate,omitempty"`
	Name        string `json:"name"`
	Title       string `json:"title,omitempty"`
	Description string `json:"description,omitempty"`
	Media       string `json:"mimeType,omitempty"`
	Annotations *dated `json:"annotations,omitempty"`
}

type dated struct {
	Modified string `json:"lastModified"`
}

type entries struct {
	items []entry
	next  string // "" on the last page
}

func (r *Resource) template() bool { return strings.Contains(r.URI, "{") }

func (r *Resource) entry() entry {
	e := entry{URI: r.URI, Name: r.Name, Title: r.Title, Description: r.Description, Media: r.Media}
	if r.template() {
		e.URI, e.Template = "", r.URI
	}
	return e
}

// maxURI is the longest address that is looked at, in bytes.
const maxURI = 2048

// find returns the resource at an address, nil for none.
func (a *API) find(uri string) (*Resource, map[string]string) {
	if len(uri) <= maxURI {
		for i := range a.resources {
			if args, ok := match(a.resources[i].URI, uri); ok {
				return &a.resources[i], args
			}
		}
	}
	return nil, nil
}

func match(template, uri string) (map[string]string, bool) {
	args := map[string]string{}
	for {
		from := strings.IndexByte(template, '{')
		if from < 0 {
			return args, template == uri
		}
		to := strings.IndexByte(template, '}')
		if !strings.HasPrefix(uri, template[:from]) {
			return nil, false
		}
		part, _, _ := strings.Cut(uri[from:], "/")
		value, err := url.PathUnescape(part)
		if err != nil || value == "" || strings.ContainsAny(part, "?#") {
			return nil, false
		}
		args[template[from+1:to]] = value
		template, uri = template[to+1:], uri[from+len(part):]
	}
}

// unknownResource is the code of the older wire, which the newer one gave up.
const unknownResource = -32002

// missing is the error for an address where nothing is.
func (m *message) missing(uri, text string, code protocol.Code) error {
	rpc := badParams
	if m.wire == legacy {
		rpc = unknownResource
	}
	return &rpcError{status: http.StatusBadRequest, code: rpc, text: text, data: struct {
		URI  string        `json:"uri"`
		Code protocol.Code `json:"code"`
	}{protocol.Clip(uri, maxURI), code}}
}

// read answers resources/read.
func (a *API) read(w http.ResponseWriter, r *http.Request, m *message, body []byte) error {
	uri, ok := strictjson.String(m.params["uri"])
	if !ok {
		return invalidParams("params must have the member uri, the address of a resource")
	}
	res, args := a.find(uri)
	if res == nil {
		return m.missing(uri, "there is no resource at this address", protocol.NotFound)
	}
	c := a.newCall(w, r, m, body)
	c.URI = uri
	got, err := res.Read(c, args)
	if err != nil {
		return c.reply(nil, err)
	}
	scope := "private"
	if got.Open {
		scope = "public"
	}
	return c.reply(map[string]any{"contents": got.Parts, "ttlMs": got.MaxAge.Milliseconds(), "cacheScope": scope}, nil)
}

// listResources answers resources/list: what has one address, then what is at the templates, page by page.
func (a *API) listResources(w http.ResponseWriter, r *http.Request, m *message, body []byte, caller protocol.Caller) error {
	c := a.newCall(w, r, m, body)
	type source struct {
		*Resource
		handle string // of an owner's profiles, each of which has its own
	}
	list, sources, at, after, next := []entry{}, []source{}, 0, "", ""
	cursor, ok := strictjson.String(m.params["cursor"])
	if !ok && firstPage(m) != nil {
		return wrongCursor
	}
	for i := range a.resources {
		switch res := &a.resources[i]; {
		case !caller.May(res.scope), res.URI == appURI:
		case res.list != nil:
			for _, handle := range caller.Handles {
				sources = append(sources, source{res, handle})
			}
			if len(caller.Handles) == 0 {
				sources = append(sources, source{res, ""})
			}
		case cursor == "" && !res.template():
			list = append(list, res.entry())
		}
	}
	if cursor != "" {
		number, rest, _ := strings.Cut(cursor, ".")
		n, err := strconv.Atoi(number)
		if err != nil || n < 0 || n >= len(sources) {
			return wrongCursor
		}
		at, after = n, rest
	}
	for ; at < len(sources) && next == ""; at++ {
		page, err := sources[at].list(c, sources[at].handle, after)
		switch {
		case protocol.CodeOf(err) == protocol.InvalidCursor:
			return wrongCursor
		case err != nil:
			return c.refused(err, nil)
		}
		list, after = append(list, page.items...), ""
		if page.next != "" {
			next = strconv.Itoa(at) + "." + page.next
		} else if at+1 < len(sources) && len(page.items) > 0 {
			next = strconv.Itoa(at+1) + "."
		}
	}
	members := a.cached(map[string]any{"resources": list})
	members["ttlMs"] = 0
	if next != "" {
		members["nextCursor"] = next
	}
	return c.reply(members, nil)
}

// cached adds what a client may do with a list.
func (a *API) cached(members map[string]any) map[string]any {
	members["ttlMs"], members["cacheScope"] = a.listCache().TTL, a.listCache().Scope
	return members
}

// listTemplates answers resources/templates/list.
func (a *API) listTemplates(c *Call, caller protocol.Caller) error {
	if err := firstPage(c.m); err != nil {
		return err
	}
	list := []entry{}
	for i := range a.resources {
		if res := &a.resources[i]; res.template() && caller.May(res.scope) {
			list = append(list, res.entry())
		}
	}
	return c.reply(a.cached(map[string]any{"resourceTemplates": list}), nil)
}
