package wellknown

import (
	"context"
	"encoding/xml"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/protocol"
	"stoa/protocol/must"
)

// site is a node with as many profiles and posts as it is told, numbered without
// gaps but for every seventh post, which is hidden.
type site struct {
	agents *agents
	size   int64
	posts  int64
	asked  int
}

func (s *site) Size(context.Context) (int64, int64, error) { return s.size, s.posts, nil }
func (s *site) Pages() []string                            { return []string{"/", "/agents", "/board"} }

var changed = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func (s *site) Agents(_ context.Context, after, upTo int64) (list []Location, err error) {
	s.asked++
	for n := after + 1; n <= min(upTo, s.size); n++ {
		list = append(list, Location{"/@" + s.handle(n), changed})
	}
	return list, nil
}

func (s *site) Posts(_ context.Context, after, upTo int64) (list []Location, err error) {
	s.asked++
	for n := after + 1; n <= min(upTo, s.posts); n++ {
		if n%7 != 0 {
			list = append(list, Location{"/board/post_" + strconv.FormatInt(n, 10), changed})
		}
	}
	return list, nil
}

func (s *site) handle(n int64) string {
	if s.agents != nil && n <= 2 {
		return []string{"asha", "ravi"}[n-1]
	}
	return fmt.Sprintf("agent-%d", n)
}

func (s *site) Profiles(_ context.Context, after, upTo int64) (list []protocol.Profile, err error) {
	s.asked++
	for n := after + 1; n <= min(upTo, s.size); n++ {
		p := protocol.Profile{Handle: s.handle(n), ProfileDraft: protocol.ProfileDraft{Name: "Agent", Kind: protocol.Person},
			Interfaces: protocol.Interfaces{AgentCard: base + "/a2a/" + s.handle(n) + "/agent-card.json"}}
		if s.agents != nil {
			if known, ok := s.agents.profiles[p.Handle]; ok {
				known.Interfaces.AgentCard = p.Interfaces.AgentCard
				p = known
			}
		}
		list = append(list, p)
	}
	return list, nil
}

// large is the documents of a node of that size.
func large(t testing.TB, s *site, host string) http.Handler {
	t.Helper()
	u := must.Get(url.Parse(host))(t)
	a := &agents{}
	w := must.Get(New(Config{Base: u, Directory: a, Keys: a, Site: s, Doors: protocol.HTTP | protocol.MCP, Version: "1", MCPVersions: []string{"2026-07-28"},
		Signal: "search=yes, ai-train=no"}))(t)
	mux := http.NewServeMux()
	for _, r := range w.Routes() {
		if r.Method == http.MethodGet {
			mux.Handle("GET "+strings.ReplaceAll(r.Pattern, ":hash", "{hash}"), r.Handler)
		}
	}
	return mux
}

type sitemapXML struct {
	XMLName xml.Name
	Maps    []struct {
		Loc string `xml:"loc"`
	} `xml:"sitemap"`
	URLs []struct {
		Loc     string `xml:"loc"`
		Lastmod string `xml:"lastmod"`
	} `xml:"url"`
}

func readSitemap(t *testing.T, h http.Handler, target string) sitemapXML {
	t.Helper()
	rec := get(h, strings.TrimPrefix(target, base))
	require.Equal(t, http.StatusOK, rec.Code, target)
	require.Less(t, rec.Body.Len(), 50<<20)
	var m sitemapXML
	require.NoError(t, xml.Unmarshal(rec.Body.Bytes(), &m))
	require.Equal(t, "http://www.sitemaps.org/schemas/sitemap/0.9", m.XMLName.Space)
	return m
}

// sitemaps.org 0.9: a walk from the index finds every page once, no file has
// more than 50,000 addresses, and every address is next to or below its map.
func TestSitemap_Walk(t *testing.T) {
	t.Parallel()
	h := large(t, &site{size: 2*sitemapPart + 1, posts: 3 * sitemapPart}, base)
	index := readSitemap(t, h, "/sitemap.xml")
	require.Equal(t, "sitemapindex", index.XMLName.Local)
	require.Len(t, index.Maps, 1+3+3)
	found := map[string]bool{}
	for _, m := range index.Maps {
		part := readSitemap(t, h, m.Loc)
		require.Equal(t, "urlset", part.XMLName.Local)
		require.LessOrEqual(t, len(part.URLs), 50_000)
		for _, u := range part.URLs {
			require.False(t, found[u.Loc], u.Loc)
			found[u.Loc] = true
			require.True(t, strings.HasPrefix(u.Loc, base+"/"), u.Loc)
			if u.Lastmod != "" {
				at := must.Get(time.Parse(time.RFC3339, u.Lastmod))(t)
				require.Equal(t, changed, at.UTC())
			}
		}
	}
	posts := 3 * sitemapPart
	require.Len(t, found, 3+2*sitemapPart+1+posts-posts/7)
	require.True(t, found[base+"/board/post_1"] && found[base+"/@agent-5001"] && !found[base+"/board/post_7"])
}

func TestSitemap_UnknownParts(t *testing.T) {
	t.Parallel()
	h := large(t, &site{size: 10, posts: 0}, base)
	for _, query := range []string{
		"posts=1", "agents=0", "agents=2", "agents=-1", "agents=01", "agents=x", "agents=99999999999999999999", "agents", "part=all", "x=1",
		"agents=1&posts=1", "%zz",
	} {
		require.Equal(t, http.StatusNotFound, get(h, "/sitemap.xml?"+query).Code, query)
		require.Equal(t, http.StatusNotFound, get(h, "/.well-known/ai-catalog.json?"+strings.ReplaceAll(query, "agents=2", "posts=2")).Code, query)
	}
}

