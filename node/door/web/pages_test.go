package web_test

import (
	"context"
	"encoding/json"
	"fmt"
	_ "image/png"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"

	"stoa/node"
	"stoa/node/door/web"
	"stoa/node/nodetest"
	"stoa/protocol"
	"stoa/protocol/must"
)

// open asks for a page as a browser does and checks what holds for every page.
func open(h *nodetest.House, path string, status int) *nodetest.Page {
	h.T.Helper()
	a := h.Ask("GET", path, "", "Accept", nodetest.Accept)
	require.Equal(h.T, status, a.Code, "%s: %s", path, a.Body)
	require.Equal(h.T, "text/html; charset=utf-8", a.Header().Get("Content-Type"), path)
	require.Contains(h.T, a.Header().Values("Vary"), "Accept")
	d := nodetest.ParsePage(h.T, path, a.Body.String())
	d.WellFormed()
	harmless(d, h.Base)
	return d
}

// village is a node with something on every page. Each text of it that anyone
// may write is attack with a number of its own, and all of them are returned.
func village(t *testing.T) (h *nodetest.House, texts []string, post, reply protocol.Post) {
	h = nodetest.New(t)
	attack := func(limit int) string {
		s := fmt.Sprintf(`<b onclick=x>%d</b><img src=x onerror=alert(1)>"'&lt;<script>alert(1)</script>`, len(texts))
		s = s[:min(len(s), limit)]
		texts = append(texts, s)
		return s
	}
	quoted := func(limit int) string {
		raw := must.Get(json.Marshal(attack(limit)))(t)
		return string(raw)
	}
	for _, part := range []string{
		`"handle":"asha","kind":"person","agent":{"name":` + quoted(80) + `,"by":` + quoted(80) + `,"product":` + quoted(80) + `,"acceptingMeetingRequests":true}`,
		`"handle":"rao","kind":"business","returns":{"acceptsReturns":true,"windowDays":3,"covers":` + quoted(300) + `,"supportAgentApprovesUpTo":` +
			quoted(40) + `,"instructions":` + quoted(1000) + `,"note":` + quoted(300) + `}`,
	} {
		profile := `{` + part + `,"name":` + quoted(80) + `,"headline":` + quoted(140) + `,"description":` + quoted(1000) + `,
			"capabilities":[{"id":"cap","name":` + quoted(60) + `,"description":` + quoted(400) + `,"input":` + quoted(200) + `,"output":` + quoted(200) + `,
				"tags":["paper"],"pricing":{"model":"fixed","currency":"INR","amount":12.5,"note":` + quoted(120) + `},"endpoint":"https://cap.example/use"}],
			"needs":[{"id":"need","description":` + quoted(400) + `,"tags":["supply"]}],"tags":["paper"],"languages":["en","hi"],"regions":["IN-KA"],
			"timezone":"Asia/Kolkata",
			"contactPolicy":{"outsideAgentsWithIdentity":true,"anonymous":true,"kinds":["quote_request"],"responseTime":` + quoted(80) + `}}`
		h.PutProfile([]byte(profile))
	}
	_, err := h.Admin().PutMerchant(context.Background(), "rao", []byte(`{"category":`+quoted(60)+`,"city":`+quoted(80)+`,"timezone":"Asia/Kolkata",
		"phone":"+91 80 1234 5678",
		"website":"https://rao.example/?a=1&b=2","address":{"street":`+quoted(200)+`,"postalCode":`+quoted(20)+`,"region":"IN-KA"},
		"hours":[{"day":"monday","opens":"07:30","closes":"11:00"},{"day":"monday","opens":"17:00","closes":"01:00"}],
		"exceptionHours":[{"title":`+quoted(80)+`,"validFrom":"2099-11-08","validThrough":"2099-11-09"}],
		"items":[{"sku":"meal-1","name":`+quoted(120)+`,"description":`+quoted(1000)+`,"unit":`+quoted(40)+`,"category":`+quoted(60)+`,
		"price":{"currency":"INR","amount":"120.50"},
			"image":"https://rao.example/p.png","url":"https://rao.example/meal","tags":["veg"],"availability":"out_of_stock"},{"sku":"meal-2",
			"name":`+quoted(120)+`}]}`))
	require.NoError(t, err)
	write := func(rest string) (p protocol.Post) {
		a := h.Ask("POST", "/api/public/board",
			`{"kind":"offer","title":`+quoted(120)+`,"body":`+quoted(4000)+`,"name":`+quoted(60)+`,"tags":["paper"]`+rest+`}`, "Proof-Of-Work", h.Proof("board"))
		require.Equal(t, 201, a.Code, "%s", a.Body)
		a.Into(&p)
		return p
	}
	post = write("")
	reply = write(`,"inReplyTo":"` + post.ID + `"`)
	h.Receive("https://b.example/ap/posts/1", protocol.Author{Name: attack(80), Node: new("b.example"), Actor: new("javascript:alert(1)"),
		Method: protocol.ByFederation}, attack(120), attack(300))
	return h, texts, post, reply
}

