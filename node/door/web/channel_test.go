package web_test

import (
	"encoding/json"
	"encoding/xml"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/node/nodetest"
	"stoa/protocol"
	"stoa/protocol/must"
)

// An atom is what a feed reader sees of an Atom document.
type atom struct {
	XMLName xml.Name `xml:"http://www.w3.org/2005/Atom feed"`
	ID      string   `xml:"id"`
	Title   string   `xml:"title"`
	Updated string   `xml:"updated"`
	Links   []struct {
		Rel  string `xml:"rel,attr"`
		Href string `xml:"href,attr"`
	} `xml:"link"`
	Entries []struct {
		ID      string `xml:"id"`
		Title   string `xml:"title"`
		Updated string `xml:"updated"`
		Content struct {
			Type string `xml:"type,attr"`
			Text string `xml:",innerxml"`
			Body string `xml:",chardata"`
		} `xml:"content"`
		Author     string `xml:"author>name"`
		URI        string `xml:"author>uri"`
		Categories []struct {
			Term string `xml:"term,attr"`
		} `xml:"category"`
		Links []struct {
			Rel  string `xml:"rel,attr"`
			Href string `xml:"href,attr"`
		} `xml:"link"`
	} `xml:"entry"`
}

func (a atom) link(rel string) string {
	for _, l := range a.Links {
		if l.Rel == rel {
			return l.Href
		}
	}
	return ""
}

// atom reads a channel and checks what RFC 4287 demands of each.
func readAtom(h *nodetest.House, path string) (a atom) {
	h.T.Helper()
	res := h.Ask("GET", path, "", "Accept", "*/*")
	require.Equal(h.T, 200, res.Code, "%s: %s", path, res.Body)
	require.Equal(h.T, "application/atom+xml; charset=utf-8", res.Header().Get("Content-Type"))
	require.Equal(h.T, "*", res.Header().Get("Access-Control-Allow-Origin"))
	d := xml.NewDecoder(strings.NewReader(res.Body.String()))
	require.NoError(h.T, d.Decode(&a))
	_, err := d.Token() // only the line's end after the root
	for err == nil {
		_, err = d.Token()
	}
	require.ErrorIs(h.T, err, io.EOF)
	require.NotEmpty(h.T, a.Title)
	require.Equal(h.T, a.ID, a.link("self"))
	require.NotEmpty(h.T, a.link("alternate"))
	must.Get(time.Parse(time.RFC3339, a.Updated))(h.T)
	ids := map[string]bool{}
	for _, e := range a.Entries {
		require.NotEmpty(h.T, e.Title)
		require.NotEmpty(h.T, e.Author)
		require.True(h.T, strings.HasPrefix(e.ID, "http"), e.ID)
		require.False(h.T, ids[e.ID], "%s twice", e.ID)
		ids[e.ID] = true
		require.Equal(h.T, "text", e.Content.Type)
		require.NotContains(h.T, e.Content.Text, "<")
		must.Get(time.Parse(time.RFC3339, e.Updated))(h.T)
		require.Equal(h.T, "alternate", e.Links[0].Rel)
	}
	return a
}

type jsonChannel struct {
	Version, Title, Description string
	HomePage                    string `json:"home_page_url"`
	FeedURL                     string `json:"feed_url"`
	NextURL                     string `json:"next_url"`
	Items                       []struct {
		ID, URL, Title string
		Text           string    `json:"content_text"`
		Published      time.Time `json:"date_published"`
		Authors        []struct{ Name, URL string }
		Tags           []string
		Stoa           struct {
			Untrusted bool `json:"untrusted_content"`
			Author    protocol.Author
		} `json:"_stoa"`
	}
}

func jsonFeed(h *nodetest.House, path string) (c jsonChannel) {
	h.T.Helper()
	res := h.Ask("GET", path, "")
	require.Equal(h.T, 200, res.Code, "%s: %s", path, res.Body)
	require.Equal(h.T, "application/feed+json; charset=utf-8", res.Header().Get("Content-Type"))
	d := json.NewDecoder(strings.NewReader(res.Body.String()))
	require.NoError(h.T, d.Decode(&c))
	require.Equal(h.T, "https://jsonfeed.org/version/1.1", c.Version)
	require.NotEmpty(h.T, c.Title)
	for _, i := range c.Items {
		require.True(h.T, i.Stoa.Untrusted)
		require.NotEmpty(h.T, i.Text)
		require.NotEmpty(h.T, i.Authors[0].Name)
	}
	return c
}

// TestChannels reads every channel of a node on which all texts are attacks.
func TestChannels(t *testing.T) {
	t.Parallel()
	h, texts, post, _ := village(t)
	board := readAtom(h, "/board.atom")
	require.Len(t, board.Entries, 3)
	require.Equal(t, h.Base+"/board", board.link("alternate"))
	var own atom
	for _, e := range board.Entries {
		if e.ID == post.URI {
			own.Entries = append(own.Entries, e)
		}
	}
	require.Len(t, own.Entries, 1)
	e := own.Entries[0]
	require.Equal(t, post.Title, e.Title)
	require.Equal(t, post.Body, e.Content.Body)
	require.Contains(t, texts, post.Body)
	require.Equal(t, post.Author.Name+" (unverified)", e.Author)
	require.Equal(t, post.URL, e.Links[0].Href)
	require.Equal(t, "offer", e.Categories[0].Term)
	require.Equal(t, "paper", e.Categories[1].Term)

	twin := jsonFeed(h, "/board.json")
	require.Len(t, twin.Items, 3)
	for i, item := range twin.Items {
		require.Equal(t, board.Entries[i].ID, item.ID)
		require.Equal(t, board.Entries[i].Title, item.Title)
		require.Equal(t, board.Entries[i].Content.Body, item.Text)
		require.Equal(t, board.Entries[i].Author, item.Authors[0].Name)
		require.NotContains(t, item.Authors[0].URL, "javascript")
	}

	require.Len(t, readAtom(h, "/feed.atom").Entries, 6, "three posts, a merchant and two items")
	require.Len(t, jsonFeed(h, "/feed.json?types=merchant_joined").Items, 1)
	require.Equal(t, h.Base+"/feed.json?types=merchant_joined", jsonFeed(h, "/feed.json?types=merchant_joined").FeedURL)
	require.Empty(t, readAtom(h, "/feed.atom?types=review").Entries)
	require.Equal(t, "1970-01-01T00:00:00Z", readAtom(h, "/feed.atom?types=review").Updated)
	require.Empty(t, readAtom(h, "/@asha/feed.atom").Entries)
	require.Equal(t, h.Base+"/@asha", jsonFeed(h, "/@asha/feed.json").HomePage)
}

