package web

import (
	"mime"
	"net/http"
	"strconv"
	"strings"
)

// A shape is what a page is answered with.
type shape int

const (
	hypertext shape = iota
	activityJSON
	plainJSON
	plainText
)

// accepted chooses by the Accept field (RFC 9110 §12.5.1). JSON of either sort
// must be named to be chosen, and be liked at least as well as HTML: whoever
// takes anything gets the page, except where a page has a plain text, which
// goes to all who do not name HTML.
func accepted(r *http.Request, p page) shape {
	likes := r.Header.Get("Accept")
	html, _ := quality(likes, "text/html")
	if p.activity != "" {
		for _, media := range []string{"application/activity+json", "application/ld+json"} {
			if q, named := quality(likes, media); named && q > 0 && q >= html {
				return activityJSON
			}
		}
	}
	if p.twin != nil {
		if q, named := quality(likes, "application/json"); named && q > 0 && q >= html {
			return plainJSON
		}
	}
	if p.text != nil && !WantsHTML(r) {
		return plainText
	}
	return hypertext
}

// WantsHTML reports a reader that names HTML as something it takes, as every
// browser does. Others get errors as problem documents.
func WantsHTML(r *http.Request) bool {
	likes := r.Header.Get("Accept")
	for _, media := range []string{"text/html", "application/xhtml+xml"} {
		if q, named := quality(likes, media); named && q > 0 {
			return true
		}
	}
	return false
}

// quality is how much an Accept field likes a media type, from 0 to 1, and
// whether it names the type and not only a range around it. The most specific
// range decides; one that cannot be read is passed over.
func quality(accept, media string) (q float64, named bool) {
	best := 0
	for part := range strings.SplitSeq(accept, ",") {
		name, params, err := mime.ParseMediaType(part)
		if err != nil {
			continue
		}
		level := 0
		switch group, _, _ := strings.Cut(media, "/"); name {
		case media:
			level = 3
		case group + "/*":
			level = 2
		case "*/*":
			level = 1
		}
		if level == 0 || level < best {
			continue
		}
		weight := 1.0
		if given, ok := params["q"]; ok {
			if weight, err = strconv.ParseFloat(given, 64); err != nil || !(weight >= 0 && weight <= 1) { // NaN is neither
				continue
			}
		}
		if level > best {
			q = 0
		}
		best, q = level, max(q, weight)
	}
	return q, best == 3
}
