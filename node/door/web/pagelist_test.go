package web_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/node/nodetest"
)

func TestPages_Filters(t *testing.T) {
	t.Parallel()
	h := nodetest.New(t)
	ctx := context.Background()
	for handle, rest := range map[string]string{
		"asha": `"kind":"person","regions":["IN-KA"],"tags":["paper"],"capabilities":[{"id":"bind","name":"Bind","description":"Books"}]`,
		"rao":  `"kind":"business","regions":["IN-TN"]`,
	} {
		h.PutProfile([]byte(`{"handle":"` + handle + `","name":"Name of ` + handle + `",` + rest + `}`))
	}
	secret, _, err := h.Admin().CreateToken(ctx, "asha", "test", time.Hour)
	require.NoError(t, err)
	mine := `{"kind":"ability","title":"Mine","body":"binding","tags":["paper"]}`
	require.Equal(t, 201, h.Ask("POST", "/api/public/board", mine, "Authorization", "Bearer "+secret).Code)
	h.Post("Looms")

	for path, want := range map[string][]string{
		"/board":                                       {"Looms", "Mine"},
		"/board?kind=&tag=&q=&author=":                 {"Looms", "Mine"},
		"/board?kind=offer":                            {"Looms"},
		"/board?q=binding":                             {"Mine"},
		"/board?tag=%23Paper":                          {"Mine"},
		"/board?author=@asha":                          {"Mine"},
		"/board?verifiedOnly=true":                     {"Mine"},
		"/board?verifiedOnly=true&kind=offer":          {},
		"/agents?kind=person":                          {"Name of asha"},
		"/agents?region=in-tn":                         {"Name of rao"},
		"/agents?region=Tamil+nadu":                    {"Name of rao"},
		"/agents?region=karnataka":                     {"Name of asha"},
		"/agents?region=India":                         {"Name of asha", "Name of rao"},
		"/agents?region=IN&capability=bind&tag=paper":  {"Name of asha"},
		"/agents?hasIdentity=false":                    {"Name of asha", "Name of rao"},
		"/agents?hasIdentity=true":                     {},
		"/feed?types=merchant_joined":                  {"Name of rao joined."},
		"/feed?types=merchant_joined&types=board_post": {"Offer: Looms", "Ability: Mine", "Name of rao joined."},
	} {
		d := open(h, path, 200)
		require.ElementsMatch(t, want, listItems(d), path)
		if len(want) == 0 {
			require.Contains(t, d.Text(), "matches this", path)
		}
	}
	chosen := open(h, "/board?kind=offer&q=loom&verifiedOnly=true", 200)
	require.ElementsMatch(t, []string{"loom", "offer", "true", "question"}, values(chosen), "the form shows what was asked, that of a post its usual kind")

	wrong := open(h, "/agents?region=Nowhere&q="+strings.Repeat("x", 201)+"&limit=0&colour=red", 422)
	require.Contains(t, values(wrong), "Nowhere", "what was typed is kept")
	for _, said := range []string{"This is not a state or country such as Karnataka or India.", "At most 200 characters.", "limit: ", "colour: "} {
		require.Contains(t, wrong.Text(), said)
	}
	require.Equal(t, "true", nodetest.Attr(wrong.Find("input", "name", "region"), "aria-invalid"))
	require.Empty(t, listItems(wrong))
}

// TestPages_Findings: a search says what was probably meant, that not all words were found, and what to leave out, as links.
func TestPages_Findings(t *testing.T) {
	t.Parallel()
	h := nodetest.New(t)
	h.PutProfile([]byte(`{"handle":"city-plumbers","name":"City Plumbers","kind":"business","headline":"Leaks and drains"}`))
	for path, want := range map[string]struct {
		found []string
		says  []string
		links []string
	}{
		"/merchants?q=plumbres":                 {[]string{"City Plumbers"}, []string{"Did you mean plumbers?"}, []string{"/merchants?q=plumbers"}},
		"/agents?q=plumbers+zzyzx":              {[]string{"City Plumbers"}, []string{"Nothing has all words", "zzyzx ✕"}, []string{"/agents?q=plumbers"}},
		"/merchants?q=plumbers&category=Books":  {nil, []string{"No merchant matches this.", "Category ✕"}, []string{"/merchants?q=plumbers"}},
		"/merchants?q=plumbers+under+500":       {nil, []string{"up to ₹500 ✕", "Price up to ✕"}, []string{"/merchants?q=plumbers"}},
		"/people?q=plumbers":                    {nil, []string{"Nobody matches this."}, nil},
		"/merchants?q=plumbers&near=12.9,77.6":  {nil, []string{"Near ✕"}, []string{"/merchants?q=plumbers"}},
		"/merchants?q=plumber&sort=new&limit=5": {[]string{"City Plumbers"}, nil, nil},
	} {
		d := open(h, path, 200)
		require.ElementsMatch(t, want.found, listItems(d), path)
		for _, said := range want.says {
			require.Contains(t, d.Text(), said, path)
		}
		var links []string
		for _, a := range d.All("a") {
			links = append(links, nodetest.Attr(a, "href"))
		}
		require.Subset(t, links, want.links, path)
	}
	hindi := h.Ask("GET", "/merchants?q=plumbres", "", "Accept", nodetest.Accept, "Accept-Language", "hi").Is(200).Body.String()
	require.Contains(t, hindi, "क्या आपका मतलब")
	require.NotContains(t, hindi, "Did you mean")
}

