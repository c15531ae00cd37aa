package wellknown

import (
	"context"
	"encoding/xml"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"stoa/protocol"
)

const sitemapPath = "/sitemap.xml"

// Limits of sitemaps.org 0.9 are 50,000 URLs or sitemaps and 50 MiB a file. Ours
// hold less, so that making one takes some milliseconds. The parts are at the
// address of the index with a query, because a site map may list only URLs of its own
// directory and below.
const (
	sitemapPart  = 2500
	sitemapsMost = 50_000 // parts in the index; the oldest posts go first
	sitemapMedia = "application/xml; charset=utf-8"
	sitemapHead  = `<?xml version="1.0" encoding="UTF-8"?>` + "\n"
	sitemapSpace = ` xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">` + "\n"
)

// sitemap is the index, or the part that the query names.
func (w *WellKnown) sitemap(r *http.Request) (document, error) {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil || len(query) > 1 {
		return document{}, protocol.Errorf(protocol.NotFound, "there is no such part; the index lists all parts")
	}
	agents, posts, err := w.c.Site.Size(r.Context())
	if err != nil {
		return document{}, err
	}
	d := document{media: sitemapMedia, maxAge: partAge}
	switch {
	case len(query) == 0:
		d.body = w.sitemapIndex(agents, posts)
	case query.Get("part") == "pages":
		d.body, err = w.urlset(w.pages())
	case query.Has("agents"):
		d.body, err = w.sitemapPart(r, "agents", query.Get("agents"), agents, w.c.Site.Agents)
	case query.Has("posts"):
		d.body, err = w.sitemapPart(r, "posts", query.Get("posts"), posts, w.c.Site.Posts)
	default:
		err = protocol.Errorf(protocol.NotFound, "there is no such part; the index lists all parts")
	}
	return d, err
}

func (w *WellKnown) sitemapIndex(agents, posts int64) []byte {
	var b strings.Builder
	b.WriteString(sitemapHead + "<sitemapindex" + sitemapSpace)
	add := func(query string) {
		b.WriteString("<sitemap><loc>" + escape(w.base+sitemapPath+"?"+query) + "</loc></sitemap>\n")
	}
	add("part=pages")
	ofAgents, ofPosts := divide(agents, sitemapPart), divide(posts, sitemapPart)
	for n := int64(1); n <= min(ofAgents, sitemapsMost/2); n++ {
		add("agents=" + strconv.FormatInt(n, 10))
	}
	for n := max(1, ofPosts-sitemapsMost/2+2); n <= ofPosts; n++ {
		add("posts=" + strconv.FormatInt(n, 10))
	}
	b.WriteString("</sitemapindex>\n")
	return []byte(b.String())
}

func (w *WellKnown) sitemapPart(
	r *http.Request, kind, number string, upTo int64, list func(context.Context, int64, int64) ([]Location, error),
) ([]byte, error) {
	n, err := partNumber(number, upTo, sitemapPart)
	if err != nil {
		return nil, err
	}
	return w.parts.get(r.Context(), "sitemap "+kind+" "+number, func(ctx context.Context) ([]byte, error) {
		locations, err := list(ctx, (n-1)*sitemapPart, n*sitemapPart)
		if err != nil {
			return nil, err
		}
		return w.urlset(locations)
	})
}

func (w *WellKnown) pages() []Location {
	var all []Location
	for _, path := range w.c.Site.Pages() {
		all = append(all, Location{Path: path})
	}
	return all
}

func (w *WellKnown) urlset(locations []Location) ([]byte, error) {
	var b strings.Builder
	b.WriteString(sitemapHead + "<urlset" + sitemapSpace)
	for _, l := range locations {
		b.WriteString("<url><loc>" + escape(w.base+l.Path) + "</loc>")
		if !l.Changed.IsZero() {
			b.WriteString("<lastmod>" + l.Changed.UTC().Format(time.RFC3339) + "</lastmod>")
		}
		b.WriteString("</url>\n")
	}
	b.WriteString("</urlset>\n")
	return []byte(b.String()), nil
}

func escape(s string) string {
	var b strings.Builder
	xml.EscapeText(&b, []byte(s))
	return b.String()
}

// robots keeps crawlers out of what is read with a token (RFC 9309), and says
// what the rest may be used for (contentsignals.org) and where the lists of it
// are (sitemaps.org, ARD 0.9).
func (w *WellKnown) robots(*http.Request) (document, error) {
	rules := "User-agent: *\n"
	if w.c.Signal != "" {
		rules += "Content-Signal: " + w.c.Signal + "\n"
	}
	for _, path := range []string{"/api/public/threads/", "/api/owner/", "/api/operator/", "/pay/", "/bids/", "/bid-link"} {
		rules += "Disallow: " + path + "\n"
	}
	rules += "Allow: /\n\n"
	if w.c.Site != nil {
		rules += "Sitemap: " + w.base + sitemapPath + "\n"
	}
	rules += "Agentmap: " + w.base + protocol.ARDCatalogPath + "\n"
	return document{media: "text/plain; charset=utf-8", body: []byte(rules), maxAge: 24 * time.Hour}, nil
}