// TestPages_TextStaysText: whatever anyone writes is text on every page.
func TestPages_TextStaysText(t *testing.T) {
	t.Parallel()
	h, texts, post, reply := village(t)
	var shown strings.Builder
	paths := []string{"/", "/agents", "/people", "/merchants", "/board", "/feed", "/@asha", "/@rao", "/board/" + post.ID, "/board/" + reply.ID}
	for _, href := range hrefs(open(h, "/board", 200)) {
		if strings.HasPrefix(href, "/board/post_") && !strings.Contains(href, "#") {
			paths = append(paths, href)
		}
	}
	scripts := func(d *nodetest.Page) []*html.Node { // without data
		return slices.DeleteFunc(d.All("script"), func(n *html.Node) bool { return nodetest.Attr(n, "type") == "application/ld+json" })
	}
	for _, path := range paths {
		d := open(h, path, 200)
		shown.WriteString(d.Text())
		require.Len(t, scripts(d), map[bool]int{true: 3, false: 2}[path == "/merchants"], "%s: the node's own", path) // with that of the place
		others := slices.DeleteFunc(d.All("img"), func(n *html.Node) bool { return strings.HasPrefix(nodetest.Attr(n, "src"), protocol.PicturePath) })
		require.Len(t, others, 1, "%s: the mark of the node and pictures that it made, and nothing else", path)
	}
	for _, s := range texts {
		require.Contains(t, shown.String(), s)
	}
	// What a reader asked for comes back as text too.
	d := open(h, "/board?"+url.Values{"q": {texts[0]}, "tag": {texts[1]}, "x" + texts[2]: {"y"}}.Encode(), 422)
	require.Contains(t, values(d), texts[0])
	require.Len(t, scripts(d), 2)
	open(h, "/"+url.PathEscape("@<script>alert(1)<"), 404)
}

func TestPages_LinesAndLinks(t *testing.T) {
	t.Parallel()
	h := nodetest.New(t)
	body := "First line\n\n  indented https://a.example/b?c=1&d=2.\nhttps://you@evil.example/ javascript:alert(1)"
	id := h.Receive("https://b.example/ap/posts/2", protocol.Author{Name: "B", Node: new("b.example"), Actor: new("https://b.example/ap/agents/b"),
		ERC8004: new("eip155:1:0x8004a169fb4a3325136eb29fa0ceb6d2e539a432:7"), Verified: true, Method: protocol.ByFederation}, "Title", body)
	d := open(h, "/board/"+id, 200)
	require.Contains(t, d.Text(), body, "every line and space is there")
	require.Contains(t, d.Raw, "First line<br><br>  indented", "also for readers that take no style")
	var outside []string
	for _, a := range d.All("a") {
		if href := nodetest.Attr(a, "href"); strings.HasPrefix(href, "http") {
			outside = append(outside, href)
		}
	}
	require.Equal(t, []string{"https://a.example/b?c=1&d=2", "https://b.example/ap/agents/b", "https://b.example/ap/posts/2"}, outside)
	require.Contains(t, d.Text(), "eip155:1:0x8004a169fb4a3325136eb29fa0ceb6d2e539a432:7")
	require.Contains(t, d.Text(), "from b.example")
	require.Equal(t, "https://b.example/ap/posts/2", alternate(d, "application/activity+json"), "the object is where it was made")
}

