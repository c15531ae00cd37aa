package web

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"stoa/node/hall"
	"stoa/protocol"
	"stoa/protocol/netx"
	"stoa/protocol/trace"
)

// A page is one row of the table of pages. A new page needs a row here and a template: route,
// navigation, site map, JSON twin and the types of the form's fields follow from the row.
type page struct {
	path     string // as the site map shows it, parameters in braces
	pattern  string // for the router where it differs from path: "/:at" for "/@{handle}"
	kind     string // of protocol.CurrentPage
	nav      string // its word in the navigation, "" for none
	purpose  string
	twin     *protocol.Operation                           // the operation with the same data; nil when there is none
	activity string                                        // path of the same thing as an ActivityPub object, "" for none
	source   string                                        // path in the table of sources for feed readers, "" for none
	text     func(s *Web, r *http.Request) (string, error) // the answer for readers that do not name HTML; nil for the page
	make     func(s *Web, r *http.Request) (view, error)
}

var pages = []page{
	{path: "/", kind: "home", source: "/feed", text: (*Web).about, make: (*Web).home,
		purpose: english("What this node is, what is new, and every way to use it; plain text for readers that do not ask for HTML.")},
	{path: "/merchants", kind: "merchants", nav: english("Shops"), twin: protocol.ListMerchants.Operation, make: (*Web).merchants,
		purpose: english("Businesses, by category, city and whether they are open now.")},
	{path: "/people", kind: "people", nav: english("People"), twin: protocol.ListPeople.Operation, make: (*Web).people,
		purpose: english("People who chose to be listed.")},
	{path: "/attention", kind: "attention", twin: protocol.ListAttentionBoards.Operation, make: (*Web).attention,
		purpose: english("People who sell slots of their attention, by category.")},
	{path: "/@{handle}/board", kind: "attention-board", pattern: "/:at/board", twin: protocol.ReadAttentionBoard.Operation, make: (*Web).attentionBoard,
		purpose: english("A person's attention board: rules, live bids, the price of a slot, and a form to bid.")},
	{path: "/@{handle}/meet", kind: "meet", pattern: "/:at/meet", twin: protocol.GetMeetingInfo.Operation, make: (*Web).meet,
		purpose: english("How a person takes meetings: lengths, hours, open times where they are shown, and a form to ask for one.")},
	{path: "/@{handle}/reviews", kind: "reviews", pattern: "/:at/reviews", twin: protocol.ListReviews.Operation, make: (*Web).reviews,
		purpose: english("Reviews of a business: those that count, with the amount paid and why, and those that do not.")},
	{path: "/board", kind: "board", nav: english("Board"), twin: protocol.ReadBoard.Operation, source: "/board", activity: "/ap/board", make: (*Web).board,
		purpose: english("The public board, with filters; its ActivityPub actor for readers that ask for it.")},
	{path: "/board/{id}", kind: "post", twin: protocol.GetBoardPost.Operation, activity: "/ap/posts/{id}", make: (*Web).post,
		purpose: english("A post and its replies; its ActivityPub object for readers that ask for it.")},
	{path: "/feed", kind: "feed", nav: english("Feed"), twin: protocol.ReadFeed.Operation, source: "/feed", make: (*Web).feed,
		purpose: english("What happened here and on the nodes it follows.")},
	{path: "/agents", kind: "agents", nav: english("Agents"), twin: protocol.SearchAgents.Operation, make: (*Web).agents,
		purpose: english("The directory of agents, with filters.")},
	{path: "/moderation", kind: "moderation", twin: protocol.ReadModerationLog.Operation, make: (*Web).moderation,
		purpose: english("What was hidden, restored, deleted or blocked on this node, and why.")},
	{path: knowing, kind: "how-we-know", make: (*Web).know,
		purpose: english("What the marks next to a name mean, and how this node checks who wrote a text.")},
	{path: "/contact", kind: "contact", make: (*Web).contact,
		purpose: english("How to reach the operator of this node.")},
	{path: "/terms", kind: "terms", make: (*Web).terms,
		purpose: english("On what terms this node may be used.")},
	{path: "/privacy", kind: "privacy", make: (*Web).privacy,
		purpose: english("What the operator of this node says about personal data.")},
	{path: "/site-map", kind: "site-map", twin: protocol.GetSiteMap.Operation, make: (*Web).siteMap,
		purpose: english("Every public page, endpoint and file.")},
	{path: "/@{handle}", kind: "person", pattern: "/:at", twin: protocol.GetAgentProfile.Operation, source: "/@{handle}/feed",
		activity: "/ap/agents/{handle}", make: (*Web).profile,
		purpose: english("An agent: its profile and newest posts, and for a business its items, prices and opening hours; " +
			"its ActivityPub actor for readers that ask for it.")},
	{path: "/problems", kind: "problems", text: problemsText, make: (*Web).problems,
		purpose: english("Every error code with its meaning; plain text for readers that do not ask for HTML.")},
	{path: "/problems/{code}", kind: "problem", text: problemText, make: (*Web).problem,
		purpose: english("What an error code means and what to do; plain text for readers that do not ask for HTML.")},
}

