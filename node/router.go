package node

import (
	"cmp"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"unicode/utf8"

	"github.com/klauspost/compress/gzhttp"
	"github.com/uptrace/bunrouter"

	"stoa/identity/httpsig"
	"stoa/node/door/httpapi"
	"stoa/node/door/web"
	"stoa/protocol"
)

// mux routes requests with bunrouter. It answers HEAD wherever GET is answered, lists
// the methods of a path in a 405, answers panics and unknown paths with problem
// documents or pages, and passes path parameters on as r.PathValue.
//
// The router indexes all its routes anew with each one that it gets, so it gets one for
// each shape of a path, of GET, and the methods are looked up in what it finds.
type mux struct {
	router  *bunrouter.Router
	problem func(w http.ResponseWriter, r *http.Request, err error) // renders an error, as a page or as a document
	routes  map[string]*route                                       // shape of a pattern → its route
	front   *front
	// spoken has, by the first parts of a path, the renderer of errors of a door that does not use problem.
	spoken map[string]func(http.ResponseWriter, *http.Request, error)
}

// A route is the handlers of the paths of one shape. It is an error because the router
// returns it as one, by way of its handler.
type route struct {
	pattern  string                  // of the first handler
	handlers map[string]http.Handler // by method
	names    map[string]string       // of parameters, in all patterns of the shape → in pattern
}

func (*route) Error() string { return "a route is no fault" }

func newMux(problem func(http.ResponseWriter, *http.Request, error), front *front) *mux {
	m := &mux{problem: problem, routes: map[string]*route{}, front: front, spoken: map[string]func(http.ResponseWriter, *http.Request, error){}}
	m.router = bunrouter.New(bunrouter.WithNotFoundHandler(func(http.ResponseWriter, bunrouter.Request) error { return errNoRoute }))
	return m
}

var errNoRoute = errors.New("no route has this path")

// handle adds a handler. Pattern is written ":name" for a parameter. It panics when the
// route has a handler of the method already: the node does not start with two.
func (m *mux) handle(method, pattern string, h http.Handler) {
	at := shape(pattern)
	to := m.routes[at]
	if to == nil {
		to = &route{pattern, map[string]http.Handler{}, map[string]string{}}
		m.routes[at] = to
		m.router.Handle(http.MethodGet, pattern, func(_ http.ResponseWriter, r bunrouter.Request) error {
			params := r.Params()
			for name, first := range to.names {
				r.SetPathValue(name, params.ByName(first))
			}
			return to
		})
	}
	if to.handlers[method] != nil {
		panic(fmt.Sprintf("two handlers for %s %s", method, pattern))
	}
	to.handlers[method] = h
	first := strings.Split(to.pattern, "/")
	for i, part := range strings.Split(pattern, "/") {
		if name, ok := strings.CutPrefix(part, ":"); ok {
			to.names[name] = first[i][1:]
		}
	}
	if method == http.MethodGet {
		m.handle(http.MethodHead, pattern, h)
	}
}

// ServeHTTP finds the route of the path, then the handler of the method.
func (m *mux) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	method := r.Method
	r.Method = http.MethodGet
	found := m.router.ServeHTTPError(w, r)
	r.Method = method
	switch to := found.(type) {
	case nil: // the router has redirected
	case *route:
		routed(r, to.pattern)
		if h := to.handlers[method]; h != nil {
			if (method == http.MethodGet || method == http.MethodHead) && asksToSign(r) {
				w.Header().Set("Accept-Signature", httpsig.AcceptFor(r))
			}
			h.ServeHTTP(w, r)
			return
		}
		words := strings.Join(slices.Sorted(maps.Keys(to.handlers)), ", ")
		w.Header().Set("Allow", words)
		m.refused(w, r, protocol.Errorf(protocol.MethodNotAllowed, "this path takes %s", words))
	default:
		detail := "there is nothing at this path; see /api/public/site-map"
		if web.WantsHTML(r) {
			detail = "there is nothing at this path"
		}
		m.refused(w, r, protocol.Errorf(protocol.NotFound, "%s", detail))
	}
}

// asksToSign reports whether an answer may tell which signature this node verifies: the request has one.
// A door that has verified it removes the field. Fetches of the fediverse are signed by other rules.
func asksToSign(r *http.Request) bool {
	return httpsig.Signed(r.Header) && !strings.HasPrefix(r.URL.Path, "/ap/")
}

// refused renders the error of a request that reached no room, so that any origin may
// read it.
func (m *mux) refused(w http.ResponseWriter, r *http.Request, err error) {
	if openToAnyOrigin(r.URL.Path) {
		w.Header().Set("Access-Control-Allow-Origin", "*")
	}
	m.problem(w, r, err)
}