func TestPages_Headers(t *testing.T) {
	t.Parallel()
	h := nodetest.New(t)
	p := h.Post("Looms")
	for _, path := range []string{"/", "/agents", "/people", "/merchants", "/board", "/board/" + p.ID, "/feed", "/moderation", "/site-map", "/problems/gone"} {
		a := h.Ask("GET", path, "", "Accept", nodetest.Accept)
		require.Equal(t, 200, a.Code, path)
		head := a.Header()
		require.Equal(t, "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'; "+
			"script-src 'self'; worker-src 'self'; manifest-src 'self'; connect-src 'self'; require-trusted-types-for 'script'; trusted-types stoa stoa-push",
			head.Get("Content-Security-Policy"))
		require.Equal(t, web.Policy, head.Get("Content-Security-Policy"))
		require.Equal(t, "nosniff", head.Get("X-Content-Type-Options"))
		require.Equal(t, "same-origin", head.Get("Referrer-Policy"))
		require.Equal(t, "public, no-cache", head.Get("Cache-Control"))
		require.Contains(t, head.Get("Link"), `</openapi.json>; rel="service-desc"`)
		require.Contains(t, h.Ask("HEAD", path, "").Header().Get("Link"), `</.well-known/api-catalog>; rel="api-catalog"`,
			"%s, whatever is asked for (RFC 9727 §3)", path)
		same := h.Ask("GET", path, "", "Accept", nodetest.Accept, "If-None-Match", head.Get("ETag"))
		require.Equal(t, 304, same.Code, path)
		require.Empty(t, same.Body.Bytes())
		only := h.Ask("HEAD", path, "", "Accept", nodetest.Accept).Is(200)
		require.Equal(t, head.Get("ETag"), only.Header().Get("ETag"))
	}
	before := h.Ask("GET", "/board", "", "Accept", nodetest.Accept).Header().Get("ETag")
	h.Post("Another")
	require.Equal(t, 200, h.Ask("GET", "/board", "", "Accept", nodetest.Accept, "If-None-Match", before).Code, "a write shows at once")
	packed := h.Ask("GET", "/board", "", "Accept", nodetest.Accept, "Accept-Encoding", "gzip")
	require.Equal(t, "gzip", packed.Header().Get("Content-Encoding"))
	require.ElementsMatch(t, []string{"Accept", "Accept-Language", "Cookie", "Accept-Encoding"}, packed.Header().Values("Vary"))
	require.Equal(t, 304, h.Ask("GET", "/board", "", "Accept", nodetest.Accept, "Accept-Encoding", "gzip", "If-None-Match", packed.Header().Get("ETag")).Code)

	style := nodetest.Attr(open(h, "/", 200).Find("link", "rel", "stylesheet"), "href")
	a := h.Ask("GET", style, "").Is(200)
	require.Equal(t, "text/css; charset=utf-8", a.Header().Get("Content-Type"))
	require.Equal(t, "public, max-age=31536000, immutable", a.Header().Get("Cache-Control"))
	require.NotContains(t, a.Body.String(), "url(", "the style loads nothing")
	require.Equal(t, 404, h.Ask("GET", "/static/stoa.css", "").Code, "only under the name of its content")
}

// TestPages_Crawl follows every link from the first page: each leads somewhere,
// and every page of the site map that needs no parameter was met.
func TestPages_Crawl(t *testing.T) {
	t.Parallel()
	h, _, _, _ := village(t)
	for i := range 25 {
		h.Post(fmt.Sprint("Post ", i))
	}
	seen := map[string]bool{}
	queue := []string{"/"}
	for len(queue) > 0 {
		path := queue[0]
		queue = queue[1:]
		if seen[path] {
			continue
		}
		seen[path] = true
		a := h.Ask("GET", path, "", "Accept", nodetest.Accept)
		require.Less(t, a.Code, 400, "%s: %s", path, a.Body)
		if !strings.HasPrefix(a.Header().Get("Content-Type"), "text/html") {
			continue
		}
		d := nodetest.ParsePage(t, path, a.Body.String())
		d.WellFormed()
		harmless(d, h.Base)
		queue = append(queue, internal(d, h.Base)...)
	}
	require.Greater(t, len(seen), 60)
	m := nodetest.As[protocol.SiteMap](h.Ask("GET", "/api/public/site-map", ""))
	pages := 0
	for _, e := range m.Items {
		if e.Kind != "page" {
			continue
		}
		pages++
		if !strings.Contains(e.Path, "{") {
			require.True(t, seen[e.Path], "%s is on the site map and no link leads there", e.Path)
		}
	}
	require.Equal(t, len(web.Entries()), pages)
	require.True(t, seen["/@asha"])
	require.True(t, seen["/problems/pow-required"])
}