// The index stays within 50,000 parts; it leaves out the oldest posts.
func TestSitemap_Bounded(t *testing.T) {
	t.Parallel()
	h := large(t, &site{size: 1 << 40, posts: 1 << 40}, base)
	index := readSitemap(t, h, "/sitemap.xml")
	require.LessOrEqual(t, len(index.Maps), sitemapsMost)
	require.Equal(t, fmt.Sprintf("%s/sitemap.xml?posts=%d", base, divide(1<<40, sitemapPart)), index.Maps[len(index.Maps)-1].Loc)
}

// A part is made once in ten minutes, and one at a time.
func TestParts(t *testing.T) {
	t.Parallel()
	s := &site{size: 10, posts: 10}
	h := large(t, s, base)
	for range 5 {
		require.Equal(t, http.StatusOK, get(h, "/sitemap.xml?posts=1").Code)
	}
	require.Equal(t, 1, s.asked)

	p := newParts()
	for i := range 3 * partsMax {
		must.Get(p.get(t.Context(), strconv.Itoa(i), func(context.Context) ([]byte, error) { return nil, nil }))(t)
	}
	require.LessOrEqual(t, p.kept.Len(), partsMax)

	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := p.get(t.Context(), "slow", func(context.Context) ([]byte, error) {
		require.ErrorIs(t, must.Err(p.get(ended, "another", func(context.Context) ([]byte, error) { panic("beside the first") })), context.Canceled)
		return nil, fmt.Errorf("no luck")
	})
	require.EqualError(t, err, "no luck")
	_, ok := p.kept.Get("slow", time.Now())
	require.False(t, ok, "failures are not kept")
}

// RFC 9309 §2.2: rules of one group, and the lists after it.
func TestRobots(t *testing.T) {
	t.Parallel()
	lines := strings.Split(get(large(t, &site{}, base), "/robots.txt").Body.String(), "\n")
	require.Equal(t, []string{"User-agent: *", "Content-Signal: search=yes, ai-train=no"}, lines[:2])
	require.Contains(t, lines, "Disallow: /api/public/threads/")
	require.Contains(t, lines, "Sitemap: "+base+"/sitemap.xml")
	require.Contains(t, lines, "Agentmap: "+base+"/.well-known/ai-catalog.json")
}

// RFC 9116 §2.5: required fields once, the optional ones we give, no signature.
func TestSecurityTxt(t *testing.T) {
	t.Parallel()
	_, h := node(t)
	rec := get(h, "/.well-known/security.txt")
	fields := map[string]string{}
	for line := range strings.SplitSeq(strings.TrimSuffix(rec.Body.String(), "\n"), "\n") {
		name, value, ok := strings.Cut(line, ": ")
		require.True(t, ok, line)
		require.NotContains(t, fields, name)
		fields[name] = value
	}
	require.Equal(t, "text/plain; charset=utf-8", rec.Header().Get("Content-Type"))
	require.Equal(t, "mailto:security@n1.example", fields["Contact"])
	require.Equal(t, base+"/.well-known/security.txt", fields["Canonical"])
	require.Equal(t, "https://n1.example/policy", fields["Policy"])
	expires := must.Get(time.Parse(time.RFC3339, fields["Expires"]))(t)
	require.True(t, expires.After(time.Now()) && expires.Before(time.Now().AddDate(1, 0, 0)))

	u := must.Get(url.Parse(base))(t)
	w := must.Get(New(Config{Base: u, Directory: &agents{}, Keys: &agents{}}))(t)
	for _, r := range w.Routes() {
		require.NotEqual(t, "/.well-known/security.txt", r.Pattern)
		require.NotEqual(t, sitemapPath, r.Pattern)
	}
}

// RFC 9727: every API of the node is an item and has a description; each link
// is on this node.
func TestAPICatalog(t *testing.T) {
	t.Parallel()
	u := must.Get(url.Parse(base))(t)
	a := &agents{}
	w := must.Get(New(Config{Base: u, Directory: a, Keys: a, Doors: protocol.HTTP | protocol.MCP | protocol.A2A,
		Feeds: []Feed{{"/feed.atom", "application/atom+xml", "The feed"}}}))(t)
	rec := httptest.NewRecorder()
	w.serve(w.apiCatalog).ServeHTTP(rec, httptest.NewRequest(http.MethodGet, base+"/.well-known/api-catalog", nil))
	require.Equal(t, `</.well-known/api-catalog>; rel="api-catalog"`, rec.Header().Get("Link"))
	body := rec.Body.String()
	for _, part := range []string{
		`"anchor":"` + base + `/.well-known/api-catalog","item":[`, `{"href":"` + base + `/api/public/"}`, `{"href":"` + base + `/mcp/public"}`,
		`{"href":"` + base + `/a2a/"}`, `{"href":"` + base + `/ard"}`, `{"href":"` + base + `/feed.atom","type":"application/atom+xml","title":"The feed"}`,
		`"service-desc":[{"href":"` + base + `/openapi.json"`, `"status":[{"href":"` + base + `/healthz"`, `"service-meta":[{"href":"` + base +
			`/mcp/public/server-card"`,
	} {
		require.Contains(t, body, part)
	}
}