// limited renders the error of a request over the limit of its network, in the form
// of its door.
func (m *mux) limited(w http.ResponseWriter, r *http.Request, err error) {
	head := w.Header()
	if openToAnyOrigin(r.URL.Path) {
		head["Access-Control-Allow-Origin"], head["Access-Control-Expose-Headers"] = anyOrigin, exposed
	}
	for prefix, render := range m.spoken {
		if rest, ok := strings.CutPrefix(r.URL.Path, "/"+prefix); ok && (rest == "" || rest[0] == '/') {
			render(w, r, err)
			return
		}
	}
	m.problem(w, r, err)
}

var anyOrigin, exposed = []string{"*"}, []string{protocol.ExposedHeaders}

// shape returns a pattern without the names of its parameters: routes with the same
// shape have the same path.
func shape(pattern string) string {
	parts := strings.Split(pattern, "/")
	for i, p := range parts {
		if strings.HasPrefix(p, ":") {
			parts[i] = ":any"
		}
	}
	return strings.Join(parts, "/")
}

// pattern converts "/a/{handle}" to "/a/:handle".
func pattern(path string) string {
	parts := strings.Split(path, "/")
	for i, p := range parts {
		if strings.HasPrefix(p, "{") && strings.HasSuffix(p, "}") {
			parts[i] = ":" + p[1:len(p)-1]
		}
	}
	return strings.Join(parts, "/")
}

// handler wraps the router in the steps of every request, outermost first: request id,
// panic guard, limit of the client network, path guard, CORS preflight, compression.
func (m *mux) handler(log *slog.Logger) (http.Handler, error) {
	compress, err := gzhttp.NewWrapper(gzhttp.MinSize(1024), gzhttp.SuffixETag(compressedTag),
		gzhttp.ContentTypeFilter(compressible))
	if err != nil {
		return nil, err
	}
	inner, ids := compress(m), newRequestIDs()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		head := w.Header()
		id := m.front.given(r)
		if id == "" {
			id = ids.next()
		}
		head[httpapi.RequestIDHeader], head["X-Content-Type-Options"] = []string{id}, noSniff
		defer m.recover(w, r, log)
		if err := m.front.admit(head, r); err != nil {
			m.limited(w, r, err)
			return
		}
		if err := unreadable(r.URL); err != nil {
			m.refused(w, r, err)
			return
		}
		// The MCP doors answer it themselves.
		if r.Method == http.MethodOptions && r.URL.Path != protocol.MCPPath &&
			r.URL.Path != protocol.OwnerMCPPath && r.URL.Path != protocol.UCPMCPPath {
			preflight(w, r)
			return
		}
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			r = r.WithContext(protocol.WithRequestID(r.Context(), id)) // for the jobs that it causes
		}
		if r.URL.RawPath != "" {
			// bunrouter leaves parameters encoded when RawPath is set.
			u := *r.URL
			u.RawPath = ""
			r2 := *r
			r2.URL = &u
			r = &r2
		}
		for _, field := range []string{"If-None-Match", "If-Match"} {
			// The tag of a compressed answer is the plain one with a suffix.
			for i, tag := range r.Header[field] {
				r.Header[field][i] = plainTags.Replace(tag)
			}
		}
		if p := r.URL.Path; p != "/" && (strings.HasSuffix(p, "/") || strings.Contains(p, "//")) {
			w = redirect{w, p}
		}
		inner.ServeHTTP(w, r)
	}), nil
}

// noSniff makes browsers use the declared type of an answer.
var noSniff = []string{"nosniff"}

// unreadable refuses a URL that two programs could parse differently, or that no
// stored text can equal: a handler may pass its parts to the database.
func unreadable(u *url.URL) error {
	if raw := strings.ToLower(u.RawPath); strings.Contains(raw, "%2f") || strings.Contains(raw, "%5c") {
		return protocol.Errorf(protocol.InvalidRequest, "the path contains an encoded slash or backslash")
	}
	if _, why, bad := protocol.Unfit(u.Path); bad || strings.ContainsAny(u.Path, "\n\t") {
		return protocol.Errorf(protocol.InvalidRequest, "the path contains what no path of this node has: %s", cmp.Or(why, "a control character"))
	}
	if strings.Count(u.RawQuery, "&") >= maxParameters {
		return protocol.Errorf(protocol.InvalidRequest, "the query has more than %d parameters", maxParameters)
	}
	if !strings.Contains(u.RawQuery, "%") {
		return nil
	}
	if query, err := url.PathUnescape(u.RawQuery); err == nil && (strings.Contains(query, "\x00") || !utf8.ValidString(query)) {
		return protocol.Errorf(protocol.InvalidRequest, "the query contains NUL, or bytes that are not UTF-8")
	}
	return nil
}