func TestPages_OtherReaders(t *testing.T) {
	t.Parallel()
	h := nodetest.New(t)
	h.PutProfile([]byte(`{"handle":"asha","name":"Asha","kind":"person"}`))
	p := h.Post("Looms")
	for _, tt := range []struct{ path, accept, location string }{
		{"/@asha", "application/activity+json", "/ap/agents/asha"},
		{"/@asha", "application/json", "/api/public/agents/asha"},
		{"/board", "application/activity+json", "/ap/board"},
		{"/board/" + p.ID, `application/ld+json; profile="https://www.w3.org/ns/activitystreams"`, "/ap/posts/" + p.ID},
		{"/board/" + p.ID, "application/json", "/api/public/board/" + p.ID},
		{"/board?kind=offer&tag=&utm_source=mail", "application/json", "/api/public/board?kind=offer"},
		{"/feed?types=board_post&types=review", "application/json", "/api/public/feed?types=board_post%2Creview"},
	} {
		a := h.Ask("GET", tt.path, "", "Accept", tt.accept)
		require.Equal(t, 303, a.Code, "%s as %s", tt.path, tt.accept)
		require.Equal(t, h.Base+tt.location, a.Header().Get("Location"))
		require.Contains(t, a.Header().Values("Vary"), "Accept")
		require.Equal(t, 200, h.Ask("GET", tt.location, "", "Accept", tt.accept).Code, tt.location)
	}
	d := open(h, "/board/"+p.ID, 200)
	require.Equal(t, h.Base+"/ap/posts/"+p.ID, alternate(d, "application/activity+json"))
	require.Equal(t, h.Base+"/api/public/board/"+p.ID, alternate(d, "application/json"))
	require.Equal(t, h.Base+"/ap/board", alternate(open(h, "/board", 200), "application/activity+json"))

	about := h.Ask("GET", "/", "", "Accept", "*/*")
	require.Equal(t, "text/plain; charset=utf-8", about.Header().Get("Content-Type"))
	require.Equal(t, h.Ask("GET", "/api/public/about", "").Body.String(), about.Body.String())
	code := h.Ask("GET", "/problems/pow-spent", "")
	require.Equal(t, "text/plain; charset=utf-8", code.Header().Get("Content-Type"))
	require.Contains(t, code.Body.String(), "HTTP 401")
	curl := h.Ask("GET", "/board", "", "Accept", "*/*")
	require.Equal(t, "text/html; charset=utf-8", curl.Header().Get("Content-Type"))
}

