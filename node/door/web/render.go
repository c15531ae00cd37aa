package web

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"stoa/identity/session"
	"stoa/node/door/web/words"
	"stoa/node/hall"
	"stoa/protocol"
	"stoa/protocol/netx"
)

// Policy is the Content-Security-Policy of every page: nothing from other origins, no frames, no
// script but the node's files.
const Policy = "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'" +
	"; script-src 'self'; worker-src 'self'; manifest-src 'self'; connect-src 'self'; require-trusted-types-for 'script'; trusted-types stoa stoa-push"

// links are the Link fields of every page, for programs that start there (RFC 8288).
const links = `</.well-known/api-catalog>; rel="api-catalog", ` +
	`</openapi.json>; rel="service-desc"; type="application/vnd.oai.openapi+json", ` +
	`</llms.txt>; rel="describedby"; type="text/plain", ` +
	`</.well-known/ai-catalog.json>; rel="ai-catalog"; type="application/json"`

// maxLink is the longest address of the page itself that is put into a Link field, in bytes:
// proxies limit the size of response fields.
const maxLink = 1024

// requestID is the header in which the router has put the id of the request.
const requestID = "Request-Id"

// guard sets the security headers of every answer of this package, except those that the page has
// set.
func guard(head http.Header) {
	if head["Content-Security-Policy"] == nil {
		head.Set("Content-Security-Policy", Policy)
	}
	if head["Referrer-Policy"] == nil {
		// Under no-referrer browsers send "Origin: null" with a page's form (Fetch §3.2), which
		// cannot be told from a form of another site.
		head.Set("Referrer-Policy", "same-origin")
	}
	head.Set("Cross-Origin-Opener-Policy", "same-origin")
	if head["Permissions-Policy"] == nil {
		head.Set("Permissions-Policy", "camera=(), microphone=(), geolocation=()")
	}
}

// selects are the fields of a request that select the form and the language of an answer.
var selects = []string{"Accept", "Accept-Language", "Cookie"}

// vary says that the answer depends on them, in addition to what the compression layer adds.
func vary(head http.Header) {
	if !slices.Contains(head["Vary"], selects[0]) {
		head["Vary"] = append(head["Vary"], selects...)
	}
}

// write renders the whole page before its first byte is sent, so that a fault in a template
// becomes an error page and not half a page.
func (s *Web) write(w http.ResponseWriter, r *http.Request, v view) {
	var b bytes.Buffer
	v.back = backTo(r)
	ctx := r.Context()
	if v.Private {
		ctx = withOnce(ctx)
	}
	media := "text/html; charset=utf-8"
	err := error(nil)
	if v.InMarkdown || v.Private && likesMarkdown(r) {
		media, err = markdownMedia+"; charset=utf-8", s.markdown(ctx, v, &b)
	} else {
		err = layout(s, v).Render(ctx, &b)
	}
	if err != nil {
		s.Fail(w, r, fmt.Errorf("render %s: %w", v.Path, err))
		return
	}
	head := w.Header()
	head.Set("Content-Language", words.Of(r.Context()).Code)
	head.Set("Link", links)
	if v.JSON != "" && len(v.JSON) <= maxLink {
		head.Add("Link", "<"+v.JSON+`>; rel="alternate"; type="application/json"`)
	}
	if v.Markdown != "" && len(v.Markdown) <= maxLink {
		head.Add("Link", "<"+v.Markdown+`>; rel="alternate"; type="`+markdownMedia+`"`)
	}
	if v.Near {
		head.Set("Permissions-Policy", "camera=(), microphone=(), geolocation=(self)")
	}
	if v.Secret {
		head.Set("Referrer-Policy", "no-referrer")
	}
	if v.Private {
		head.Set("Cache-Control", "no-store")
		head.Set("X-Robots-Tag", "noindex")
		send(w, max(v.Status, http.StatusOK), media, b.Bytes())
		return
	}
	if v.Refused != nil {
		head.Set("Cache-Control", "no-store")
		send(w, v.Refused.Code.Status(), "text/html; charset=utf-8", b.Bytes())
		return
	}
	if r.Header["Authorization"] != nil || r.Header["Signature"] != nil { // it may contain what only this reader may see
		validate(w, r, media, "private, no-store", b.Bytes())
		return
	}
	page := &rendered{media: media, language: head["Content-Language"], links: head["Link"], tag: netx.Tag(b.Bytes()), length: strconv.Itoa(b.Len()),
		body: b.Bytes(), policy: head["Permissions-Policy"]}
	s.kept.Put(v.key, v.version, page, b.Len())
	page.write(w, r)
}