// TestChannels_Selection: a channel takes the filters of its page, and says its
// own address, the page's and that of what is older.
func TestChannels_Selection(t *testing.T) {
	t.Parallel()
	h := nodetest.New(t)
	pair := h.Hosted("asha")
	for range 3 {
		require.Equal(t, 201, h.Signed(pair, `{"kind":"question","title":"Paper?","body":"Who has paper?","tags":["paper"]}`, nil).Code)
	}
	h.Post("Looms")
	for path, n := range map[string]int{
		"/board":                      4,
		"/board?tag=paper":            3,
		"/board?tag=%23paper":         3,
		"/board?author=asha":          3,
		"/board?verifiedOnly=true":    3,
		"/board?kind=offer":           1,
		"/board?q=looms":              1,
		"/board?q=looms&kind=ability": 0,
		"/board?limit=2":              2,
		"/@asha/feed":                 3,
		"/@asha/feed?kind=question":   3,
		"/@asha/feed?kind=offer":      0,
		"/feed":                       4,
	} {
		at, query, found := strings.Cut(path, "?")
		if found {
			query = "?" + query
		}
		require.Len(t, readAtom(h, at+".atom"+query).Entries, n, path)
		require.Len(t, jsonFeed(h, at+".json"+query).Items, n, path)
	}
	first := readAtom(h, "/board.atom?tag=paper&limit=2")
	require.Equal(t, h.Base+"/board.atom?tag=paper", first.ID, "one id, whatever page of it")
	require.Equal(t, h.Base+"/board?tag=paper", first.link("alternate"))
	rest := readAtom(h, strings.TrimPrefix(first.link("next"), h.Base))
	require.Len(t, rest.Entries, 1)
	require.Equal(t, first.ID, rest.ID)
	require.Empty(t, rest.link("next"))
	require.NotEqual(t, first.Entries[1].ID, rest.Entries[0].ID)
	require.Equal(t, h.Base+"/@asha", rest.Entries[0].URI)
	require.Equal(t, "Load", rest.Entries[0].Author)
	next := jsonFeed(h, "/board.json?limit=3").NextURL
	require.Len(t, jsonFeed(h, strings.TrimPrefix(next, h.Base)).Items, 1)

	page := open(h, "/board?tag=paper&limit=2", 200)
	require.Equal(t, "/board.atom?tag=paper", alternate(page, "application/atom+xml"))
	require.Equal(t, "/board.json?tag=paper", alternate(page, "application/feed+json"))
	require.Equal(t, "/@asha/feed.atom", alternate(open(h, "/@asha", 200), "application/atom+xml"))
	require.Equal(t, "/feed.atom", alternate(open(h, "/", 200), "application/atom+xml"))
}

func TestChannels_HTTP(t *testing.T) {
	t.Parallel()
	h := nodetest.New(t)
	h.PutProfile([]byte(`{"handle":"asha","name":"Asha","kind":"person"}`))
	h.Post("Looms")
	m := nodetest.As[protocol.SiteMap](h.Ask("GET", "/api/public/site-map", ""))
	listed := map[string]bool{}
	for _, e := range m.Items {
		listed[e.Path] = true
	}
	for _, path := range []string{"/feed", "/board", "/@asha/feed"} {
		for _, ending := range []string{".atom", ".json"} {
			require.True(t, listed[strings.Replace(path, "asha", "{handle}", 1)+ending], path)
			a := h.Ask("GET", path+ending, "").Is(200)
			require.Equal(t, "public, no-cache", a.Header().Get("Cache-Control"))
			same := h.Ask("GET", path+ending, "", "If-None-Match", a.Header().Get("ETag")).Is(304)
			require.Empty(t, same.Body.Bytes())
			require.Equal(t, a.Header().Get("ETag"), h.Ask("HEAD", path+ending, "").Header().Get("ETag"))
			refused := h.Ask("POST", path+ending, "")
			require.Equal(t, protocol.MethodNotAllowed, refused.Problem().Code)
			require.Equal(t, "GET, HEAD", refused.Header().Get("Allow"))
		}
	}
	require.Equal(t, 405, h.Ask("PROPFIND", "/feed.atom", "").Code)
	for path, code := range map[string]protocol.Code{
		"/@nobody/feed.atom": protocol.NotFound, "/nothing/feed.atom": protocol.NotFound, "/@asha/feed.rss": protocol.NotFound,
		"/feed.atom?types=gossip": protocol.Validation, "/board.json?tga=paper": protocol.Validation, "/@asha/feed.json?author=rao": protocol.Validation,
		"/board.atom?after=bogus": protocol.InvalidCursor, "/board.atom?q=%zz": protocol.InvalidRequest, "/board.atom?limit=101": protocol.Validation,
	} {
		require.Equal(t, code, h.Ask("GET", path, "").Problem().Code, path)
	}
}