// TestPages_LongQuery: what a reader sends too much of comes back once, in the
// field that was wrong, and fills no header.
func TestPages_LongQuery(t *testing.T) {
	t.Parallel()
	h := nodetest.New(t)
	long := strings.Repeat("a", 20_000)
	a := h.Ask("GET", "/board?q="+long, "", "Accept", nodetest.Accept).Is(422)
	require.Equal(t, 1, strings.Count(a.Body.String(), long))
	allowed := "/board?q=" + strings.Repeat("%F0%9F%93%9C", 150) + "&tag=paper"
	a = h.Ask("GET", allowed, "", "Accept", nodetest.Accept)
	require.Equal(t, 200, a.Code)
	require.NotContains(t, strings.Join(a.Header().Values("Link"), ", "), "%F0")
	require.Contains(t, strings.Join(h.Ask("GET", "/board?tag=paper", "", "Accept", nodetest.Accept).Header().Values("Link"), ", "),
		"<"+h.Base+`/api/public/board?tag=paper>; rel="alternate"; type="application/json"`)
}

// TestPages_Paging walks the board by its links and meets every post once.
func TestPages_Paging(t *testing.T) {
	t.Parallel()
	h := nodetest.New(t)
	for i := range 45 {
		h.Post(fmt.Sprint("Post ", i))
	}
	met := map[string]int{}
	pages := 0
	for path := "/board?kind=offer&limit=20"; path != ""; pages++ {
		d := open(h, path, 200)
		for _, title := range listItems(d) {
			met[title]++
		}
		next := d.Find("a", "rel", "next")
		if next == nil {
			require.Contains(t, hrefs(d), "/board?kind=offer&limit=20", "and back to the beginning")
			break
		}
		path = nodetest.Attr(next, "href")
		require.Contains(t, path, "kind=offer", "the filter goes along")
		require.Equal(t, path, nodetest.Attr(d.Find("link", "rel", "next"), "href"))
	}
	require.Equal(t, 3, pages+1)
	require.Len(t, met, 45)
	for title, n := range met {
		require.Equal(t, 1, n, title)
	}
}

func TestPages_Empty(t *testing.T) {
	t.Parallel()
	h := nodetest.New(t)
	for path, says := range map[string]string{
		"/": "Nobody has posted yet.", "/board": "Nobody has posted yet.", "/agents": "No agent has a profile here yet.",
		"/people": "Nobody is listed here yet.", "/moderation": "Nothing was hidden or blocked yet.", "/merchants": "No merchant is listed here yet.",
		"/feed": "Nothing has happened yet.",
	} {
		d := open(h, path, 200)
		require.Contains(t, d.Text(), says)
		if path == "/" { // which begins with what to do
			continue
		}
		box := d.Find("div", "class", "nothing")
		next := (&nodetest.Page{T: t, Root: box}).All("a")
		require.Len(t, next, 1, "%s says what to do next", path)
		require.NotEqual(t, path, nodetest.Attr(next[0], "href"), path)
	}
}

// TestPages_Cards: a card begins with the name and what it is, then whether it is open; what this node has checked is last.
func TestPages_Cards(t *testing.T) {
	t.Parallel()
	h, _, _, _ := village(t)
	for path, want := range map[string][]string{
		"/merchants": {"said", "meta", "meta marks"},
		"/people":    {"said", "meta marks"},
		"/agents":    {"said", "meta", "meta marks"},
	} {
		card := (&nodetest.Page{T: t, Root: open(h, path, 200).Find("article", "class", "card")})
		var parts []string
		for n := range card.Root.ChildNodes() {
			if class := nodetest.Attr(n, "class"); class != "" {
				parts = append(parts, class)
			}
		}
		require.Equal(t, want, parts, path)
		require.Equal(t, "h2", card.Nodes()[1].Data, "%s: the name is first", path)
	}
	shop := strings.Join(strings.Fields(nodetest.TextOf(open(h, "/merchants", 200).Find("article", "class", "card"))), " ")
	require.Regexp(t, `(open now +closes|closed now +opens) \w{3} \d+ \w{3}, \d\d:\d\d IST`, shop)
}
