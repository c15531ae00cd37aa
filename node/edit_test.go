package node_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/identity/httpsig"
	"stoa/identity/key"
	"stoa/node/nodetest"
	"stoa/protocol"
	"stoa/protocol/must"
)

// send sends a request to a node, signed unless pair is zero, and returns the status and the body of the answer.
func send(t *testing.T, n *nodetest.House, pair key.Pair, method, path, body string) (int, []byte) {
	t.Helper()
	r := must.Get(http.NewRequest(method, n.Base+path, strings.NewReader(body)))(t)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	if !pair.IsZero() {
		target := must.Get(httpsig.ParseTarget(n.Base))(t)
		require.NoError(t, httpsig.SignRequest(r, target, []byte(body), httpsig.SignOptions{Key: pair.Signer()}))
	}
	res := must.Get(http.DefaultClient.Do(r))(t)
	defer res.Body.Close()
	raw := must.Get(io.ReadAll(res.Body))(t)
	return res.StatusCode, raw
}

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
	status, raw := send(t, home, ada, "POST", "/api/public/board", post("Paper", "200 sheets of zinnia paper", ""))
	require.Equal(t, 201, status, string(raw))
	var p protocol.Post
	require.NoError(t, json.Unmarshal(raw, &p))
	there := func(words string) (items []protocol.Post) {
		var page protocol.Page[protocol.Post]
		_, raw := send(t, away, key.Pair{}, "GET", "/api/public/board?q="+words, "")
		require.NoError(t, json.Unmarshal(raw, &page))
		return page.Items
	}
	require.Eventually(t, func() bool { return len(there("zinnia")) == 1 }, 20*time.Second, 50*time.Millisecond)

	at := "/api/public/board/" + p.ID
	for name, c := range map[string]struct {
		by     key.Pair
		body   string
		status int
		says   string
	}{
		"a visitor":      {key.Pair{}, post("Paper", "stolen", ""), 401, ""},
		"another agent":  {eve, post("Paper", "stolen", ""), 403, "only the verified author"},
		"another kind":   {ada, strings.Replace(post("Paper", "x", ""), "requirement", "offer", 1), 422, "cannot change"},
		"another parent": {ada, post("Paper", "x", `,"inReplyTo":"`+p.ID+`"`), 422, "cannot change"},
		"no text":        {ada, post("Paper", "", ""), 422, "/body"},
	} {
		status, raw := send(t, home, c.by, "PUT", at, c.body)
		require.Equal(t, c.status, status, name+": "+string(raw))
		require.Contains(t, string(raw), c.says, name)
	}
	for range 2 { // the same text again changes nothing
		status, raw = send(t, home, ada, "PUT", at, post("Much paper", "300 sheets of marigold paper", ""))
		require.Equal(t, 200, status, string(raw))
		require.NoError(t, json.Unmarshal(raw, &p))
		require.Equal(t, []any{"Much paper", 1}, []any{p.Title, p.Revisions})
		require.NotNil(t, p.EditedAt)
	}
	var was protocol.Revisions
	_, raw = send(t, home, key.Pair{}, "GET", at+"/revisions", "")
	require.NoError(t, json.Unmarshal(raw, &was))
	require.Len(t, was.Items, 1)
	require.Equal(t, "200 sheets of zinnia paper", was.Items[0].Body)

	require.Eventually(t, func() bool { return len(there("marigold")) == 1 }, 20*time.Second, 50*time.Millisecond)
	require.Empty(t, there("zinnia"))
	copied := there("marigold")[0]
	require.Equal(t, []any{"Much paper", 1, p.URI, strings.TrimPrefix(home.Base, "http://")}, []any{copied.Title, copied.Revisions, copied.URI, *copied.Node})
	status, raw = send(t, away, ada, "PUT", "/api/public/board/"+copied.ID, post("Paper", "x", ""))
	require.NotEqual(t, 200, status, string(raw))
	_, raw = send(t, home, key.Pair{}, "GET", "/api/public/feed", "")
	require.Contains(t, string(raw), "Requirement: Much paper")
	_, raw = send(t, home, key.Pair{}, "GET", "/board/"+p.ID, "")
	require.Contains(t, string(raw), "marigold")

	status, raw = send(t, home, ada, "DELETE", at, "")
	require.Equal(t, 204, status, string(raw))
	status, _ = send(t, home, key.Pair{}, "GET", at+"/revisions", "")
	require.Equal(t, 410, status)
	require.Eventually(t, func() bool { return len(there("marigold")) == 0 }, 20*time.Second, 50*time.Millisecond)
	_, raw = send(t, away, key.Pair{}, "GET", "/api/public/board/"+copied.ID+"/revisions", "")
	require.NotContains(t, string(raw), "zinnia")
}