// A rendered page is the same for everyone.
type rendered struct {
	language    []string // code
	links       []string // of its Link fields
	policy      []string // what it may use of the browser; nil for nothing
	media       string
	tag, length string
	body        []byte
}

var keepPublic = []string{"public, no-cache"}

func (p *rendered) write(w http.ResponseWriter, r *http.Request) {
	head := w.Header()
	if p.policy != nil {
		head["Permissions-Policy"] = p.policy
	}
	guard(head)
	head["Link"], head["Cache-Control"], head["Etag"], head["Content-Language"] = p.links, keepPublic, []string{p.tag}, p.language
	if netx.Unchanged(r, p.tag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	head["Content-Type"], head["Content-Length"] = []string{p.media}, []string{p.length}
	w.WriteHeader(http.StatusOK)
	w.Write(p.body)
}

// keyOf returns the name under which the page of a request is kept for everyone: its language, its target, and
// what the reader accepts. It is "" for a reader with a credential or the cookie of a session.
func (s *Web) keyOf(r *http.Request, l *words.Language) string {
	if !hall.Unknown(r) || r.Header["Cookie"] != nil && strings.Contains(strings.Join(r.Header["Cookie"], ";"), session.CookieName(s.Base)) {
		return ""
	}
	return l.Code + " " + r.Header.Get("Accept") + " " + r.RequestURI
}

// validate sends a body with a strong ETag, or 304 when the reader's copy is still valid.
func validate(w http.ResponseWriter, r *http.Request, media, keep string, body []byte) {
	tag := netx.Tag(body)
	head := w.Header()
	head.Set("Cache-Control", keep)
	head.Set("ETag", tag)
	if netx.Unchanged(r, tag) {
		guard(head)
		w.WriteHeader(http.StatusNotModified)
		return
	}
	send(w, http.StatusOK, media, body)
}

func send(w http.ResponseWriter, status int, media string, body []byte) {
	head := w.Header()
	guard(head)
	head.Set("Content-Type", media)
	head.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	w.Write(body)
}

// Fail answers with an error: with a page for a reader that asks for HTML, otherwise by
// Config.Problem. A failed signature or token never comes from a browser, so it is always a
// problem document.
func (s *Web) Fail(w http.ResponseWriter, r *http.Request, err error) {
	e := protocol.AsError(err)
	head := w.Header()
	vary(head)
	status := e.Code.Status()
	if status == http.StatusUnauthorized {
		head.Add("WWW-Authenticate", `Bearer realm="stoa"`)
	}
	if status == http.StatusUnauthorized || !WantsHTML(r) {
		s.Problem(w, err)
		return
	}
	var b bytes.Buffer
	r = inLanguage(w, r, s.Words.Choose(r))
	v := view{Title: tr(r.Context(), e.Code.Title()), back: backTo(r), Body: failure(e, head.Get(requestID), handleAbove(r.URL.Path), r.URL.Path)}
	if layout(s, v).Render(context.WithoutCancel(r.Context()), &b) != nil {
		s.Problem(w, err)
		return
	}
	if e.RetryAfter > 0 || status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable {
		head.Set("Retry-After", strconv.Itoa(netx.Seconds(e.RetryAfter)))
	}
	head.Set("Cache-Control", "no-store")
	head.Del("ETag")
	head.Set("Content-Language", words.Of(r.Context()).Code)
	send(w, status, "text/html; charset=utf-8", b.Bytes())
}

// handleAbove returns the handle in a path below a profile's page, "" for other paths.
func handleAbove(path string) string {
	at, _, below := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	handle := strings.ToLower(strings.TrimPrefix(at, "@"))
	if !below || !strings.HasPrefix(at, "@") || !protocol.IsHandle(handle) {
		return ""
	}
	return handle
}
