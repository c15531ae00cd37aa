package web_test

import (
	"image"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/node"
	"stoa/node/nodetest"
)

// TestManifest: a phone finds what it needs to put the node on its home screen, in its language.
func TestManifest(t *testing.T) {
	t.Parallel()
	h := nodetest.New(t, func(c *node.Config) { c.Name = "Stoa of Bengaluru" })
	d := open(h, "/", 200)
	path := nodetest.Attr(d.Find("link", "rel", "manifest"), "href")
	require.Equal(t, "/manifest.webmanifest", path)
	a := h.Ask("GET", path, "").Is(200)
	head := a.Header()
	require.Equal(t, []string{"application/manifest+json", "public, max-age=3600"}, []string{head.Get("Content-Type"), head.Get("Cache-Control")})
	require.Contains(t, head.Values("Vary"), "Accept-Language")
	require.Equal(t, 304, h.Ask("GET", path, "", "If-None-Match", head.Get("ETag")).Code)
	type manifest struct {
		Name       string
		ShortName  string `json:"short_name"`
		StartURL   string `json:"start_url"`
		Theme      string `json:"theme_color"`
		Background string `json:"background_color"`
		Lang       string
		Icons      []struct{ Src, Sizes, Type, Purpose string }
		Shortcuts  []struct{ Name, URL string }
	}
	m := nodetest.As[manifest](a)
	require.Equal(t, []string{"Stoa of Bengaluru", "Stoa of Beng …", "/", "en"}, []string{m.Name, m.ShortName, m.StartURL, m.Lang})
	purposes := map[string]bool{}
	for _, i := range m.Icons {
		purposes[i.Purpose] = true
		icon := h.Ask("GET", i.Src, "").Is(200)
		require.Equal(t, i.Type, icon.Header().Get("Content-Type"))
		if i.Type == "image/png" {
			size, _, err := image.DecodeConfig(icon.Body)
			require.NoError(t, err)
			require.Equal(t, map[string]int{"256x256": 256, "512x512": 512}[i.Sizes], size.Width)
			require.Equal(t, size.Width, size.Height)
		}
	}
	require.Equal(t, map[string]bool{"any": true, "maskable": true}, purposes)
	h.Ask("GET", nodetest.Attr(d.Find("link", "rel", "apple-touch-icon"), "href"), "").Is(200)
	require.Len(t, m.Shortcuts, 1)
	require.Equal(t, "/account", m.Shortcuts[0].URL)
	require.Contains(t, []int{http.StatusOK, http.StatusSeeOther}, h.Ask("GET", "/account", "", "Accept", nodetest.Accept).Code)
	hindi := nodetest.As[manifest](h.Ask("GET", path, "", "Accept-Language", "hi"))
	require.Equal(t, []string{"hi", "आपका खाता"}, []string{hindi.Lang, hindi.Shortcuts[0].Name})

	css := h.Ask("GET", nodetest.Attr(d.Find("link", "rel", "stylesheet"), "href"), "").Body.String()
	papers := regexp.MustCompile(`--paper: (#[0-9a-f]{6});`).FindAllStringSubmatch(css, -1)
	require.Len(t, papers, 2)
	require.Equal(t, []string{papers[0][1], papers[0][1]}, []string{m.Theme, m.Background})
	for i, scheme := range []string{"light", "dark"} {
		colour := d.Find("meta", "media", "(prefers-color-scheme: "+scheme+")")
		require.Equal(t, []string{"theme-color", papers[i][1]}, []string{nodetest.Attr(colour, "name"), nodetest.Attr(colour, "content")})
	}
	require.True(t, strings.Contains(h.Ask("GET", "/api/public/site-map", "").Body.String(), path))
}

// Servers of the fediverse show the node's own actors with its picture; they take no SVG.
func TestActors_Picture(t *testing.T) {
	t.Parallel()
	h := nodetest.New(t)
	h.Hosted("asha")
	for _, path := range []string{"/ap/node", "/ap/board", "/ap/feed", "/ap/anon"} {
		var actor struct {
			Icon struct{ Type, MediaType, URL string }
		}
		h.Ask("GET", path, "").Into(&actor)
		require.Equal(t, []string{"Image", "image/png"}, []string{actor.Icon.Type, actor.Icon.MediaType}, path)
		a := h.Ask("GET", strings.TrimPrefix(actor.Icon.URL, h.Base), "")
		require.Equal(t, []any{200, "image/png"}, []any{a.Code, a.Header().Get("Content-Type")}, path)
		size, kind, err := image.DecodeConfig(a.Body)
		require.NoError(t, err)
		require.Equal(t, []any{"png", 256, 256}, []any{kind, size.Width, size.Height})
	}
	require.NotContains(t, h.Ask("GET", "/ap/agents/asha", "").Body.String(), `"icon"`)
}