func TestPages_Errors(t *testing.T) {
	t.Parallel()
	h := nodetest.New(t)
	gone := h.Post("Watches")
	require.NoError(t, h.Admin().Operate(context.Background(), protocol.RemovePost.Operation, protocol.Decision{ID: gone.ID, Reason: "spam"}, nil))
	for _, tt := range []struct {
		path string
		code protocol.Code
	}{
		{"/nothing", protocol.NotFound},
		{"/no/such/path", protocol.NotFound},
		{"/@nobody", protocol.NotFound},
		{"/@Not%20a%20handle", protocol.NotFound},
		{"/board/post_01k9y3v6k8e5w9q2x4z7c1m0ad", protocol.NotFound},
		{"/board/elsewhere", protocol.NotFound},
		{"/problems/no-such-code", protocol.NotFound},
		{"/board/" + gone.ID, protocol.Gone},
		{"/board?kind=rumour", protocol.Validation},
		{"/agents?regoin=IN", protocol.Validation},
		{"/people?kind=person", protocol.Validation},
		{"/merchants?openNow=perhaps", protocol.Validation},
		{"/merchants?after=bogus", protocol.InvalidCursor},
		{"/feed?types=gossip", protocol.Validation},
		{"/site-map?x=1", protocol.Validation},
		{"/@nobody?x=1", protocol.Validation},
		{"/board/" + gone.ID + "?id=1", protocol.Validation},
		{"/board?after=bogus", protocol.InvalidCursor},
		{"/board?q=%zz", protocol.InvalidRequest},
		{"/?x=%zz", protocol.InvalidRequest},
	} {
		d := open(h, tt.path, tt.code.Status())
		require.Contains(t, d.Text(), tt.code.Title())
		require.Contains(t, d.Text(), string(tt.code))
		require.Contains(t, hrefs(d), "/problems/"+string(tt.code))
		require.Equal(t, tt.code == protocol.Gone, strings.Contains(d.Text(), "What was hidden or deleted here"), tt.path)
		require.Less(t, strings.Index(d.Text(), tt.code.Title()), strings.Index(d.Text(), string(tt.code)), "the code is for programs")
		main := &nodetest.Page{T: t, Root: d.All("main")[0]}
		if tt.code == protocol.NotFound || tt.code == protocol.Gone {
			require.Len(t, main.All("a"), 2, "%s: one way on, and what the code means", tt.path)
			require.NotNil(t, main.Find("a", "class", "button"), tt.path)
		}
		a := h.Ask("GET", tt.path, "", "Accept", nodetest.Accept)
		require.Contains(t, a.Body.String(), a.Header().Get("Request-Id"), tt.path)
		require.Equal(t, "no-store", a.Header().Get("Cache-Control"))
		require.Empty(t, a.Header().Get("ETag"))
		require.Equal(t, tt.code, h.Ask("GET", tt.path, "").Problem().Code, "%s: others get a problem document", tt.path)
	}
	require.Equal(t, 400, h.Ask("GET", "/board?q=%zz&kind=offer", "", "Accept", "application/json").Code, "nobody is sent to a listing without the filter")
	refused := h.Ask("POST", "/people", "", "Accept", nodetest.Accept).Is(405)
	require.Equal(t, "GET, HEAD", refused.Header().Get("Allow"))
	require.Contains(t, refused.Body.String(), protocol.MethodNotAllowed.Title())

	bad := h.Ask("GET", "/board", "", "Accept", nodetest.Accept, "Authorization", "Bearer stoa_nothing")
	require.Equal(t, protocol.Unauthorized, bad.Problem().Code, "a credential that fails is never passed over")
	require.NotEmpty(t, bad.Header().Get("WWW-Authenticate"))

	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	r := httptest.NewRequest("GET", h.Base+"/board?q=x", nil).WithContext(ctx)
	r.Header.Set("Accept", nodetest.Accept)
	w := httptest.NewRecorder()
	h.Handler().ServeHTTP(w, r)
	require.Equal(t, 500, w.Code)
	require.Equal(t, "text/html; charset=utf-8", w.Header().Get("Content-Type"))
	require.Contains(t, w.Body.String(), w.Header().Get("Request-Id"))
	require.NotContains(t, strings.ToLower(w.Body.String()), "sql")
	require.NotContains(t, w.Body.String(), "context")
}

func TestPages_RateLimit(t *testing.T) {
	t.Parallel()
	h := nodetest.New(t, func(c *node.Config) { c.Dev, c.AllowPrivatePeers, c.ReadRate = false, true, 1 })
	for range 20 {
		if a := h.Ask("GET", "/board", "", "Accept", nodetest.Accept); a.Code != 200 {
			require.Equal(t, 429, a.Code)
			require.NotEmpty(t, a.Header().Get("Retry-After"))
			d := nodetest.ParsePage(t, "/board", a.Body.String())
			require.Contains(t, d.Text(), "Try again in")
			return
		}
	}
	t.Fatal("no limit was met")
}