// maxParameters bounds the parameters of a query. No operation has a tenth as many,
// and pages repeat the query in their links.
const maxParameters = 250

// compressedTag is the suffix of the entity tag of a compressed answer, because a
// strong tag identifies bytes. gzhttp itself adds "-zstd" to an answer in zstd.
const compressedTag = "-gzip"

// plainTags removes these suffixes.
var plainTags = strings.NewReplacer(compressedTag+`"`, `"`, `-zstd"`, `"`)

// compressible reports whether answers of a media type are compressed. A signed
// key directory is not: its digest covers the bytes on the wire.
func compressible(media string) bool {
	switch {
	case strings.HasPrefix(media, "text/event-stream"), strings.HasPrefix(media, "application/http-message-signatures-directory"):
		return false
	}
	return strings.HasPrefix(media, "text/") || strings.Contains(media, "json") || strings.Contains(media, "xml")
}

func (m *mux) recover(w http.ResponseWriter, r *http.Request, log *slog.Logger) {
	v := recover()
	if v == nil {
		return
	}
	if v == http.ErrAbortHandler {
		panic(v)
	}
	log.Error("panic while serving", "rid", w.Header().Get(httpapi.RequestIDHeader), "method", r.Method, "path", withoutSecrets(r.URL.Path), "err", v)
	m.refused(w, r, &protocol.Error{Code: protocol.Internal, Detail: "Something went wrong on our side."})
}

// withoutSecrets leaves out the long parts of a path, of which some are the secret of a link in a mail.
func withoutSecrets(path string) string {
	parts := strings.Split(path, "/")
	for i, p := range parts {
		if len(p) > 20 {
			parts[i] = "…"
		}
	}
	return strings.Join(parts, "/")
}

// preflight answers CORS preflights: public reads and writes admit any origin, without
// credentials; all other paths admit none (contract §1).
func preflight(w http.ResponseWriter, r *http.Request) {
	head := w.Header()
	if openToAnyOrigin(r.URL.Path) {
		head.Set("Access-Control-Allow-Origin", "*")
		head.Set("Access-Control-Allow-Methods", "GET, HEAD, POST, DELETE")
		head.Set("Access-Control-Allow-Headers",
			"Content-Type, A2A-Version, A2A-Extensions, Content-Digest, Idempotency-Key, Proof-Of-Work, Signature, Signature-Input, Signature-Agent, "+
				"Agent-Identity, Authorization, Act-As, If-None-Match, Last-Event-ID, UCP-Agent, "+
				"Sign-In-With-X, X-SIWA-Receipt")
		head.Set("Access-Control-Max-Age", "86400")
	}
	w.WriteHeader(http.StatusNoContent)
}

// openToAnyOrigin reports whether pages of any origin may request a path and read the
// answer.
func openToAnyOrigin(path string) bool {
	for _, prefix := range []string{"/api/owner/", "/api/operator/", protocol.OwnerMCPPath} {
		if strings.HasPrefix(path, prefix) {
			return false
		}
	}
	return true
}

// A redirect answers 308 where the router answers 301, for a path with a slash at the
// end or doubled slashes: after 301 clients change every other method to GET (RFC 9110
// §15.4.2), 308 keeps method and body.
type redirect struct {
	http.ResponseWriter
	path string
}

func (d redirect) WriteHeader(status int) {
	if status == http.StatusMovedPermanently {
		status = http.StatusPermanentRedirect
		if openToAnyOrigin(d.path) {
			d.Header().Set("Access-Control-Allow-Origin", "*")
		}
	}
	d.ResponseWriter.WriteHeader(status)
}

// Unwrap is for http.ResponseController.
func (d redirect) Unwrap() http.ResponseWriter { return d.ResponseWriter }

// requestIDs numbers the requests of one process after a random prefix, so that an id
// is unique over all processes and contains nothing about the caller.
type requestIDs struct {
	prefix string
	n      atomic.Uint64
}

func newRequestIDs() *requestIDs { return &requestIDs{prefix: randomName()} }

func (r *requestIDs) next() string { return r.prefix + strconv.FormatUint(r.n.Add(1), 36) }

// randomName returns eight random characters.
func randomName() string {
	var raw [6]byte
	rand.Read(raw[:])
	return base64.RawURLEncoding.EncodeToString(raw[:])
}
