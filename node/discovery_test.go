package node_test

import (
	"context"
	"encoding/json"
	"encoding/xml"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/node"
	"stoa/node/nodetest"
	"stoa/protocol"
	"stoa/storage"
)

// A crawler that begins at robots.txt finds every profile and post of the node,
// and every address it is given answers.
func TestCrawl(t *testing.T) {
	t.Parallel()
	nodetest.Any(t, func(t *testing.T, change func(*node.Config)) {
		h := nodetest.New(t, change)
		h.Hosted("asha")
		post := nodetest.As[protocol.Post](h.Ask("POST", "/api/public/board", nodetest.GoodPost, "Proof-Of-Work", h.Proof("board")))
		require.NoError(t, h.DB.Numbered(t.Context()))

		robots := h.Ask("GET", "/robots.txt", "").Body.String()
		_, at, ok := strings.Cut(robots, "Sitemap: "+h.Base)
		require.True(t, ok, robots)
		at, _, _ = strings.Cut(at, "\n")
		type list struct {
			Maps []string `xml:"sitemap>loc"`
			URLs []string `xml:"url>loc"`
		}
		read := func(path string) (l list) {
			a := h.Ask("GET", path, "")
			require.Equal(t, 200, a.Code, path)
			require.NoError(t, xml.Unmarshal(a.Body.Bytes(), &l))
			return l
		}
		var found []string
		for _, part := range read(at).Maps {
			found = append(found, read(strings.TrimPrefix(part, h.Base)).URLs...)
		}
		require.Contains(t, found, h.Base+"/@asha")
		require.Contains(t, found, h.Base+"/board/"+post.ID)
		for _, u := range found {
			require.Equal(t, 200, h.Ask("GET", strings.TrimPrefix(u, h.Base), "", "Accept", "text/html").Code, u)
		}

		require.NoError(t, h.DB.Write(context.Background(), func(ctx context.Context, tx *storage.Tx) error {
			return tx.Posts().SetState(ctx, post.ID, protocol.Hidden, "test")
		}))
		restart(h, change)
		require.NotContains(t, h.Ask("GET", "/sitemap.xml?posts=1", "").Body.String(), post.ID)
	})
}

// What the site map of the service lists as a file without parameters is there.
func TestSiteFiles_Answer(t *testing.T) {
	t.Parallel()
	h := nodetest.New(t)
	for _, f := range node.SiteFiles() {
		if f.Kind != "endpoint" && !strings.Contains(f.Path, "{") {
			require.Equal(t, 200, h.Ask("GET", f.Path, "").Code, f.Path)
		}
	}
	card := h.Ask("GET", protocol.MCPPath+"/server-card", "")
	require.Equal(t, "application/mcp-server-card+json", card.Header().Get("Content-Type"))
}

// Every link of the API catalog that is a document of this node answers.
func TestAPICatalog_LinksAnswer(t *testing.T) {
	t.Parallel()
	h := nodetest.New(t)
	var catalog struct{ Linkset []map[string]json.RawMessage }
	h.Ask("GET", "/.well-known/api-catalog", "").Into(&catalog)
	links := 0
	for _, context := range catalog.Linkset {
		for rel, raw := range context {
			if rel == "anchor" || rel == "item" {
				continue
			}
			var targets []struct{ Href, Type string }
			require.NoError(t, json.Unmarshal(raw, &targets))
			for _, target := range targets {
				a := h.Ask("GET", strings.TrimPrefix(target.Href, h.Base), "", "Accept", target.Type)
				require.Equal(t, 200, a.Code, target.Href)
				media, _, _ := strings.Cut(a.Header().Get("Content-Type"), ";")
				require.Equal(t, media, strings.TrimSpace(target.Type), target.Href)
				links++
			}
		}
	}
	require.Greater(t, links, 8)
	var items []struct{ Href, Type string }
	require.NoError(t, json.Unmarshal(catalog.Linkset[0]["item"], &items))
	feeds := 0
	for _, item := range items {
		if item.Type != "" {
			a := h.Ask("GET", strings.TrimPrefix(item.Href, h.Base), "")
			require.Equal(t, 200, a.Code, item.Href)
			require.Contains(t, a.Header().Get("Content-Type"), item.Type)
			feeds++
		}
	}
	require.Equal(t, 4, feeds, "the feed and the board, as Atom and as JSON")
}