// A Route is where a page or file of this package is served, for GET and HEAD when Method is "".
// Pattern has ":name" for a parameter, which the handler reads with r.PathValue.
type Route struct {
	Pattern string
	Handler http.Handler
	Method  string                // "" for GET
	Forms   []*protocol.Operation // what the forms do that are sent there; nil for those that do no operation
}

// Routes returns every route of the pages and of the files that they load.
func (s *Web) Routes() []Route {
	var routes []Route
	for _, a := range assets {
		routes = append(routes, Route{Pattern: a.path, Handler: a})
	}
	for _, p := range pages {
		pattern := p.pattern
		if pattern == "" {
			pattern = strings.NewReplacer("{", ":", "}", "").Replace(p.path)
		}
		routes = append(routes, Route{Pattern: pattern, Handler: s.handler(p)})
		if last := pattern[strings.LastIndex(pattern, "/")+1:]; !strings.HasPrefix(last, ":") { // a parameter may end in .md as it is
			routes = append(routes, Route{Pattern: inMarkdown(pattern), Handler: s.handler(p)})
		}
	}
	more := slices.Concat(s.writeRoutes(), s.bidRoutes(), s.orderRoutes(), s.meetingRoutes())
	if s.Accounts != nil {
		more = append(more, s.accountRoutes()...)
	}
	more = append(more, Route{Pattern: manifestPath, Handler: http.HandlerFunc(s.manifest)}, Route{Pattern: noticesPath, Handler: http.HandlerFunc(notices)},
		s.forms(switchPath, s.switchLanguage),
		Route{Pattern: switchPath, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { redirect(w, r, "/") })})
	for _, r := range more {
		r.Handler = s.translated(r.Handler)
		routes = append(routes, r)
	}
	return append(routes, s.channelRoutes()...)
}

// Entries returns the pages' entries of the site map.
func Entries() []protocol.SiteEntry {
	entries := make([]protocol.SiteEntry, 0, len(pages))
	for _, p := range pages {
		entries = append(entries, protocol.SiteEntry{Path: p.path, Kind: "page", Method: http.MethodGet, Purpose: p.purpose})
	}
	return entries
}

