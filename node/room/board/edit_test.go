package board_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/identity/key"
	"stoa/node/nodetest"
	"stoa/protocol"
)

// TestEdit: the author of a post changes it over HTTP, and the text of today is on the node that follows; nobody else changes it.
func TestEdit(t *testing.T) {
	t.Parallel()
	home, away := nodetest.Start(t), nodetest.Start(t)
	ada := home.Hosted("ada")
	eve := home.Hosted("eve")
	require.NoError(t, away.Admin().Follow(t.Context(), home.Base))
	post := func(title, body, more string) string {
		return fmt.Sprintf(`{"kind":"requirement","title":%q,"body":%q,"tags":["paper"]%s}`, title, body, more)
	}
	p := nodetest.As[protocol.Post](home.AskSigned(ada, "POST", "/api/public/board", post("Paper", "200 sheets of zinnia paper", "")).Is(201))
	there := func(words string) []protocol.Post {
		return nodetest.As[protocol.Page[protocol.Post]](away.Ask("GET", "/api/public/board?q="+words, "")).Items
	}
	require.Eventually(t, func() bool { return len(there("zinnia")) == 1 }, time.Minute, 50*time.Millisecond)

	at := "/api/public/board/" + p.ID
	home.Ask("PUT", at, post("Paper", "stolen", "")).Is(401)
	for name, c := range map[string]struct {
		by     key.Pair
		body   string
		status int
		says   string
	}{
		"another agent":  {eve, post("Paper", "stolen", ""), 403, "only the verified author"},
		"another kind":   {ada, strings.Replace(post("Paper", "x", ""), "requirement", "offer", 1), 422, "cannot change"},
		"another parent": {ada, post("Paper", "x", `,"inReplyTo":"`+p.ID+`"`), 422, "cannot change"},
		"no text":        {ada, post("Paper", "", ""), 422, "/body"},
	} {
		require.Contains(t, home.AskSigned(c.by, "PUT", at, c.body).Is(c.status).Body.String(), c.says, name)
	}
	for range 2 { // the same text again changes nothing
		home.AskSigned(ada, "PUT", at, post("Much paper", "300 sheets of marigold paper", "")).Is(200).Into(&p)
		require.Equal(t, []any{"Much paper", 1}, []any{p.Title, p.Revisions})
		require.NotNil(t, p.EditedAt)
	}
	was := nodetest.As[protocol.Revisions](home.Ask("GET", at+"/revisions", ""))
	require.Len(t, was.Items, 1)
	require.Equal(t, "200 sheets of zinnia paper", was.Items[0].Body)

	require.Eventually(t, func() bool { return len(there("marigold")) == 1 }, time.Minute, 50*time.Millisecond)
	require.Empty(t, there("zinnia"))
	copied := there("marigold")[0]
	require.Equal(t, []any{"Much paper", 1, p.URI, strings.TrimPrefix(home.Base, "http://")}, []any{copied.Title, copied.Revisions, copied.URI, *copied.Node})
	require.NotEqual(t, 200, away.AskSigned(ada, "PUT", "/api/public/board/"+copied.ID, post("Paper", "x", "")).Code)
	require.Contains(t, home.Ask("GET", "/api/public/feed", "").Body.String(), "Requirement: Much paper")
	require.Contains(t, home.Ask("GET", "/board/"+p.ID, "").Body.String(), "marigold")

	home.AskSigned(ada, "DELETE", at, "").Is(204)
	home.Ask("GET", at+"/revisions", "").Is(410)
	require.Eventually(t, func() bool { return len(there("marigold")) == 0 }, time.Minute, 50*time.Millisecond)
	require.NotContains(t, away.Ask("GET", "/api/public/board/"+copied.ID+"/revisions", "").Body.String(), "zinnia")
}
