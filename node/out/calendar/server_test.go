package calendar

import (
	"context"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/node/out/calendar/calendartest"
	"stoa/node/out/outbound"
)

const (
	user, password = calendartest.User, calendartest.Password
	collection     = calendartest.Collection
)

// client is the one that a node makes when its operator allows private addresses.
func client() *http.Client {
	return outbound.New(outbound.Options{AllowPrivate: true, Timeout: Timeout, MaxBody: MaxBody})
}

// memory is a calendar server with one calendar, in memory. The exercise compares
// it with Radicale.
type memory struct {
	mu      sync.Mutex
	objects map[string]string
	version map[string]int
	next    int
	puts    int
	partial bool // a time range leaves recurring events with a time zone out, as that of Xandikos does
	refuses bool // it has no filters by property
}

func newMemory() *memory { return &memory{objects: map[string]string{}, version: map[string]int{}} }

func (m *memory) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if name, pass, _ := r.BasicAuth(); name != user || pass != password {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	body, _ := io.ReadAll(r.Body)
	object, there := m.objects[r.URL.Path]
	etag := fmt.Sprintf(`"%d"`, m.version[r.URL.Path])
	switch r.Method {
	case "PROPFIND":
		m.propfind(w, r)
	case "REPORT":
		m.report(w, string(body))
	case http.MethodGet:
		if !there {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		w.Header().Set("ETag", etag)
		io.WriteString(w, object)
	case http.MethodPut, http.MethodDelete:
		want := r.Header.Get("If-Match")
		switch {
		case !strings.HasPrefix(r.URL.Path, collection):
			w.WriteHeader(http.StatusConflict)
		case r.Header.Get("If-None-Match") == "*" && there, want != "" && (!there || want != "*" && want != etag):
			w.WriteHeader(http.StatusPreconditionFailed)
		case r.Method == http.MethodDelete && !there:
			w.WriteHeader(http.StatusNotFound)
		case r.Method == http.MethodDelete:
			delete(m.objects, r.URL.Path)
		default:
			m.next++
			m.puts++
			m.objects[r.URL.Path], m.version[r.URL.Path] = string(body), m.next
			w.WriteHeader(http.StatusCreated)
		}
	}
}

func (m *memory) propfind(w http.ResponseWriter, r *http.Request) {
	answer := func(href, props string) string {
		return "<d:response><d:href>" + href + "</d:href><d:propstat><d:prop>" + props + "</d:prop><d:status>HTTP/1.1 200 OK</d:status></d:propstat></d:response>"
	}
	all := map[string]string{
		"/": answer("/", "<d:current-user-principal><d:href>/asha/</d:href></d:current-user-principal>"),
		"/asha/": answer("/asha/", "<d:current-user-principal><d:href>/asha/</d:href></d:current-user-principal>"+
			"<c:calendar-home-set><d:href>/asha/</d:href></c:calendar-home-set>"),
		collection: answer(collection, "<d:resourcetype><d:collection/><c:calendar/></d:resourcetype><d:displayname>Work 🗓</d:displayname>"+
			"<d:current-user-principal><d:href>/asha/</d:href></d:current-user-principal>"),
	}
	found, ok := all[r.URL.Path]
	if !ok {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	if r.Header.Get("Depth") == "1" && r.URL.Path == "/asha/" {
		found += all[collection]
	}
	m.answer(w, found)
}

func (m *memory) report(w http.ResponseWriter, query string) {
	var b strings.Builder
	if m.refuses && strings.Contains(query, "prop-filter") {
		w.WriteHeader(http.StatusNotImplemented)
		return
	}
	for path, object := range m.objects {
		recurs := strings.Contains(object, "\nRRULE:")
		if strings.Contains(query, `prop-filter name="RRULE"`) && !recurs ||
			strings.Contains(query, `prop-filter name="RDATE"`) && !strings.Contains(object, "\nRDATE") ||
			m.partial && strings.Contains(query, "time-range") && recurs && strings.Contains(object, "DTSTART;TZID") {
			continue
		}
		b.WriteString("<d:response><d:href>" + path + "</d:href><d:propstat><d:prop><c:calendar-data>")
		_ = xml.EscapeText(&b, []byte(object))
		b.WriteString("</c:calendar-data></d:prop><d:status>HTTP/1.1 200 OK</d:status></d:propstat></d:response>")
	}
	m.answer(w, b.String())
}

func (*memory) answer(w http.ResponseWriter, responses string) {
	w.WriteHeader(http.StatusMultiStatus)
	io.WriteString(w, `<?xml version="1.0"?><d:multistatus xmlns:d="DAV:" xmlns:c="urn:ietf:params:xml:ns:caldav">`+responses+`</d:multistatus>`)
}

func serve(t *testing.T, h http.Handler) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	return s.URL
}

// lossy forwards requests, and breaks the connection instead of giving the answer of
// those that lose selects.
func lossy(t *testing.T, to string, lose func(*http.Request) bool) string {
	t.Helper()
	u, err := url.Parse(to)
	require.NoError(t, err)
	return serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		out := r.Clone(context.WithoutCancel(r.Context()))
		out.URL.Scheme, out.URL.Host, out.Host, out.RequestURI = "http", u.Host, "", ""
		resp, err := http.DefaultTransport.RoundTrip(out)
		if err != nil || lose(r) {
			panic(http.ErrAbortHandler)
		}
		defer resp.Body.Close()
		for name := range resp.Header {
			w.Header().Set(name, resp.Header.Get(name))
		}
		w.WriteHeader(resp.StatusCode)
		_, _ = io.Copy(w, resp.Body)
	}))
}