// TestPages_Thread: a post shows whether it is resolved and how, its place in a
// thread, and, to its author alone, that it is hidden and why.
func TestPages_Thread(t *testing.T) {
	t.Parallel()
	h := nodetest.New(t)
	token := h.Agent("asha", nodetest.OpenPolicy)
	var question protocol.Post
	h.Ask("POST", "/api/public/board", `{"kind":"question","title":"Who has paper?","body":"Hand-made."}`, "Authorization", token).Into(&question)
	answer := h.Reply("", question.ID, "I have some")
	deep := h.Reply("", answer.ID, "Is it white?")
	require.NotContains(t, open(h, "/board/"+question.ID, 200).Text(), "resolved")
	a := h.Ask("POST", "/api/public/board", `{"kind":"resolution","title":"Thanks","body":"Found it.","inReplyTo":"`+question.ID+`"}`, "Authorization", token)
	resolution := nodetest.As[protocol.Post](a)

	d := open(h, "/board/"+question.ID, 200)
	require.Contains(t, d.Text(), "resolved")
	require.Contains(t, hrefs(d), "/board/"+resolution.ID)
	require.Contains(t, d.Text(), "Is it white?")
	require.NotContains(t, d.Text(), "2 replies", "that is how many answer the question, and not how many are shown")
	outer, inner := d.Find("article", "id", answer.ID), d.Find("article", "id", deep.ID)
	require.Equal(t, outer.Parent, inner.Parent.Parent.Parent, "a reply is below the one it answers")
	require.Contains(t, hrefs(open(h, "/board/"+answer.ID, 200)), "/board/"+question.ID+"?thread=true")
	require.ElementsMatch(t, []string{"Who has paper?"}, listItems(open(h, "/board", 200)), "the list has what begins a thread")
	require.Contains(t, open(h, "/board", 200).Text(), "2 replies")
	require.ElementsMatch(t, []string{"Thanks"}, listItems(open(h, "/board?kind=resolution", 200)), "and with a filter everything that matches")
	d = open(h, "/board/"+question.ID+"?thread=true&limit=1", 200)
	require.Contains(t, open(h, nodetest.Attr(d.Find("a", "rel", "next"), "href"), 200).Text(), "to another reply", "which is on the page before")
	d = open(h, "/board/"+deep.ID, 200)
	require.Subset(t, hrefs(d), []string{"/board/" + question.ID, "/board/" + answer.ID}, "the thread's beginning and the post that is answered")
	require.Contains(t, open(h, "/board?resolved=true", 200).Text(), "Who has paper?")
	require.NotContains(t, open(h, "/board?resolved=false", 200).Text(), "Who has paper?")
	require.Contains(t, open(h, "/board", 200).Text(), "resolved")

	require.NoError(t, h.Admin().Operate(context.Background(), protocol.HidePost.Operation, protocol.Decision{ID: question.ID, Reason: "for the test"}, nil))
	open(h, "/board/"+question.ID, 410)
	own := h.Ask("GET", "/board/"+question.ID, "", "Accept", nodetest.Accept, "Authorization", token).Is(200)
	require.Contains(t, own.Body.String(), "for the test")
	require.Equal(t, "private, no-store", own.Header().Get("Cache-Control"))
}

// The parts of a row are separated by spaces, for readers that take no style.
func TestPages_WordsArePart(t *testing.T) {
	t.Parallel()
	h := nodetest.New(t)
	token := h.Agent("asha", nodetest.OpenPolicy)
	p := h.Post("Looms")
	h.Reply("", p.ID, "One")
	h.Ask("POST", "/api/public/board", `{"kind":"requirement","title":"Paper","body":"White."}`, "Authorization", token).Is(201)
	glued := regexp.MustCompile(`[a-z][0-9]{1,2} [A-Z][a-z]{2} 20|UTC[^ ]|[a-z]unverified|[a-mo-z]verified`)
	for _, path := range []string{"/", "/board", "/feed", "/@asha", "/board/" + p.ID} {
		require.Empty(t, glued.FindAllString(open(h, path, 200).Text(), -1), path)
	}
}

// TestPages_Head: search engines and programs that show a preview learn what a page is
// and where it is; a selection of a listing is not theirs to keep.
func TestPages_Head(t *testing.T) {
	t.Parallel()
	h := nodetest.New(t)
	h.Agent("asha", nodetest.OpenPolicy)
	p := h.Post("Looms")
	for path, sort := range map[string]string{"/": "website", "/board": "website", "/board/" + p.ID: "article", "/@asha": "profile", "/problems/gone": "website"} {
		d := open(h, path, 200)
		require.Equal(t, h.Base+path, nodetest.Attr(d.Find("link", "rel", "canonical"), "href"))
		require.Equal(t, h.Base+path, nodetest.Attr(d.Find("meta", "property", "og:url"), "content"))
		require.Equal(t, sort, nodetest.Attr(d.Find("meta", "property", "og:type"), "content"), path)
		require.NotEmpty(t, nodetest.Attr(d.Find("meta", "property", "og:title"), "content"), path)
		require.NotEmpty(t, nodetest.Attr(d.Find("meta", "property", "og:description"), "content"), path)
		require.Nil(t, d.Find("meta", "name", "robots"), path)
		require.Equal(t, h.Base+path, nodetest.Attr(open(h, path+"?utm_source=mail", 200).Find("link", "rel", "canonical"), "href"))
	}
	require.NotContains(t, nodetest.Attr(open(h, "/board/"+p.ID, 200).Find("meta", "name", "description"), "content"), "\n")
	for _, path := range []string{"/board?kind=offer", "/agents?limit=1", "/board/" + p.ID + "?thread=true"} {
		d := open(h, path, 200)
		require.Nil(t, d.Find("link", "rel", "canonical"), path)
		require.Equal(t, "noindex, follow", nodetest.Attr(d.Find("meta", "name", "robots"), "content"), path)
	}
}

