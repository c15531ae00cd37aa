package web

import (
	"mime"
	"net/http"
	"strconv"
	"strings"
)

// A shape is a form in which a page can be answered.
type shape int

const (
	hypertext shape = iota
	activityJSON
	plainJSON
	plainText
	markdownText
)

// accepted chooses the shape by the Accept field (RFC 9110 §12.5.1). JSON of either kind must be
// named, with at least the same quality as HTML. A client that accepts anything gets the page or,
// when the page has a plain text, that: only clients that name HTML get HTML then. Markdown must be named
// too, and liked more than JSON.
func accepted(r *http.Request, p page) shape {
	likes := r.Header.Get("Accept")
	html, _ := quality(likes, "text/html")
	json, _ := quality(likes, "application/json")
	if q, named := quality(likes, markdownMedia); named && q > 0 && q >= html && (q > json || p.twin == nil) {
		return markdownText
	}
	if p.activity != "" {
		for _, media := range []string{"application/activity+json", "application/ld+json"} {
			if q, named := quality(likes, media); named && q > 0 && q >= html {
				return activityJSON
			}
		}
	}
	if p.twin != nil {
		if _, named := quality(likes, "application/json"); named && json > 0 && json >= html {
			return plainJSON
		}
	}
	if p.text != nil && !WantsHTML(r) {
		return plainText
	}
	return hypertext
}

// WantsHTML reports whether a client names HTML in Accept, as every browser does. Others get
// errors as problem documents.
func WantsHTML(r *http.Request) bool {
	likes := r.Header.Get("Accept")
	for _, media := range []string{"text/html", "application/xhtml+xml"} {
		if q, named := quality(likes, media); named && q > 0 {
			return true
		}
	}
	return false
}

// quality returns the quality that an Accept field gives a media type, from 0 to 1, and whether
// the field names the type itself and not only a range that contains it. The most specific range
// decides; a range that cannot be parsed is ignored.
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
			if weight, err = strconv.ParseFloat(given, 64); err != nil || !(weight >= 0 && weight <= 1) { // excludes NaN
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
