package web

import (
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/protocol"
)

func TestAccepted(t *testing.T) {
	t.Parallel()
	thing := page{twin: protocol.GetBoardPost.Operation, activity: "/ap/posts/{id}"}
	listing := page{twin: protocol.ReadBoard.Operation}
	text := page{text: (*Web).about}
	const browser = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8"
	for _, tt := range []struct {
		page   page
		accept string
		want   shape
	}{
		{thing, browser, hypertext},
		{thing, "", hypertext},
		{thing, "*/*", hypertext},
		{thing, "image/png", hypertext},
		{thing, "application/activity+json", activityJSON},
		{thing, `application/ld+json; profile="https://www.w3.org/ns/activitystreams"`, activityJSON},
		{thing, `application/activity+json, application/ld+json; profile="https://www.w3.org/ns/activitystreams", text/html;q=0.1`, activityJSON},
		{thing, "text/html, application/activity+json;q=0.5", hypertext},
		{thing, "application/activity+json;q=0, */*", hypertext},
		{thing, "application/json", plainJSON},
		{thing, "application/json, text/plain, */*", plainJSON},
		{thing, "application/*", hypertext},
		{thing, "application/activity+json;q=abc", hypertext},
		{thing, "application/activity+json;q=NaN", hypertext},
		{thing, "text/html;q=NaN, application/json", plainJSON},
		{listing, "application/activity+json", hypertext},
		{listing, "application/json", plainJSON},
		{listing, "application/json;q=0.9, text/html", hypertext},
		{text, browser, hypertext},
		{text, "*/*", plainText},
		{text, "", plainText},
		{text, "application/xhtml+xml", hypertext},
		{text, "text/html;q=0, */*", plainText},
	} {
		r := httptest.NewRequest("GET", "/", nil)
		r.Header.Set("Accept", tt.accept)
		require.Equal(t, tt.want, accepted(r, tt.page), "%s", tt.accept)
	}
}