func (s *Web) handler(p page) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		start := time.Now()
		vary(w.Header())
		language := s.Words.Choose(r)
		key, version := s.keyOf(r, language), s.kept.Version()
		if page, ok := s.kept.Get(key); ok && key != "" { // its path and form were chosen when it was made
			page.write(w, r)
			if s.Table.Observe != nil && p.twin != nil {
				s.Table.Observe(hall.Observation{ID: w.Header().Get(requestID), Trace: trace.ID(r.Context()), Op: p.twin.Name, Door: "page",
					Duration: time.Since(start), Kept: true})
			}
			return
		}
		r = answeredBy(w, inLanguage(w, r, language))
		r, ending := withoutEnding(r)
		err := p.parameters(r)
		if err == nil && redirectCapitals(w, r, ending) {
			return
		}
		if err == nil {
			_, err = queryOf(r)
		}
		if err != nil {
			s.Fail(w, r, err)
			return
		}
		as := accepted(r, p)
		if ending != "" {
			as = markdownText
		}
		switch as {
		case activityJSON:
			http.Redirect(w, r, s.objectOf(p, r), http.StatusSeeOther)
			return
		case plainJSON:
			http.Redirect(w, r, s.Base+p.data(r), http.StatusSeeOther)
			return
		case plainText:
			text, err := p.text(s, r)
			if err != nil {
				s.Fail(w, r, err)
				return
			}
			page := &rendered{media: "text/plain; charset=utf-8", links: []string{links}, tag: netx.Tag([]byte(text)), length: strconv.Itoa(len(text)),
				body: []byte(text)}
			s.kept.Put(key, version, page, len(text))
			page.write(w, r)
			return
		}
		v, err := p.make(s, r)
		if err != nil {
			s.Fail(w, r, err)
			return
		}
		v.key, v.version = key, version
		v.Path, v.Start, v.Request = p.path, p.fill(p.path, r), w.Header().Get(requestID)
		v.Kind, v.Handle = cmp.Or(v.Kind, p.kind), r.PathValue("handle")
		if len(given(r.URL.Query())) == 0 && !v.Hidden { // otherwise it is a part or selection of the page
			v.Address = s.Base + p.fill(p.path, r)
		}
		v.InMarkdown = as == markdownText
		if v.Refused == nil {
			v.Markdown = s.Base + inMarkdown(p.fill(p.path, r))
			if query := given(r.URL.Query()).Encode(); query != "" {
				v.Markdown += "?" + query
			}
		}
		// What was refused as a page would be refused in every other form.
		if p.twin != nil && v.Refused == nil {
			v.JSON = s.Base + p.data(r)
		}
		if p.source != "" && v.Refused == nil {
			v.Source, v.Selection = p.fill(p.source, r), (&form{values: given(r.URL.Query())}).selection()
		}
		if p.path == "/board" && v.Address != "" && v.Refused == nil {
			v.Activity = s.Base + p.activity
		}
		if v.Refused != nil && (v.InMarkdown || !WantsHTML(r)) {
			s.Fail(w, r, v.Refused)
			return
		}
		s.write(w, r, v)
	})
}

// objectOf returns the address of a page as an ActivityPub object: of a post of another server, its
// own id there.
func (s *Web) objectOf(p page, r *http.Request) string {
	if p.twin == protocol.GetBoardPost.Operation {
		found, err := read(s, r, protocol.GetBoardPost, map[string]any{"id": r.PathValue("id"), "limit": 1})
		if err == nil && found.Post.Node != nil && isWeb(found.Post.URI) {
			return found.Post.URI
		}
	}
	return s.Base + p.fill(p.activity, r)
}

// parameters checks the parameters of the path before any redirect.
func (p page) parameters(r *http.Request) error {
	switch p.path {
	case "/@{handle}", "/@{handle}/board", "/@{handle}/meet", "/@{handle}/reviews", "/@{handle}/feed", profileAppeal:
		handle, ok := strings.CutPrefix(r.PathValue("at"), "@")
		if handle = strings.ToLower(handle); !ok || !protocol.IsHandle(handle) {
			return protocol.Errorf(protocol.NotFound, "there is nothing at this path")
		}
		r.SetPathValue("handle", handle)
	case "/board/{id}", postAppeal:
		if !protocol.IsID(protocol.PostID, r.PathValue("id")) {
			return protocol.Errorf(protocol.NotFound, "there is no post with that id")
		}
	}
	return nil
}

// redirectCapitals redirects a path with a handle in capitals, as phones write it, to the path with the
// handle in lower case, and reports whether it did. ending is that of a path in Markdown, which r does not have.
func redirectCapitals(w http.ResponseWriter, r *http.Request, ending string) bool {
	at, handle := r.PathValue("at"), r.PathValue("handle")
	if handle == "" || at == "@"+handle {
		return false
	}
	to := "/@" + handle + strings.TrimPrefix(r.URL.Path, "/"+at) + ending
	if r.URL.RawQuery != "" {
		to += "?" + r.URL.RawQuery
	}
	guard(w.Header())
	http.Redirect(w, r, to, http.StatusPermanentRedirect)
	return true
}

// fill puts the request's parameters into a path.
func (p page) fill(path string, r *http.Request) string {
	for _, name := range []string{"handle", "id", "code"} {
		path = strings.ReplaceAll(path, "{"+name+"}", r.PathValue(name))
	}
	return path
}

// data returns the path of the same data as JSON, with the same selection.
func (p page) data(r *http.Request) string {
	path := p.fill(p.twin.HTTP.Path, r)
	if query := given(r.URL.Query()).Encode(); query != "" {
		path += "?" + query
	}
	return path
}