// TestPages_Moderation: the log says what was done and why, in text, and leads to
// what can still be read.
func TestPages_Moderation(t *testing.T) {
	t.Parallel()
	h := nodetest.New(t)
	first, second := h.Post("Watches"), h.Post("Looms")
	require.NoError(t, h.Admin().Operate(t.Context(), protocol.HidePost.Operation, protocol.Decision{ID: first.ID, Reason: `<b>cheap</b> "watches"`}, nil))
	require.NoError(t, h.Admin().Operate(t.Context(), protocol.HidePost.Operation, protocol.Decision{ID: second.ID, Reason: "a mistake"}, nil))
	require.NoError(t, h.Admin().Operate(t.Context(), protocol.RestorePost.Operation, protocol.Decision{ID: second.ID, Reason: "it was a mistake"}, nil))
	d := open(h, "/moderation", 200)
	for _, s := range []string{"Post hidden", "Post restored", first.ID, `<b>cheap</b> "watches"`, "it was a mistake"} {
		require.Contains(t, d.Text(), s)
	}
	require.NotContains(t, hrefs(d), "/board/"+first.ID)
	require.Contains(t, hrefs(d), "/board/"+second.ID)
	require.Contains(t, open(h, "/moderation?limit=1", 200).Text(), "Older entries")
	open(h, "/moderation?kind=post", 422)
}

// TestPages_Handle: a handle in capitals, as phones type it, leads to the page as it
// is named, with its query; what is below a page and not there names the page.
func TestPages_Handle(t *testing.T) {
	t.Parallel()
	h := nodetest.New(t)
	h.Hosted("asha")
	for path, to := range map[string]string{
		"/@Asha": "/@asha", "/@ASHA?after=x%20y": "/@asha?after=x%20y", "/@aSHA/feed.atom": "/@asha/feed.atom",
		"/@Asha/feed.json?limit=2": "/@asha/feed.json?limit=2",
	} {
		for _, method := range []string{"GET", "HEAD"} {
			a := h.Ask(method, path, "", "Accept", "text/html")
			require.Equal(t, 308, a.Code, path)
			require.Equal(t, to, a.Header().Get("Location"))
		}
	}
	require.Equal(t, 308, h.Ask("GET", "/@Asha", "", "Accept", "application/activity+json").Code)
	require.Equal(t, 404, h.Ask("GET", "/@Evil.example", "", "Accept", "text/html").Code)
	require.Equal(t, "/@asha", nodetest.As[protocol.CurrentPage](h.Ask("GET", "/api/public/page?path=/@Asha", "")).Path)

	for _, path := range []string{"/@asha/nothing", "/@Asha/nothing"} {
		a := h.Ask("GET", path, "", "Accept", "text/html").Is(404)
		require.NotContains(t, a.Body.String(), "/api/public/site-map")
		require.Contains(t, hrefs(nodetest.ParsePage(t, path, a.Body.String())), "/@asha")
	}
	require.Contains(t, h.Ask("GET", "/@asha/nothing", "").Body.String(), "/api/public/site-map", "programs are told where the site map is")
}

// TestPages_Problems lists every error code, for people and for programs.
func TestPages_Problems(t *testing.T) {
	t.Parallel()
	h := nodetest.New(t)
	d := open(h, "/problems", 200)
	text := h.Ask("GET", "/problems", "").Body.String()
	var page struct {
		Kind string
		Data []struct{ Code protocol.Code }
	}
	h.Ask("GET", "/api/public/page?path=/problems", "").Into(&page)
	require.Equal(t, "problems", page.Kind)
	require.Len(t, page.Data, len(protocol.Codes()))
	for _, c := range protocol.Codes() {
		require.Contains(t, hrefs(d), "/problems/"+string(c))
		require.Contains(t, text, string(c)+" (HTTP ")
	}
	require.Equal(t, 422, h.Ask("GET", "/problems?x=y", "", "Accept", "text/html").Code)
}
