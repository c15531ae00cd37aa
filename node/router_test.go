package node

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/protocol"
)

// A second handler of a path stops the start; one of them would never be called.
func TestMux_Twice(t *testing.T) {
	t.Parallel()
	m, h := newMux(nil, nil), http.NotFoundHandler()
	m.handle("GET", "/a/:id", h)
	m.handle("POST", "/a/:id", h)
	m.handle("GET", "/a", h)
	for _, again := range [][2]string{{"GET", "/a/:id"}, {"HEAD", "/a"}, {"POST", "/a/:other"}} {
		require.Panics(t, func() { m.handle(again[0], again[1], h) }, again)
	}
}

// One route has the methods and the names of parameters of all its patterns; a fixed
// part hides a parameter, also for methods that only the parameter's path has.
func TestMux_Finds(t *testing.T) {
	t.Parallel()
	m := newMux(func(w http.ResponseWriter, _ *http.Request, err error) {
		var e *protocol.Error
		require.ErrorAs(t, err, &e)
		w.WriteHeader(e.Code.Status())
	}, nil)
	say := func(what string, names ...string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprint(w, r.Method, " ", what)
			for _, name := range names {
				fmt.Fprint(w, " ", r.PathValue(name))
			}
		})
	}
	m.handle("GET", "/", say("front"))
	m.handle("GET", "/a/:id", say("one", "id"))
	m.handle("DELETE", "/a/:name", say("other", "name"))
	m.handle("GET", "/a/all", say("all"))
	m.handle("POST", "/a/:id/b/:n", say("deep", "id", "n"))
	m.handle("GET", "/tree/*path", say("tree"))
	for _, tt := range []struct{ method, path, answer, allow string }{
		{"GET", "/", "200 GET front", ""},
		{"GET", "/a/x", "200 GET one x", ""},
		{"HEAD", "/a/x", "200 HEAD one x", ""},
		{"DELETE", "/a/x", "200 DELETE other x", ""},
		{"PUT", "/a/x", "405 ", "DELETE, GET, HEAD"},
		{"PROPFIND", "/a/x", "405 ", "DELETE, GET, HEAD"},
		{"GET", "/a/all", "200 GET all", ""},
		{"DELETE", "/a/all", "405 ", "GET, HEAD"},
		{"POST", "/a/all/b/7", "200 POST deep all 7", ""},
		{"GET", "/a/x/b/7", "405 ", "POST"},
		{"GET", "/tree/x/y", "200 GET tree", ""},
		{"POST", "/tree/x/y", "405 ", "GET, HEAD"},
		{"GET", "/a", "404 ", ""},
		{"GET", "/a/x/b", "404 ", ""},
	} {
		w := httptest.NewRecorder()
		m.ServeHTTP(w, httptest.NewRequest(tt.method, tt.path, nil))
		require.Equal(t, tt.answer, fmt.Sprint(w.Code, " ", w.Body), "%s %s", tt.method, tt.path)
		require.Equal(t, tt.allow, w.Header().Get("Allow"), "%s %s", tt.method, tt.path)
	}
}

// A panic is answered without its cause, and logged without what a path may have of secrets.
func TestMux_Panic(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	m := newMux(func(w http.ResponseWriter, _ *http.Request, err error) { fmt.Fprint(w, err) }, nil)
	w := httptest.NewRecorder()
	func() {
		defer m.recover(w, httptest.NewRequest("GET", "/confirm/bid/one-time-token-of-a-mail", nil), slog.New(slog.NewTextHandler(&log, nil)))
		panic("cause")
	}()
	require.NotContains(t, w.Body.String(), "cause")
	require.Contains(t, log.String(), "cause")
	require.Contains(t, log.String(), "path=/confirm/bid/…")
	require.NotContains(t, log.String(), "token")
}
