package httpapi

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"stoa/node/hall"
	"stoa/protocol"
)

// An answer is the rendered answer of a successful operation.
type answer struct {
	status       int
	media        string
	cacheControl string
	etag         string // "" when the answer has no validator
	body         []byte
}

func answerOf(op *protocol.Operation, body []byte) *answer {
	a := &answer{status: op.HTTP.Status, media: op.Media, body: body}
	if a.media == "" {
		a.media = "application/json"
	}
	switch {
	case op.Conditional:
		a.cacheControl = "private, no-cache"
	case op.NoStore || !op.ReadOnly:
		a.cacheControl = "no-store"
	case op.MaxAge > 0:
		a.cacheControl = "public, max-age=" + strconv.Itoa(int(op.MaxAge/time.Second))
	default:
		a.cacheControl = "public, no-cache"
	}
	if op.ReadOnly && !op.NoStore || op.Conditional || op.Versioned {
		a.etag = hall.Tag(body)
	}
	return a
}

func (a *answer) write(w http.ResponseWriter, r *http.Request) {
	head := w.Header()
	head["Cache-Control"] = []string{a.cacheControl}
	if a.etag != "" {
		head["Etag"] = []string{a.etag}
		if a.cacheControl != "no-store" && Matches(r.Header.Get("If-None-Match"), a.etag) {
			w.WriteHeader(http.StatusNotModified)
			return
		}
	}
	if a.status == http.StatusNoContent {
		w.WriteHeader(a.status)
		return
	}
	head["Content-Type"] = []string{a.media}
	head["Content-Length"] = []string{strconv.Itoa(len(a.body))}
	w.WriteHeader(a.status)
	w.Write(a.body)
}

// Matches reports whether an If-None-Match field names the entity tag (RFC 9110
// §13.1.2).
func Matches(field, etag string) bool {
	if field == "" {
		return false
	}
	for tag := range strings.SplitSeq(field, ",") {
		tag = strings.TrimPrefix(strings.TrimSpace(tag), "W/")
		if tag == etag || tag == "*" {
			return true
		}
	}
	return false
}
