package web_test

import (
	"encoding/json"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/node/nodetest"
	"stoa/protocol"
)

// TestCurrentPage: a page as data holds what its operation gives.
func TestCurrentPage(t *testing.T) {
	t.Parallel()
	h, _, post, _ := village(t)
	type current struct {
		Path, Title, Kind string
		Data              json.RawMessage
		Untrusted         bool `json:"untrusted_content"`
	}
	get := func(path string) (c current) {
		a := h.Ask("GET", "/api/public/page?path="+url.QueryEscape(path), "")
		require.Equal(t, 200, a.Code, "%s: %s", path, a.Body)
		a.Into(&c)
		require.True(t, c.Untrusted)
		require.NotEmpty(t, c.Title)
		return c
	}
	for path, want := range map[string]struct{ kind, twin string }{
		"/agents":                        {"agents", "/api/public/agents"},
		"/agents?kind=business":          {"agents", "/api/public/agents?kind=business"},
		"/board":                         {"board", "/api/public/board"},
		"/board?kind=offer&tag=%23paper": {"board", "/api/public/board?kind=offer&tag=paper"},
		"/board/" + post.ID:              {"post", "/api/public/board/" + post.ID},
		"/feed?types=merchant_joined":    {"feed", "/api/public/feed?types=merchant_joined"},
		"/site-map":                      {"site-map", "/api/public/site-map"},
		"/@asha":                         {"person", "/api/public/agents/asha"},
		"/@rao":                          {"business", "/api/public/merchants/rao"},
		"/people":                        {"people", "/api/public/people"},
		"/merchants":                     {"merchants", "/api/public/merchants"},
		"/moderation":                    {"moderation", "/api/public/moderation-log"},
	} {
		c := get(path)
		require.Equal(t, want.kind, c.Kind)
		require.JSONEq(t, h.Ask("GET", want.twin, "").Body.String(), string(c.Data), path)
	}
	home := get("/")
	require.Equal(t, "home", home.Kind)
	require.Contains(t, string(home.Data), post.ID)
	require.Contains(t, string(home.Data), `"census":{"listed":2,`)
	require.Contains(t, open(h, "/", 200).Text(), "2 listed")
	require.Equal(t, home, nodetest.As[current](h.Ask("GET", "/api/public/page", "")))
	require.JSONEq(t, `{"code":"gone","status":410,"title":"No longer public","advice":"`+protocol.Gone.Advice()+`"}`, string(get("/problems/gone").Data))
	require.Equal(t, "/board?kind=offer&tag=paper", get("/board?kind=offer&tag=%23paper&utm_source=mail").Path, "as the page reads it")

	require.NoError(t, h.Admin().Operate(t.Context(), protocol.RemovePost.Operation, protocol.Decision{ID: post.ID, Reason: "spam"}, nil))
	for path, code := range map[string]protocol.Code{
		"/nothing": protocol.NotFound, "/@nobody": protocol.NotFound, "/@": protocol.NotFound, "/board/": protocol.NotFound, "/board/x": protocol.NotFound,
		"/api/public/board": protocol.NotFound, "//evil.example/": protocol.NotFound, "/board/" + post.ID: protocol.Gone, "/problems/none": protocol.NotFound,
		"/board?kind=rumour": protocol.Validation, "/board?after=x": protocol.InvalidCursor, "/@asha?x=1": protocol.Validation,
		"board": protocol.Validation, "/%zz": protocol.Validation,
	} {
		require.Equal(t, code, h.Ask("GET", "/api/public/page?path="+url.QueryEscape(path), "").Problem().Code, path)
	}
}
